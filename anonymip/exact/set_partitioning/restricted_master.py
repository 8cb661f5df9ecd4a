"""The restricted master of set partitioning: columns, linear program, integer program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, identity, vstack

from anonymip.enumeration.cluster_sets import Columns
from anonymip.exact.set_partitioning.rank_one_cuts import RankOneCut, coefficients, right_sides
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.solvers import Named, SolverOptions, SolverResult, StandardForm, solve_form
from anonymip.solvers.linear_programs import GrowingProgram
from anonymip.tolerances import same_loss

#: What a row costs that no column holds, in units.
_ARTIFICIAL = 1e4
#: Rows that are left out count from this share on.
_USED = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class Covering:
    """What sums of columns have to be."""

    sides: Floats  # (t,) columns that the rows of each type lie in, in sum
    most: int  # columns at most
    counted: bool  # whether that is a row of the program, which the others do not imply
    price: float  # of a row that is left out; infinite where none may be

    @property
    def types(self) -> int:
        """Number of row types."""
        return len(self.sides)

    @property
    def coverage(self) -> Ints:
        """(t,) the sides, as whole numbers."""
        return self.sides.astype(np.int64)

    @property
    def may_leave_out(self) -> bool:
        """Whether rows may be left out."""
        return bool(np.isfinite(self.price))


class KnownColumns:
    """All columns that were ever added, each once, or again where it became cheaper."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._costs: list[float] = []
        self._all = Columns.none()

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._costs)

    def add(self, columns: Columns) -> Columns:
        """Add what is not known yet, or costs more as known, and return it."""
        new = np.zeros(len(columns), np.bool_)
        for column, cost in enumerate(columns.costs.tolist()):
            key = columns.of(column).tobytes()
            place = self._places.get(key)
            known = np.inf if place is None else self._costs[place]
            if cost < known and (place is None or not same_loss(cost, known)):
                self._places[key] = len(self._costs)
                self._costs.append(cost)
                new[column] = True
        added = columns.only(new)
        self._all = self._all.and_also(added)
        return added

    def place(self, members: Codes) -> int | None:
        """Return which column has these members; None if it is not known."""
        return self._places.get(members.tobytes())

    def all(self) -> Columns:
        """Return all columns in the order in which they were added."""
        return self._all


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Duals of the master: (t,) of row types, of the count, (q,) of cuts, in units of the loss.

    Those of the number of columns and of cuts are at least 0. What is older than some cuts of the
    master knows nothing of these.
    """

    duals: Floats
    count: float = 0.0
    cuts: Floats = field(default_factory=lambda: np.empty(0))
    known: tuple[RankOneCut, ...] = ()  # the q cuts

    def mixed(self, other: Multipliers, share: float) -> Multipliers:
        """Return a share of these and the rest of others, which may know fewer cuts."""
        cuts = np.zeros(len(self.cuts))
        cuts[: len(other.cuts)] = other.cuts
        return Multipliers(
            share * self.duals + (1.0 - share) * other.duals,
            share * self.count + (1.0 - share) * other.count,
            share * self.cuts + (1.0 - share) * cuts,
            self.known,
        )

    @property
    def paid_cuts(self) -> list[tuple[RankOneCut, float]]:
        """The cuts that have a dual, with it."""
        duals = zip(self.known, self.cuts.tolist(), strict=True)
        return [(cut, dual) for cut, dual in duals if dual > 0]

    def terms(self, rules: Covering) -> Floats:
        """Return the terms of the bound of feasible duals."""
        sides = right_sides(self.known, rules.coverage)
        return np.concatenate(
            [rules.sides * self.duals, -self.cuts * sides, [-self.count * rules.most]]
        )

    def with_cuts(self, reduced: Floats, incidence: csr_array) -> Floats:
        """Return (c,) reduced costs with what columns of a (c, t) incidence pay for cuts."""
        if not self.known:
            return reduced
        return np.asarray(reduced + coefficients(self.known, incidence) @ self.cuts, np.float64)


@dataclass(frozen=True, eq=False)
class MasterPoint:
    """An optimal vertex of the restricted master."""

    value: float
    shares: Floats  # (c,) of the known columns
    multipliers: Multipliers
    feasible: bool  # whether it leaves out no row that may not be


class RestrictedMaster:
    """The restricted master, which grows by columns and cuts and goes on from its last basis.

    Its rows are the row types, the number of columns where that is counted, and the cuts. Its first
    columns leave a row of a type out: at a price where that is allowed, else at one that no release
    pays. Costs are divided by the unit, so that a solver's tolerances fit them.
    """

    def __init__(self, rules: Covering, unit: float) -> None:
        self.rules, self.unit = rules, unit
        self.known = KnownColumns()
        self.cuts: list[RankOneCut] = []
        lower, upper = rules.sides, rules.sides
        if rules.counted:
            lower, upper = np.append(lower, -np.inf), np.append(upper, float(rules.most))
        self._model = GrowingProgram(lower, upper)
        price = rules.price / unit if rules.may_leave_out else _ARTIFICIAL
        single = vstack([identity(rules.types), csc_array((len(lower) - rules.types, rules.types))])
        self._model.add_columns(np.full(rules.types, price), csc_array(single))

    def add(self, columns: Columns) -> int:
        """Add the columns that are new, and return how many these are."""
        new = self.known.add(columns)
        if len(new):
            incidence = new.incidence(self.rules.types)
            counted = csc_array(np.ones((int(self.rules.counted), len(new))))
            rows = vstack([incidence, counted, coefficients(self.cuts, incidence.T).T])
            self._model.add_columns(new.costs / self.unit, csc_array(rows))
        return len(new)

    def add_cuts(self, cuts: Sequence[RankOneCut]) -> None:
        """Add inequalities that every release obeys."""
        incidence = self.known.all().incidence(self.rules.types)
        alone = csc_array((len(cuts), self.rules.types))
        rows = csr_array(hstack([alone, coefficients(cuts, incidence.T).T]))
        sides = right_sides(cuts, self.rules.coverage).astype(np.float64)
        self._model.add_rows(rows, np.full(len(cuts), -np.inf), sides)
        self.cuts += cuts

    def require(self, times: Ints) -> None:
        """Have the first columns used at least so many times, until other times are required."""
        columns = self.rules.types + np.arange(len(times))
        self._model.require_columns(columns, times.astype(np.float64))

    def reduced_costs(self, multipliers: Multipliers, columns: Columns) -> Floats:
        """Return (c,) the reduced costs of columns."""
        reduced = columns.reduced_costs(multipliers.duals) + multipliers.count
        return multipliers.with_cuts(reduced, columns.incidence(self.rules.types).T)

    def solve(self, budget: Budget) -> MasterPoint | None:
        """Return an optimal vertex; None if time ended."""
        found = self._model.solve(budget)
        if found is None:
            return None
        t = self.rules.types
        duals = self.unit * found.duals
        own = t + int(self.rules.counted)
        return MasterPoint(
            value=self.unit * found.value,
            shares=found.point[t:],
            multipliers=Multipliers(
                np.minimum(duals[:t], self.rules.price),
                float(max(-duals[t], 0.0)) if self.rules.counted else 0.0,
                np.maximum(-duals[own:], 0.0),
                tuple(self.cuts),
            ),
            feasible=self.rules.may_leave_out or bool((found.point[:t] <= _USED).all()),
        )


@dataclass(frozen=True)
class Mip:
    """A solver of integer programs, with its options, and the budget of the next one."""

    solver: str = "highs"
    options: SolverOptions = field(default_factory=SolverOptions)
    budget: Budget = field(default_factory=Budget)

    def within(self, budget: Budget) -> Mip:
        """Return the same with another budget."""
        return replace(self, budget=budget)

    def solve(self, form: StandardForm, start: Sequence[float] | None = None) -> SolverResult:
        """Solve a program, from values of its variables or from none."""
        for variable, value in zip(form.variables, start or (), strict=False):
            variable.value = value
        started = start is not None
        return solve_form(form, self.solver, self.options, start=started, budget=self.budget)


def solve_whole(
    rules: Covering,
    columns: Columns,
    mip: Mip,
    *,
    start: Ints | None = None,
    cuts: Sequence[RankOneCut] = (),
) -> tuple[SolverResult, Ints | None]:
    """Return what a solver says of the cheapest sum of columns, and (c,) how often it takes each.

    What is left out pays its price in the costs of what is not. `start` is (c,) how often a known
    sum takes each column; cuts strengthen the relaxation. The search need not end. Raises
    SolverError.
    """
    held = columns.incidence(rules.types)
    most = np.minimum(often_at_most(held, rules.sides), float(rules.most))
    saved = rules.price if rules.may_leave_out else 0.0
    least = np.full(rules.types, -np.inf) if rules.may_leave_out else rules.sides
    rows, sides = [held], [rules.sides]
    if rules.counted:
        rows.append(csc_array(np.ones((1, len(columns)))))
        sides.append(np.array([float(rules.most)]))
    if cuts:
        rows.append(csc_array(coefficients(cuts, csr_array(held.T)).T))
        sides.append(right_sides(cuts, rules.coverage).astype(np.float64))
    upper = np.concatenate(sides)
    lower = np.concatenate([least, np.full(len(upper) - rules.types, -np.inf)])
    form = whole_form(
        columns.costs - saved * columns.sizes,
        csr_array(vstack(rows)),
        (lower, upper),
        most,
        offset=saved * float(rules.sides.sum()),
    )
    result = mip.solve(form, None if start is None else start.tolist())
    if result.values is None:
        return result, None
    return result, np.rint(result.values).astype(np.int64)


def often_at_most(incidence: csc_array | csr_array, sides: Floats | Ints) -> Floats:
    """Return (c,) how often a sum can take each column, given its members column by column."""
    fits = np.floor(sides[incidence.indices] / incidence.data)
    return np.asarray(np.minimum.reduceat(fits, incidence.indptr[:-1]), np.float64)


def whole_form(
    cost: Floats,
    matrix: csr_array,
    sides: tuple[Floats, Floats],
    most: Floats,
    *,
    offset: float = 0.0,
    integer: Flags | None = None,
) -> StandardForm:
    """Return the program of columns, none taken more than so often, at the least cost.

    `integer` (c,) says which are taken whole times; all, if it is not given.
    """
    return StandardForm(
        variables=tuple(Named(f"column_{at}") for at in range(len(cost))),
        constraints=tuple(Named(f"row_{at}") for at in range(len(sides[0]))),
        cost=cost,
        offset=offset,
        matrix=matrix.astype(np.float64),
        row_lower=sides[0],
        row_upper=sides[1],
        lower=np.zeros(len(cost)),
        upper=most,
        integer=np.ones(len(cost), np.bool_) if integer is None else integer,
        maximize=False,
    )
