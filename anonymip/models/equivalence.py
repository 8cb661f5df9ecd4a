r"""The MILP of equivalence classes with big-M constraints.

Symbols of Liang & Samavi (2020), Section 2, and the components that hold them; rows i, l of the
table, attributes j. An end that the paper calls upper bound y and lower bound z is read the way
its constraints work: y is the lower end, z the upper one.

==================================  ==========================================================
:math:`\delta_{il}`                 ``equivalent[i, l]``, one for each unordered pair i < l
:math:`y_{ij}, z_{ij}`              ``lower[i, j]``, ``upper[i, j]`` (numeric attributes)
                                    and their variables ``scaled_lower``, ``scaled_upper``
:math:`w_j (z_{ij}-y_{ij})/(U-L)`   the objective's terms in ``loss``
==================================  ==========================================================

====================  ========================================================================
eqs. (21), (34)       ``loss``: minimise the objective summed over the records
eqs. (22), (23)       ``lower_at_most``, ``lower_at_least``: equivalent rows share lower ends
eqs. (24), (25)       ``upper_at_most``, ``upper_at_least``: equivalent rows share upper ends
eq. (26)              ``companions``: every row is equivalent to at least k - 1 others
eqs. (27), (28)       domains of ``lower`` and ``upper``: integer or real
eqs. (29)-(32)        the big-M constants of the four constraints
====================  ========================================================================

Beyond the paper:

- The permissible ends L, U in the big-M constants are the *observed* ends. A published range of a
  monotone objective never reaches beyond the observed values, so the constants stay valid and the
  relaxation gets no weaker.
- ``lower`` and ``upper`` are expressions in the unit of the attribute, for constraints of one's
  own and for reading. Their variables are the same numbers in most tables; numbers too large or
  too narrow for the tolerances of solvers are shifted and scaled (:mod:`.scaling`).
- ``included[i, j, h]``: whether the set published for row i holds value h (categorical attributes,
  and numeric ones published as sets), with ``included_at_most`` and ``included_at_least`` doing
  for it what (22), (23) do for ends. This is Section 2.5's split into binary columns, of which
  only the upper end z matters to a loss that counts values.
- ``set_size[i, j, c]`` and ``range_choice[i, j, p, q]`` choose the count c, or the range from level
  p to level q, where the loss is not linear in them.
- ``suppress[i]``: whether row i is suppressed, where the recoding allows it.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InputError, UnsupportedObjective
from anonymip.models.equivalence_context import Context, linear
from anonymip.models.equivalence_loss import add_loss
from anonymip.models.scaling import Scaling
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses

#: Constraints beyond which building takes minutes and solving does not end.
LARGEST_MODEL = 3_000_000


def build_bigm(problem: Problem, *, integer_ends: bool = True) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    Parameters
    ----------
    problem
        With equivalence classes and a monotone objective.
    integer_ends
        Whether the ends of integer attributes are integer variables as in eq. (27). They take
        integer values anyway once the binaries are integer, but a solver can use the knowledge:
        HiGHS proves the 20-record sample of the paper in about two thirds of the time.

    Notes
    -----
    Size: n (n - 1) / 2 binaries; four rows a pair and numeric attribute, two a pair and value of
    a set.

    Raises
    ------
    UnsupportedObjective
        If the objective is not proven monotone: the model could then publish more than a class
        covers.
    InputError
        If the recoding is another one, or the model would be too large.
    """
    context = _context(problem, integer_ends)
    model = pyo.ConcreteModel(name="equivalence classes, big-M")
    model.context = context
    with PauseGC():
        _add_sets(model)
        _add_variables(model)
        _add_equivalence(model)
        _add_sharing_of_ends(model)
        _add_sharing_of_values(model)
        add_loss(model)
    return model


def bigm_size(problem: Problem) -> int:
    """Return about how many constraints, and binaries for curved losses, the model has.

    Raises
    ------
    UnsupportedObjective
        If the objective is not proven monotone.
    InputError
        If the recoding is another one, or the model would be too large.
    """
    if not isinstance(problem.recoding, EquivalenceClasses):
        raise InputError(
            f"the equivalence model does not model the recoding {problem.recoding.name}",
            remedy="Use EquivalenceClasses",
        )
    if not problem.compiled.monotone:
        raise UnsupportedObjective(
            f"the equivalence model needs a monotone objective; {problem.objective.name!r} can "
            f"fall in {problem.compiled.decreasing!r} when a cell covers more",
            remedy="Heuristics accept it: ordered-cut, greedy-search, k-member, mondrian",
        )
    tables, microdata, n = problem.compiled.tables, problem.microdata, problem.n
    ranges = {int(a) for a in (*tables.range_columns, *tables.pair_columns)}
    values = sum(len(microdata.levels[a]) for a in tables.set_columns)
    choices = 0
    for a in tables.pair_columns:
        codes = microdata.codes[:, a].astype(np.int64)
        choices += int(((codes + 1) * (len(microdata.levels[a]) - codes)).sum())
    pairs = n * (n - 1) // 2
    size = pairs * (4 * len(ranges) + 2 * values + 3) + choices
    if size > LARGEST_MODEL:
        raise InputError(
            f"the big-M model of {n} records has about {size:,} constraints and choices; "
            f"the limit is {LARGEST_MODEL:,}",
            remedy="Use a heuristic (greedy-search, ordered-cut) with its bound, or fewer records",
        )
    return size


def _context(problem: Problem, integer_ends: bool) -> Context:
    bigm_size(problem)
    tables = problem.compiled.tables
    ranges = tuple(sorted({int(a) for a in (*tables.range_columns, *tables.pair_columns)}))
    sets = tuple(int(a) for a in tables.set_columns)
    return Context(problem, ranges, sets, integer_ends, Scaling.of(problem.microdata))


def _add_sets(model: pyo.ConcreteModel) -> None:
    context = model.context
    model.rows = pyo.RangeSet(0, context.problem.n - 1, doc="records of the table")
    model.pairs = pyo.Set(
        initialize=list(combinations(range(context.problem.n), 2)),
        dimen=2,
        doc="unordered pairs of records",
    )
    model.ranges = pyo.Set(initialize=context.ranges, doc="attributes published by their ends")
    model.attribute_values = pyo.Set(
        initialize=[
            (a, h) for a in context.sets for h in range(len(context.problem.microdata.levels[a]))
        ],
        dimen=2,
        doc="attributes published as sets, and the ranks of their observed values",
    )


def _add_variables(model: pyo.ConcreteModel) -> None:
    context = model.context
    microdata = context.problem.microdata
    values = context.observed
    low, high = values.min(axis=0), values.max(axis=0)

    def domain(model: Any, row: int, attribute: int) -> Any:
        whole = context.integer_ends and context.scaling.whole[attribute]
        return pyo.Integers if whole else pyo.Reals

    model.equivalent = pyo.Var(
        model.pairs, domain=pyo.Binary, doc="whether two records are published alike"
    )
    model.scaled_lower = pyo.Var(
        model.rows,
        model.ranges,
        domain=domain,
        bounds=lambda _, i, j: (float(low[j]), float(values[i, j])),
        doc="lower end published for a record, shifted and scaled",
    )
    model.scaled_upper = pyo.Var(
        model.rows,
        model.ranges,
        domain=domain,
        bounds=lambda _, i, j: (float(values[i, j]), float(high[j])),
        doc="upper end published for a record, shifted and scaled",
    )
    _add_ends(model)
    model.included = pyo.Var(
        model.rows,
        model.attribute_values,
        bounds=lambda _, i, j, h: (1.0 if microdata.codes[i, j] == h else 0.0, 1.0),
        doc="whether the set published for a record holds a value",
    )
    if context.suppression:
        model.suppress = pyo.Var(
            model.rows, domain=pyo.Binary, doc="whether a record is published as stars"
        )


def _add_ends(model: pyo.ConcreteModel) -> None:
    """Give the ends in the units of the attributes names of their own."""
    scaling = model.context.scaling
    for end in ("lower", "upper"):
        scaled = getattr(model, f"scaled_{end}")

        def rule(model: Any, i: int, j: int, scaled: Any = scaled) -> Any:
            return linear(float(scaling.origin[j]), [float(scaling.unit[j])], [scaled[i, j]])

        model.add_component(
            end,
            pyo.Expression(
                model.rows,
                model.ranges,
                rule=rule,
                doc=f"{end} end published for a record [unit of the attribute]",
            ),
        )


def _add_equivalence(model: pyo.ConcreteModel) -> None:
    context = model.context
    k = context.problem.k
    n = context.problem.n

    def companions(model: Any, i: int) -> Any:
        others = [
            model.equivalent[min(i, other), max(i, other)] for other in range(n) if other != i
        ]
        coefficients = [1.0] * len(others)
        if context.suppression:
            others.append(model.suppress[i])
            coefficients.append(k - 1.0)
        return (k - 1.0, linear(0.0, coefficients, others), None)

    model.companions = pyo.Constraint(
        model.rows, rule=companions, doc="(26): at least k - 1 equivalent records"
    )
    if context.suppression:
        model.alone = pyo.Constraint(
            model.pairs,
            [0, 1],
            rule=lambda model, i, other, end: (
                None,
                linear(
                    0.0,
                    [1.0, 1.0],
                    [model.equivalent[i, other], model.suppress[(i, other)[end]]],
                ),
                1.0,
            ),
            doc="a suppressed record is equivalent to none",
        )


def _link(first: Any, second: Any, big_m: float, binary: Any) -> tuple[None, Any, float]:
    """Return first - second <= big_m (1 - binary)."""
    return (None, linear(0.0, [1.0, -1.0, big_m], [first, second, binary]), big_m)


def _add_sharing_of_ends(model: pyo.ConcreteModel) -> None:
    values = model.context.observed
    low, high = values.min(axis=0), values.max(axis=0)

    def lower_big_m(i: int, other: int, j: int) -> float:
        return float(max(values[i, j], values[other, j]) - low[j])

    def upper_big_m(i: int, other: int, j: int) -> float:
        return float(high[j] - min(values[i, j], values[other, j]))

    def rule(end: str, big_m: Any, swapped: bool) -> Any:
        def constraint(model: Any, i: int, other: int, j: int) -> Any:
            ends = getattr(model, f"scaled_{end}")
            pair = (ends[other, j], ends[i, j]) if swapped else (ends[i, j], ends[other, j])
            return _link(*pair, big_m(i, other, j), model.equivalent[i, other])

        return constraint

    for end, big_m, equations in (
        ("lower", lower_big_m, ("(22), (29)", "(23), (30)")),
        ("upper", upper_big_m, ("(24), (31)", "(25), (32)")),
    ):
        for side, swapped, equation in (
            ("at_most", False, equations[0]),
            ("at_least", True, equations[1]),
        ):
            constraint = pyo.Constraint(
                model.pairs,
                model.ranges,
                rule=rule(end, big_m, swapped),
                doc=f"{equation}: equivalent records share their {end} ends",
            )
            model.add_component(f"{end}_{side}", constraint)


def _add_sharing_of_values(model: pyo.ConcreteModel) -> None:
    def rule(swapped: bool) -> Any:
        def constraint(model: Any, i: int, other: int, j: int, h: int) -> Any:
            first, second = (other, i) if swapped else (i, other)
            return _link(
                model.included[first, j, h],
                model.included[second, j, h],
                1.0,
                model.equivalent[i, other],
            )

        return constraint

    for side, swapped in (("at_most", False), ("at_least", True)):
        constraint = pyo.Constraint(
            model.pairs,
            model.attribute_values,
            rule=rule(swapped),
            doc="equivalent records share their published values (Section 2.5)",
        )
        model.add_component(f"included_{side}", constraint)


def set_start_bigm(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply: a warm start.

    Raises
    ------
    InvalidAssignment
        If the classes break a rule of the recoding.
    """
    problem: Problem = model.context.problem
    problem.recoding.check(problem, assignment)
    labels = assignment.labels
    cells = problem.recoding.describe(problem, assignment)
    codes = problem.microdata.codes
    starred = labels == SUPPRESSED
    for i, other in model.pairs:
        together = labels[i] == labels[other] and not starred[i]
        model.equivalent[i, other].set_value(int(together))
    for end, ends in (("lower", cells.lower), ("upper", cells.upper)):
        scaled = np.where(
            starred[:, None], model.context.observed, model.context.scaling.scaled(ends)
        )
        variables = getattr(model, f"scaled_{end}")
        for i, a in variables:
            variables[i, a].set_value(float(scaled[i, a]))
    held = {
        (i, a): {int(codes[i, a])} if starred[i] else {int(c) for c in cells.members.of(i, a)}
        for i in range(problem.n)
        for a in model.context.sets
    }
    for i, a, h in model.included:
        model.included[i, a, h].set_value(float(h in held[i, a]))
    if model.context.suppression:
        for i in model.rows:
            model.suppress[i].set_value(int(starred[i]))
    if model.component("set_size") is not None:
        for i, a, c in model.set_size:
            model.set_size[i, a, c].set_value(int(c == len(held[i, a])))
    if model.component("range_choice") is not None:
        for i, a, p, q in model.range_choice:
            covered = codes[i, [a]] if starred[i] else cells.members.of(i, a)
            chosen = p == covered[0] and q == covered[-1]
            model.range_choice[i, a, p, q].set_value(int(chosen))


def read_bigm(model: pyo.ConcreteModel) -> Classes:
    """Return the classes of a solved model.

    Rows that are equivalent through others ("indirectly equivalent", Def. 6) share all ends, so a
    class is a connected component.

    Raises
    ------
    InputError
        If the model has no solution.
    """
    problem: Problem = model.context.problem
    if any(variable.value is None for variable in model.equivalent.values()):
        raise InputError(
            "the model has no values to read", remedy="Solve it, and load the solution"
        )
    edges = np.array(
        [pair for pair in model.pairs if model.equivalent[pair].value > 0.5], np.int64
    ).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (problem.n, problem.n))
    _, labels = connected_components(graph, directed=False)
    labels = labels.astype(np.int64)
    if model.context.suppression:
        for i in model.rows:
            if model.suppress[i].value > 0.5:
                labels[i] = SUPPRESSED
    return Classes(labels)
