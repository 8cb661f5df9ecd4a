"""Tests of the everyday run: it tries a part of the examples, and those that are pinned."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import profiles


def test_an_everyday_run_tries_a_part_and_what_is_pinned() -> None:
    """A sixth of two hundred examples is tried, and beside them the pinned one."""
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
    assert len(tried) == 34
    assert 20_000_000_000_003 in tried


def test_few_examples_are_all_tried() -> None:
    """A test that names fewer examples than an everyday run has at least keeps them all."""
    tried: list[int] = []

    @settings(max_examples=5, database=None)
    @given(st.integers())
    def collect(number: int) -> None:
        tried.append(number)

    profiles.shorten(collect)
    collect()
    assert len(tried) == 5
