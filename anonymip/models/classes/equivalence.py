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
from anonymip.models.parts.class_rules import add_class_rules, class_rules_size
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
    if context.suppression:
        model.suppress = pyo.Var(
            model.rows, domain=pyo.Binary, doc="whether a record is published as stars"
        )
    _add_companions(model)
    add_class_rules(model)
    add_loss(model)
    return model


def _add_companions(model: pyo.ConcreteModel) -> None:
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
            rule=lambda model, i, other, end: at_most_one(
                model.equivalent[i, other], model.suppress[(i, other)[end]]
            ),
            doc="a suppressed record is equivalent to none",
        )
    if context.problem.is_capped:
        model.cap = pyo.Constraint(
            expr=sum(model.suppress.values()) <= context.problem.most_suppressed,
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
    return 2 * len(context.ranges) + context.values + sum(one.longest for one in context.ancestors)


def add_shared_cells(model: pyo.ConcreteModel, of_ends: BigM, of_values: BigM) -> None:
    """Add that equivalent records share ends, eqs. (22)-(25), values (Section 2.5) and nodes.

    `of_ends, of_values`: the constants of rows of these; rows whose constant is 0 say nothing.
    """
    for end, ends, equations in (
        ("lower", model.scaled_lower, ("(22), (29)", "(23), (30)")),
        ("upper", model.scaled_upper, ("(24), (31)", "(25), (32)")),
    ):
        one, other = (f"{at}: equivalent records share their {end} ends" for at in equations)
        _add_links(model, end, (model.pairs, model.ranges), ends, of_ends, (one, other))
    doc = "equivalent records share their published values (Section 2.5)"
    sets = (model.pairs, model.attribute_values)
    _add_links(model, "included", sets, model.included, of_values, (doc, doc))
    codes = model.context.problem.microdata.codes
    common = [
        (i, other, one.attribute, node)
        for i, other in model.pairs
        for one in model.context.ancestors
        for node in one.above(codes[i, one.attribute], codes[other, one.attribute])
    ]
    doc = "equivalent records agree on the nodes above their lowest common one"
    _add_links(model, "reaches", (common,), model.reaches, lambda first, second: 1.0, (doc, doc))
    rows = {
        (i, other, a, record): variable
        for i, other in model.pairs
        for a, record, variable in reached(model, i, other)
    }
    model.reaches_common = pyo.Constraint(
        list(rows),
        rule=lambda model, *index: no_less(rows[index], model.equivalent[index[:2]]),
        doc="equivalent records reach the lowest common node of their values",
    )


def _add_links(
    model: pyo.ConcreteModel,
    name: str,
    sets: tuple[Any, ...],
    variables: Any,
    big_m: BigM,
    docs: tuple[str, str],
) -> None:
    """Add that a variable of equivalent records is the same, as two rows for each index."""

    def rule(swapped: bool) -> Any:
        def constraint(model: Any, i: int, other: int, *place: int) -> Any:
            first, second = (other, i) if swapped else (i, other)
            pair = (variables[(first, *place)], variables[(second, *place)])
            constant = big_m(*pair)
            if constant == 0.0:
                return pyo.Constraint.Skip  # the bounds say it
            together = model.equivalent[i, other]
            return (None, linear(0.0, [1.0, -1.0, constant], [*pair, together]), constant)

        return constraint

    for side, swapped, doc in (("at_most", False, docs[0]), ("at_least", True, docs[1])):
        constraint = pyo.Constraint(*sets, rule=rule(swapped), doc=doc)
        model.add_component(f"{name}_{side}", constraint)


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
    if model.context.suppression:
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
    if model.context.suppression:
        for i in model.rows:
            if model.suppress[i].value > 0.5:
                labels[i] = SUPPRESSED
    return Classes(labels)
