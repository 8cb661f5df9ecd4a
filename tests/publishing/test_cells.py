"""Tests of the cells that are published, after docs/format.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    Attribute,
    Classes,
    EquivalenceClasses,
    Microdata,
    Problem,
    Solution,
    TableFormat,
    publish,
)
from anonymip.publishing import Release


def release_of(
    columns: dict[str, list[Any]],
    attributes: list[Attribute],
    labels: list[int],
    **settings: Any,
) -> Release:
    """Publish the classes that `labels` names, in order; other columns are kept."""
    names = [attribute.name for attribute in attributes]
    data = Microdata(
        pd.DataFrame(columns),
        tuple(attributes),
        keep=tuple(set(columns) - set(names)),
        table=TableFormat(missing=()),
    )
    problem = Problem(data, 2, EquivalenceClasses(True))
    solution = Solution.of(problem, Classes(np.array(labels, np.int32)), method="by hand")
    return publish(solution, **{"keep_order": True, **settings})


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        ([35, 37], "[35..37]"),
        ([35, 35], "35"),
        ([35.0, 35.5], "[35..35.5]"),
        ([-2.5, 1e300], "[-2.5..1e+300]"),
        ([0.0, -0.0], "0"),
        ([1e-05, 0.1], "[1e-05..0.1]"),
        ([-7, -3], "[-7..-3]"),
    ],
)
def test_numeric_cells(values: list[float], cell: str) -> None:
    """A number is spelled the shortest way that reads back, and a range of one is a number."""
    published = release_of({"a": values}, [Attribute("a")], [0, 0])
    assert published.frame["a"].tolist() == [cell, cell]
    assert published.verify().ok


@pytest.mark.parametrize(
    ("values", "cell"), [([9, 10], "{9|10}"), ([9, 9], "9"), ([0.5, -1], "{-1|0.5}")]
)
def test_sets_of_numbers(values: list[float], cell: str) -> None:
    """A numeric attribute published as a set shows its values in ascending order."""
    published = release_of({"a": values}, [Attribute("a", publish="set")], [0, 0])
    assert published.frame["a"].tolist() == [cell, cell]
    assert published.verify().ok


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        (["F", "M"], "{F|M}"),
        (["M", "M"], "M"),
        (["10", "9"], "{10|9}"),
        (["*", "*"], "\\*"),
        (["[x", "[x"], "\\[x"),
        (["{", "{"], "\\{"),
        (["\\x", "\\x"], "\\\\x"),
        (["a*", "a*"], "a*"),
        (["", "F"], "{|F}"),
        (["", ""], ""),
        (["a|b", "}"], "{a\\|b|\\}}"),
        (["\\", "*"], "{*|\\\\}"),
        ([" a", "a "], "{ a|a }"),
        (["é", "z"], "{z|é}"),
    ],
)
def test_text_cells(values: list[str], cell: str) -> None:
    """Texts are sorted by code points and escaped so that every cell has one meaning."""
    published = release_of({"a": values}, [Attribute("a", "categorical")], [0, 0])
    assert published.frame["a"].tolist() == [cell, cell]
    assert published.verify().ok


def test_suppressed_rows_are_stars() -> None:
    """Where it is published, a suppressed record is all stars and keeps its other columns."""
    published = release_of(
        {"a": [1, 2, 99, 0], "b": list("xxyx"), "visit": ["01", "02", "03", "04"]},
        [Attribute("a", domain=(0, 100)), Attribute("b", "categorical", domain=("x", "y"))],
        [0, 0, -1, -1],
        suppressed="starred",
    )
    assert published.frame.iloc[2].tolist() == ["*", "*", "03"]
    assert published.manifest["suppressed"] == 2
    assert published.verify().ok


def test_layout_columns() -> None:
    """Ends of ranges get columns of their own, in the place of the attribute; sets do not."""
    published = release_of(
        {"b": ["x", "y", "x", "y"], "a": [1.5, 2, 99, 0], "c": [3, 4, 5, 9]},
        [
            Attribute("a", domain=(0, 100)),
            Attribute("b", "categorical", domain=("x", "y")),
            Attribute("c", domain=(0, 9), publish="set"),
        ],
        [0, 0, -1, -1],
        layout="columns",
        suppressed="starred",
    )
    assert published.frame.to_dict("list") == {
        "b": ["{x|y}", "{x|y}", "*", "*"],
        "a_lower": ["1.5", "1.5", "*", "*"],
        "a_upper": ["2", "2", "*", "*"],
        "c": ["{3|4}", "{3|4}", "*", "*"],
    }
    assert published.manifest["table"]["layout"] == "columns"
    assert published.verify().ok
