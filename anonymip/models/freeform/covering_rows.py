r"""Context of a freeform model, and rows by which cells cover matches: eqs. (4), (6), (8).

The rows are those of Doka et al. Eq. (4), :math:`u_i \ge q_l x_{li} + (1 - x_{li}) q_i`, is the row
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

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Any

import numpy as np
import pyomo.environ as pyo

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.graphs import effective_matches
from anonymip.graphs.regular import circulation
from anonymip.models.parts.equivalence_context import (
    Context,
    linear,
    no_less,
    refuse_unfit_objective,
    total,
)
from anonymip.models.parts.published_cells import add_covering_ends, add_covering_values
from anonymip.problem import Problem
from anonymip.recodings import KK, Freeform, KConcealment, KOne, OneK
from anonymip.runtime.arrays import Ints

#: Records beyond which the flow of k-concealment is finer than solvers' tolerances: its largest
#: constant, n^2 / 4, times as many records that a cut may separate, times 1e-6, stays below 1.
MOST_CONCEALED = 60


@dataclass(frozen=True, eq=False)
class CoverContext(Context):
    """What the parts of the model share; kept on the model as ``context``.

    `own_record` is ``"fixed"``, every record lies in its own set, or ``"free"``: its values are
    published, and it may lie elsewhere. `range_rows`, ``"bounds"`` or ``"gaps"``, says how ends of
    ranges follow from the matches.
    """

    own_record: str = "fixed"
    range_rows: str = "bounds"

    @classmethod
    def fitting(
        cls,
        problem: Problem,
        *,
        own_record: str = "fixed",
        ranges: str = "bounds",
        integer_ends: bool = True,
    ) -> CoverContext:
        """Return the context of a problem, or refuse it.

        Raises UnsupportedObjective if the objective has no tables, or is not proven monotone;
        InputError if the recoding is another one, or a choice does not fit it.
        """
        recoding = problem.recoding
        if not isinstance(recoding, Freeform | OneK | KOne | KK | KConcealment):
            raise InputError(
                f"the freeform model does not model the recoding {recoding.name}",
                remedy="Use the recoding freeform, one-k, k-one, k-k or k-concealment",
            )
        for name, given, known in (
            ("own_record", own_record, ("fixed", "free")),
            ("ranges", ranges, ("bounds", "gaps")),
        ):
            if given not in known:
                raise InputError(f"{name} is {given!r}", remedy=f"Use {' or '.join(known)}")
        refuse_unfit_objective(
            problem,
            "freeform",
            "Use a heuristic that accepts it, or an objective that is such a sum",
        )
        plain = Context.of(problem, integer_ends)
        context = cls(**vars(plain), own_record=own_record, range_rows=ranges)
        # Sets of one size, in any number, make a perfect matching of equals.
        one_size = len(np.unique(context.least_sizes)) == 1 and not context.is_reciprocal
        uniform = context.is_regular and one_size and not problem.may_suppress
        if own_record == "free" and not uniform:
            raise InputError(
                "free own records need sets of one size that need not be reciprocal, and a row of "
                "each record",
                remedy="Use own_record fixed",
            )
        if isinstance(recoding, KConcealment) and problem.n > MOST_CONCEALED:
            raise InputError(
                f"the model of k-concealment is not reliable for {problem.n} records; the limit is "
                f"{MOST_CONCEALED}",
                remedy="Use Freeform, whose releases are k-concealed too, or fewer records",
            )
        return context

    @property
    def is_regular(self) -> bool:
        """Whether originals lie in as many sets as their published records cover."""
        return isinstance(self.problem.recoding, Freeform)

    @property
    def is_reciprocal(self) -> bool:
        """Whether l must lie in the set of i if i lies in that of l."""
        recoding = self.problem.recoding
        return isinstance(recoding, Freeform) and recoding.reciprocal

    @property
    def is_open(self) -> bool:
        """Whether the common size of all sets may have to be larger than k.

        A regular graph contains regular ones of all lower degrees, whose sets lose no more; but
        they need not be diverse, nor reciprocal: a reciprocal graph of degree k with loops has
        none if n is odd and k is even.
        """
        recoding = self.problem.recoding
        return (
            isinstance(recoding, Freeform)
            and recoding.degrees is None
            and (recoding.reciprocal or self.problem.diversity is not None)
        )

    @cached_property
    def least_sizes(self) -> Ints:
        """(n,) how many originals each published record covers at least.

        A record with k effective matches lies in a circle of them, so it covers another one.
        """
        problem, recoding = self.problem, self.problem.recoding
        if isinstance(recoding, Freeform):
            return recoding.sizes(problem)
        least = problem.k
        if isinstance(recoding, OneK):
            least = 1
        elif isinstance(recoding, KConcealment):
            least = 2
        return np.full(problem.n, least, np.int64)


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
    rows = {
        (original, i, one.attribute): no_less(model.reaches[i, one.attribute, node], match)
        for (original, i), (_, _, match) in matches.items()
        for one in model.context.ancestors
        if (node := one.reached(codes[i, one.attribute], codes[original, one.attribute]))
        is not None
    }
    model.reaches_covers = pyo.Constraint(
        list(rows),
        rule=rows,
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

    nested, covers = {}, {}
    for i, a, t in model.gaps:
        # The next gap away from the own value.
        outward = (i, a, t + 1 if t >= codes[i, a] else t - 1)
        if outward in model.gaps:
            nested[i, a, t] = no_less(model.covered[i, a, t], model.covered[outward])
    for original, i, a in product(range(n), range(n), context.ranges):
        other, own = int(codes[original, a]), int(codes[i, a])
        if other != own:
            gap = model.covered[i, a, other - (other > own)]
            covers[original, i, a] = no_less(gap, model.match[original, i])
    model.nested_gaps = pyo.Constraint(
        list(nested), rule=nested, doc="who covers a gap covers those on the way to it"
    )
    model.gap_covers = pyo.Constraint(
        list(covers),
        rule=covers,
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

        doc = f"the {end} end lies beyond the gaps"
        constraint = pyo.Constraint(model.rows, model.ranges, rule=rule, doc=doc)
        model.add_component(f"{end}_of_gaps", constraint)


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

    def balance(model: Any, j: int) -> Any:
        others = [i for i in range(n) if i != j]
        ends = [model.flow[j, i] for i in others] + [model.flow[i, j] for i in others]
        return linear(0.0, [1.0] * (n - 1) + [-1.0] * (n - 1), ends)

    model.circulation = pyo.Constraint(
        model.rows,
        rule=lambda model, j: (0.0, balance(model, j), 0.0),
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
