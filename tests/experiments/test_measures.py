"""Tests of the measures of the literature, by hand and against their definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    EquivalenceClasses,
    Freeform,
    InputError,
    Mask,
    Microdata,
    PatternGuided,
    Problem,
    Solution,
    Suppressions,
    solve,
)
from anonymip.experiments import measures_of, usefulness_of
from anonymip.experiments.measures import classification_metric
from tests.by_hand import by_classes, by_cover, by_patterns, table_of

DATA = table_of({"age": [0, 1, 2, 10, 10, 9], "sex": list("FFMMMM"), "ill": list("aabcbb")}, "ill")


def solution(labels: list[int], *, suppression: bool = False) -> Solution:
    """Return classes of the six records."""
    problem = Problem(DATA, 2, EquivalenceClasses(suppression=suppression))
    return by_classes(problem, labels)


def test_measures_of_classes() -> None:
    """Two classes of three: every measure counted by hand."""
    found = measures_of(solution([0, 0, 0, 1, 1, 1]))
    # Ages 0..2 and 9..10 of 0..10; {F, M} and {M}.
    assert found.ncp == pytest.approx(3 * (0.2 + 1) + 3 * 0.1)
    assert found.gcp == pytest.approx(found.ncp / 12)
    assert found.attribute_losses == pytest.approx({"age": 0.15, "sex": 0.5})
    assert (found.classes, found.smallest, found.average, found.largest) == (2, 3, 3.0, 3)
    assert found.discernibility == 9 + 9
    # One of the first class is no a, one of the second no b.
    assert found.classification == pytest.approx(2 / 6)
    # Sex: both values of two, then one.
    assert found.usefulness == pytest.approx((0.2 + 1 + 0.1 + 0.5) / 2)
    assert (found.suppressed, found.suppressed_cells) == (0, 0)


def test_suppressed_records() -> None:
    """A suppressed record looks like all records, is mislabelled, and lies in no class."""
    found = measures_of(solution([0, 0, -1, 1, 1, 1], suppression=True))
    assert (found.classes, found.smallest, found.average, found.largest) == (2, 2, 2.5, 3)
    assert found.discernibility == 4 + 9 + 6
    assert found.classification == pytest.approx((0 + 1 + 1) / 6)
    assert (found.suppressed, found.suppressed_cells) == (1, 2)
    nothing = measures_of(solution([-1] * 6, suppression=True))
    assert (nothing.classes, nothing.smallest, nothing.average) == (0, None, None)
    assert (nothing.discernibility, nothing.classification, nothing.gcp) == (36.0, 1.0, 1.0)


def test_covers_have_no_measures_of_classes() -> None:
    """Sets of a cover overlap: what is counted by classes is unknown, and not made up."""
    sets = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]
    found = measures_of(by_cover(Problem(DATA, 2, Freeform()), sets))
    assert found.classes is found.discernibility is found.classification is found.usefulness is None
    assert (found.smallest, found.average, found.largest) == (2, 2.0, 2)
    # 0..1, 1..2, 0..2, 10, 9..10, 9..10; one F, two mixed of three.
    assert found.attribute_losses == pytest.approx({"age": 0.6 / 6, "sex": 2 / 6})


def test_the_label_is_a_sensitive_column() -> None:
    """Without one there is no classification metric."""
    classes = solution([0, 0, 0, 1, 1, 1])
    assert classification_metric(classes) == pytest.approx(2 / 6)
    plain = Problem(Microdata(DATA.frame[["age", "sex"]], DATA.attributes), 3)
    with pytest.raises(InputError, match="needs a sensitive column"):
        classification_metric(Solution.of(plain, classes.assignment, method="test"))


@given(data=st.data())
def test_it_is_the_mean_of_the_tuple_diversities(data: st.DataObject) -> None:
    """One numeric and one categorical column; suppressed records are a class of their own."""
    n = data.draw(st.integers(4, 9))
    numbers = data.draw(st.lists(st.integers(-3, 5), min_size=n, max_size=n))
    texts = data.draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    labels = data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n))
    for label in (0, 1):
        if labels.count(label) == 1:
            labels[labels.index(label)] = -1
    table = table_of({"a": numbers, "b": texts})
    problem = Problem(table, 2, EquivalenceClasses(suppression=True))
    solution = by_classes(problem, labels)
    # Classes whose rows look alike are one; suppressed records are alike, whatever they are.
    classes: dict[object, float] = {}
    for label in sorted(set(labels)):
        own = [at for at in range(n) if labels[at] == label]
        held, shown = [numbers[at] for at in own], frozenset(texts[at] for at in own)
        width = max(numbers) - min(numbers)
        part = (max(held) - min(held)) / width if width else 0.0
        looks = label if label < 0 else (min(held), max(held), shown)
        classes[looks] = part + len(shown) / len(set(texts))
    diversities = list(classes.values())
    assert usefulness_of(solution) == pytest.approx(sum(diversities) / len(diversities))


def test_patterns_have_the_classes_of_rows_that_look_alike() -> None:
    """Stars hide values, and the diversity is that of the originals behind them; covers have none.

    Rows 0 and 1 differ in b, rows 2 and 3 in nothing: (1/2 + 2/2 + 1/2 + 1/2) / 2.
    """
    table = table_of({"a": list("xxyy"), "b": list("uvuu")})
    problem = Problem(table, 2, PatternGuided(Mask(patterns=((), ("b",)))), Suppressions())
    solution = by_patterns(problem, [1, 1, 0, 0])
    assert usefulness_of(solution) == pytest.approx(1.25)
    with pytest.raises(InputError, match="cover"):
        usefulness_of(solve(Problem(table, 2, Freeform()), "greedy"))
