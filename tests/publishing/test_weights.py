"""Sampling weights: kept, and the loss by them told and verified beside the plain one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonymip
from anonymip.errors import InputError
from anonymip.privacy import risk, verify

AGES = anonymip.Attribute("age", domain=(0, 100))
N = 12


def made(frame: pd.DataFrame, **asked: Any) -> anonymip.Release:
    """Return a release with k = 2 by the weights of column w."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recoding = "freeform" if asked.get("method") == "greedy" else asked.pop("recoding", None)
        return anonymip.anonymize(frame, [AGES], 2, weights="w", recoding=recoding, **asked)


def by_rows(release: anonymip.Release) -> float:
    """Return the loss by weights as a reader of the release counts it."""
    table, hidden = release.table, release.manifest["left_out"]["suppressed"]
    ends = table["age"].str.strip("[]").str.split("..", regex=False)
    widths = [1.0 if one == ["*"] else (float(one[-1]) - float(one[0])) / 100 for one in ends]
    weights = table["w"].astype(float).to_numpy()
    total = weights.sum() + hidden * weights.mean()
    return float((weights @ np.array(widths) + hidden * weights.mean()) / total)


SHAPES: list[dict[str, Any]] = [
    {"method": "mondrian"},
    {"method": "initial", "keep_order": True},
    {"method": "greedy"},
    {"recoding": "full-domain"},
    {"most_suppressed": 2},
]


@settings(max_examples=16)
@given(st.data())
def test_the_loss_by_weights(data: st.DataObject) -> None:
    """What a reader counts, in every recoding; another claim is refused, so are other weights."""
    ages = data.draw(st.lists(st.sampled_from([10, 11, 12, 40, 41, 99]), min_size=N, max_size=N))
    weights = data.draw(st.lists(st.integers(1, 40), min_size=N, max_size=N))
    frame = pd.DataFrame({"age": ages, "w": np.array(weights) / 4})
    release = made(frame, **data.draw(st.sampled_from(SHAPES)))
    told = release.manifest["weights"]
    assert told == {"column": "w", "gcp": pytest.approx(by_rows(release))}
    assert release.verify().ok
    wrong = {**release.manifest, "weights": {**told, "gcp": told["gcp"] + 1e-4}}
    found = verify(frame, release.table, wrong)
    assert any("claims a weighted gcp" in one for one in found.problems)
    heavier = release.table.assign(w=release.table["w"] * 2)
    assert not verify(frame, heavier, release.manifest).ok


def test_one_weight_for_all_is_the_plain_loss() -> None:
    """With equal weights both losses are the same, that of suppressed records too."""
    frame = pd.DataFrame({"age": [1, 2, 3, 5, 6, 6, 6, 99], "w": 2.5})
    for asked in SHAPES:
        release = made(frame, **asked)
        assert release.manifest["weights"]["gcp"] == pytest.approx(release.manifest["gcp"])
    # The last one leaves the person of 99 out.
    assert release.manifest["left_out"]["suppressed"] > 0


@pytest.mark.parametrize("bad", [0, -1.5, None, "x", float("inf"), "-9"])
def test_what_is_no_weight(bad: object) -> None:
    """A column of weights holds numbers above 0; the message says which row does not."""
    frame = pd.DataFrame({"age": range(N), "w": ["2"] * N}, dtype=object)
    frame.loc[3, "w"] = bad
    with pytest.raises(InputError, match=r"'w', which holds sampling weights, has 1 .* in row 4"):
        made(frame)


@pytest.mark.parametrize("role", ["quasi_identifiers", "drop", "unit", "pseudonyms"])
def test_weights_have_no_other_role(role: str) -> None:
    """But they may be kept or sensitive."""
    frame = pd.DataFrame({"age": range(N), "w": 2})
    names: Any = "w" if role == "unit" else ["w"]
    asked = {"quasi_identifiers": ["age"], "weights": "w"}
    asked[role] = [AGES, "w"] if role == "quasi_identifiers" else names
    with pytest.raises(InputError, match="and weights"):
        anonymip.anonymize(frame, k=2, **asked)
    for kept in ("keep", "sensitive"):
        assert made(frame, **{kept: ["w"]}).manifest["weights"]["column"] == "w"


def test_risk_uses_them_unasked() -> None:
    """The manifest says the weights; beside units they are not looked at."""
    frame = pd.DataFrame(
        {"age": [1, 1, 2, 2, 3, 3], "w": [5, 9, 2, 2, 4, 4], "who": list("abcdef")}
    )
    release = made(frame, drop=["who"])
    found = risk(frame, release.table, manifest=release.manifest)
    named = risk(frame, release.table, manifest=release.manifest, weights="w")
    assert found.to_dict() == named.to_dict()
    assert found.after is not None
    assert found.after.sample is not None
    persons = made(frame, unit="who").risk()
    assert persons.before.sample is None
    assert any("not looked at beside units" in note for note in persons.notes)
