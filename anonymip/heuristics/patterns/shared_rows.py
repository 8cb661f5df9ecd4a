"""The first pattern that enough of the records left share: the greedy's inner loop."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.problem import Problem
from anonymip.recodings.output_rows import PackedRows, group_rows
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

#: Places of `_Sharing.state`: rows left, patterns done, records left.
_LEFT, _DONE, _RECORDS = range(3)


class _Sharing(Packed):
    """The loop: what is asked, how far it is, and its workspace."""

    packed: PackedRows
    order: Ints  # patterns
    counts: Ints  # (t,) records of each row
    k: int
    single: bool  # whether a pattern serves one output row
    pattern_of: Annotated[Ints, "t", -1]
    state: Ints
    left: Ints
    #: A hash table of what the rows left show, and groups of rows.
    group: Annotated[Ints, "t"]
    table: Annotated[Ints, "places"]
    first: Annotated[Ints, "t"]
    sums: Annotated[Ints, "t"]


def share_rows(
    problem: Problem, packed: PackedRows, order: Ints, counts: Ints, single: bool, budget: Budget
) -> tuple[Ints, Stopped | None]:
    """Return the pattern of each row, -1 for rows that are left, and why it stopped early.

    Patterns are looked at in `order`, and each serves the rows that k records share, `counts` of
    each row; a `single` one serves one output row: the one of the most records, the first among
    equals. Under a diversity the rows are the records of the problem. Complexity: O(p t) time and
    O(t) memory: rows leave as they get their pattern.
    """
    t = len(counts)
    work = _Sharing.of_sizes(
        t=t,
        places=1 << max(4, int(2 * t).bit_length()),
        packed=packed,
        order=order,
        counts=counts,
        k=problem.k,
        single=single,
        left=np.arange(t),
        state=np.array([t, 0, counts.sum()], np.int64),
    )

    def step(amount: int) -> int:
        until = min(len(order), int(work.state[_DONE]) + amount)
        if problem.diversity is None:
            _share(work, until)
        else:
            while work.state[_DONE] < until:
                _share_diversely(work, problem)
        return len(order) if work.state[_RECORDS] < problem.k else int(work.state[_DONE])

    stopped = run_in_steps(step, len(order), budget, "sharing patterns")
    return work.pattern_of, stopped


def _share_diversely(work: _Sharing, problem: Problem) -> None:
    """Look at one pattern; groups that lack the diversity stay."""
    assert problem.diversity is not None
    pattern, left = work.order[work.state[_DONE]], work.left[: work.state[_LEFT]]
    work.state[_DONE] += 1
    shown, space = work.packed.masks[pattern], (work.group, work.table, work.first)
    groups = int(group_rows(work.packed.words, shown, left, len(left), *space))
    labels = work.group[: len(left)]
    sizes = np.bincount(labels, minlength=groups)
    large = np.flatnonzero(sizes >= work.k)
    if not len(large):
        return
    within = np.isin(labels, large)
    numbers = np.searchsorted(large, labels[within])
    met = problem.diversity.kept_by(problem.microdata, left[within], numbers, len(large))
    chosen = large[met]
    if work.single and len(chosen):
        chosen = chosen[np.argmax(sizes[chosen])][None]
    taken = np.isin(labels, chosen)
    work.pattern_of[left[taken]] = pattern
    rest = left[~taken]
    work.left[: len(rest)] = rest
    work.state[_LEFT] = work.state[_RECORDS] = len(rest)


@kernel
def _share(work: _Sharing, until: int) -> None:
    """Look at the patterns up to a place in the order."""
    packed, state, counts, k = work.packed, work.state, work.counts, work.k
    left, group, sums = work.left, work.group, work.sums
    while state[_DONE] < until and state[_RECORDS] >= k:
        pattern = work.order[state[_DONE]]
        state[_DONE] += 1
        rows = left[: state[_LEFT]]
        shown = packed.masks[pattern]
        groups = group_rows(packed.words, shown, rows, len(rows), group, work.table, work.first)
        # Records of each group; under single use only the largest one counts.
        sums[:groups] = 0
        for at in range(len(rows)):
            sums[group[at]] += counts[rows[at]]
        only = -1
        if work.single:
            only = int(np.argmax(sums[:groups]))
        # Rows of groups that reach k leave; the others close up in front.
        kept = 0
        for at in range(len(rows)):
            row, number = rows[at], group[at]
            if sums[number] >= k and (only < 0 or number == only):
                work.pattern_of[row] = pattern
                state[_RECORDS] -= counts[row]
            else:
                left[kept] = row
                kept += 1
        state[_LEFT] = kept
