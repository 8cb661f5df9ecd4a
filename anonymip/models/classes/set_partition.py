r"""Set partitioning: every allowed class is a column, every record is covered once.

With the sets S of k or more records that may be classes, their losses C(S), and rows of one type t
merged (m_t of them, n_St in S):

==================================================  =======================================
:math:`\min \sum_S C(S)\, y_S + p \sum_t z_t`        ``loss``
:math:`\sum_S n_{St}\, y_S + z_t = m_t`              ``cover[t]``
:math:`y_S \in \{0, 1, \dots\}`                      ``chosen[S]``: how often a set is a class
:math:`z_t \in \{0, \dots, m_t\}`                    ``suppress[t]``: rows published as stars
==================================================  =======================================

The master problem of column generation, with all columns. Losses need no formula, so that every
tier of objectives is modelled; limits and diversity decide which sets there are. No class of
the relaxation is anything but a whole set, which makes its bound strong.

Where the largest loss of a record counts, with c(S) the loss of a record of S and b the least of
all losses:

=========================================================  ====================================
:math:`\min w`                                              ``loss``, ``worst``
:math:`m_t w \ge \sum_S n_{St} c(S) y_S + p z_t`            ``average[t]``: no mean exceeds w
:math:`w \ge b + (c(S) - b) u_S`                            ``highest[S]``
:math:`y_S \le \bar y_S u_S`                                ``occurs[S]``, ``used[S]`` binary
=========================================================  ====================================

The last two only for sets whose types all have several rows: elsewhere the mean is of one record,
and says it all. Suppressed rows are treated alike (``starred``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from scipy.sparse import csr_array

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.enumeration import ClusterSets
from anonymip.errors import InputError, InvalidAssignment
from anonymip.models.parts.equivalence_context import linear, refuse_unsolved, total
from anonymip.models.parts.set_columns import (
    MAX_COLUMNS,
    often_at_most,
    priced_columns,
    read_chosen,
    refusal_of_sets,
    refuse_other_recodings,
    set_chosen,
    set_partition_size,
    terms_of_type,
)
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity import Units
from anonymip.runtime.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class SetContext:
    """What the model was built from, problem and columns; kept on it as ``context``."""

    problem: Problem
    sets: ClusterSets

    @cached_property
    def counts(self) -> dict[int, int]:
        """Rows of each type, by its first record."""
        rows = self.sets.rows
        return dict(zip(rows.first.tolist(), rows.counts.tolist(), strict=True))


#: Up to so many columns a solver simplifies the model first.
_PRESOLVED_SETS = 1_000


def build_set_partition(
    problem: Problem,
    *,
    upper_bound: float | None = None,
    max_sets: int = MAX_COLUMNS,
    merge: bool = True,
    sets: ClusterSets | None = None,
) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    `upper_bound`: loss of a release that is known. With a monotone objective that is summed, sets
    that no release as good can contain are then left out: those whose loss exceeds what their
    records pay at least by more than the whole release may. `merge`: whether identical rows are one
    row of the model. Without, ``equivalent[i, l]`` says whether two records share a class, and
    ``lower[i, j]``, ``upper[i, j]`` what is published for one. `sets`: the columns, if the caller
    has enumerated them. Raises InputError if the recoding is another one, or there are more sets
    than `max_sets`.

    Size: one variable a set, of which there are :func:`set_partition_size`; one row a type.
    """
    refuse_other_recodings(problem)
    if sets is None:
        sets = priced_columns(problem, upper_bound, max_sets, merge)
    if not sets.complete:
        raise refusal_of_sets(
            "set-partition",
            max_sets,
            set_partition_size(problem),
            "Use another formulation; build(problem, 'set-partition') also takes upper_bound, the "
            "loss of a release that is known, and max_sets",
        )
    model = pyo.ConcreteModel(name="equivalence classes, set partitioning")
    model.context = SetContext(problem, sets)
    # HiGHS spends longer on simplifying many columns than on the search.
    model.presolve_pays = len(sets) <= _PRESOLVED_SETS
    with PauseGC():
        _add_columns(model)
        if problem.compiled.aggregate == "sum":
            coefficients, variables = sets.losses.tolist(), list(model.chosen.values())
            if problem.may_suppress:
                variables += list(model.suppress.values())
                coefficients += [problem.compiled.suppression_price] * len(model.suppress)
            model.loss = pyo.Objective(
                expr=linear(0.0, coefficients, variables), doc="loss summed over the records"
            )
        else:
            _add_largest(model)
        if not merge:
            _add_meaning(model)
    return model


def _add_columns(model: pyo.ConcreteModel) -> None:
    """Add the sets, and that they cover every row."""
    context: SetContext = model.context
    sets, counts = context.sets, context.counts
    most = often_at_most(sets).tolist()
    model.sets = pyo.RangeSet(0, len(sets) - 1, doc="sets of records that may be classes")
    model.types = pyo.Set(
        initialize=sorted(counts), doc="types of identical rows, each named by its first record"
    )
    model.chosen = pyo.Var(
        model.sets,
        domain=lambda _, c: pyo.Binary if most[c] == 1 else pyo.NonNegativeIntegers,
        bounds=lambda _, c: (0, most[c]),
        doc="how often a set is a class",
    )
    if context.problem.may_suppress:
        model.suppress = pyo.Var(
            model.types,
            domain=lambda _, t: pyo.Binary if counts[t] == 1 else pyo.NonNegativeIntegers,
            bounds=lambda _, t: (0, counts[t]),
            doc="how many rows of a type are published as stars",
        )
    incidence, first = sets.incidence.tocsr(), sets.rows.first
    bare = [] if context.problem.may_suppress else first[np.diff(incidence.indptr) == 0].tolist()
    model.uncovered = pyo.Var(
        sorted(bare),
        bounds=(0, 0),
        doc="rows of types that no set may hold: there is no release",
    )

    def cover(model: Any, first: int) -> Any:
        coefficients, variables = terms_of_type(model, incidence, first, 1.0)
        if first in model.uncovered:
            coefficients, variables = [1.0], [model.uncovered[first]]
        count = float(counts[first])
        return (count, linear(0.0, coefficients, variables), count)

    model.cover = pyo.Constraint(
        model.types, rule=cover, doc="every row lies in one class or is suppressed"
    )
    if context.problem.is_capped:
        model.cap = pyo.Constraint(
            expr=sum(model.suppress.values()) <= context.problem.most_suppressed,
            doc="no more rows are suppressed than may be",
        )


def _add_largest(model: pyo.ConcreteModel) -> None:
    """Add the loss of the record that loses most."""
    context: SetContext = model.context
    sets, counts, price = context.sets, context.counts, context.problem.compiled.suppression_price
    losses = sets.losses.tolist() + [price] * context.problem.may_suppress
    least, most = min(losses, default=0.0), max(losses, default=0.0)
    model.worst = pyo.Var(bounds=(least, most), doc="loss of the record that loses most")
    model.loss = pyo.Objective(expr=model.worst, doc="loss of the record that loses most")
    paid = csr_array(sets.incidence.multiply(sets.losses[None, :]))

    def average(model: Any, first: int) -> Any:
        coefficients, variables = terms_of_type(model, paid, first, price)
        coefficients.append(-float(counts[first]))
        return (None, linear(0.0, coefficients, [*variables, model.worst]), 0.0)

    model.average = pyo.Constraint(
        model.types, rule=average, doc="the mean over the rows of a type is at most the worst"
    )
    _add_highest(model, least)
    if not context.problem.may_suppress:
        return
    model.stars = pyo.Var(domain=pyo.Binary, doc="whether any row is published as stars")
    model.starred = pyo.Constraint(
        model.types,
        rule=lambda model, t: (
            None,
            linear(0.0, [1.0, -float(counts[t])], [model.suppress[t], model.stars]),
            0.0,
        ),
        doc="a suppressed row makes stars",
    )
    model.star_loss = pyo.Constraint(
        expr=(None, linear(0.0, [price - least, -1.0], [model.stars, model.worst]), -least),
        doc="the worst is no less than a row of stars",
    )


def _add_highest(model: pyo.ConcreteModel, least: float) -> None:
    """Bound the worst by each set that no type with one row stands for."""
    sets: ClusterSets = model.context.sets
    often, losses = often_at_most(sets), sets.losses.tolist()
    shared = np.ones(len(sets), np.bool_)
    if len(sets):
        shared = np.minimum.reduceat(sets.rows.counts[sets.types], sets.offsets[:-1]) > 1
    high = np.flatnonzero(shared & (sets.losses > least)).tolist()
    repeated = [c for c in high if often[c] > 1]
    model.used = pyo.Var(repeated, domain=pyo.Binary, doc="whether a set is a class at all")

    def occurs(model: Any, c: int) -> Any:
        return (None, linear(0.0, [1.0, -float(often[c])], [model.chosen[c], model.used[c]]), 0.0)

    def highest(model: Any, c: int) -> Any:
        binary = model.used[c] if often[c] > 1 else model.chosen[c]
        return (None, linear(0.0, [losses[c] - least, -1.0], [binary, model.worst]), -least)

    model.occurs = pyo.Constraint(repeated, rule=occurs, doc="a set that is a class is used")
    model.highest = pyo.Constraint(high, rule=highest, doc="the worst is no less than a used set")


def _add_meaning(model: pyo.ConcreteModel) -> None:
    """Name what other formulations have variables for: shared classes, published ends."""
    context: SetContext = model.context
    sets, microdata = context.sets, context.problem.microdata
    begins = np.cumsum(sets.sizes) - sets.sizes
    together: dict[tuple[int, int], list[Any]] = {
        pair: [] for pair in combinations(range(microdata.n), 2)
    }
    holding: list[list[int]] = [[] for _ in range(microdata.n)]
    for c, (begin, size) in enumerate(zip(begins.tolist(), sets.sizes.tolist(), strict=True)):
        members = sorted(sets.records[begin : begin + size].tolist())
        for pair in combinations(members, 2):
            together[pair].append(model.chosen[c])
        for record in members:
            holding[record].append(c)
    model.pairs = pyo.Set(initialize=list(together), dimen=2, doc="unordered pairs of records")
    model.equivalent = pyo.Expression(
        model.pairs,
        rule=lambda _, i, other: total(together[i, other]),
        doc="whether two records share a class",
    )
    ranges = [a for a, given in enumerate(microdata.attributes) if given.publish == "range"]
    model.ranges = pyo.Set(initialize=ranges, doc="attributes published as ranges")
    for end, reduce in (("lower", np.minimum), ("upper", np.maximum)):
        cells = microdata.values[sets.records]
        ends = reduce.reduceat(cells, begins, axis=0) if len(sets) else cells

        def rule(model: Any, i: int, j: int, ends: Floats = ends) -> Any:
            coefficients = ends[holding[i], j].tolist()
            variables = [model.chosen[c] for c in holding[i]]
            if context.problem.may_suppress:
                coefficients.append(float(microdata.values[i, j]))
                variables.append(model.suppress[i])
            return linear(0.0, coefficients, variables)

        doc = f"{end} end published for a record [unit of the attribute]"
        records = pyo.RangeSet(0, microdata.n - 1)
        model.add_component(end, pyo.Expression(records, model.ranges, rule=rule, doc=doc))


def set_start_set_partition(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply: a warm start.

    Classes larger than the sets of the model, which are never needed, are cut. Raises
    InvalidAssignment if the classes break a rule of the recoding; InputError if a class is no set
    of the model, since their loss is above the upper bound that it was built with.
    """
    context: SetContext = model.context
    problem, sets = context.problem, context.sets
    problem.recoding.check(problem, assignment)
    chosen = set_chosen(model, _cut_to_size(problem, assignment))
    if chosen is None:
        raise InputError(
            "a class of the start is no set of the model",
            remedy="Build the model with an upper_bound of at least the loss of the start",
        )
    starred = assignment.labels == SUPPRESSED
    if problem.may_suppress:
        counts = np.bincount(sets.rows.type_of[starred], minlength=sets.rows.types)
        for first, count in zip(sets.rows.first.tolist(), counts.tolist(), strict=True):
            model.suppress[first].set_value(int(count))
    if problem.compiled.aggregate != "sum":
        for c, variable in model.used.items():
            variable.set_value(int(chosen[c] > 0))
        losses = sets.losses[chosen > 0].tolist()
        if problem.may_suppress:
            model.stars.set_value(int(starred.any()))
            losses += [problem.compiled.suppression_price] * int(starred.any())
        model.worst.set_value(max(losses))


def _cut_to_size(problem: Problem, assignment: Classes) -> list[Ints]:
    """Return the groups, those above the largest size needed cut into parts of k or more."""
    largest = problem.recoding.max_size(problem).size
    groups = []
    for group in assignment.groups():
        if largest is not None and isinstance(problem.diversity, Units):
            groups += problem.diversity.cut(group, problem.microdata.counted_codes)
            continue
        parts = 1 if largest is None or len(group) <= largest else len(group) // problem.k
        groups += np.array_split(group, parts)
    return groups


def read_set_partition(model: pyo.ConcreteModel) -> Classes:
    """Return the classes of a solved model; rows of one type are handed out in their order.

    Raises InputError if the model has no solution; InvalidAssignment if the sets that it chose hold
    a row too often.
    """
    context: SetContext = model.context
    sets, rows = context.sets, context.sets.rows
    chosen = read_chosen(model)
    if context.problem.may_suppress:
        refuse_unsolved(model.suppress.values())
    handed = np.zeros(rows.types, np.int64)
    labels = np.full(context.problem.n, SUPPRESSED, np.int64)
    for label, c in enumerate(chosen):
        for at in range(sets.offsets[c], sets.offsets[c + 1]):
            t, count = sets.types[at], sets.counts[at]
            if handed[t] + count > rows.counts[t]:
                raise InvalidAssignment(int(rows.first[t]), "lies in several chosen sets")
            begin = rows.starts[t] + handed[t]
            labels[rows.records[begin : begin + count]] = label
            handed[t] += count
    return Classes(labels)  # type: ignore[arg-type]
