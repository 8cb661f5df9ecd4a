"""Tests of the measures of the literature, on tables that a person can check by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    Attribute,
    Classes,
    Cover,
    EquivalenceClasses,
    Freeform,
    InputError,
    Microdata,
    Problem,
    Solution,
)
from anonymip.experiments import measures_of
from anonymip.experiments.measures import classification_metric

FRAME = pd.DataFrame(
    {
        "age": [0, 1, 2, 10, 10, 9],
        "sex": ["F", "F", "M", "M", "M", "M"],
        "ill": ["a", "a", "b", "c", "b", "b"],
    }
)
DATA = Microdata(FRAME, (Attribute("age"), Attribute("sex", "categorical")), sensitive=("ill",))


def solution(labels: list[int], *, suppression: bool = False) -> Solution:
    """Return classes of the six records."""
    problem = Problem(DATA, 2, EquivalenceClasses(suppression=suppression))
    return Solution.of(problem, Classes(np.array(labels)), method="test")


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
    cover = Cover.of([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    found = measures_of(Solution.of(Problem(DATA, 2, Freeform()), cover, method="test"))
    assert found.classes is found.discernibility is found.classification is found.usefulness is None
    assert (found.smallest, found.average, found.largest) == (2, 2.0, 2)
    # 0..1, 1..2, 0..2, 10, 9..10, 9..10; one F, two mixed of three.
    assert found.attribute_losses == pytest.approx({"age": 0.6 / 6, "sex": 2 / 6})


def test_the_label_is_a_sensitive_column() -> None:
    """The classification metric names the columns that it can be of."""
    classes = solution([0, 0, 0, 1, 1, 1])
    assert classification_metric(classes, "ill") == pytest.approx(2 / 6)
    with pytest.raises(InputError, match="no sensitive column 'sex'"):
        classification_metric(classes, "sex")
