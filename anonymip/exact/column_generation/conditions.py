r"""Columns of classes and covers: which suffice, which sums of them are releases.

With the rows of one type merged (:math:`m_i` of them) a column is a multiset S of
:math:`a_S(i) \le m_i` rows, and both recodings are one program,

.. math::

    \min \sum_S C(S)\, y_S \quad \text{with} \quad
    \sum_S a_S(i)\, y_S = b_i, \quad y_S \in \{0, 1, \dots\}.

=========  ====================================  ==============================
recoding   columns                               costs, right-hand sides
=========  ====================================  ==============================
classes    k rows up to the largest size needed  ``s c(S)``; :math:`b_i = m_i`
freeform   k rows                                ``c(S)``; :math:`b_i = k m_i`
=========  ====================================  ==============================

Classes are at most :math:`\lfloor n / k \rfloor` many, which is a row of its own where k does not
divide n; freeform covers have n sets. That larger sets are never needed rests on a superadditive
class loss or a monotone record loss; an objective that is neither is refused with two sets that
show it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Cover
from anonymip.enumeration.cluster_sets import Columns
from anonymip.enumeration.merging import MergedRows, merge_rows
from anonymip.errors import InputError, UnsupportedObjective, argument
from anonymip.exact.set_partitioning.restricted_master import Covering
from anonymip.graphs import perfect_matching
from anonymip.objectives.language.tracing import random_chains, rounding_slack
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses, Freeform
from anonymip.runtime.arrays import Floats, Ints

_REMEDY = "Use another method of the recoding, such as its MIP"


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnRules(Covering):
    """Which columns there are, and which sums of them are releases.

    For covers k of the problem is the size of the sets. Row types are in the order of their first
    records; columns have from `smallest` to `largest` rows.
    """

    problem: Problem
    freeform: bool
    rows: MergedRows
    smallest: int
    largest: int

    @property
    def weight(self) -> str:
        """What the loss of a record counts in a column's cost: its ``"size"``, or ``"one"``."""
        return "one" if self.freeform else "size"


def column_rules(problem: Problem) -> ColumnRules:
    """Return the rules of a problem's columns.

    Raises InputError if the recoding is another one, or sets differ in size or must be reciprocal
    or diverse; UnsupportedObjective if the loss is not summed, or lacks the property on which the
    sizes rest.
    """
    compiled = problem.compiled
    if not isinstance(problem.recoding, EquivalenceClasses | Freeform):
        raise InputError(
            f"column-generation makes classes and freeform covers, the problem asks for "
            f"{problem.recoding.name}",
            remedy=f"Use {argument('recoding', 'classes')} or {argument('recoding', 'freeform')}",
        )
    if compiled.aggregate != "sum":
        raise UnsupportedObjective(
            f"column-generation adds losses up, and {compiled.name!r} is the largest of a record",
            remedy=_REMEDY,
        )
    if problem.diversity is not None and problem.diversity.t is not None:
        raise InputError(f"column-generation cannot keep the {problem.diversity}", remedy=_REMEDY)
    unmet = unmet_property(problem)
    if unmet is not None:
        raise UnsupportedObjective(f"column-generation needs {unmet}", remedy=_REMEDY)
    recoding, price = problem.recoding, np.inf
    covers = isinstance(recoding, Freeform)
    if isinstance(recoding, Freeform):
        problem = _plain_covers(problem, recoding)
        largest = problem.k
    else:
        found = recoding.max_size(problem).size
        largest = problem.n if found is None else min(found, problem.n)
        price = float(compiled.suppression_price) if recoding.suppression else np.inf
    n, k = problem.n, problem.k
    rows = merge_rows(problem, np.zeros(n), merge=True)
    return ColumnRules(
        problem=problem,
        freeform=covers,
        rows=rows,
        smallest=k,
        largest=largest,
        sides=(k if covers else 1) * rows.counts.astype(np.float64),
        most=n if covers else n // k,
        counted=not covers and n % k > 0,
        price=price,
    )


def unmet_property(problem: Problem) -> str | None:
    """Return which property of the loss the sizes of columns rest on and that it lacks; or None.

    Under a diversity classes of all sizes are columns.
    """
    compiled, covers = problem.compiled, isinstance(problem.recoding, Freeform)
    if covers and not compiled.monotone:
        needed, shown = "a monotone record loss for covers", _shown(problem, covers)
    elif not covers and not compiled.superadditive and problem.diversity is None:
        needed, shown = "a superadditive class loss", _shown(problem, covers)
    else:
        return None
    return f"{needed}; of {compiled.name!r}, {compiled.obstacle}{shown}"


def _plain_covers(problem: Problem, recoding: Freeform) -> Problem:
    """Return the problem of covers by sets of one size; InputError where they keep other rules."""
    degrees = recoding.sizes(problem)
    if recoding.reciprocal or (degrees != degrees[0]).any():
        raise InputError(
            "column-generation makes no sets that are reciprocal or differ in size", remedy=_REMEDY
        )
    if recoding.suppression:
        raise InputError(
            "column-generation makes no covers that leave records out",
            remedy="Use freeform-mip for few records, a heuristic, or auto",
        )
    if problem.diversity is not None:
        raise InputError(
            "column-generation makes no diverse covers, whose sets may have to be larger than k",
            remedy=_REMEDY,
        )
    return problem.replace(k=int(degrees[0]), recoding=Freeform())


def rules_of_relaxation(problem: Problem) -> tuple[Problem, ColumnRules]:
    """Return a problem whose linear program bounds another, and the rules of its columns.

    Of covers that may leave records out it is that of classes of k, with the same price: a set that
    is published y times is y / k of a class, and larger ones lose no less than their parts of k do.
    """
    recoding = problem.recoding
    if not (isinstance(recoding, Freeform) and recoding.suppression):
        return problem, column_rules(problem)
    price = float(problem.compiled.suppression_price)
    classes = problem.replace(recoding=EquivalenceClasses(suppression_price=price))
    rules = column_rules(classes)
    return classes, replace(rules, largest=problem.k, most=problem.n, counted=False)


#: Growing sets of records that are tried.
_CHAINS = 500


def _shown(problem: Problem, covers: bool) -> str:
    """Return as part of a sentence sets that lack the property; empty if random ones have it.

    Of covers a set that costs a record more than one with a record more, of classes two sets that
    cost more than their union.
    """
    chains = random_chains(problem.n, _CHAINS)
    for size in range(2, chains.shape[1] + 1):
        union, whole = chains[:, :size], _class_losses(problem, chains[:, :size])
        for cut in [size - 1] if covers else range(1, size):
            one, other = chains[:, :cut], chains[:, cut:size]
            losses, most = _class_losses(problem, one), whole
            if covers:
                losses, most = losses / cut, whole / size
            else:
                losses = losses + _class_losses(problem, other)
            worst = _worst(losses, most)
            if worst is not None and covers:
                return (
                    f" (a record of {_named(one[worst])} loses {losses[worst]:.6g}, "
                    f"one of {_named(union[worst])} loses {most[worst]:.6g})"
                )
            if worst is not None:
                return (
                    f" (the classes {_named(one[worst])} and {_named(other[worst])} lose "
                    f"{losses[worst]:.6g}, their union {most[worst]:.6g})"
                )
    return ""


def _worst(losses: Floats, most: Floats) -> int | None:
    """Return where losses exceed most by the most; None if by no more than rounding does."""
    worst = int(np.argmax(np.nan_to_num(losses - most, nan=-np.inf)))
    return worst if losses[worst] - most[worst] > rounding_slack(losses)[worst] else None


def _class_losses(problem: Problem, sets: Ints) -> Floats:
    try:
        return problem.compiled.class_losses(sets)
    except UnsupportedObjective:
        # A loss of classes may be undefined for sets as small as these.
        return np.full(len(sets), np.nan)


def _named(records: Ints) -> str:
    return "{" + ", ".join(str(record + 1) for record in sorted(records.tolist())) + "}"


def columns_of(rules: ColumnRules, assignment: Assignment) -> Columns:
    """Return the classes or sets of a release as columns, with the loss of each."""
    sets: list[Ints] = []
    if isinstance(assignment, Classes):
        sets = assignment.groups()
    elif isinstance(assignment, Cover):
        sets = [assignment.of_record(i).astype(np.int64) for i in range(assignment.n)]
    return sets_as_columns(rules, sets)


def sets_as_columns(rules: ColumnRules, sets: list[Ints]) -> Columns:
    """Return sets of records as columns, with the loss of each.

    Sets of other sizes than columns have are left out.
    """
    sets = [one for one in sets if rules.smallest <= len(one) <= rules.largest]
    sizes = np.array([len(one) for one in sets], np.int64)
    costs = np.empty(len(sets))
    for size in np.unique(sizes).tolist():
        at = np.flatnonzero(sizes == size)
        costs[at] = rules.problem.compiled.class_losses(np.array([sets[i] for i in at], np.int64))
    if rules.freeform:
        costs /= rules.smallest
    return Columns.of_sets([rules.rows.type_of[one] for one in sets], costs)


def release_of(rules: ColumnRules, columns: Columns, times: Ints) -> Assignment | None:
    """Return the release that uses columns (c,) times; None if its sets cannot be handed out.

    The rows of a type take turns. As no column has more rows of a type than there are, it gets
    different ones, and in a cover each row is taken equally often: the graph of rows and sets is
    regular, and a perfect matching hands every row a set that it lies in.
    """
    rows = rules.rows
    following = np.zeros(rows.types, np.int64)
    sets: list[Ints] = []
    for column in np.repeat(np.arange(len(columns)), times).tolist():
        types, counts = np.unique(columns.of(column), return_counts=True)
        own = np.repeat(types, counts)
        within = np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = (following[own] + within) % rows.counts[own]
        sets.append(rows.records[rows.starts[own] + places])
        following[types] += counts
    if not rules.freeform:
        labels = np.full(rules.problem.n, SUPPRESSED, np.int64)
        for label, members in enumerate(sets):
            labels[members] = label
        return Classes(labels)  # type: ignore[arg-type]
    cover = Cover.of(sets)
    owner = perfect_matching(cover)
    return None if owner is None else Cover.of([sets[int(at)] for at in np.argsort(owner)])
