"""From releases to columns, and back: rows of one type take turns, and sets get an owner."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Cover
from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.exact.column_generation.relaxation.columns import Columns
from anonymip.graphs import perfect_matching


def columns_of(rules: ColumnRules, assignment: Assignment) -> Columns:
    """Return the classes or sets of a release as columns, with the loss of each.

    Parameters
    ----------
    rules
        Which columns. Sets of other sizes are left out.
    assignment
        A release that the problem allows.
    """
    sets: list[NDArray[np.int64]] = []
    if isinstance(assignment, Classes):
        sets = assignment.groups()
    elif isinstance(assignment, Cover):
        sets = [assignment.of_record(i).astype(np.int64) for i in range(assignment.n)]
    sets = [one for one in sets if rules.smallest <= len(one) <= rules.largest]
    sizes = np.array([len(one) for one in sets], np.int64)
    costs = np.empty(len(sets))
    for size in np.unique(sizes).tolist():
        at = np.flatnonzero(sizes == size)
        costs[at] = rules.problem.compiled.class_losses(np.array([sets[i] for i in at], np.int64))
    if rules.freeform:
        costs /= rules.smallest
    types = [np.sort(rules.rows.type_of[one]) for one in sets]
    return Columns(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *types]).astype(np.int32),
        costs,
    )


def release_of(rules: ColumnRules, columns: Columns, times: NDArray[np.int64]) -> Assignment | None:
    """Return the release that uses columns so many times; None if its sets cannot be handed out.

    Parameters
    ----------
    rules
        Which sums of columns are releases.
    columns, times
        (c,) each used a whole number of times, so that every row type has its due.

    Notes
    -----
    The rows of a type take turns. As no column has more rows of a type than there are, it gets
    different ones, and in a cover each row is taken equally often: the graph of rows and sets is
    regular, and a perfect matching hands every row a set that it lies in.
    """
    rows = rules.rows
    turns = np.zeros(rows.types, np.int64)
    sets: list[NDArray[np.int64]] = []
    for column in np.repeat(np.arange(len(columns)), times).tolist():
        types, counts = np.unique(columns.of(column), return_counts=True)
        own = np.repeat(types, counts)
        within = np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = (turns[own] + within) % rows.counts[own]
        sets.append(rows.records[rows.starts[own] + places])
        turns[types] += counts
    if not rules.freeform:
        labels = np.full(rules.problem.n, SUPPRESSED, np.int64)
        for label, members in enumerate(sets):
            labels[members] = label
        return Classes(labels)  # type: ignore[arg-type]
    cover = Cover.of(sets)
    owner = perfect_matching(cover)
    return None if owner is None else Cover.of([sets[int(at)] for at in np.argsort(owner)])
