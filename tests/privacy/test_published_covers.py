"""End-to-end tests: covers that the package publishes, verified and attacked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Cover, Freeform, Solution, publish
from anonymip.privacy import consistency_graph, match_probabilities
from anonymip.publishing.checking import hierarchy_paths
from anonymip.recodings import KK, KConcealment, KOne, OneK
from tests.random_problems import Case, cases


@settings(max_examples=25)
@given(cases(suppression=False), st.data())
@pytest.mark.parametrize("recoding", [Freeform(), OneK(), KOne(), KK(), KConcealment()])
@pytest.mark.parametrize("keep_order", [False, True])
def test_published_covers_verify(
    recoding: Freeform, keep_order: bool, case: Case, data: st.DataObject
) -> None:
    """Whatever ring is published, as whatever notion, is found to keep its promise."""
    order = np.array(data.draw(st.permutations(range(case.n))))
    sets = np.empty((case.n, case.k), np.int64)
    for step in range(case.k):
        sets[order, step] = np.roll(order, -step)
    problem = case.problem().replace(recoding=recoding)
    solution = Solution.of(problem, Cover.of(sets), method="ring")
    release = publish(solution, keep_order=keep_order)
    found = release.verify()
    assert found.problems == ()
    assert found.recoding == recoding.name
    assert found.k_reached == case.k
    graph = consistency_graph(
        problem.microdata.original,
        release.frame,
        release.manifest,
        hierarchies=hierarchy_paths(problem.microdata),
    )
    assert graph.n == case.n
    assert match_probabilities(graph).largest <= 1
