r"""Rules for whole classes: transitivity, diversity, limits; rows i, j, l.

====================  ========================================================================
``transitive``        :math:`\delta_{ij} + \delta_{jl} - \delta_{il} \le 1`: needed where
                      members are counted or kept apart, since shared cells pass along a chain
                      of equivalent pairs and numbers of members do not
``diverse``           l times the members with value v <= number of members, for each record's
                      class, sensitive column and value
``holds_value``       a class holds a sensitive value only if a member has it
``distinct_values``   a class holds at least so many sensitive values
``range_cap``,        published ranges and sets are within the caps
``set_cap``
====================  ========================================================================

Pairs of records that a limit keeps apart are not equivalent: the upper bound of their
``equivalent`` is 0. With transitivity that is all that caps on ranges and nodes, and values apart,
ask for; ``range_cap`` and the upper bounds of ``reaches`` beyond a cap only tighten the relaxation.
If no release keeps the limits, the model is infeasible. Suppressed records are exempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from math import floor
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from anonymip.models.parts.equivalence_context import Context, linear, total
from anonymip.recodings import Cap
from anonymip.runtime.arrays import Ints
from anonymip.tolerances import LOSS_RELATIVE


def class_rules_size(context: Context) -> int:
    """Return about how many constraints the rules need."""
    problem = context.problem
    rows = 3 * context.triples if context.needs_transitivity else 0
    if problem.diversity is not None:
        codes = problem.microdata.counted_codes
        rows += 2 * problem.n * int((codes.max(axis=0) + 1).sum())
    return rows + problem.n * len(problem.limits)


def add_class_rules(model: pyo.ConcreteModel) -> None:
    """Add diversity and limits to a model that has its variables."""
    context = model.context
    if context.needs_transitivity:
        add_transitivity(model)
    if context.problem.diversity is not None:
        _add_shares_of_values(model)
        _add_distinct_values(model)
    for i, other in np.argwhere(np.triu(context.conflicts, 1)).tolist():
        model.equivalent[i, other].setub(0)
    add_caps(model)


def add_transitivity(model: pyo.ConcreteModel) -> None:
    """Add that records equivalent to a third are equivalent, unless the model has it."""
    if model.component("transitive") is not None:
        return

    def rule(model: Any, i: int, j: int, k: int, middle: int) -> Any:
        sides = [model.equivalent[i, j], model.equivalent[i, k], model.equivalent[j, k]]
        # The side that does not touch the middle one is the last.
        last = sides.pop((2, 1, 0)[middle])
        return (None, linear(0.0, [1.0, 1.0, -1.0], [*sides, last]), 1.0)

    model.transitive = pyo.Constraint(
        list(combinations(range(model.context.problem.n), 3)),
        [0, 1, 2],
        rule=rule,
        doc="records equivalent to a third, the one at this place, are equivalent",
    )


def companions_of(model: Any, i: int, others: Iterable[int]) -> list[Any]:
    """Return the variables that say that a record is equivalent to some others, not to itself."""
    return [model.equivalent[min(i, o), max(i, o)] for o in others if o != i]


def _add_shares_of_values(model: pyo.ConcreteModel) -> None:
    context = model.context
    problem = context.problem
    codes = np.asarray(problem.microdata.counted_codes, np.int64)
    ratios = [problem.diversity.asked_of(column)[:2] for column in range(codes.shape[1])]
    # A value too rare to fill its share of the smallest class never breaks the rule.
    bound = [
        (column, value)
        for column, (numerator, denominator) in enumerate(ratios)
        for value, count in enumerate(np.bincount(codes[:, column]).tolist())
        if numerator > denominator and count * numerator > denominator * problem.k
    ]
    if not bound:
        return

    def rule(model: Any, i: int, column: int, value: int) -> Any:
        numerator, denominator = ratios[column]
        shares = (denominator - numerator * (codes[:, column] == value)).astype(np.float64)
        own, coefficients = -float(shares[i]), np.delete(shares, i).tolist()
        variables = companions_of(model, i, range(problem.n))
        if problem.may_suppress and own > 0:
            coefficients.append(own)
            variables.append(model.suppress[i])
        return (own, linear(0.0, coefficients, variables), None)

    model.diverse = pyo.Constraint(
        model.rows,
        pyo.Set(initialize=bound, dimen=2),
        rule=rule,
        doc="no sensitive value makes up more than 1/l of a class [records]",
    )


def _add_distinct_values(model: pyo.ConcreteModel) -> None:
    context = model.context
    codes = np.asarray(context.problem.microdata.counted_codes, np.int64)
    holders = []
    for i, column in product(range(len(codes)), range(codes.shape[1])):
        others = context.problem.diversity.asked_of(column)[2] - 1.0
        if others > 0:
            # The record's own value is held in any case.
            foreign = {
                value: companions_of(model, i, records)
                for value, records in records_by_value(codes[:, column])
                if value != codes[i, column]
            }
            beside = [(others, model.suppress[i])] if context.problem.may_suppress else []
            holders.append(Holder((i, column), foreign, others, beside))
    add_distinct_values(
        model,
        holders,
        "whether a record's class holds the value",
        "a class holds the values of its members",
        "a class holds at least so many sensitive values, its record's own among them",
    )


def records_by_value(codes: Ints) -> list[tuple[int, list[int]]]:
    """Return the values of a column, ascending, each with the places that have it."""
    return [(v, np.flatnonzero(codes == v).tolist()) for v in np.unique(codes).tolist()]


class Holder(NamedTuple):
    """What must hold sensitive values of one column: the class of a record, a set, an output row.

    `place`: index of its row. `members`: by value the variables of those who have it. `least`: what
    the number of values held, and the terms `beside` it, must reach.
    """

    place: tuple[int, ...]
    members: Mapping[int, list[Any]]
    least: float
    beside: Sequence[tuple[float, Any]] = ()


def add_distinct_values(
    model: pyo.ConcreteModel, holders: Sequence[Holder], held: str, members: str, distinct: str
) -> None:
    """Add ``holds``, ``holds_value`` and ``distinct_values``, if there are holders.

    `held, members, distinct`: what these three mean.
    """
    if not holders:
        return
    having = {
        (*one.place, value): variables
        for one in holders
        for value, variables in one.members.items()
    }
    model.holds = pyo.Var(list(having), bounds=(0.0, 1.0), doc=held)
    holding = {
        index: (0.0, linear(0.0, [1.0] * len(own) + [-1.0], [*own, model.holds[index]]), None)
        for index, own in having.items()
    }
    model.holds_value = pyo.Constraint(sorted(having), rule=holding, doc=members)
    many: dict[tuple[int, ...], Any] = {}
    for one in holders:
        terms = [(1.0, model.holds[(*one.place, value)]) for value in one.members]
        many[one.place] = pyo.Constraint.Infeasible
        if terms := [*terms, *one.beside]:
            coefficients, variables = map(list, zip(*terms, strict=True))
            many[one.place] = (one.least, linear(0.0, coefficients, variables), None)
    model.distinct_values = pyo.Constraint(sorted(many), rule=many, doc=distinct)


def add_caps(model: pyo.ConcreteModel) -> None:
    """Add that published ranges, sets and nodes keep their caps."""
    context = model.context
    microdata = context.problem.microdata
    most: dict[int, float] = {}
    for limit in context.problem.limits:
        if isinstance(limit, Cap):
            a = microdata.names.index(limit.attribute)
            most[a] = min(limit.most, most.get(a, limit.most))
    for i, a, node in model.ancestors:
        if a in most and microdata.attributes[a].hierarchy.tree.level[node] > most[a]:
            model.reaches[i, a, node].setub(0.0)
    model.range_cap = pyo.Constraint(
        model.rows,
        [
            a
            for a in most
            if a in context.ranges
            and a not in context.scaling.ranked
            and microdata.attributes[a].publish == "range"
        ],
        rule=lambda model, i, a: (
            None,
            linear(0.0, [1.0, -1.0], [model.scaled_upper[i, a], model.scaled_lower[i, a]]),
            most[a] * (1.0 + 2.0 * LOSS_RELATIVE) / float(context.scaling.unit[a]),
        ),
        doc="cap on the published range [scaled unit]",
    )
    model.set_cap = pyo.Constraint(
        model.rows,
        [a for a in most if a in context.sets and microdata.attributes[a].publish == "set"],
        rule=lambda model, i, a: (
            None,
            total([model.included[i, a, h] for h in range(len(microdata.levels[a]))]),
            float(floor(most[a])),
        ),
        doc="cap on the number of published values",
    )
