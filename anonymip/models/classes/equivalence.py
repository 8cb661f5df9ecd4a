r"""Formulations of equivalence classes by pairs of records: all that they have in common.

Symbols of Liang & Samavi (2020), Section 2, and the components that hold them; rows i, l of the
table, attributes j. An end that the paper calls upper bound y and lower bound z is read the way
its constraints work: y is the lower end, z the upper one.

==================================  ==========================================================
:math:`\delta_{il}`                 ``equivalent[i, l]``, one for each unordered pair i < l
:math:`y_{ij}, z_{ij}`              ``lower[i, j]``, ``upper[i, j]`` (numeric attributes)
                                    and their variables ``scaled_lower``, ``scaled_upper``
:math:`w_j (z_{ij}-y_{ij})/(U-L)`   terms of ``record_loss[i]``
==================================  ==========================================================

====================  ========================================================================
eqs. (21), (34)       ``loss``: minimise ``record_loss`` summed over the records
eqs. (22)-(25)        equivalent rows share their ends: how, is what formulations differ in
eq. (26)              ``companions``: every row is equivalent to at least k - 1 others
eqs. (27), (28)       domains of ``lower`` and ``upper``: integer or real
eqs. (29)-(32)        the big-M constants, see :mod:`.pairs`
====================  ========================================================================

Beyond the paper:

- The permissible ends L, U are the *observed* ends. A published range of a monotone objective
  never reaches beyond the observed values.
- ``lower`` and ``upper`` are expressions in the unit of the attribute, for constraints of one's
  own and for reading. Their variables are the same numbers in most tables; numbers too large or
  too narrow for the tolerances of solvers are shifted and scaled (:mod:`.equivalence_context`).
- ``included[i, j, h]``: whether the set published for row i holds value h (categorical attributes,
  and numeric ones published as sets). This is Section 2.5's split into binary columns, of which
  only the upper end z matters to a loss that counts values.
- ``reaches[i, j, v]``: whether the node published for row i is v or lies above it, for the nodes v
  above the row's value at which the loss rises (:mod:`.equivalence_context`). A monotone loss
  presses these down, so they need not be binary.
- ``set_size[i, j, c]`` and ``range_choice[i, j, p, q]`` choose the count c, or the range from level
  p to level q, where the loss is not linear in them.
- ``suppress[i]``: whether row i is suppressed, where the recoding allows it.
- ``worst``: the largest loss of a record, where the objective is that instead of the sum.
- Diversity and limits: :mod:`.class_rules`.

For a pair i, l with :math:`\delta_{il} = 1` all of this holds, and nothing of it needs to hold for
:math:`\delta_{il} = 0`: lower and upper ends are equal; the same values are included; the nodes of
a hierarchical attribute agree above the lowest common node of the two values, and each of the two
records reaches that node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InputError, argument
from anonymip.models.parts.class_rules import add_class_rules, class_rules_size, companions_of
from anonymip.models.parts.equivalence_context import (
    Context,
    at_most_one,
    linear,
    no_less,
    refuse_large,
    refuse_unfit_objective,
    refuse_unsolved,
)
from anonymip.models.parts.equivalence_loss import add_loss, loss_size, set_losses
from anonymip.models.parts.published_cells import add_cell_sets, add_cell_variables, set_cells
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses


def fitting_context(problem: Problem, integer_ends: bool = True) -> Context:
    """Return what the parts of a model share, or refuse the problem.

    Raises UnsupportedObjective if the objective has no tables, or is not proven monotone: the model
    could then publish more than a class covers; InputError if the recoding is another one.
    """
    if not isinstance(problem.recoding, EquivalenceClasses):
        raise InputError(
            f"the equivalence model does not model the recoding {problem.recoding.name}",
            remedy=f"Use {argument('recoding', 'classes')}",
        )
    refuse_unfit_objective(
        problem,
        "equivalence",
        "Heuristics accept it: ordered-cut, greedy-search, k-member, mondrian; and for small "
        "tables the formulation set-partition",
    )
    return Context.of(problem, integer_ends)


def checked_size(context: Context, name: str, rows: int) -> int:
    """Return about how many constraints, and binaries for curved losses, a model has.

    `rows` are those of the formulation of this name, without those that all have.

    Raises InputError if the model would be too large.
    """
    size = 3 * context.pairs + rows + loss_size(context) + class_rules_size(context)
    refuse_large(name, context.problem.n, size, "a heuristic (greedy-search, ordered-cut)")
    return size


def begin_model(context: Context, name: str, *, disjuncts: bool = False) -> pyo.ConcreteModel:
    """Return a model with everything but what makes equivalent records share their cells.

    With `disjuncts` ``equivalent`` are the indicators of ``share``, a Disjunct for each pair.
    """
    model = pyo.ConcreteModel(name=f"equivalence classes, {name}")
    model.context = context
    add_cell_sets(model)
    model.pairs = pyo.Set(
        initialize=list(combinations(range(context.problem.n), 2)),
        dimen=2,
        doc="unordered pairs of records",
    )
    doc = "whether two records are published alike"
    if disjuncts:
        from pyomo.gdp import Disjunct

        model.share = Disjunct(model.pairs, doc="two records are published alike")
        model.equivalent = pyo.Reference(model.share[:, :].binary_indicator_var)
        model.equivalent.doc = doc
    else:
        model.equivalent = pyo.Var(model.pairs, domain=pyo.Binary, doc=doc)
    add_cell_variables(model)
    if context.problem.may_suppress:
        model.suppress = pyo.Var(
            model.rows, domain=pyo.Binary, doc="whether a record is published as stars"
        )
    _add_companions(model)
    add_class_rules(model)
    add_loss(model)
    return model


def _add_companions(model: pyo.ConcreteModel) -> None:
    problem: Problem = model.context.problem
    k = problem.k
    rows = {}
    for i in model.rows:
        others = companions_of(model, i, range(problem.n))
        coefficients = [1.0] * len(others)
        if problem.may_suppress:
            others.append(model.suppress[i])
            coefficients.append(k - 1.0)
        rows[i] = (k - 1.0, linear(0.0, coefficients, others), None)
    model.companions = pyo.Constraint(
        model.rows, rule=rows, doc="(26): at least k - 1 equivalent records"
    )
    if problem.may_suppress:
        model.alone = pyo.Constraint(
            model.pairs,
            [0, 1],
            rule=lambda model, i, other, end: at_most_one(
                model.equivalent[i, other], model.suppress[(i, other)[end]]
            ),
            doc="a suppressed record is equivalent to none",
        )
    if problem.is_capped:
        model.cap = pyo.Constraint(
            expr=sum(model.suppress.values()) <= problem.most_suppressed,
            doc="no more records are suppressed than may be",
        )


#: Constant of a row first - second <= constant (1 - equivalent): of its two variables.
BigM = Callable[[Any, Any], float]


class Equal(NamedTuple):
    """Two variables that are equal for equivalent records; kind and attribute of what they hold."""

    name: str
    place: tuple[int, ...]
    first: Any
    second: Any


def shared(model: pyo.ConcreteModel, i: int, other: int) -> Iterator[Equal]:
    """Yield the variables of two records that are equal if the records are equivalent."""
    for end in ("lower", "upper"):
        ends = getattr(model, f"scaled_{end}")
        for a in model.context.ranges:
            yield Equal(end, (a,), ends[i, a], ends[other, a])
    for a, h in model.attribute_values:
        yield Equal("included", (a, h), model.included[i, a, h], model.included[other, a, h])
    codes = model.context.problem.microdata.codes
    for one in model.context.ancestors:
        a = one.attribute
        for node in one.above(codes[i, a], codes[other, a]):
            pair = (model.reaches[i, a, node], model.reaches[other, a, node])
            yield Equal("reaches", (a, node), *pair)


def reached(model: pyo.ConcreteModel, i: int, other: int) -> Iterator[tuple[int, int, Any]]:
    """Yield attribute, record and the ``reaches`` that is 1 if two records are equivalent."""
    codes = model.context.problem.microdata.codes
    for one in model.context.ancestors:
        a = one.attribute
        for record, partner in ((i, other), (other, i)):
            node = one.reached(codes[record, a], codes[partner, a])
            if node is not None:
                yield a, record, model.reaches[record, a, node]


def shared_size(context: Context) -> int:
    """Return about how many variables of two records are equal if they are equivalent."""
    values = sum(len(context.problem.microdata.levels[a]) for a in context.sets)
    return 2 * len(context.ranges) + values + sum(one.longest for one in context.ancestors)


#: The rows by which equivalent records share their cells, and what they mean.
_SHARING = {
    "lower_at_most": "(22), (29): equivalent records share their lower ends",
    "lower_at_least": "(23), (30): equivalent records share their lower ends",
    "upper_at_most": "(24), (31): equivalent records share their upper ends",
    "upper_at_least": "(25), (32): equivalent records share their upper ends",
    "included_at_most": "equivalent records share their published values (Section 2.5)",
    "included_at_least": "equivalent records share their published values (Section 2.5)",
    "reaches_at_most": "equivalent records agree on the nodes above their lowest common one",
    "reaches_at_least": "equivalent records agree on the nodes above their lowest common one",
    "reaches_common": "equivalent records reach the lowest common node of their values",
}


def add_shared_cells(model: pyo.ConcreteModel, of_ends: BigM, of_values: BigM) -> None:
    """Add that equivalent records share ends, eqs. (22)-(25), values (Section 2.5) and nodes.

    `of_ends, of_values`: the constants of rows of these; rows whose constant is 0 say nothing.
    """
    constants: dict[str, BigM] = {"included": of_values, "reaches": lambda first, second: 1.0}
    rows: dict[str, dict[tuple[int, ...], Any]] = {name: {} for name in _SHARING}
    for pair in model.pairs:
        together = model.equivalent[pair]
        for name, place, *ends in shared(model, *pair):
            for side, (first, second) in (("at_most", ends), ("at_least", ends[::-1])):
                constant = constants.get(name, of_ends)(first, second)
                if constant != 0.0:  # else the bounds say it
                    body = linear(0.0, [1.0, -1.0, constant], [first, second, together])
                    rows[f"{name}_{side}"][(*pair, *place)] = (None, body, constant)
        for a, record, variable in reached(model, *pair):
            rows["reaches_common"][(*pair, a, record)] = no_less(variable, together)
    for name, found in rows.items():
        model.add_component(name, pyo.Constraint(list(found), rule=found, doc=_SHARING[name]))


def set_start_equivalence(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply: a warm start.

    Raises InvalidAssignment if the classes break a rule of the problem.
    """
    problem: Problem = model.context.problem
    problem.recoding.check(problem, assignment)
    labels = assignment.labels
    starred = labels == SUPPRESSED
    for i, other in model.pairs:
        together = labels[i] == labels[other] and not starred[i]
        model.equivalent[i, other].set_value(int(together))
    if problem.may_suppress:
        for i in model.rows:
            model.suppress[i].set_value(int(starred[i]))
    set_cells(model, problem.recoding.describe(problem, assignment), starred)
    if model.component("holds") is not None:
        codes = problem.microdata.counted_codes
        for i, column, value in model.holds:
            members = (labels == labels[i]) & (codes[:, column] == value)
            model.holds[i, column, value].set_value(float(not starred[i] and members.any()))
    set_losses(model)


def read_equivalence(model: pyo.ConcreteModel) -> Classes:
    """Return the classes of a solved model; InputError if it has no solution.

    Rows that are equivalent through others ("indirectly equivalent", Def. 6) share all cells, so a
    class is a connected component.
    """
    problem: Problem = model.context.problem
    refuse_unsolved(model.equivalent.values())
    edges = np.array(
        [pair for pair in model.pairs if model.equivalent[pair].value > 0.5], np.int64
    ).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (problem.n, problem.n))
    _, labels = connected_components(graph, directed=False)
    labels = labels.astype(np.int64)
    if problem.may_suppress:
        for i in model.rows:
            if model.suppress[i].value > 0.5:
                labels[i] = SUPPRESSED
    return Classes(labels)
