r"""What is published for a record covers its matches: eqs. (4), (6) and (8) of Doka et al.

Eq. (4), :math:`u_i \ge q_l x_{li} + (1 - x_{li}) q_i`, is the row
:math:`u_i \ge q_i + (q_l - q_i) x_{li}`. It says something only for :math:`q_l > q_i`, (6) only
for :math:`q_l < q_i`, and (8) only for another value.

With *gaps*, ``covered[i, j, t]`` says whether the range of record i covers the gap between the
values of rank t and t + 1 of attribute j. A range covers all gaps from the own value outwards
(``nested_gaps``), a match needs the farthest gap on the way to its value (``gap_covers``), and the
ends are the own value plus the widths of the covered gaps (``upper_of_gaps``, ``lower_of_gaps``).
Then :math:`u_i - q_i = \sum_t w_t \max_{l \text{ beyond } t} x_{li}` at least, which is no less
than :math:`(q_l - q_i) x_{li}` for any l, since l lies beyond all gaps on the way to it: the
relaxation with gaps is at least as strong as that with the rows of (4) and (6).
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from anonymip.models.freeform.cover_context import CoverContext
from anonymip.models.parts.equivalence_context import linear


def add_covering_rows(model: pyo.ConcreteModel) -> None:
    """Add that ends, values and nodes of a published record cover its matches."""
    if model.context.range_rows == "gaps":
        _add_gaps(model)
    else:
        _add_end_rows(model)
    _add_value_rows(model)
    _add_node_rows(model)


def covering_size(context: CoverContext) -> int:
    """Return about how many constraints these are."""
    microdata, n = context.problem.microdata, context.problem.n
    attributes = len(context.ranges) + len(context.sets) + len(context.ancestors)
    gaps = 0
    if context.range_rows == "gaps":
        gaps = n * sum(1 + len(microdata.levels[a]) for a in context.ranges)
    return n * (n - 1) * attributes + gaps


def _add_end_rows(model: pyo.ConcreteModel) -> None:
    context: CoverContext = model.context
    values, n = context.observed, context.problem.n
    for end, sign, equation in (("upper", 1.0, "(4)"), ("lower", -1.0, "(6)")):
        ends = getattr(model, f"scaled_{end}")
        beyond = {
            (l, i, a): float(values[l, a] - values[i, a])
            for l in range(n)  # noqa: E741
            for i in range(n)
            for a in context.ranges
            if sign * (values[l, a] - values[i, a]) > 0
        }

        def rule(
            model: Any,
            l: int,  # noqa: E741
            i: int,
            a: int,
            beyond: Any = beyond,
            ends: Any = ends,
            is_upper: bool = sign > 0,
        ) -> Any:
            own = float(values[i, a])
            body = linear(0.0, [1.0, -beyond[l, i, a]], [ends[i, a], model.match[l, i]])
            return (own, body, None) if is_upper else (None, body, own)

        model.add_component(
            f"{end}_covers",
            pyo.Constraint(
                list(beyond), rule=rule, doc=f"{equation}: the {end} end covers the matches"
            ),
        )


def _add_gaps(model: pyo.ConcreteModel) -> None:
    context: CoverContext = model.context
    microdata, values = context.problem.microdata, context.observed
    codes, n = microdata.codes, context.problem.n
    levels = {a: context.scaling.levels(microdata, a) for a in context.ranges}
    model.gaps = pyo.Set(
        initialize=[
            (i, a, t) for i in range(n) for a in context.ranges for t in range(len(levels[a]) - 1)
        ],
        dimen=3,
        doc="records, attributes with ends, ranks of the values below the gaps",
    )
    model.covered = pyo.Var(
        model.gaps, bounds=(0.0, 1.0), doc="whether a published range covers the gap"
    )

    def outward(i: int, a: int, t: int) -> int:
        """Return the rank of the next gap away from the own value."""
        return t + 1 if t >= codes[i, a] else t - 1

    model.nested_gaps = pyo.Constraint(
        [(i, a, t) for i, a, t in model.gaps if (i, a, outward(i, a, t)) in model.gaps],
        rule=lambda model, i, a, t: (
            0.0,
            linear(
                0.0, [1.0, -1.0], [model.covered[i, a, t], model.covered[i, a, outward(i, a, t)]]
            ),
            None,
        ),
        doc="who covers a gap covers those on the way to it",
    )
    model.gap_covers = pyo.Constraint(
        [
            (l, i, a)
            for l in range(n)  # noqa: E741
            for i in range(n)
            for a in context.ranges
            if codes[l, a] != codes[i, a]
        ],
        rule=lambda model, l, i, a: (  # noqa: E741
            0.0,
            linear(
                0.0,
                [1.0, -1.0],
                [
                    model.covered[i, a, int(codes[l, a] - (codes[l, a] > codes[i, a]))],
                    model.match[l, i],
                ],
            ),
            None,
        ),
        doc="(4), (6): the farthest gap on the way to a match is covered",
    )
    for end, sign in (("upper", 1.0), ("lower", -1.0)):
        ends = getattr(model, f"scaled_{end}")

        def rule(model: Any, i: int, a: int, ends: Any = ends, sign: float = sign) -> Any:
            code, level = int(codes[i, a]), levels[a]
            way = range(code, len(level) - 1) if sign > 0 else range(code)
            widths = [-sign * float(level[t + 1] - level[t]) for t in way]
            own = float(values[i, a])
            gaps = [model.covered[i, a, t] for t in way]
            return (own, linear(0.0, [1.0, *widths], [ends[i, a], *gaps]), own)

        model.add_component(
            f"{end}_of_gaps",
            pyo.Constraint(
                model.rows, model.ranges, rule=rule, doc=f"the {end} end lies beyond the gaps"
            ),
        )


def _add_value_rows(model: pyo.ConcreteModel) -> None:
    context: CoverContext = model.context
    codes, n = context.problem.microdata.codes, context.problem.n
    model.included_covers = pyo.Constraint(
        [
            (l, i, a)
            for l in range(n)  # noqa: E741
            for i in range(n)
            for a in context.sets
            if codes[l, a] != codes[i, a]
        ],
        rule=lambda model, l, i, a: (  # noqa: E741
            0.0,
            linear(0.0, [1.0, -1.0], [model.included[i, a, int(codes[l, a])], model.match[l, i]]),
            None,
        ),
        doc="(8): the values of matches are included",
    )


def _add_node_rows(model: pyo.ConcreteModel) -> None:
    context: CoverContext = model.context
    codes, n = context.problem.microdata.codes, context.problem.n
    reached = {
        (l, i, one.attribute): node
        for l in range(n)  # noqa: E741
        for i in range(n)
        for one in context.ancestors
        if (node := one.reached(codes[i, one.attribute], codes[l, one.attribute])) is not None
    }
    model.reaches_covers = pyo.Constraint(
        list(reached),
        rule=lambda model, l, i, a: (  # noqa: E741
            0.0,
            linear(0.0, [1.0, -1.0], [model.reaches[i, a, reached[l, i, a]], model.match[l, i]]),
            None,
        ),
        doc="the lowest common node of the values of record and match is reached",
    )
