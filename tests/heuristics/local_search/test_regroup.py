"""Rebuilt classes are the best ones of their rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip.exact.classes.best_classes import compiles
from anonymip.heuristics.local_search.current_classes import CurrentRelease
from anonymip.heuristics.local_search.regroup import new_regroup_work, regroup
from tests.random_problems import Case, cases, ruled_cases


@settings(max_examples=80)
@given(st.one_of(cases(largest=8, suppression=False), ruled_cases()), st.data())
def test_the_best_of_all_classes(case: Case, data: st.DataObject) -> None:
    """As brute force under every rule: the optimum, and nothing where only less is asked for."""
    problem, best = case.problem(), case.optimum()
    assume(compiles(problem))
    state = CurrentRelease.of(problem, np.zeros(case.n, np.int64))
    work = new_regroup_work(state.rules, case.n)
    order = np.array(data.draw(st.permutations(range(case.n))))
    kinds = np.repeat(np.arange(state.types), np.diff(state.first))
    work.row_types[:] = kinds[order]

    def run(cutoff: float) -> float:
        return float(regroup(state.rules, work, case.n, cutoff, 10**6))

    assert np.isinf(run(best - case.slack(best)))
    found = run(best + 1e-6 + case.slack(best))
    assert found == pytest.approx(best, rel=1e-9, abs=1e-9)
    rows = state.records[order]
    labels = range(work.found.max() + 1)
    groups = tuple(tuple(rows[work.found == label].tolist()) for label in labels)
    assert case.release_loss(groups) == pytest.approx(found, rel=1e-9, abs=1e-9)
