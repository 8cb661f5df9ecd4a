"""Tests of t-closeness: the rule, its enforcement, and the independent check of a release."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Classes,
    Diversity,
    Freeform,
    InputError,
    InvalidAssignment,
    Mask,
    Microdata,
    PatternGuided,
    Problem,
    Suppressions,
    UnsupportedObjective,
    solve,
)
from anonymip.heuristics.patterns.open_rows import is_diverse, open_rows
from anonymip.heuristics.patterns.pattern_greedy import pattern_greedy
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.privacy.checks.promises import far_classes
from anonymip.recodings.output_rows import pack_rows
from anonymip.recodings.rules.diversity import SensitiveScale, number_ranks
from tests.by_hand import by_patterns, table_of

DISTANCES = (0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9)


def distance(own: list[Any], everything: list[Any], *, ordered: bool) -> Fraction:
    """Return the distance of two distributions by its definition, in fractions."""
    values = sorted(set(everything))
    shares = [
        Fraction(own.count(value), len(own)) - Fraction(everything.count(value), len(everything))
        for value in values
    ]
    if not ordered:
        return sum(map(abs, shares), Fraction(0)) / 2
    moved = sum((abs(sum(shares[: at + 1], Fraction(0))) for at in range(len(shares))), Fraction(0))
    return moved / max(1, len(values) - 1)


def table(secrets: list[Any], cells: list[str] | None = None) -> Microdata:
    """Return a table of one quasi-identifier and one sensitive column."""
    return table_of({"a": cells or ["x"] * len(secrets), "s": secrets}, "s")


@given(data=st.data())
def test_classes_are_close_exactly_if_fractions_say_so(data: st.DataObject) -> None:
    """The rule, the check of the verifier, and the kernel of the searches agree with counting."""
    n = data.draw(st.integers(2, 9))
    pool: list[Any] = data.draw(st.sampled_from([[1, 2, 10], [-5, 0.5, 7, 100], ["u", "v", "w"]]))
    secrets = data.draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    labels = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    assume((labels >= 0).any())
    classes = Classes(labels)
    t, ordered = data.draw(st.sampled_from(DISTANCES)), data.draw(st.booleans())
    rule = Diversity(t=t, ordered=ordered)
    limit = Fraction(t).limit_denominator(10**6)
    line = ordered and not isinstance(pool[0], str)
    close = [
        distance([secrets[at] for at in group], secrets, ordered=line) <= limit
        for group in classes.groups()
    ]
    data_table = table(secrets)
    shown = np.flatnonzero(classes.labels >= 0)
    own = classes.labels[shown].astype(np.int64)
    assert rule.kept_by(data_table, shown, own, classes.count).tolist() == close
    if all(close):
        rule.check_closeness(data_table, classes)
    else:
        with pytest.raises(InvalidAssignment, match="farther than") as caught:
            rule.check_closeness(data_table, classes)
        assert caught.value.record == int(np.argmax(classes.labels == close.index(False)))
    texts = np.array([str(secret) for secret in secrets], object)
    assert (~far_classes(texts, texts[shown], own, limit, ordered=ordered)).tolist() == close


@settings(deadline=None)
@given(data=st.data())
def test_the_kernel_knows_the_rule(data: st.DataObject) -> None:
    """Rows in use are diverse exactly if the rule says so, all parts of it together."""
    n = data.draw(st.integers(4, 10))
    cells = data.draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    secrets = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    rule = Diversity(
        l=data.draw(st.sampled_from([1, 1.5, 2])),
        distinct=data.draw(st.integers(1, 2)),
        t=data.draw(st.sampled_from(DISTANCES)),
        ordered=data.draw(st.booleans()),
    )
    microdata = table(secrets, cells)
    recoding = PatternGuided(Mask(), suppression=True)
    problem = Problem(microdata, 2, recoding, Suppressions(), rule)
    packed = pack_rows(microdata.codes, np.zeros((1, 1), np.bool_))
    state = open_rows(problem, packed, np.zeros(n, np.int64))
    labels = state.row_of
    expected = rule.kept_by(microdata, np.arange(n), labels, len(state.rows))
    for row in np.unique(labels):
        assert bool(is_diverse(state, row)) == bool(expected[row])


@settings(deadline=None)
@given(data=st.data())
def test_greedy_and_search_keep_it(data: st.DataObject) -> None:
    """The pattern of stars only always works: all records are as far from themselves as 0."""
    n = data.draw(st.integers(4, 14))
    columns = {
        name: data.draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
        for name, pool in (("a", "xy"), ("b", "xyz"), ("s", "12345"))
    }
    microdata = table_of(columns, "s")
    t, ordered = data.draw(st.sampled_from(DISTANCES)), data.draw(st.booleans())
    problem = Problem(
        microdata, 2, PatternGuided(Mask()), Suppressions(), Diversity(t=t, ordered=ordered)
    )
    greedy = pattern_greedy(problem)
    searched = pattern_search(problem, start=greedy.assignment)
    assert searched.objective <= greedy.objective
    secrets = [int(value) for value in columns["s"]]
    for solution in (greedy, searched):
        assert solution.classes is not None
        for group in solution.classes.groups():
            own = [secrets[record] for record in group]
            far = distance(own, secrets, ordered=ordered)
            assert far <= Fraction(t).limit_denominator(10**6)
    if t == 0.0 and len(set(secrets)) == n:
        assert searched.objective == 2 * n


def test_numbers_beyond_a_machine_word_are_compared_without_rounding() -> None:
    """The products of a table of 10^10 records do not fit 64 bits, and the sums must not wrap."""
    totals = np.array([5 * 10**9, 5 * 10**9])
    scale = SensitiveScale(np.zeros(1, np.int64), totals, ordered=False)
    counts = np.array([[10**9, 10**9], [10**9 + 1, 10**9 - 1]])
    sizes = counts.sum(axis=1)
    assert scale.excess(counts, sizes, (0, 1)).tolist() == [False, True]
    assert scale.excess(counts, sizes, (1, 10**6)).tolist() == [False, False]


def test_what_cannot_keep_it_is_refused_and_bad_numbers_too() -> None:
    """Covers, methods that look at shares alone, t out of its range, an order without t."""
    for wrong in ({"t": 1.0}, {"t": -0.1}, {"t": True}, {"ordered": True}, {"t": float("nan")}):
        with pytest.raises(InputError):
            Diversity(**wrong)
    microdata = table([1, 2, 1, 2], list("xxyy"))
    with pytest.raises(InputError, match="does not keep"):
        Problem(microdata, 2, Freeform(), diversity=Diversity(t=0.2))
    with pytest.raises(UnsupportedObjective, match="cannot keep"):
        solve(Problem(microdata, 2, diversity=Diversity(t=0.2)), "equivalence-mip")
    with pytest.raises(InputError, match="no method makes classes that keep"):
        solve(Problem(microdata, 2, diversity=Diversity(t=0.2)))
    problem = Problem(microdata, 2, PatternGuided(Mask()), Suppressions(), Diversity(t=0.2))
    uneven = table([1, 1, 2, 2], list("xxyy"))
    with pytest.raises(InvalidAssignment, match="farther than"):
        by_patterns(problem.replace(microdata=uneven), [0] * 4)
    assert by_patterns(problem, [0] * 4).objective == 0.0
    assert "t = 0.2" in str(Diversity(t=0.2))


def test_only_numbers_have_an_order() -> None:
    """Equal numbers share a rank; a text among them, or none at all, leaves no order."""
    ranks = number_ranks(["10", "9", "1e1", "-1.5"])
    assert ranks is not None
    assert ranks.tolist() == [2, 1, 2, 0]
    assert number_ranks(["1", ""]) is None
    assert number_ranks(["1", "inf"]) is None
