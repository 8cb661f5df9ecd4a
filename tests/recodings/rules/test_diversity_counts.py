"""Counts of sensitive values that kernels judge sets by, against plain counting."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Attribute, Diversity, Microdata
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    count_out,
    diversity_rule,
    forget_row,
    may_be_diverse,
    new_counts,
    rows_lacking,
    start_counts,
    stays_diverse,
    take_back,
)
from tests.brute_force import Rules

RATIOS = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)])


@st.composite
def asked(draw: st.DrawFn) -> tuple[DiversityRule, Rules]:
    """Draw what is asked of one or two sensitive columns of eight records."""
    texts = st.lists(st.sampled_from("xyz"), min_size=8, max_size=8).map(tuple)
    columns = tuple(draw(texts) for _ in range(draw(st.integers(1, 2))))
    ratio = draw(RATIOS)
    distinct = draw(st.integers(2 if ratio == 1 else 1, 3))
    frame = pd.DataFrame({"a": range(8), **{f"s{c}": list(v) for c, v in enumerate(columns)}})
    names = tuple(f"s{c}" for c in range(len(columns)))
    data = Microdata(frame, (Attribute("a"),), sensitive=names)
    rule = diversity_rule(Diversity(l=float(ratio), distinct=distinct), data)
    return rule, Rules(columns, ratio, distinct)


def counts_of(rule: DiversityRule, rows: list[int]) -> ValueCounts:
    """Return the counts of rows that have been counted in one by one."""
    counts = new_counts(rule)
    for row in rows:
        count_in(rule, counts, row, 1, 0, 0)
    return counts


SETS = st.lists(st.integers(0, 7), unique=True, min_size=1)


@settings(max_examples=100)
@given(asked(), SETS, SETS)
def test_counts_tell_whether_a_set_is_diverse(
    drawn: tuple[DiversityRule, Rules], rows: list[int], gone: list[int]
) -> None:
    """Rows that come and go leave the counts of those that are there, as far as the rule asks."""
    rule, plain = drawn
    counts = counts_of(rule, rows)
    assert may_be_diverse(rule, counts, 0, len(rows), len(rows)) == plain.met_by((), rows)
    left = [row for row in rows if row not in gone]
    for row in rows:
        if row not in left:
            count_out(rule, counts, row)
    fresh = counts_of(rule, left)
    assert np.array_equal(counts.held, fresh.held)
    assert np.array_equal(counts.distinct, fresh.distinct)
    if left and (rule.asked[:, 0] > rule.asked[:, 1]).all():
        assert all(map(np.array_equal, counts, fresh))


@settings(max_examples=100)
@given(asked(), SETS, st.integers(-1, 7), st.integers(-1, 7))
def test_counts_tell_what_one_row_more_or_less_changes(
    drawn: tuple[DiversityRule, Rules], rows: list[int], leaving: int, joining: int
) -> None:
    """As counting the changed set says."""
    rule, plain = drawn
    leaving = leaving if leaving in rows else -1
    joining = joining if joining not in rows else -1
    changed = [row for row in rows if row != leaving] + ([joining] if joining >= 0 else [])
    counts = counts_of(rule, rows)
    told = stays_diverse(rule, counts, len(rows), leaving, joining)
    assert told == (bool(changed) and plain.met_by((), changed))


@settings(max_examples=100)
@given(asked(), SETS, st.integers(0, 7))
def test_a_row_joins_as_the_larger_set_says(
    drawn: tuple[DiversityRule, Rules], rows: list[int], joining: int
) -> None:
    """What a set lacks with a row is what the larger set lacks; a diverse set lacks nothing."""
    rule, plain = drawn
    rows = [row for row in rows if row != joining]
    larger = [*rows, joining]
    lacking = rows_lacking(rule, counts_of(rule, rows), len(rows), joining)
    assert lacking == rows_lacking(rule, counts_of(rule, larger), len(larger), -1)
    assert (lacking == 0) == plain.met_by((), larger)


@settings(max_examples=50)
@given(asked(), SETS)
def test_a_search_goes_back_to_smaller_sets(
    drawn: tuple[DiversityRule, Rules], rows: list[int]
) -> None:
    """A level holds the set of its size, however far the search went from there."""
    rule, plain = drawn
    counts = new_counts(rule, len(rows) + 1)
    for size, row in enumerate(rows):
        count_in(rule, counts, row, 1, size, size + 1)
    for size in range(len(rows), 0, -1):
        assert may_be_diverse(rule, counts, size, size, size) == plain.met_by((), rows[:size])
        take_back(rule, counts, rows[size - 1])
    assert not counts.held.any()


@given(asked(), SETS)
def test_forgotten_rows_count_nothing(drawn: tuple[DiversityRule, Rules], rows: list[int]) -> None:
    """The next set begins at zero."""
    rule, _ = drawn
    counts = counts_of(rule, rows)
    for row in rows:
        forget_row(rule, counts, row)
    start_counts(counts)
    assert not any(array.any() for array in counts)
