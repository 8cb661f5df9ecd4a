"""Bounds of (1,k)-anonymity and k-concealment are never above the optimum, and prove zero."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from anonymip.bounds.combinatorial import lower_bound_of, weaker_notion_bound
from anonymip.recodings import KConcealment, OneK
from tests.brute_force import Column
from tests.cover_brute_force import concealment_optimum, one_sided_optimum
from tests.random_problems import FALLING, LOSSES, PRODUCT, Case, cases


@settings(max_examples=30)
@given(case=cases(largest=5, suppression=False))
def test_never_above_the_optimum_of_one_k(case: Case) -> None:
    """Summed, and the largest loss of a record."""
    for worst in (False, True):
        problem = replace(case, worst=worst).problem().replace(recoding=OneK())
        best = one_sided_optimum(
            case.n, case.k, case.set_loss, rows=False, columns=True, worst=worst
        )
        bound = lower_bound_of(problem)
        assert bound is not None
        assert bound.value <= best


@settings(max_examples=25)
@given(case=cases(largest=4, suppression=False, attributes=2))
def test_never_above_the_optimum_of_concealment(case: Case) -> None:
    """Every published record covers another one."""
    bound = lower_bound_of(case.problem().replace(recoding=KConcealment()))
    assert bound is not None
    assert bound.value <= concealment_optimum(case.n, case.k, case.set_loss)


def test_by_hand() -> None:
    """Values 0, 1, 5: exact cells lose nothing; the nearest others lie 1, 1 and 4 away."""
    problem = Case((Column((0, 1, 5), integer=True),), 2, LOSSES["gcp"]).problem()
    exact = weaker_notion_bound(problem.replace(recoding=OneK()))
    assert exact is not None
    assert exact.value == 0
    near = weaker_notion_bound(problem.replace(k=3, recoding=KConcealment()))
    assert near is not None
    assert near.value == pytest.approx((1 + 1 + 4) / 5)
    assert near.method == "nearest-neighbour of one other"
    assert weaker_notion_bound(problem) is None


@pytest.mark.parametrize("recoding", [OneK(), KConcealment()])
def test_what_is_assumed_is_said(recoding: OneK | KConcealment) -> None:
    """A loss that falls has no bound; one that is declared monotone has one with an assumption."""
    columns = (Column((0, 1, 5), integer=True), Column((4, 0, 9), integer=True))
    assert (
        weaker_notion_bound(Case(columns, 2, FALLING).problem().replace(recoding=recoding)) is None
    )
    found = weaker_notion_bound(Case(columns, 2, PRODUCT).problem().replace(recoding=recoding))
    assert found is not None
    assert "assuming that" in found.method
