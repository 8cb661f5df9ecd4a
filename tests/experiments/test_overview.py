"""Tests of the overview of an experiment, on a frame made by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from anonymip.experiments.overview import (
    COLUMNS,
    PROMISES,
    overview,
    overview_texts,
    reasons,
    to_markdown,
)
from anonymip.recodings.registry import RECODINGS

FRAME = pd.DataFrame(
    [
        # sample, label, recoding, loss, gcp, gap, seconds, status, reason
        (1, "exact", "classes", 4.0, 0.2, 0.0, 3.0, "optimal", None),
        (1, "fast", "classes", 6.0, 0.3, 1 / 3, 0.1, "heuristic", None),
        (1, "cover", "freeform", 3.0, 0.15, 0.5, 0.1, "heuristic", None),
        (1, "shy", "classes", None, None, None, None, "refused", "needs a diversity"),
        (2, "exact", "classes", 2.0, 0.1, 0.0, 5.0, "optimal", None),
        (2, "fast", "classes", 2.0, 0.1, 0.0, 0.3, "optimal", None),
        (2, "cover", "freeform", 2.0, 0.1, 0.25, 0.1, "heuristic", None),
        (2, "shy", "classes", None, None, None, None, "refused", "needs a diversity"),
    ],
    columns=["sample", "label", "recoding", "loss", "gcp", "gap", "seconds", "status", "reason"],
).assign(instance="table", n=10, m=2, k=3, objective_name="gcp")
FRAME["problem"] = FRAME["recoding"] + FRAME["sample"].astype(str)


def test_means_over_samples() -> None:
    """A row for each method: mean penalty of a cell, ratio to the proven optimum, proofs."""
    table = overview(FRAME).set_index("label")
    assert table.index.tolist() == ["exact", "fast", "cover", "shy"]
    assert table["runs"].tolist() == [2, 2, 2, 2]
    assert table["solved"].tolist() == [2, 2, 2, 0]
    assert table["optimal"].tolist() == [2, 1, 0, 0]
    assert table.loc["fast", "loss"] == pytest.approx(0.2)
    assert table.loc["fast", "ratio"] == pytest.approx((1.5 + 1) / 2)
    assert table.loc["fast", "loss_low"] < 0.1 < 0.3 < table.loc["fast", "loss_high"]
    # No optimum of covers is proven: that of classes is none.
    assert pd.isna(table.loc["cover", "ratio"])
    assert table.loc["cover", "gap"] == pytest.approx(0.375)
    assert table.loc["exact", "promise"] != table.loc["cover", "promise"]


def test_other_losses_are_shown_as_they_are() -> None:
    """Only GCP is shown as the mean of the cells."""
    table = overview(FRAME.assign(objective_name="sse")).set_index("label")
    assert table.loc["exact", "loss"] == pytest.approx(3.0)


def test_texts() -> None:
    """What is unknown is called so, and a method that found nothing has no loss."""
    texts = {row[2]: dict(zip(COLUMNS, row, strict=True)) for row in overview_texts(FRAME)}
    assert texts["exact"]["to optimum"] == "1 ± 0"
    assert texts["exact"]["optimal"] == "2 of 2"
    assert texts["cover"]["to optimum"] == "unknown"
    assert texts["cover"]["gap"] == "37.5 %"
    assert (texts["shy"]["loss"], texts["shy"]["gap"]) == ("none", "unknown")
    assert texts["shy"]["table"] == "table (10 x 2)"
    assert len(to_markdown(FRAME).splitlines()) == 2 + 4


def test_an_open_gap_is_never_zero() -> None:
    """A gap that rounds to 0.0 % beside runs without a proof is called small, not closed."""
    open_gap = FRAME.assign(gap=FRAME["gap"].mask(FRAME["label"] == "cover", 7e-9))
    texts = {row[2]: row for row in overview_texts(open_gap)}
    gap, optimal = COLUMNS.index("gap"), COLUMNS.index("optimal")
    assert (texts["cover"][gap], texts["cover"][optimal]) == ("below 0.1 %", "0 of 2")
    assert (texts["exact"][gap], texts["exact"][optimal]) == ("0.0 %", "2 of 2")


def test_reasons_are_given_once() -> None:
    """Runs that end for one reason share a line."""
    assert reasons(FRAME) == ["table, k = 3, shy: refused: needs a diversity (2 runs)"]


def test_every_recoding_has_its_promise() -> None:
    """The overview says of all built-in recodings what their releases promise."""
    assert set(PROMISES) == set(RECODINGS)
