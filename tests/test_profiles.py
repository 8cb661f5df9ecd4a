"""Tests of the everyday run: it tries a part of the examples, and those that are pinned."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import profiles


def test_an_everyday_run_tries_a_part_and_what_is_pinned() -> None:
    """A twelfth of two hundred examples is tried, and beside them the pinned one."""
    tried: list[int] = []

    @settings(max_examples=200, database=None)
    @given(st.integers())
    @example(20_000_000_000_003)
    def collect(number: int) -> None:
        tried.append(number)

    collect()
    assert len(tried) == 201
    tried.clear()
    profiles.shorten(collect)
    collect()
    assert len(tried) == 17
    assert 20_000_000_000_003 in tried


def test_few_examples_are_all_tried() -> None:
    """A test that names fewer examples than an everyday run has at least keeps them all."""
    tried: list[int] = []

    @settings(max_examples=3, database=None)
    @given(st.integers())
    def collect(number: int) -> None:
        tried.append(number)

    profiles.shorten(collect)
    collect()
    assert len(tried) == 3


def test_a_few_combinations_have_every_value() -> None:
    """Of a crossing the diagonal, and the rest of the longer side; of one parameter all."""
    crossed = [{"a": a, "b": b} for a in "xy" for b in (1, 2, 3)]
    kept = [crossed[place] for place in profiles.covering(crossed)]
    assert kept == [{"a": "x", "b": 1}, {"a": "x", "b": 3}, {"a": "y", "b": 2}]
    assert profiles.covering([{"a": [0]}, {"a": [1]}]) == [0, 1]
    assert profiles.covering([]) == []
