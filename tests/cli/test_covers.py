"""Freeform releases and the weaker notions from the command line."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

ASKED = ("people.csv", "--schema", "roles.toml")


@pytest.mark.parametrize("method", ["auto", "hungarian", "ring", "freeform-mip"])
def test_a_freeform_release_is_written_and_verified(shell: Any, method: str) -> None:
    """Rows and values are those of the table; the seven rows need not fall into classes."""
    how = ("--recoding", "freeform") if method == "auto" else ("--method", method)
    result = shell("anonymize", *ASKED, "-k", 3, *how, "-o", "release.csv", "--json", "-")
    assert result.code == 0, result.err
    (record,) = result.records()
    assert record["recoding"] == "freeform"
    assert "groups" not in record
    assert [len(one) for one in record["matches"]] == [3] * 7
    assert all(row in one for row, one in enumerate(record["matches"]))
    original, release = (
        pd.read_csv(shell.folder / name, dtype=str) for name in ("people.csv", "release.csv")
    )
    assert sorted(release["disease"]) == sorted(original["disease"])
    assert shell("verify", "people.csv", "release.csv", "--schema", "roles.toml").code == 0


def test_a_tampered_freeform_release_fails(shell: Any) -> None:
    """A cell that shows an exact value leaves its row too few records."""
    asked = ("-k", 3, "--recoding", "freeform", "-o", "release.csv")
    assert shell("anonymize", *ASKED, *asked).code == 0
    release = pd.read_csv(shell.folder / "release.csv", dtype=str)
    original = pd.read_csv(shell.folder / "people.csv", dtype=str)
    shown = original.set_index("visit").loc[release.loc[0, "visit"].zfill(2), "age"]
    release.loc[0, "age"] = shown
    release.to_csv(shell.folder / "release.csv", index=False)
    result = shell("verify", "people.csv", "release.csv", "--schema", "roles.toml")
    assert result.code == 1
    assert "FAILS" in result.out + result.err


@pytest.mark.parametrize("recoding", ["one-k", "k-one", "k-k", "k-concealment"])
def test_weaker_notions_are_released_and_verified(shell: Any, recoding: str) -> None:
    """They lose no more than freeform, and say what they promise."""
    (freeform,) = shell("solve", *ASKED, "-k", 3, "--recoding", "freeform", "--json", "-").records()
    result = shell(
        "anonymize", *ASKED, "-k", 3, "--recoding", recoding, "-o", "release.csv", "--json", "-"
    )
    assert result.code == 0, result.err
    assert result.records()[0]["objective"] <= freeform["objective"] + 1e-9
    assert shell("verify", "people.csv", "release.csv", "--schema", "roles.toml").code == 0


def test_methods_of_a_recoding_are_compared(shell: Any) -> None:
    """All its heuristics and the exact method, none below the optimum."""
    result = shell("compare", *ASKED, "-k", 3, "--recoding", "freeform", "--exact", "--json", "-")
    assert result.code == 0, result.err
    losses = {record["method"]: record["objective"] for record in result.records()}
    assert {"greedy", "sort-greedy", "hungarian", "ring", "nh", "reassign"} <= set(losses)
    assert min(losses.values()) == pytest.approx(losses["column-generation"])


def test_options_of_freeform_methods(shell: Any) -> None:
    """Reciprocal sets by an option; parts too small are bad input."""
    result = shell(
        *("solve", *ASKED, "-k", 3, "--method", "greedy", "--json", "-"),
        *("--option", "greedy.reciprocal=true"),
    )
    (record,) = result.records()
    matches = record["matches"]
    assert all(row in matches[other] for row, one in enumerate(matches) for other in one)
    refused = shell(
        *("solve", *ASKED, "-k", 3, "--method", "greedy", "--option", "greedy.part=4"),
    )
    assert refused.code == 2
    assert "part" in refused.err


def test_the_model_is_exported(shell: Any) -> None:
    """The flow model as a file."""
    result = shell("export", *ASKED, "-k", 3, "--method", "freeform-mip", "-o", "flow.lp")
    assert result.code == 0, result.err
    assert "match" in shell.read("flow.lp")
