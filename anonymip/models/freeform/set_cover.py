r"""Freeform generalization by sets: which sets of k records are published, and how often.

Published records need no names: with the sets S of k records, their losses c(S), and rows of one
type t merged (m_t of them, n_St in S),

=====================================================  ====================================
:math:`\min \sum_S c(S)\, y_S`                          ``loss``
:math:`\sum_S n_{St}\, y_S = k\, m_t`                   ``cover[t]``: every original lies in k
:math:`y_S \in \{0, 1, \dots\}`                         ``chosen[S]``: how often S is published
=====================================================  ====================================

chooses n sets that cover every original k times, once its rows are handed out: the originals of a
type are taken one after the other, and as :math:`n_{St} \le m_t` none comes twice into one set. The
graph of sets and originals is then regular of degree k, so a perfect matching hands every original
one of the sets that it lies in (the argument of :mod:`.freeform`).

Suppressed records (``suppress[t]``, no more than the ``cap``) take k off the right side each, at
their price. Rows are not merged then: of a type some of whose rows are suppressed a set may need
more than are left.

Losses need no formula, but must be summed, and monotone, since else larger sets than k may lose
less (``fixed_size`` leaves these out). With :math:`z = y / k` the linear relaxation is that of set
partitioning by sets of k; it is far stronger than that of the flow of matches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from anonymip.assignments import Cover
from anonymip.enumeration import ClusterSets, enumerate_sets
from anonymip.errors import InputError, UnsupportedObjective
from anonymip.models.freeform.freeform import handed_over, of_degree
from anonymip.models.parts.equivalence_context import linear, total
from anonymip.models.parts.set_columns import (
    MAX_COLUMNS,
    count_multisets,
    often_at_most,
    read_chosen,
    refusal_of_sets,
    set_chosen,
    terms_of_type,
)
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.runtime.arrays import Ints


@dataclass(frozen=True, eq=False)
class CoverSets:
    """What the model was built from; kept on it as ``context``.

    `sets`: the columns; their losses are those of k records each. `degree`: records of each set.
    """

    problem: Problem
    sets: ClusterSets
    degree: int


def cover_degree(problem: Problem, fixed_size: bool = False) -> int:
    """Return how many records each set has, or refuse a problem that needs no such sets.

    `fixed_size`: whether covers by larger sets do not matter, so that the loss need not be
    monotone. Raises InputError if the recoding is another one, or sets differ in size or must be
    reciprocal or diverse; UnsupportedObjective if the loss is not summed, or not monotone where
    larger sets matter.
    """
    recoding, compiled = problem.recoding, problem.compiled
    remedy = "Use the formulation freeform"
    if not isinstance(recoding, Freeform):
        raise InputError(
            f"the set-cover model does not model the recoding {recoding.name}", remedy=remedy
        )
    if recoding.reciprocal or len(set(recoding.sizes(problem).tolist())) > 1:
        raise InputError(
            "the set-cover model does not model sets that are reciprocal or differ in size",
            remedy=remedy,
        )
    if problem.diversity is not None:
        raise InputError(
            "the set-cover model does not model diversity, for which larger sets may be needed",
            remedy=remedy,
        )
    if compiled.aggregate != "sum":
        raise UnsupportedObjective(
            "the set-cover model does not model the largest loss of a record", remedy=remedy
        )
    if not (compiled.monotone or fixed_size):
        raise UnsupportedObjective(
            f"the set-cover model needs a monotone objective, and {problem.objective.name!r} is "
            f"none: {compiled.obstacle}",
            remedy="Use freeform-mip, which compares the sizes of sets, or a heuristic",
        )
    return int(recoding.sizes(problem)[0])


def build_set_cover(
    problem: Problem,
    *,
    max_sets: int = MAX_COLUMNS,
    sets: ClusterSets | None = None,
    fixed_size: bool = False,
) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    `sets`: the columns, if the caller has enumerated them. `fixed_size`: whether the best cover by
    sets of k is asked for where larger ones may lose less. Raises as :func:`cover_degree`, and
    InputError if there are more sets than `max_sets`. Size: one variable a set, of which there are
    :func:`set_cover_size`; one row a type.
    """
    degree = cover_degree(problem, fixed_size)
    if sets is None:
        plain = problem.replace(k=degree, recoding=Freeform())
        merge = not problem.recoding.suppression  # type: ignore[attr-defined]
        sets = enumerate_sets(plain, max_size=degree, max_sets=max_sets, merge=merge)
    if not sets.complete:
        remedy = "Use the formulation freeform, or a larger max_sets"
        raise refusal_of_sets("set-cover", max_sets, set_cover_size(problem), remedy)
    rows, incidence = sets.rows, sets.incidence.tocsr()
    most, suppression = often_at_most(sets, degree), problem.most_suppressed > 0
    model = pyo.ConcreteModel(name="freeform, set cover")
    model.context = CoverSets(problem, sets, degree)

    def cover(model: pyo.ConcreteModel, first: int) -> object:
        often, chosen = terms_of_type(model, incidence, first, float(degree))
        if not chosen:
            return pyo.Constraint.Infeasible
        wanted = float(degree * rows.counts[rows.type_of[first]])
        return (wanted, linear(0.0, often, chosen), wanted)

    with PauseGC():
        model.sets = pyo.RangeSet(0, len(sets) - 1, doc="sets of records that may be published")
        model.types = pyo.Set(
            initialize=rows.first.tolist(),
            doc="types of identical rows, each named by its first record",
        )
        model.chosen = pyo.Var(
            model.sets,
            domain=pyo.NonNegativeIntegers,
            bounds=lambda _, c: (0, int(most[c])),
            doc="how often a set is published",
        )
        losses, variables = (sets.losses / degree).tolist(), list(model.chosen.values())
        if suppression:
            model.suppress = pyo.Var(
                model.types, domain=pyo.Binary, doc="whether a record is published as stars"
            )
            model.cap = pyo.Constraint(
                expr=total(list(model.suppress.values())) <= problem.most_suppressed,
                doc="no more records are suppressed than may be",
            )
            variables += list(model.suppress.values())
            losses += [problem.compiled.suppression_price] * rows.types
        model.cover = pyo.Constraint(
            model.types, rule=cover, doc="every original lies in k published sets"
        )
        model.loss = pyo.Objective(
            expr=linear(0.0, losses, variables),
            sense=pyo.minimize,
            doc="loss summed over the records [unit of the objective]",
        )
    return model


def set_cover_size(problem: Problem) -> int:
    """Return how many sets of row types there are; limits may leave fewer.

    Raises InputError if the model does not fit the problem.
    """
    degree, counts = cover_degree(problem), problem.microdata.row_types().counts
    if problem.most_suppressed:
        counts = np.ones(problem.n, np.int64)
    return int(count_multisets(counts, degree)[degree])


def set_start_set_cover(model: pyo.ConcreteModel, assignment: Cover) -> None:
    """Give the variables the values of a cover: a warm start.

    Raises InputError if the model lacks one of its sets; InvalidAssignment if the cover breaks a
    rule of the problem.
    """
    context: CoverSets = model.context
    context.problem.recoding.check(context.problem, assignment)
    kept, cover = assignment.without_suppressed()
    if cover.n and cover.sizes[0] > context.degree:
        cover = of_degree(cover, context.degree)
    sets = [kept[cover.of_record(published)] for published in range(cover.n)]
    if context.problem.most_suppressed:
        for first, suppress in model.suppress.items():
            suppress.set_value(int(assignment.sizes[first] == 0))
    if set_chosen(model, sets) is None:
        raise InputError("the model has not all sets of the start", remedy="Build it with all sets")


def read_set_cover(model: pyo.ConcreteModel) -> Cover:
    """Return the cover of a solved model: originals of a type are taken one after the other.

    Raises InputError if the model has no solution; InvalidAssignment if it names too few or too
    many sets.
    """
    context: CoverSets = model.context
    sets, rows = context.sets, context.sets.rows
    handed = np.zeros(rows.types, np.int64)
    found: list[Ints] = []
    for c in read_chosen(model):
        members = []
        for at in range(sets.offsets[c], sets.offsets[c + 1]):
            t, count = sets.types[at], sets.counts[at]
            places = (handed[t] + np.arange(count)) % rows.counts[t]
            members.append(rows.records[rows.starts[t] + places])
            handed[t] += count
        found.append(np.concatenate(members))
    kept = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    cover = handed_over(Cover.of([np.searchsorted(kept, one) for one in found]))
    return Cover.joined(context.problem.n, [(kept, cover)])
