"""Tests that a release carries nothing beside its table and manifest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import Release, anonymize, verify

FRAME = pd.DataFrame({"age": [1.0, 0.0, 5.0, 7.0], "ill": list("xyxy")})


def released() -> Release:
    """Return a good release of four persons."""
    return anonymize(FRAME, ["age"], 2, sensitive=["ill"], keep_order=True)


def test_row_labels_are_refused() -> None:
    """Labels of a data frame may name persons, or tell the order of the original."""
    good = released()
    assert verify(FRAME, good.frame, good.manifest).ok
    for labels in (["Ann", "Bob", "Cy", "Di"], [3, 1, 0, 2]):
        found = verify(FRAME, good.frame.set_axis(labels, axis=0), good.manifest)
        assert not found.ok
        assert "labels" in found.problems[0]


def test_labels_of_the_original_are_refused_in_another_order_alone() -> None:
    """A release in the order of the original may keep its labels: they tell no more."""
    named = FRAME.set_axis(["Ann", "Bob", "Cy", "Di"], axis=0)
    good = released()
    assert verify(named, good.frame.set_axis(named.index, axis=0), good.manifest).ok
    assert not verify(named, good.frame.set_axis(named.index[::-1], axis=0), good.manifest).ok


@pytest.mark.parametrize("name", ["name", None])
def test_an_index_in_a_parquet_file_is_refused(tmp_path: Path, name: str | None) -> None:
    """Pandas hides the index of a Parquet file from its columns; the file has it all the same."""
    good = released()
    frame = good.frame.set_axis(pd.Index(["Ann", "Bob", "Cy", "Di"], name=name), axis=0)
    frame.to_parquet(tmp_path / "release.parquet")
    found = verify(FRAME, tmp_path / "release.parquet", good.manifest)
    assert not found.ok


def test_notes_are_refused(tmp_path: Path) -> None:
    """Attributes of a data frame travel with it and with its Parquet file."""
    good = released()
    frame = good.frame.copy()
    frame.attrs["secret"] = "row 1 is Ann"
    assert not verify(FRAME, frame, good.manifest).ok
    frame.to_parquet(tmp_path / "release.parquet", index=False)
    assert not verify(FRAME, tmp_path / "release.parquet", good.manifest).ok


def test_a_minus_zero_is_refused() -> None:
    """Numbers that are equal but look different would tell rows of one class apart."""
    original = pd.DataFrame({"age": [0.0, 0.0], "ill": ["x", "y"]})
    good = anonymize(original, ["age"], 2, sensitive=["ill"], keep_order=True)
    assert verify(original, good.frame.assign(age=[0.0, 0.0]), good.manifest).ok
    assert not verify(original, good.frame.assign(age=np.array([0.0, -0.0])), good.manifest).ok


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest | {"comment": "row 1 is Ann"},
        lambda manifest: manifest | {"options": {"seed": 3}},
        lambda manifest: manifest | {"options": {"shuffle_seed": 3}},
        lambda manifest: manifest | {"objective": manifest["objective"] | {"row": 1}},
        lambda manifest: manifest | {"bound": manifest["bound"] | {"town": "Paris"}},
        lambda manifest: manifest | {"table": manifest["table"] | {"first": [30, 31]}},
        lambda manifest: (
            manifest
            | {
                "table": manifest["table"]
                | {"missing": manifest["table"]["missing"] | {"rows": [3]}}
            }
        ),
        lambda manifest: (
            manifest | {"columns": [column | {"original": [30]} for column in manifest["columns"]]}
        ),
        lambda manifest: manifest | {"diversity": {"l": 1.0, "distinct": 1, "whose": "Ann"}},
        lambda manifest: (
            manifest
            | {
                "limits": [
                    {
                        "attribute": manifest["columns"][0]["name"],
                        "rule": "apart",
                        "one": "30",
                    }
                ]
            }
        ),
    ],
)
def test_further_keys_of_the_manifest_are_refused(
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """What the format does not name may tell what nobody checked, a seed above all."""
    good = released()
    assert not verify(FRAME, good.frame, change(good.manifest)).ok
