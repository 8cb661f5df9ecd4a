r"""The MIP of Doka et al. (2015) for freeform generalization, and its relaxed forms.

Symbols of Doka et al., Section 4, and the components that hold them; originals l, published records
i, attributes j, values h of an attribute.

=======================================  =====================================================
:math:`x(l, i)`                          ``match[l, i]``: original l is among the matches of i
:math:`u_i^j, l_i^j`                     ``upper[i, j]``, ``lower[i, j]`` (numeric attributes)
                                         and their variables ``scaled_upper``, ``scaled_lower``
:math:`u_i^h`                            ``included[i, j, h]`` (categorical attributes)
terms of GCP                             ``record_loss[i]``
=======================================  =====================================================

====================  ========================================================================
eqs. (4), (6)         ``upper_covers``, ``lower_covers``: ends cover the matches
eqs. (5), (7), (9)    bounds of the variables: the own values are published in any case
eq. (8)               ``included_covers``: sets hold the values of the matches
eq. (10)              ``lies_in``, ``covers``: k sets for an original, k matches for a record
eq. (11)              ``loss``: minimise ``record_loss`` summed over the records
====================  ========================================================================

**Own records.** The paper asks only that the own values are published; x(i, i) may be 0
(``own_record="free"``). Setting x(i, i) = 1 (``"fixed"``, the default) loses nothing. Take any
solution of the free model. Its graph of matches is regular of degree k and bipartite, so Hall's
condition holds, since k |L| matches leave a set L of originals and no published record takes in
more than k of them: there is a perfect matching. Give each set to the record that the matching
joins to it. Every record then lies in the set that it is published with; every set has been handed
over once, so that (10) still holds; and a set S costs c(S), where in the free model it cost the
loss of S together with another record, which is no less for a monotone loss. Conversely, a solution
with x(i, i) = 1 is one of the free model. Diversity speaks of S alone, and what limits forbid for a
set they forbid for a larger one. :func:`.freeform.read_freeform` makes this exchange. It needs
sets of one size that need not be reciprocal: else only ``"fixed"`` is modelled.

Beyond the paper:

- Sets of degree k are enough, except where they must be diverse or reciprocal: then ``degree`` is a
  variable from k to n. With degrees of their own, (10) has them on its right sides.
- ``ranges="gaps"`` is a stronger relaxation of (4) to (7): :mod:`.covering_rows`.
- ``reciprocal``: x(l, i) = x(i, l) (Section 2.2).
- ``neighbours``, ``farther_neighbour``: rows that hold in every release.
- Nodes of hierarchies are ``reaches``, and other losses than GCP may be curved:
  :mod:`.equivalence_loss`. ``worst`` is the largest loss where that is the objective.
- Diversity and limits.
- Suppression: ``suppress[i]`` takes k off both sides of (10), and the own record out of its set;
  ``cap`` says how many may be. Where ``degree`` is a variable, (10) is three rows, of which a
  suppressed record keeps one.
- (1,k), (k,1) and (k,k)-anonymity have at least k instead of exactly k, on one side or both;
  k-concealment counts matches by a flow: :mod:`.covering_rows`.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from anonymip.assignments import Cover
from anonymip.graphs import perfect_matching, regular_subgraph
from anonymip.models.freeform.covering_rows import (
    CoverContext,
    add_covering_rows,
    add_effective_matches,
    covering_size,
    set_start_effective,
)
from anonymip.models.parts.class_rules import (
    Holder,
    add_caps,
    add_distinct_values,
    records_by_value,
)
from anonymip.models.parts.equivalence_context import (
    LARGEST_MODEL,
    at_most_one,
    linear,
    refuse_large,
    refuse_unsolved,
    total,
)
from anonymip.models.parts.equivalence_loss import (
    add_loss,
    charge_for_neighbours,
    loss_size,
    set_losses,
)
from anonymip.models.parts.published_cells import add_cell_sets, add_cell_variables, set_cells
from anonymip.problem import Problem
from anonymip.recodings import KK, KConcealment, KOne, OneK


def build_freeform(
    problem: Problem,
    *,
    own_record: str = "fixed",
    ranges: str = "bounds",
    integer_ends: bool = True,
    strengthened: bool = True,
) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    `problem`: with the recoding Freeform, OneK, KOne, KK or KConcealment, and a monotone objective.
    `own_record`: ``"fixed"``: every record lies in its own set; ``"free"``: as in the paper. A
    constraint of your own on ``match`` speaks of the sets before they are handed over when
    ``"free"``. `ranges`: ``"bounds"``: rows of eqs. (4) to (7); ``"gaps"``: variables for the gaps
    between values. `integer_ends`: whether the ends of integer attributes are integer variables;
    they take integer values anyway once the matches are integer. `strengthened`: whether to add
    what every release keeps: losses with the nearest neighbours. Raises UnsupportedObjective if the
    objective has no tables or is not proven monotone; InputError if the recoding is another one, a
    choice is unknown or does not fit it, or the model would be too large.

    Size: n^2 binaries; a row a pair of records in each direction and attribute, and one more where
    strengthened.
    """
    context = CoverContext.fitting(
        problem, own_record=own_record, ranges=ranges, integer_ends=integer_ends
    )
    _size(context, strengthened)
    with PauseGC():
        model = pyo.ConcreteModel(name=f"{problem.recoding.name}, flow of matches")
        model.context = context
        add_cell_sets(model)
        add_matches(model)
        add_cell_variables(model)
        add_covering_rows(model)
        _add_rules(model)
        add_loss(model)
        if strengthened:
            charge_for_neighbours(
                model,
                context.least_sizes,
                lambda i, original: ((original, i), model.match[original, i]),
            )
    return model


def freeform_size(problem: Problem) -> int:
    """Return about how many constraints, and binaries for curved losses, the model has.

    Refuses problems as :func:`build_freeform` does.
    """
    return _size(CoverContext.fitting(problem), strengthened=True)


def _size(context: CoverContext, strengthened: bool) -> int:
    """Return the size, or refuse it."""
    problem, n = context.problem, context.problem.n
    size = 2 * n + (context.pairs if context.is_reciprocal else 0)
    size += 6 * context.pairs if isinstance(problem.recoding, KConcealment) else 0
    size += covering_size(context) + loss_size(context) + n * len(problem.limits)
    size += n * (n + 1) if strengthened else 0
    if problem.diversity is not None:
        size += 2 * n * int((problem.microdata.sensitive_codes.max(axis=0) + 1).sum())
    if size <= LARGEST_MODEL:
        # Pairs kept apart that could both be matches of a record, which take n^2 memory.
        apart = context.conflicts.astype(np.int64)
        free = 1 - apart
        size += int((((free @ apart) * free).sum(axis=1) // 2).sum())
    refuse_large("freeform", n, size)
    return size


def _add_rules(model: pyo.ConcreteModel) -> None:
    """Add diversity and limits to a model that has its matches and cells."""
    if model.context.problem.diversity is not None:
        _add_shares_of_values(model)
        _add_distinct_values(model)
    apart = model.context.conflicts
    pairs = np.argwhere(np.triu(apart, 1)).tolist()
    model.kept_apart = pyo.Constraint(
        [
            (one, other, i)
            for one, other in pairs
            for i in range(len(apart))
            if not apart[one, i] and not apart[other, i]
        ],
        rule=lambda model, one, other, i: at_most_one(model.match[one, i], model.match[other, i]),
        doc="originals that a limit keeps apart are not covered together",
    )
    add_caps(model)


def _add_shares_of_values(model: pyo.ConcreteModel) -> None:
    problem = model.context.problem
    numerator, denominator = problem.diversity.ratio
    if numerator <= denominator:
        return
    codes = problem.microdata.sensitive_codes
    values = [
        (column, value) for column, own in enumerate(codes.T) for value, _ in records_by_value(own)
    ]

    def rule(model: Any, i: int, column: int, value: int) -> Any:
        shares = denominator - numerator * (codes[:, column] == value)
        return (0.0, linear(0.0, shares.astype(float).tolist(), _of_published(model, i)), None)

    model.diverse = pyo.Constraint(
        model.rows,
        pyo.Set(initialize=values, dimen=2),
        rule=rule,
        doc="no sensitive value makes up more than 1/l of a set [records]",
    )


def _add_distinct_values(model: pyo.ConcreteModel) -> None:
    problem = model.context.problem
    codes, distinct = problem.microdata.sensitive_codes, problem.diversity.distinct
    if distinct <= 1:
        return
    holders = []
    for i, (column, own) in product(model.rows, enumerate(codes.T)):
        members = {
            value: [model.match[at, i] for at in places] for value, places in records_by_value(own)
        }
        holders.append(Holder((i, column), members, float(distinct)))
    add_distinct_values(
        model,
        holders,
        "whether the set of a published record holds the value",
        "a set holds the values of its members",
        "a set holds at least so many sensitive values",
    )


def add_matches(model: pyo.ConcreteModel) -> None:
    """Add the matches, and the recoding's rule for their numbers."""
    context: CoverContext = model.context
    own = context.own_record == "fixed"
    apart = context.conflicts
    suppression = context.problem.may_suppress
    least = own and not suppression
    model.match = pyo.Var(
        model.rows,
        model.rows,
        domain=pyo.Binary,
        bounds=lambda _, l, i: (float(least and l == i), float(not apart[l, i])),  # noqa: E741
        doc="whether an original is among the matches of a published record",
    )
    if suppression:
        model.suppress = pyo.Var(
            model.rows, domain=pyo.Binary, doc="whether a record is published as stars"
        )
        model.own = pyo.Constraint(
            model.rows,
            rule=lambda model, i: (1.0, model.match[i, i] + model.suppress[i], 1.0),
            doc="a record lies in its own set or is suppressed",
        )
    if context.problem.is_capped:
        model.cap = pyo.Constraint(
            expr=total(list(model.suppress.values())) <= context.problem.most_suppressed,
            doc="no more records are suppressed than may be",
        )
    if context.is_regular:
        _add_regularity(model)
    else:
        _add_least_numbers(model)
    if context.is_reciprocal:
        model.reciprocal = pyo.Constraint(
            [(one, other) for one in range(context.problem.n) for other in range(one)],
            rule=lambda model, one, other: (
                0.0,
                linear(0.0, [1.0, -1.0], [model.match[one, other], model.match[other, one]]),
                0.0,
            ),
            doc="two records cover each other, or neither does",
        )


def _of_original(model: Any, original: int) -> list[Any]:
    return [model.match[original, i] for i in model.rows]


def _of_published(model: Any, published: int) -> list[Any]:
    return [model.match[original, published] for original in model.rows]


def _add_regularity(model: pyo.ConcreteModel) -> None:
    context: CoverContext = model.context
    problem = context.problem
    if context.is_open:
        model.degree = pyo.Var(
            domain=pyo.Integers,
            bounds=(problem.k, problem.n),
            doc="how many originals every published record covers",
        )

    def numbered(matches: Any) -> Any:
        def rule(model: Any, record: int) -> Any:
            size = float(context.least_sizes[record])
            out = [model.suppress[record]] if problem.may_suppress else []
            ends, ones = matches(model, record), [1.0] * problem.n
            if not context.is_open:
                return (size, linear(0.0, ones + [size] * len(out), [*ends, *out]), size)
            kept = [*ends, model.degree, *out]
            least = linear(0.0, [*ones, -1.0, *[float(problem.n)] * len(out)], kept)
            return (0.0, least, None if out else 0)

        return rule

    def no_more(matches: Any) -> Any:
        def rule(model: Any, record: int, part: int) -> Any:
            factor, bound = ((-1.0, 0.0), (float(problem.n), problem.n))[part]
            ends = [*matches(model, record), (model.degree, model.suppress[record])[part]]
            return (None, linear(0.0, [1.0] * problem.n + [factor], ends), bound)

        return rule

    for matches, name, doc in (
        (_of_original, "lies_in", "(10): an original lies in k sets"),
        (_of_published, "covers", "(10): a published record covers k originals"),
    ):
        model.add_component(name, pyo.Constraint(model.rows, rule=numbered(matches), doc=doc))
        if context.is_open and problem.may_suppress:
            rows = pyo.Constraint(model.rows, [0, 1], rule=no_more(matches), doc=f"{doc} at most")
            model.add_component(f"{name}_at_most", rows)


def _add_least_numbers(model: pyo.ConcreteModel) -> None:
    """Add the relaxed forms of (10): at least k, on one side or both."""
    problem = model.context.problem

    def at_least(matches: Any) -> Any:
        return lambda model, record: (float(problem.k), total(matches(model, record)), None)

    if isinstance(problem.recoding, OneK | KK):
        model.lies_in = pyo.Constraint(
            model.rows, rule=at_least(_of_original), doc="an original lies in k sets at least"
        )
    if isinstance(problem.recoding, KOne | KK):
        model.covers = pyo.Constraint(
            model.rows,
            rule=at_least(_of_published),
            doc="a published record covers k originals at least",
        )
    if isinstance(problem.recoding, KConcealment):
        add_effective_matches(model)


def set_start_freeform(model: pyo.ConcreteModel, assignment: Cover) -> None:
    """Give every variable the value that a cover implies: a warm start.

    Sets larger than the model's are made smaller, which loses nothing.

    Raises InvalidAssignment if the cover breaks a rule of the problem.
    """
    context: CoverContext = model.context
    problem: Problem = context.problem
    problem.recoding.check(problem, assignment)
    cover = assignment
    kept, part = cover.without_suppressed()
    degrees = context.least_sizes[kept]
    if context.is_regular and not context.is_open and (part.sizes > degrees).any():
        cover = Cover.joined(cover.n, [(kept, of_degree(part, problem.k))])
    held = np.zeros((cover.n, cover.n), np.bool_)
    held[cover.members, cover.owners] = True
    for l, i in model.match:  # noqa: E741
        model.match[l, i].set_value(int(held[l, i]))
    if model.component("degree") is not None:
        model.degree.set_value(int(part.sizes.max(initial=problem.k)))
    cells = problem.recoding.describe(problem, cover)
    starred = cover.sizes == 0
    set_cells(model, cells, starred)
    if problem.may_suppress:
        for i, suppress in model.suppress.items():
            suppress.set_value(int(starred[i]))
    if model.component("covered") is not None:
        for i, a, t in model.covered:
            covered = cells.members.of(i, a)
            spans = not starred[i] and covered[0] <= t < covered[-1]
            model.covered[i, a, t].set_value(float(spans))
    if model.component("holds") is not None:
        codes = problem.microdata.sensitive_codes
        for i, column, value in model.holds:
            among = codes[cover.of_record(i), column] == value
            model.holds[i, column, value].set_value(float(among.any()))
    if model.component("flow") is not None:
        set_start_effective(model, cover)
    set_losses(model)


def read_freeform(model: pyo.ConcreteModel) -> Cover:
    """Return the cover of a solved model.

    Where own records are free, each set is handed to a record in it, by a perfect matching.

    Raises InputError if the model has no solution.
    """
    context: CoverContext = model.context
    refuse_unsolved(model.match.values())
    sets = [[l for l in model.rows if model.match[l, i].value > 0.5] for i in model.rows]  # noqa: E741
    if context.own_record == "free" and any(i not in one for i, one in enumerate(sets)):
        return handed_over(Cover.of(sets))
    return Cover.of(sets)


def handed_over(cover: Cover) -> Cover:
    """Return the cover whose sets belong to records in them; as it is if that cannot be."""
    owner = perfect_matching(cover)
    if owner is None:
        return cover
    return Cover.of([cover.of_record(int(at)) for at in np.argsort(owner)])


def of_degree(cover: Cover, degree: int) -> Cover:
    """Return a regular cover within a regular one of larger sets."""
    loops = cover.members == cover.owners
    # Without its loops the graph is still regular, so it has regular subgraphs of all degrees.
    others = np.flatnonzero(~loops)
    start = cover.start - np.arange(cover.n + 1)
    chosen = regular_subgraph(Cover(start, cover.members[others]), degree - 1)
    assert isinstance(chosen, np.ndarray)
    kept = np.sort(np.concatenate([np.flatnonzero(loops), others[chosen]]))
    return Cover.of(cover.members[kept].reshape(cover.n, degree))
