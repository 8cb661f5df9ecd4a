"""Tests of assignments: partitions with canonical labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Classes, InvalidAssignment

LABELS = st.lists(st.integers(-1, 4), max_size=12)


def test_labels_are_renumbered_by_first_records() -> None:
    """Classes count from 0 in the order of their first records; suppressed records keep -1."""
    classes = Classes(np.array([7, 3, -1, 7, 0]))
    assert classes.labels.tolist() == [0, 1, -1, 0, 2]
    assert classes.labels.dtype == np.int32
    assert not classes.labels.flags.writeable


@given(LABELS, st.permutations(range(5)))
def test_equal_partitions_have_equal_labels(labels: list[int], names: list[int]) -> None:
    """Renaming the classes changes nothing."""
    renamed = [label if label == -1 else names[label] for label in labels]
    first, second = Classes(np.array(labels, int)), Classes(np.array(renamed, int))
    assert first.labels.tolist() == second.labels.tolist()
    assert Classes(first.labels).labels.tolist() == first.labels.tolist()


@given(LABELS)
def test_groups_and_labels_say_the_same(labels: list[int]) -> None:
    """Groups hold the records of each class, ascending; they lead back to the same classes."""
    classes = Classes(np.array(labels, int))
    groups = [group.tolist() for group in classes.groups()]
    assert all(group == sorted(group) for group in groups)
    assert [len(group) for group in groups] == classes.sizes.tolist()
    assert classes.count == len(groups)
    assert classes.n == len(labels)
    assert sum(map(len, groups)) + classes.suppressed == len(labels)
    for number, group in enumerate(groups):
        assert set(classes.labels[group].tolist()) == {number}
    back = Classes.from_groups(groups, len(labels))
    assert back.labels.tolist() == classes.labels.tolist()


def test_records_in_no_group_are_suppressed() -> None:
    """From groups, what is not named is left out."""
    classes = Classes.from_groups([[3, 1], np.array([0])], 5)
    assert classes.labels.tolist() == [0, 1, -1, 1, -1]
    assert classes.suppressed == 2
    assert repr(classes) == "<Classes: 2 classes of 5 records, 2 suppressed>"


@pytest.mark.parametrize("labels", [[0.0, 1.0], [[0, 1]], ["a", "b"], [True, False], 3], ids=str)
def test_labels_must_be_a_vector_of_integers(labels: Any) -> None:
    """Nothing is rounded or flattened."""
    with pytest.raises(InvalidAssignment, match="not a vector of integers"):
        Classes(np.array(labels))


def test_labels_below_the_suppressed_one_are_refused() -> None:
    """The first record with such a label is named."""
    with pytest.raises(InvalidAssignment, match="below -1") as caught:
        Classes(np.array([0, -2, 0]))
    assert caught.value.record == 1


@pytest.mark.parametrize(
    ("groups", "record", "reason"),
    [
        ([[0], [1.5]], None, "something else than records"),
        ([["0"]], None, "something else than records"),
        ([[0, 1], [1, 2]], 1, "two classes"),
        ([[0, 0]], 0, "two classes"),
        ([[0, 3]], 3, "not a record"),
        ([[-1]], -1, "not a record"),
    ],
)
def test_wrong_groups_name_the_record(groups: Any, record: int | None, reason: str) -> None:
    """A record named twice, or one that does not exist, is an error."""
    with pytest.raises(InvalidAssignment, match=reason) as caught:
        Classes.from_groups(groups, 3)
    assert caught.value.record == record
