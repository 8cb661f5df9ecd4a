r"""k-concealment: k matches of every original that lie in some assignment.

With all own records inside, a match (l, i) is effective exactly if it lies on a cycle of matches
(Wong et al. 2010, Theorem 1). Cycles through given matches add up to a circulation that is positive
on them, and a circulation falls into cycles: the matches with flow are effective, and one flow
shows it for all of them at once.

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

import pyomo.environ as pyo

from anonymip.assignments import Cover
from anonymip.graphs import effective_matches
from anonymip.graphs.circulation import circulation
from anonymip.models.parts.equivalence_context import linear


def largest_flow(n: int) -> float:
    """Return how much flow one match needs to carry at most."""
    return float(n * n // 4)


def add_effective_matches(model: pyo.ConcreteModel) -> None:
    """Add that every original has k effective matches, its own record among them."""
    problem = model.context.problem
    n, most = problem.n, largest_flow(problem.n)
    others = [(l, i) for l in range(n) for i in range(n) if l != i]  # noqa: E741
    model.other_matches = pyo.Set(
        initialize=others, dimen=2, doc="originals and other published records"
    )
    model.effective = pyo.Var(
        model.other_matches, bounds=(0.0, 1.0), doc="whether a match is counted as effective"
    )
    model.flow = pyo.Var(
        model.other_matches, bounds=(0.0, most), doc="circulation along effective matches"
    )
    model.effective_matches = pyo.Constraint(
        model.other_matches,
        rule=lambda model, l, i: (  # noqa: E741
            0.0,
            linear(0.0, [1.0, -1.0], [model.match[l, i], model.effective[l, i]]),
            None,
        ),
        doc="what is no match is not effective",
    )
    model.on_a_cycle = pyo.Constraint(
        model.other_matches,
        rule=lambda model, l, i: (  # noqa: E741
            0.0,
            linear(0.0, [1.0, -1.0], [model.flow[l, i], model.effective[l, i]]),
            None,
        ),
        doc="an effective match has a part in the circulation",
    )
    model.flow_of_match = pyo.Constraint(
        model.other_matches,
        rule=lambda model, l, i: (  # noqa: E741
            0.0,
            linear(0.0, [most, -1.0], [model.match[l, i], model.flow[l, i]]),
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
        rule=lambda model, l: (  # noqa: E741
            problem.k - 1.0,
            linear(0.0, [1.0] * (n - 1), [model.effective[l, i] for i in range(n) if i != l]),
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
