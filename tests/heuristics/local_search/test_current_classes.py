"""What a view of a class tells, after any change of one row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Diversity, Problem
from anonymip.heuristics.local_search.current_classes import (
    CurrentRelease,
    changed_loss,
    new_view,
    show_class,
)
from anonymip.recodings.rules.diversity_counts import stays_diverse
from tests.brute_force import Column
from tests.random_problems import Case, cases, microdata

AMPLE = settings(max_examples=60)


@AMPLE
@given(cases(smallest=5, suppression=False), st.data())
def test_a_view_tells_the_loss_after_any_change(case: Case, data: st.DataObject) -> None:
    """Without one row, with another, or both: as brute force says."""
    problem = case.problem()
    if not problem.compiled.has_tables:
        return
    groups = data.draw(st.sampled_from(case.releases()))
    labels = np.empty(case.n, np.int64)
    for label, group in enumerate(groups):
        labels[list(group)] = label
    state = CurrentRelease.of(problem, labels)
    kind_of = np.empty(case.n, np.int64)
    for kind in range(state.types):
        kind_of[state.records[state.first[kind] : state.first[kind + 1]]] = kind
    # Classes of one type may have been put together: look at those that were not.
    found = state.labels()
    view = new_view(state.rules, state.types)
    for label in state.living():
        members = np.flatnonzero(found == label).tolist()
        others = [row for row in range(case.n) if row not in members]
        show_class(state.rules, state.current, view, label)
        for leaving in [-1, *members]:
            for joining in [-1, *others]:
                left = [row for row in members if row != leaving]
                left += [joining] if joining >= 0 else []
                reported = changed_loss(
                    state.rules,
                    view,
                    kind_of[leaving] if leaving >= 0 else -1,
                    kind_of[joining] if joining >= 0 else -1,
                )
                wanted = case.set_loss(left)
                assert reported == pytest.approx(wanted, rel=1e-7, abs=1e-7)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([(2.0, 1), (1.0, 2), (1.5, 2)]))
def test_a_view_tells_the_diversity_after_any_change(seed: int, asked: tuple[float, int]) -> None:
    """As the diversity itself says of the rows."""
    rng = np.random.default_rng(seed)
    values = tuple(rng.integers(0, 3, 8).tolist())
    texts = tuple("xyz"[at] for at in [0, 1, *rng.integers(0, 3, 6)])
    data = microdata([Column(values, integer=True)], [texts])
    diversity = Diversity(*asked)
    if diversity.lacking(data.sensitive_codes) is not None:
        return
    problem = Problem(data, 2, diversity=diversity)
    state = CurrentRelease.of(problem, np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    kind_of = np.empty(8, np.int64)
    for kind in range(state.types):
        kind_of[state.records[state.first[kind] : state.first[kind + 1]]] = kind
    found = state.labels()
    view = new_view(state.rules, state.types)
    members = np.flatnonzero(found == found[0]).tolist()
    show_class(state.rules, state.current, view, int(found[0]))
    for leaving in [-1, *members]:
        for joining in [-1, *(row for row in range(8) if row not in members)]:
            rows = [r for r in members if r != leaving] + ([joining] if joining >= 0 else [])
            reported = stays_diverse(
                state.rules.diversity,
                view.counts,
                len(members),
                kind_of[leaving] if leaving >= 0 else -1,
                kind_of[joining] if joining >= 0 else -1,
            )
            assert reported == diversity.met_by(data.sensitive_codes[[rows]])[0]
