"""Tests that the verifier catches every kind of corruption, and names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest


def undersized(written: Any) -> None:
    """Claim k = 4 where a class has three rows."""
    written.manifest["k"] = 4


def value_outside_range(written: Any) -> None:
    """Narrow a range so that it loses a member, in the whole class."""
    written.release["age"] = written.release["age"].replace("[35..37]", "[35..36]")
    written.claim_loss(written.manifest["ncp"] - 3 / 31)


def changed_sensitive_value(written: Any) -> None:
    """Replace one sensitive value by another that occurs."""
    written.release.loc[0, "disease"] = "mumps"


def swapped_sensitive_values(written: Any) -> None:
    """Exchange sensitive values between classes; every column alone is as before."""
    rows = written.release["disease"].isin(["mumps"]) | (written.release.index == 0)
    written.release.loc[rows, "disease"] = written.release.loc[rows, "disease"].to_numpy()[::-1]


def dropped_row(written: Any) -> None:
    """Leave a row out."""
    written.release = written.release.iloc[1:]


def doubled_row(written: Any) -> None:
    """Publish a row twice instead of another of the same class."""
    written.release = pd.concat([written.release, written.release.iloc[:1]])


def wrong_ncp(written: Any) -> None:
    """Claim a slightly smaller loss."""
    written.claim_loss(written.manifest["ncp"] * (1 - 1e-6))


def wrong_gcp(written: Any) -> None:
    """Claim a smaller mean loss only."""
    written.manifest["gcp"] *= 0.5


def wrong_objective(written: Any) -> None:
    """Claim a smaller objective value only."""
    written.manifest["objective"]["value"] *= 0.5


def raw_column(written: Any) -> None:
    """Publish a dropped column."""
    written.release["name"] = written.original["name"]


def renamed_column(written: Any) -> None:
    """Use a header that nobody declared."""
    written.release = written.release.rename(columns={"sex": "gender"})


def reordered_columns(written: Any) -> None:
    """Exchange two columns."""
    written.release = written.release[["sex", "age", "zip", "disease"]]


def repeated_column(written: Any) -> None:
    """Repeat a column name."""
    written.release = pd.concat([written.release, written.release[["sex"]]], axis=1)


def unparsable_cell(written: Any) -> None:
    """Write a cell that breaks the grammar."""
    written.release.loc[2, "age"] = "[35..37"


def second_spelling(written: Any) -> None:
    """Write one number of a class in another way."""
    row = int((written.release["age"] == "[35..37]").idxmax())
    written.release.loc[row, "age"] = "[35.0..37]"


def cell_outside_domain(written: Any) -> None:
    """Widen a range beyond every original value."""
    written.release["age"] = written.release["age"].replace("[35..37]", "[30..37]")
    written.claim_loss(written.manifest["ncp"] + 3 * 5 / 31)


def value_outside_domain(written: Any) -> None:
    """Publish a category that does not exist."""
    written.release["sex"] = written.release["sex"].replace("F", "X")


def miscounted_suppression(written: Any) -> None:
    """Claim a suppressed row."""
    written.manifest["suppressed"] = 1


def miscounted_rows(written: Any) -> None:
    """Claim other sizes."""
    written.manifest.update(n=8)


def miscounted_columns(written: Any) -> None:
    """Claim another number of quasi-identifiers."""
    written.manifest.update(m=2)


def false_order(written: Any) -> None:
    """Claim that shuffled rows are in the order of the original."""
    written.manifest["order"] = "kept"


def published_seed(written: Any) -> None:
    """Reveal a seed."""
    written.manifest["seed"] = 1


def tiny_k(written: Any) -> None:
    """Claim k = 1."""
    written.manifest["k"] = 1


def bound_above_objective(written: Any) -> None:
    """Claim a bound above the loss."""
    value = written.manifest["ncp"] + 1
    written.manifest.update(bound={"value": value, "method": "x", "proof": "solver"}, gap=0.0)


def false_gap(written: Any) -> None:
    """Claim a smaller gap than bound and loss give."""
    written.manifest.update(bound={"value": 0.1, "method": "x", "proof": "solver"}, gap=0.01)


def gap_without_bound(written: Any) -> None:
    """Claim a gap out of nothing."""
    written.manifest["gap"] = 0.0


def false_optimal(written: Any) -> None:
    """Claim optimality with an open gap."""
    bound = 0.9 * written.manifest["ncp"]
    written.manifest.update(bound={"value": bound, "method": "x", "proof": "solver"}, gap=0.1)
    written.manifest["status"] = "optimal"


def optimal_without_bound(written: Any) -> None:
    """Claim optimality without any bound."""
    written.manifest["status"] = "optimal"


def optimal_without_proof(written: Any) -> None:
    """Claim optimality by a bound that nothing proves."""
    bound = {"value": written.manifest["ncp"], "method": "x", "proof": None}
    written.manifest.update(bound=bound, gap=0.0, status="optimal")


@pytest.mark.parametrize(
    ("corrupt", "sentence"),
    [
        (undersized, "1 classes have fewer than 4 rows; the smallest has 3"),
        (value_outside_range, "Original row 1 fits into no published row"),
        (changed_sensitive_value, "'disease', published row 1"),
        (swapped_sensitive_values, "fit into only 2 published rows"),
        (dropped_row, "6 rows for 7 original records"),
        (doubled_row, "8 rows for 7 original records"),
        (wrong_ncp, "claims ncp"),
        (wrong_gcp, "claims gcp"),
        (wrong_objective, "claims objective value"),
        (raw_column, "undeclared column at position 5: 'name'"),
        (renamed_column, "lacks the column 'sex'"),
        (reordered_columns, "not in the order"),
        (repeated_column, "not a table"),
        (unparsable_cell, "'age', published row 3"),
        (second_spelling, "shortest spelling"),
        (cell_outside_domain, "'age', published row"),
        (value_outside_domain, "'sex', published row"),
        (miscounted_suppression, "claims 1 suppressed rows; there are 0"),
        (miscounted_rows, "claims 8 rows"),
        (miscounted_columns, "m is not"),
        (false_order, "does not contain the original value"),
        (published_seed, "seed"),
        (tiny_k, "k below 2"),
        (bound_above_objective, "lies above the objective"),
        (false_gap, "claims a gap"),
        (gap_without_bound, "gap without a bound"),
        (false_optimal, "does not close the gap"),
        (optimal_without_bound, "does not close the gap"),
        (optimal_without_proof, "nothing proves"),
    ],
)
def test_corruption_is_caught(patients: Any, corrupt: Callable[[Any], None], sentence: str) -> None:
    """Each corruption fails the release and is named."""
    whole = patients.verify()
    assert whole.ok
    corrupt(patients)
    found = patients.verify()
    assert not found.ok
    assert any(sentence in problem for problem in found.problems), found.problems
    assert len(found.checks) < len(whole.checks)
