"""The classes found for a window with donors are the best there are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip.heuristics.local_search.borrowed_classes import best_classes, new_listed_work
from anonymip.heuristics.local_search.current_classes import CurrentRelease
from tests.brute_force import partitions
from tests.random_problems import Case, cases, ruled_cases


def class_cost(
    case: Case, rows: list[int], donors: list[int], spare: list[int], near: list[int], places: int
) -> float:
    """Return what some rows cost as a class, filled up with copies of one donor if need be."""
    missing = case.k - len(rows)
    if missing <= 0:
        loss = case.set_loss(rows)
        return loss if case.worst else len(rows) * loss
    costs = [math.inf]
    for donor, copies, bits in zip(donors, spare, near, strict=True):
        if copies >= missing and bits & places:
            loss = case.set_loss([*rows, donor])
            gone = missing * case.set_loss([donor])
            costs.append(loss if case.worst else case.k * loss - gone)
    return min(costs)


@settings(max_examples=150)
@given(
    st.one_of(cases(largest=8, suppression=False), ruled_cases().filter(lambda c: c.worst)),
    st.data(),
)
def test_the_best_of_all_classes_with_donors(case: Case, data: st.DataObject) -> None:
    """As brute force: the optimum, and nothing where only less is asked for."""
    problem = case.problem()
    assume(problem.compiled.monotone and problem.compiled.has_tables)
    assume(problem.diversity is None and not problem.limits)
    state = CurrentRelease.of(problem, np.zeros(case.n, np.int64))
    work = new_listed_work(state.rules.rows.tables, case.k)
    row_types = np.repeat(np.arange(state.types), np.diff(state.first))
    order = data.draw(st.permutations(range(case.n)))
    count = data.draw(st.integers(2, case.n))
    placed = order[:count]
    donors: list[int] = []
    for place in order[count:]:
        if row_types[place] not in row_types[donors]:
            donors.append(place)
    work.size[:] = len(placed), len(donors)
    work.row_types[: len(placed)] = row_types[placed]
    work.donors.types[: len(donors)] = row_types[donors]
    records = state.records
    spare = [data.draw(st.integers(1, case.k)) for _ in donors]
    near = [data.draw(st.integers(1, 2 ** len(placed) - 1)) for _ in donors]
    work.donors.spare[: len(donors)], work.donors.near[: len(donors)] = spare, near
    work.donors.surplus_losses[: len(donors)] = [case.set_loss([int(records[at])]) for at in donors]

    def cost(group: tuple[int, ...]) -> float:
        rows = [int(records[placed[at]]) for at in group]
        places = sum(1 << at for at in group)
        return class_cost(case, rows, [int(records[at]) for at in donors], spare, near, places)

    def total(groups: tuple[tuple[int, ...], ...]) -> float:
        costs = [cost(group) for group in groups]
        return max(costs) if case.worst else sum(costs)

    best = min(total(groups) for groups in partitions(len(placed), 1, False))

    def run(old: float) -> float:
        return float(best_classes(state.rules, work, old, 10**6))

    if math.isinf(best):
        assert math.isinf(run(1e3))
        return
    assert math.isinf(run(best - 1e-7 * max(1.0, abs(best))))
    assert run(best + 1.0) == pytest.approx(best, rel=1e-7, abs=1e-7)
    groups, covered = [], 2 ** len(placed) - 1
    while covered:
        part = int(work.sets.part[work.sets.choice[covered]])
        groups.append(tuple(at for at in range(len(placed)) if part >> at & 1))
        donor = work.sets.filler[work.sets.choice[covered]]
        assert (donor >= 0) == (len(groups[-1]) < case.k)
        covered ^= part
    assert total(tuple(groups)) == pytest.approx(best, rel=1e-7, abs=1e-7)
