"""Tests of dual values as bounds carry them."""

from __future__ import annotations

import numpy as np
import pytest

from anonymip import Bound
from anonymip.certificates import ColumnPool, CutDual, DualProof


def test_the_value_counts_coverage_cuts_and_the_number_of_sets() -> None:
    """Records count as often as they are covered; cuts and the number of sets are taken off."""
    duals = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert DualProof(duals, 2, 3, "size", 1).value == 15
    cut = CutDual(np.array([0, 1, 2]), 2, 0.5)
    classes = DualProof(duals, 2, 3, "size", 1, 0.25, 2, (cut,))
    assert classes.value == pytest.approx(15 - 0.5 * 1 - 0.25 * 2)
    cover = DualProof(duals, 3, 3, "one", 3, cuts=(cut,))
    assert cover.value == pytest.approx(45 - 0.5 * 4)


def test_bounds_are_compared_without_their_duals() -> None:
    """Two bounds are equal if they say the same, whatever proves them."""
    proof = DualProof(np.ones(3), 2, 3, "size", 1)
    assert Bound(3.0, "prover", "argument", duals=proof) == Bound(3.0, "prover", "argument")
    assert "duals" not in repr(Bound(3.0, "prover", "argument", duals=proof))


def test_a_pool_has_as_many_sets_as_offsets_end() -> None:
    """The first offset is no end."""
    assert len(ColumnPool(1.0, np.array([0, 2, 5]), np.array([0, 1, 2, 3, 4]))) == 2
