r"""What equivalent records share, and the big-M rows that say so.

For a pair i, l with :math:`\delta_{il} = 1` all of this holds, and nothing of it needs to hold for
:math:`\delta_{il} = 0`:

- lower and upper ends are equal;
- the same values are included;
- the nodes of a hierarchical attribute agree above the lowest common node of the two values, and
  each of the two records reaches that node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyomo.environ as pyo

from anonymip.models.parts.equivalence_context import Context, linear

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


def add_reached_nodes(model: pyo.ConcreteModel) -> None:
    """Add that equivalent records reach the lowest common node of their values."""
    rows = {
        (i, other, a, record): variable
        for i, other in model.pairs
        for a, record, variable in reached(model, i, other)
    }
    model.reaches_common = pyo.Constraint(
        list(rows),
        rule=lambda model, i, other, a, record: (
            0.0,
            linear(0.0, [1.0, -1.0], [rows[i, other, a, record], model.equivalent[i, other]]),
            None,
        ),
        doc="equivalent records reach the lowest common node of their values",
    )


def add_shared_nodes(model: pyo.ConcreteModel) -> None:
    """Add that equivalent records agree on the nodes above their lowest common one."""
    codes = model.context.problem.microdata.codes
    common = [
        (i, other, one.attribute, node)
        for i, other in model.pairs
        for one in model.context.ancestors
        for node in one.above(codes[i, one.attribute], codes[other, one.attribute])
    ]

    def rule(swapped: bool) -> Any:
        def constraint(model: Any, i: int, other: int, a: int, node: int) -> Any:
            first, second = (other, i) if swapped else (i, other)
            pair = (model.reaches[first, a, node], model.reaches[second, a, node])
            return _link(*pair, 1.0, model.equivalent[i, other])

        return constraint

    for side, swapped in (("at_most", False), ("at_least", True)):
        constraint = pyo.Constraint(
            common,
            rule=rule(swapped),
            doc="equivalent records agree on the nodes above their lowest common one",
        )
        model.add_component(f"reaches_{side}", constraint)


def add_shared_ends(model: pyo.ConcreteModel, big_m: BigM) -> None:
    """Add eqs. (22)-(25) with the given constants; rows whose constant is 0 say nothing."""

    def rule(end: str, swapped: bool) -> Any:
        ends = getattr(model, f"scaled_{end}")

        def constraint(model: Any, i: int, other: int, j: int) -> Any:
            first, second = (other, i) if swapped else (i, other)
            pair = (ends[first, j], ends[second, j])
            return _link(*pair, big_m(*pair), model.equivalent[i, other])

        return constraint

    for end, equations in (
        ("lower", ("(22), (29)", "(23), (30)")),
        ("upper", ("(24), (31)", "(25), (32)")),
    ):
        for side, swapped, equation in (
            ("at_most", False, equations[0]),
            ("at_least", True, equations[1]),
        ):
            constraint = pyo.Constraint(
                model.pairs,
                model.ranges,
                rule=rule(end, swapped),
                doc=f"{equation}: equivalent records share their {end} ends",
            )
            model.add_component(f"{end}_{side}", constraint)


def add_shared_values(model: pyo.ConcreteModel, big_m: BigM) -> None:
    """Add that equivalent records publish the same values, with the given constants."""

    def rule(swapped: bool) -> Any:
        def constraint(model: Any, i: int, other: int, j: int, h: int) -> Any:
            first, second = (other, i) if swapped else (i, other)
            pair = (model.included[first, j, h], model.included[second, j, h])
            return _link(*pair, big_m(*pair), model.equivalent[i, other])

        return constraint

    for side, swapped in (("at_most", False), ("at_least", True)):
        constraint = pyo.Constraint(
            model.pairs,
            model.attribute_values,
            rule=rule(swapped),
            doc="equivalent records share their published values (Section 2.5)",
        )
        model.add_component(f"included_{side}", constraint)


def _link(first: Any, second: Any, big_m: float, binary: Any) -> Any:
    """Return first - second <= big_m (1 - binary), or nothing where the bounds say it."""
    if big_m == 0.0:
        return pyo.Constraint.Skip
    return (None, linear(0.0, [1.0, -1.0, big_m], [first, second, binary]), big_m)
