"""Multidimensional partitioning of LeFevre et al."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np

from anonymip.heuristics.growing.finish import finish
from anonymip.objectives.language.tables import LossTables, exact_losses, whole_loss
from anonymip.orders.orders import stable_order, with_surrogate_loss
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    diversity_rule,
    new_counts,
    rows_are_diverse,
)
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps
from anonymip.solution import Solution


class _Splitting(Packed):
    """A table that is being split."""

    #: (n, m) cells of the table.
    codes: Codes
    values: Floats
    #: (m,) whether an attribute is numeric; what a unit of its width costs.
    numeric: Flags
    width_costs: Floats
    #: Least records of a part; whether records with equal values stay together.
    k: int
    strict: bool
    #: The diversity, and its workspace.
    rule: DiversityRule
    counts: ValueCounts
    records: Ints  # (n,) the records, those of a part next to each other
    #: Where the open parts begin and end in `records`, a stack.
    parts: Annotated[Ints, "most, 2"]
    labels: Annotated[Ints, "n", -1]  # class of each record
    cursor: Annotated[Ints, "3"]  # open parts; classes; records in classes
    #: Workspaces: values met; widths of a part.
    seen: Annotated[Ints, "values_met"]
    widths: Annotated[Floats, "m"]


def mondrian(
    problem: Problem, *, strict: bool = True, budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Split the table at medians, along the widest attribute that allows it [1]_.

    The width of an attribute is its normalised range or number of values, times what the objective
    charges for the whole domain. Values of categorical attributes are taken in their sorted order,
    those of hierarchical ones in the order of the leaves. An objective without tables is taken to
    charge what GCP charges. Under a diversity only cuts into two diverse parts are allowed; parts
    that break a limit in the end are repaired.

    `problem`: with equivalence classes. `strict`: whether records with equal values stay together;
    if not, those at the median go to both sides so that the halves have equal size. `budget`: when
    it ends, the parts left are not split further. Complexity: O(m n log^2 n). Raises NoSolution if
    no classes are found that keep the limits.

    References
    ----------
    .. [1] K. LeFevre, D. J. DeWitt, R. Ramakrishnan: Mondrian Multidimensional K-Anonymity, ICDE
       2006, doi:10.1109/ICDE.2006.101.
    """
    watch, budget = Stopwatch(), budget or Budget()
    microdata, n = problem.microdata, problem.n
    rule = diversity_rule(problem.diversity, microdata)
    work = _Splitting.of_sizes(
        n=n,
        m=problem.m,
        # Every split makes two parts of at least k, so there are never more parts open or closed.
        most=2 * (n // problem.k) + 2,
        values_met=max(len(level) for level in microdata.levels),
        codes=microdata.codes,
        values=microdata.values,
        numeric=np.array([attribute.is_numeric for attribute in microdata.attributes]),
        width_costs=_width_costs(problem),
        k=problem.k,
        strict=strict,
        rule=rule,
        counts=new_counts(rule),
        records=np.arange(n),
    )
    work.parts[0], work.cursor[0] = (0, n), 1
    stopped = run_in_steps(partial(_split_step, work), n, budget, "splitting")
    for part in range(work.cursor[0]):
        begin, end = work.parts[part]
        work.labels[work.records[begin:end]] = work.cursor[1] + part
    return finish(
        problem,
        work.labels,
        "mondrian",
        watch,
        budget=budget,
        stopped=stopped,
        options={"strict": strict},
    )


def _width_costs(problem: Problem) -> Floats:
    """Return (m,) what a unit of width costs: ranges per value, sets per further value."""
    tables: LossTables = with_surrogate_loss(problem).compiled.tables
    domains = problem.compiled.domains
    spans = np.where(
        [kind == "numeric" for kind in domains.kinds],
        domains.high - domains.low,
        domains.size - 1.0,
    )
    whole = np.zeros(domains.m)
    for r, column in enumerate(tables.range_columns):
        whole[column] += max(tables.range_high[r], -tables.range_low[r]) * spans[column]
    for s, column in enumerate(tables.set_columns):
        first = tables.set_start[s] + 1
        whole[column] += abs(
            tables.set_losses[first + tables.set_sizes[s] - 1] - tables.set_losses[first]
        )
    for p, column in enumerate(tables.pair_columns):
        whole[column] += abs(whole_loss(tables, p) - exact_losses(tables, p)[0])
    # Attributes that cost nothing are split last, but they are split.
    whole[whole == 0] = 1e-9 * max(whole.max(), 1.0)
    return np.divide(whole, spans, out=np.zeros(domains.m), where=spans > 0)


@kernel
def _split_step(work: _Splitting, amount: int) -> int:
    """Take up to `amount` parts off the stack; return how many records are in classes."""
    parts, cursor, widths = work.parts, work.cursor, work.widths
    for _ in range(amount):
        if cursor[0] == 0:
            break
        # The part on top of the stack; a middle below 0 means that it is not cut.
        cursor[0] -= 1
        begin, end = parts[cursor[0], 0], parts[cursor[0], 1]
        middle = -1
        if end - begin >= 2 * work.k:
            _measure(work, begin, end)
            # The widest attribute first; one that cannot be cut is struck out, and the next is
            # tried.
            for _attempt in range(len(widths)):
                widest = int(np.argmax(widths))
                if widths[widest] <= 0:
                    break
                widths[widest] = -1.0
                middle = _cut(work, widest, begin, end)
                if (
                    middle >= 0
                    and rows_are_diverse(work.rule, work.counts, work.records, begin, middle)
                    and rows_are_diverse(work.rule, work.counts, work.records, middle, end)
                ):
                    break
                middle = -1
        # What cannot be cut is a class.
        if middle < 0:
            for at in range(begin, end):
                work.labels[work.records[at]] = cursor[1]
            cursor[1] += 1
            cursor[2] += end - begin
        else:
            # The first half comes on top, so that classes are numbered from the left.
            parts[cursor[0], 0], parts[cursor[0], 1] = middle, end
            parts[cursor[0] + 1, 0], parts[cursor[0] + 1, 1] = begin, middle
            cursor[0] += 2
    return cursor[2]


@kernel
def _measure(work: _Splitting, begin: int, end: int) -> None:
    """Fill in the width of a part along each attribute."""
    codes, values, seen = work.codes, work.values, work.seen
    held = work.records[begin:end]
    for a in range(len(work.widths)):
        if work.numeric[a]:
            low = values[held[0], a]
            high = low
            for record in held:
                low = min(low, values[record, a])
                high = max(high, values[record, a])
            work.widths[a] = work.width_costs[a] * (high - low)
        else:
            distinct = 0
            for record in held:
                code = codes[record, a]
                if seen[code] == 0:
                    seen[code] = 1
                    distinct += 1
            for record in held:
                seen[codes[record, a]] = 0
            work.widths[a] = work.width_costs[a] * (distinct - 1)


@kernel
def _cut(work: _Splitting, attribute: int, begin: int, end: int) -> int:
    """Order a part along an attribute and return where to cut it, -1 if no cut is allowed."""
    records, k = work.records, work.k
    keys = np.empty(end - begin, np.float64)
    for at in range(begin, end):
        keys[at - begin] = work.codes[records[at], attribute]
    order = stable_order(keys)
    middle = (end - begin) // 2
    if work.strict:
        median = keys[order[middle - 1]]
        above = middle
        while above < end - begin and keys[order[above]] == median:
            above += 1
        below = middle - 1
        while below > 0 and keys[order[below - 1]] == median:
            below -= 1
        # The median's records go to the side that stays nearer to a half.
        if end - begin - above >= k and (above - middle <= middle - below or below < k):
            middle = above
        elif below >= k:
            middle = below
        else:
            return -1
    held = records[begin:end].copy()
    for at in range(end - begin):
        records[begin + at] = held[order[at]]
    return begin + middle
