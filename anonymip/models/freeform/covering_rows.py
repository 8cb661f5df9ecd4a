r"""Rows by which published cells cover their matches: eqs. (4), (6) and (8) of Doka et al.

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

**k-concealment** asks for k matches of every original that lie in some assignment. With all own
records inside, a match (l, i) is effective exactly if it lies on a cycle of matches (Wong et al.
2010, Theorem 1). Cycles through given matches add up to a circulation that is positive on them, and
a circulation falls into cycles: the matches with flow are effective, and one flow shows it for all
of them at once.

====================  ========================================================================
``effective[l, i]``   whether match (l, i) is counted, l and i different
``flow[l, i]``        the circulation
``on_a_cycle``        flow(l, i) >= effective(l, i)
``flow_of_match``     flow(l, i) <= M match(l, i)
``circulation``       as much flows into a record as out of it
``concealed``         every original has k - 1 counted matches besides its own
====================  ========================================================================

:math:`M = \lfloor n^2 / 4 \rfloor` is enough for a flow of at least 1 on every effective match. By
Hoffman's theorem there is one between 1 and M on the matches of a strongly connected component if
no set X of its records is left by more matches than M times those that enter it; at least one
enters, and at most :math:`|X| (n - |X|) \le n^2 / 4` leave.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pyomo.environ as pyo

from anonymip.assignments import Cover
from anonymip.graphs import effective_matches
from anonymip.graphs.regular import circulation
from anonymip.models.freeform.cover_context import CoverContext
from anonymip.models.parts.equivalence_context import linear, no_less, total
from anonymip.models.parts.published_cells import add_covering_ends, add_covering_values


def add_covering_rows(model: pyo.ConcreteModel) -> None:
    """Add that ends, values and nodes of a published record cover its matches."""
    pairs = product(range(model.context.problem.n), repeat=2)
    matches = {(original, i): (i, original, model.match[original, i]) for original, i in pairs}
    if model.context.range_rows == "gaps":
        _add_gaps(model)
    else:
        for end, equation in (("upper", "(4)"), ("lower", "(6)")):
            doc = f"{equation}: the {end} end covers the matches"
            add_covering_ends(model, end, f"{end}_covers", matches, doc)
    doc = "(8): the values of matches are included"
    add_covering_values(model, "included_covers", matches, doc)
    codes = model.context.problem.microdata.codes
    reached = {
        (original, i, one.attribute): node
        for original, i in matches
        for one in model.context.ancestors
        if (node := one.reached(codes[i, one.attribute], codes[original, one.attribute]))
        is not None
    }
    model.reaches_covers = pyo.Constraint(
        list(reached),
        rule=lambda model, original, i, a: no_less(
            model.reaches[i, a, reached[original, i, a]], model.match[original, i]
        ),
        doc="the lowest common node of the values of record and match is reached",
    )


def covering_size(context: CoverContext) -> int:
    """Return about how many constraints these are."""
    microdata, n = context.problem.microdata, context.problem.n
    attributes = len(context.ranges) + len(context.sets) + len(context.ancestors)
    gaps = 0
    if context.range_rows == "gaps":
        gaps = n * sum(1 + len(microdata.levels[a]) for a in context.ranges)
    return n * (n - 1) * attributes + gaps


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
        rule=lambda model, i, a, t: no_less(
            model.covered[i, a, t], model.covered[i, a, outward(i, a, t)]
        ),
        doc="who covers a gap covers those on the way to it",
    )
    model.gap_covers = pyo.Constraint(
        [
            (original, i, a)
            for original, i, a in product(range(n), range(n), context.ranges)
            if codes[original, a] != codes[i, a]
        ],
        rule=lambda model, original, i, a: no_less(
            model.covered[i, a, int(codes[original, a] - (codes[original, a] > codes[i, a]))],
            model.match[original, i],
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


def largest_flow(n: int) -> float:
    """Return how much flow one match needs to carry at most."""
    return float(n * n // 4)


def add_effective_matches(model: pyo.ConcreteModel) -> None:
    """Add that every original has k effective matches, its own record among them."""
    problem = model.context.problem
    n, most = problem.n, largest_flow(problem.n)
    model.other_matches = pyo.Set(
        initialize=list(permutations(range(n), 2)),
        dimen=2,
        doc="originals and other published records",
    )
    model.effective = pyo.Var(
        model.other_matches, bounds=(0.0, 1.0), doc="whether a match is counted as effective"
    )
    model.flow = pyo.Var(
        model.other_matches, bounds=(0.0, most), doc="circulation along effective matches"
    )
    model.effective_matches = pyo.Constraint(
        model.other_matches,
        rule=lambda model, *match: no_less(model.match[match], model.effective[match]),
        doc="what is no match is not effective",
    )
    model.on_a_cycle = pyo.Constraint(
        model.other_matches,
        rule=lambda model, *match: no_less(model.flow[match], model.effective[match]),
        doc="an effective match has a part in the circulation",
    )
    model.flow_of_match = pyo.Constraint(
        model.other_matches,
        rule=lambda model, *match: (
            0.0,
            linear(0.0, [most, -1.0], [model.match[match], model.flow[match]]),
            None,
        ),
        doc="only matches have a part in the circulation",
    )
    model.circulation = pyo.Constraint(
        model.rows,
        rule=lambda model, j: (
            0.0,
            linear(
                0.0,
                [1.0] * (n - 1) + [-1.0] * (n - 1),
                [model.flow[j, i] for i in range(n) if i != j]
                + [model.flow[l, j] for l in range(n) if l != j],  # noqa: E741
            ),
            0.0,
        ),
        doc="as much flows into a record as out of it",
    )
    model.concealed = pyo.Constraint(
        model.rows,
        rule=lambda model, original: (
            problem.k - 1.0,
            total([model.effective[original, i] for i in range(n) if i != original]),
            None,
        ),
        doc="an original has k effective matches, its own record among them",
    )


def set_start_effective(model: pyo.ConcreteModel, cover: Cover) -> None:
    """Give the flow values that show which matches of a cover are effective."""
    counted = effective_matches(cover) & (cover.members != cover.owners)
    originals, published = cover.members[counted], cover.owners[counted]
    flow = circulation(cover.n, originals, published, int(largest_flow(cover.n))).tolist()
    for variable in (*model.effective.values(), *model.flow.values()):
        variable.set_value(0.0)
    for l, i, amount in zip(originals.tolist(), published.tolist(), flow, strict=True):  # noqa: E741
        model.effective[l, i].set_value(1.0)
        model.flow[l, i].set_value(float(amount))
