"""A pool of columns that are all known: its relaxation, its integer program, branches of it.

The relaxation holds only the columns that its duals ask for. One artificial column covers
everything at the cost of the cutoff: the program always has a point, its value is the least of the
cutoff and of what the pool allows, and a pool without a selection needs no large costs to be seen.

Branches are on how often two row types are together [1]_. In a whole solution the number of columns
that hold both of two types is whole. Where each of the two is covered once, it is 0 or 1, and
either branch only loses columns: together, those that hold one of the two; apart, those that hold
both. Elsewhere a branch is a row, and where all pairs are whole, it bounds the amount of one
column.

References
----------
.. [1] D. M. Ryan, B. A. Foster, "An integer programming approach to scheduling", in: Computer
   Scheduling of Public Transport (1981) 269-280.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, vstack

from anonymip.exact.set_partitioning.mixed_integer_cuts import Rows, mixed_integer_cuts
from anonymip.exact.set_partitioning.rank_one_cuts import held_together
from anonymip.exact.set_partitioning.restricted_master import Mip, often_at_most, whole_form
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverResult
from anonymip.solvers.linear_programs import Basis, GrowingProgram, Simplex
from anonymip.tolerances import DUAL_ROUNDING, INTEGRALITY


@dataclass(frozen=True, eq=False)
class Pool:
    """Columns, of which a selection covers every row type as often as it must."""

    incidence: csr_array  # (c, t) int64, how many members of each row type each column has
    costs: Floats  # (c,)
    coverage: Ints  # (t,) int64, how often each type is covered, at least once
    count_limit: int | None  # columns of a selection at most; None where coverage alone decides

    @cached_property
    def by_type(self) -> csc_array:
        """The incidence, compressed by types."""
        return csc_array(self.incidence)

    @cached_property
    def sizes(self) -> Ints:
        """(c,) members of each column."""
        return np.asarray(self.incidence.sum(axis=1), np.int64).ravel()

    @cached_property
    def most(self) -> int:
        """The most columns that a selection can hold."""
        most = int(self.coverage.sum()) // int(self.sizes.min(initial=2**31))
        return most if self.count_limit is None else min(most, self.count_limit)

    @cached_property
    def limits(self) -> Floats:
        """(c,) how often a selection can hold each column."""
        return often_at_most(self.incidence, self.coverage)

    def only(self, columns: Ints) -> Pool:
        """Return the pool of some columns, by number."""
        return replace(
            self, incidence=csr_array(self.incidence[columns]), costs=self.costs[columns]
        )

    def marked(self, columns: Codes | Ints) -> Flags:
        """Return (c,) which columns are among some, by number."""
        marked = np.zeros(len(self.costs), np.bool_)
        marked[columns] = True
        return marked

    def holds(self, type_: int, columns: Ints) -> Flags:
        """Return whether columns, by number, hold a type."""
        start, stop = self.by_type.indptr[type_ : type_ + 2]
        return self.marked(self.by_type.indices[start:stop])[columns]

    def selection(self, columns: Ints, weights: Floats) -> Ints | None:
        """Return the columns, repeated, that whole weights take; None if they are no selection."""
        amounts = np.rint(weights).astype(np.int64)
        if np.abs(weights - amounts).max(initial=0.0) > INTEGRALITY:
            return None
        chosen = np.sort(np.repeat(columns, np.maximum(amounts, 0)))
        if self.count_limit is not None and len(chosen) > self.count_limit:
            return None
        covered = np.asarray(self.incidence[chosen].sum(axis=0)).ravel()
        return chosen if (covered == self.coverage).all() else None

    def cost(self, chosen: Ints) -> float:
        """Return the sum of the costs of columns."""
        return math.fsum(self.costs[chosen].tolist())


#: Columns join the program from this reduced cost on, for costs of order 1, so many at a time.
_BELOW, _BATCH = -1e-9, 400

#: The artificial column counts as unused up to this.
_UNUSED = 1e-7

#: Cuts are sought for columns with a fraction of at least this, for so many nearest to a half.
_BROKEN, _SOURCES = 1e-4, 400


@dataclass(frozen=True, eq=False)
class Relaxed:
    """An optimum of the relaxation over some columns, and what its duals prove."""

    #: On every selection from these columns that keeps the rows, or the cutoff if that is less.
    bound: float
    reduced: Floats  # (a,) what a selection costs more for each of the columns that it uses
    columns: Ints  # of the pool, that the optimum takes
    weights: Floats  # how much of each
    artificial: bool  # whether it takes the artificial one
    extra_duals: Floats  # (e,) of further rows


@dataclass(frozen=True, eq=False)
class Start:
    """A part of a program to begin with, around its basis: numbers of columns and further rows."""

    columns: Ints
    rows: Ints
    basis: Basis  # of the artificial column and these, and of the covering and these rows


class PoolRelaxation:
    """The relaxation over a pool, as a program of few of its columns and of its further rows.

    The artificial column costs the cutoff. Costs of order 1 suit the solver. All its programs share
    a `simplex`.
    """

    def __init__(self, pool: Pool, cutoff: float, simplex: Simplex | None = None) -> None:
        self._pool, self._cutoff = pool, cutoff
        self._simplex = simplex or Simplex()
        #: Rows beside the covering: (e, c) coefficients, and (e,) sides.
        self.extra = csr_array((0, len(pool.costs)))
        self.sides = np.empty(0)
        # (c,) further rows that each column is in.
        self._held = np.zeros(len(pool.costs), np.int64)
        self._is_least = np.empty(0, np.bool_)
        self._begin()
        if pool.count_limit is not None:
            ones = csr_array(np.ones((len(pool.costs), 1)))
            self.hold_rows(self.add_rows(ones, np.array([float(pool.count_limit)]), least=False))

    def _begin(self) -> None:
        """Make a program of the covering alone."""
        sides = self._pool.coverage.astype(np.float64)
        self._program = GrowingProgram(sides, sides, self._simplex)
        self._program.add_columns(np.array([self._cutoff]), csc_array(sides[:, None]))
        self._place = np.full(len(self._pool.costs), -1, np.int64)
        self._inside = np.empty(0, np.int64)
        self._open = np.empty(0, np.bool_)
        #: Numbers of the further rows in the program, in its order.
        self.rows = np.empty(0, np.int64)

    def restart(self, start: Start) -> None:
        """Go on with a program of given columns and rows, from their basis."""
        self._begin()
        self.hold_rows(start.rows)
        self.add_columns(start.columns)
        self._program.start_from(start.basis)

    def start(self, active: Ints, kept: Ints) -> Start:
        """Return the part of the program that a node needs, after a solve.

        Columns that are not active and further rows that are not tight are left out, but for
        basic columns and rows that are kept in any case.
        """
        basis, t = self._program.basis(), len(self._pool.coverage)
        columns = self._pool.marked(active)[self._inside] | basis.columns[1:]
        rows = ~basis.rows[t:] | np.isin(self.rows, kept)
        part = Basis(
            np.append(basis.columns[:1], basis.columns[1:][columns]),
            np.append(basis.rows[:t], basis.rows[t:][rows]),
        )
        return Start(self._inside[columns], self.rows[rows], part)

    def add_rows(self, coefficients: csr_array, sides: Floats, *, least: bool) -> Ints:
        """Add rows that :meth:`hold_rows` may bring into the program, and return their numbers.

        `coefficients` (c, r) are of every column of the pool, `sides` (r,) lower ones or upper.
        """
        first, count = len(self.sides), len(sides)
        new = csr_array(coefficients.T)
        self.extra = csr_array(vstack([self.extra, new]))
        self._held += np.bincount(new.indices, minlength=len(self._held))
        self.sides = np.concatenate([self.sides, sides])
        self._is_least = np.concatenate([self._is_least, np.full(count, least)])
        return np.arange(first, first + count)

    def hold_rows(self, rows: Ints) -> None:
        """Bring further rows, which are not in the program, into it."""
        inside = csr_array(self.extra[rows][:, self._inside])
        matrix = csr_array(hstack([csr_array(self.sides[rows][:, None]), inside]))
        self._program.add_rows(matrix, *self.row_bounds(rows))
        self.rows = np.concatenate([self.rows, rows])

    def row_bounds(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return the lower and the upper sides of further rows, infinite where there is none."""
        least, sides = self._is_least[rows], self.sides[rows]
        return np.where(least, sides, -np.inf), np.where(least, np.inf, sides)

    def open_columns(self, active: Ints) -> None:
        """Let exactly these columns of the pool be used."""
        wanted = self._pool.marked(active)[self._inside]
        changed = np.flatnonzero(wanted != self._open)
        self._open = wanted
        self._program.limit_columns(1 + changed, np.where(wanted[changed], np.inf, 0.0))

    def inside(self, columns: Ints) -> Flags:
        """Return which of some columns of the pool are in the program."""
        return self._place[columns] >= 0

    def add_columns(self, columns: Ints) -> None:
        """Bring columns of the pool, which may be used, into the program."""
        columns = columns[self._place[columns] < 0]
        if not len(columns):
            return
        self._place[columns] = len(self._inside) + np.arange(len(columns))
        self._inside = np.concatenate([self._inside, columns])
        self._open = np.concatenate([self._open, np.ones(len(columns), np.bool_)])
        pool = self._pool
        matrix = vstack([pool.incidence[columns].T, self.extra[self.rows][:, columns]])
        self._program.add_columns(pool.costs[columns], csc_array(matrix))

    def mixed_integer_cuts(
        self, active: Ints, relaxed: Relaxed, whole: Ints
    ) -> tuple[Floats, Floats]:
        """Return (q, a) coefficients and (q,) lower sides of cuts that the last optimum breaks.

        The further rows in the program have upper sides, and those that are `whole` whole slacks.
        """
        pool, t = self._pool, len(self._pool.coverage)
        fraction = np.abs(relaxed.weights - np.rint(relaxed.weights))
        nearest = np.argsort(-fraction, kind="stable")[:_SOURCES]
        broken = pool.marked(relaxed.columns[nearest[fraction[nearest] > _BROKEN]])
        multipliers = self._program.inverse_rows(np.append(False, broken[self._inside]))
        further = self.extra[self.rows][:, active].T
        weights = np.zeros(len(pool.costs))
        weights[relaxed.columns] = relaxed.weights
        sides = np.concatenate([pool.coverage, self.sides[self.rows]])
        is_whole = np.concatenate([np.ones(t, np.bool_), np.isin(self.rows, whole)])
        matrix = csr_array(hstack([pool.incidence[active].astype(np.float64), further]))
        rows = Rows(matrix, sides, t, is_whole)
        return mixed_integer_cuts(multipliers, rows, weights[active], pool.most)

    def values_soon(self, choices: list[Ints], iterations: int) -> list[float]:
        """Return about what the optimum is where only some columns may be used, for each choice.

        From the last optimum, after so many iterations of the simplex method, with columns in the
        program.
        """
        basis, values = self._program.basis(), []
        for active in choices:
            self.open_columns(active)
            values.append(self._program.value_soon(iterations))
            self._program.start_from(basis)
        return values

    def solve(self, active: Ints, budget: Budget) -> Relaxed | None:
        """Return the optimum over columns of the pool; None without time."""
        pool = self._pool
        self.open_columns(active)
        members, further = pool.incidence[active], self.extra
        roots = members.indices[members.indptr[:-1]]
        while True:
            found = self._program.solve(budget)
            if found is None:
                return None
            t = len(pool.coverage)
            duals = found.duals[:t]
            extra_duals = np.zeros(len(self.sides))
            extra_duals[self.rows] = np.where(
                self._is_least[self.rows],
                np.maximum(found.duals[t:], 0.0),
                np.minimum(found.duals[t:], 0.0),
            )
            paid = np.flatnonzero(extra_duals)
            reduced = pool.costs[active] - members @ duals
            reduced -= np.asarray(csr_array(further[paid]).T @ extra_duals[paid])[active]
            new = np.flatnonzero((reduced < _BELOW) & (self._place[active] < 0))
            if not len(new):
                break
            new = new[np.argsort(reduced[new], kind="stable")]
            # The best of each root first: alike columns bring the duals little.
            _, best = np.unique(roots[new], return_index=True)
            order = np.concatenate([np.sort(best), np.setdiff1d(np.arange(len(new)), best)])
            self.add_columns(active[new[order[:_BATCH]]])
        taken = np.flatnonzero(found.point[1:] > 0.0)
        return Relaxed(
            self._bound(active, duals, extra_duals, reduced),
            reduced,
            self._inside[taken],
            found.point[1:][taken],
            bool(found.point[0] > _UNUSED),
            extra_duals,
        )

    def _bound(self, active: Ints, duals: Floats, extra_duals: Floats, reduced: Floats) -> float:
        """Return what duals prove, whatever the solver's tolerances, less its own rounding."""
        pool = self._pool
        negative = np.minimum(reduced, 0.0)
        # A selection holds so many columns, and each of them so many times.
        missing = max(
            pool.most * float(negative.min(initial=0.0)), float(negative @ pool.limits[active])
        )
        paid = np.concatenate([pool.coverage * duals, self.sides * extra_duals])
        largest = float(pool.sizes.max(initial=0))
        costliest = float(np.abs(pool.costs).max(initial=0.0))
        reach = largest * float(np.abs(duals).max(initial=0.0))
        reach += (
            float(self._held.max(initial=0)) * largest * float(np.abs(extra_duals).max(initial=0.0))
        )
        scale = float(np.abs(paid).sum()) + pool.most * (reach + costliest)
        return float(paid.sum()) + missing - DUAL_ROUNDING * scale


def solve_integer(
    pool: Pool,
    columns: Ints,
    extra: csr_array,
    row_bounds: tuple[Floats, Floats],
    cutoff: float,
    mip: Mip,
) -> tuple[SolverResult, Ints | None]:
    """Return what a solver says of the cheapest selection from (a,) columns that is below a cutoff.

    With it the selection, repeated columns, if it finds one. Its bound is on every selection and at
    most the cutoff; where it calls that optimal nothing cheaper exists.

    `extra` (a, e) has their coefficients in further rows, `row_bounds` the lower and upper sides of
    those. One artificial column covers everything at the cost of the cutoff. It is where the solver
    starts from, so that no solver is asked to say "infeasible", and none needs an option for
    cutoffs.
    """
    # Where there is no upper side, the artificial column has the lower one.
    sides = np.where(np.isfinite(row_bounds[1]), row_bounds[1], row_bounds[0])
    held = csr_array(pool.incidence[columns].T)
    coverage = pool.coverage.astype(np.float64)
    matrix = vstack(
        [
            hstack([csr_array(coverage[:, None]), held]),
            hstack([csr_array(sides[:, None]), csr_array(extra.T)]),
        ]
    )
    form = whole_form(
        np.concatenate([[cutoff], pool.costs[columns]]),
        csr_array(matrix),
        (np.concatenate([coverage, row_bounds[0]]), np.concatenate([coverage, row_bounds[1]])),
        np.concatenate([[1.0], pool.limits[columns]]),
    )
    result = mip.solve(form, [1.0] + [0.0] * len(columns))
    chosen = None
    if result.values is not None and result.values[0] < 0.5:
        chosen = pool.selection(columns, result.values[1:])
    return result, chosen


#: So many pairs are tried before one is branched on.
_CANDIDATES = 8

#: Iterations of the simplex method for each side of a trial: with three times as many the trials
#: take half as long again and choose no better.
_ITERATIONS = 50

#: An amount is a fraction from here on.
_FRACTION = 1e-6

#: What a branch raises the bound by counts at least this much.
_LEAST_GAIN = 1e-6


@dataclass(frozen=True, eq=False)
class Branch:
    """One side of a branching: columns that stay, perhaps a row."""

    kept: Flags  # (a,) of the columns of the node
    row: Flags | None = None  # (c,) the columns of the pool that it counts
    side: float = 0.0
    least: bool = False  # whether that is a lower side


def branches(
    pool: Pool, relaxation: PoolRelaxation, relaxed: Relaxed, active: Ints, cutoff: float
) -> tuple[Branch, Branch] | None:
    """Return two branches that no whole solution lies outside of; None if the point is whole.

    Of the pairs whose amount is nearest to a half, the one is taken whose branches raise the value
    of the relaxation most, as far as few iterations with the columns in its program show.
    """
    pairs, amounts = _fractional_pairs(pool, relaxed)
    if len(pairs):
        plain = (pool.coverage[pairs] == 1).all(axis=1)
        if plain.any():
            return _together_or_apart(pool, relaxation, pairs[plain], active, cutoff, relaxed.bound)
        i, j = pairs[0].tolist()
        everything = np.arange(len(pool.costs))
        row = pool.holds(i, everything) & pool.holds(j, everything)
        return _by_row(row, float(amounts[0]), len(active))
    distance = np.abs(relaxed.weights - np.rint(relaxed.weights))
    if distance.max(initial=0.0) <= _FRACTION:
        return None
    worst = int(distance.argmax())
    row = pool.marked(relaxed.columns[[worst]])
    return _by_row(row, float(relaxed.weights[worst]), len(active))


def _by_row(row: Flags, amount: float, active: int) -> tuple[Branch, Branch]:
    kept = np.ones(active, np.bool_)
    below = float(np.floor(amount))
    return Branch(kept, row, below), Branch(kept, row, below + 1.0, least=True)


def _fractional_pairs(pool: Pool, relaxed: Relaxed) -> tuple[Ints, Floats]:
    """Return (p, 2) pairs of types and (p,) their fractional amounts, nearest to a half first."""
    t, members = len(pool.coverage), csr_array(pool.incidence[relaxed.columns])
    known, amounts = held_together(members, relaxed.weights, 2)
    share = amounts - np.floor(amounts)
    broken = np.flatnonzero((share > _FRACTION) & (share < 1.0 - _FRACTION))
    order = broken[np.argsort(np.round(np.abs(share[broken] - 0.5), 9), kind="stable")]
    return np.stack([known[order] // t, known[order] % t], axis=1), amounts[order]


def _together_or_apart(
    pool: Pool, relaxation: PoolRelaxation, pairs: Ints, active: Ints, cutoff: float, value: float
) -> tuple[Branch, Branch]:
    sides = []
    for i, j in pairs[:_CANDIDATES].tolist():
        first, second = pool.holds(i, active), pool.holds(j, active)
        sides.append((Branch(first == second), Branch(~(first & second))))
    tried = [active[side.kept] for both in sides for side in both]
    raised = np.minimum(relaxation.values_soon(tried, _ITERATIONS), cutoff) - value
    gains = np.maximum(raised.reshape(-1, 2), _LEAST_GAIN)
    return sides[int(gains.prod(axis=1).argmax())]
