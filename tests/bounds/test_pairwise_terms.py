"""Terms from all pairs equal the definition, and what is not looked at counts as exact."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from anonymip.bounds import nearest_neighbour as module
from anonymip.bounds.nearest_neighbour import pairwise_terms
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, record_loss
from tests.random_problems import PRODUCT, Case, cases


@settings(max_examples=60)
@given(cases(largest=9))
def test_equal_to_the_definition(case: Case) -> None:
    """The (k-1)-th least loss beside another record, repeated rows included."""
    case = replace(case, loss=PRODUCT)
    terms, complete = pairwise_terms(case.problem(), Budget())
    assert complete
    for record in range(case.n):
        others = [other for other in range(case.n) if other != record]
        losses = sorted(
            record_loss(case.columns, case.loss.naive, (record, other)) for other in others
        )
        assert terms[record] == pytest.approx(losses[case.k - 2], rel=1e-9)


@settings(max_examples=20)
@given(cases(largest=9))
def test_rows_not_looked_at_count_as_exact(case: Case) -> None:
    """A spent budget leaves the losses of exact publication."""
    case = replace(case, loss=PRODUCT)
    terms, complete = pairwise_terms(case.problem(), Budget(deadline=time.monotonic() - 1.0))
    assert not complete
    alone = [record_loss(case.columns, case.loss.naive, [record]) for record in range(case.n)]
    assert terms == pytest.approx(np.array(alone))


def test_too_many_pairs_are_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the affordable pairs only the first types are looked at; no term is lost above."""
    case = Case((Column((0.0, 1.0, 3.0, 6.0, 10.0)),), 2, PRODUCT)
    full, _ = pairwise_terms(case.problem(), Budget())
    monkeypatch.setattr(module, "_LARGEST_PAIRS", 12)
    short, complete = pairwise_terms(case.problem(), Budget())
    assert not complete
    assert (short <= full + 1e-12).all()
    assert 0 < (short < full - 1e-12).sum() < case.n
