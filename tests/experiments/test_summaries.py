"""Tests of summaries and overview, on frames made by hand whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from anonymip import InputError
from anonymip.experiments.overview import (
    COLUMNS,
    PROMISES,
    overview,
    overview_texts,
    reasons,
    to_markdown,
)
from anonymip.experiments.summaries import (
    drawn_front,
    means,
    pareto_front,
    performance_profile,
    share_gained,
    slopes,
    with_optima,
)
from anonymip.recodings.registry import RECODINGS


def frame_of(*rows: tuple[int, str, float | None, float, str], **more: Any) -> pd.DataFrame:
    """Return runs on samples of one table: sample, label, loss, seconds, status."""
    columns = ["sample", "label", "loss", "seconds", "status"]
    frame = pd.DataFrame(rows, columns=columns).astype({"sample": "Int64", "loss": "float64"})
    given = {"instance": "table", "n": 14, "m": 8, "k": 3, "recoding": "freeform"}
    frame = frame.assign(**{**given, "repetition": 1, **more})
    return frame.assign(problem=frame["recoding"] + frame["sample"].astype(str))


RUNS = frame_of(
    (1, "exact", 2.0, 8.0, "optimal"),
    (1, "good", 3.0, 1.0, "heuristic"),
    (1, "bad", 6.0, 2.0, "heuristic"),
    (2, "exact", 4.0, 6.0, "optimal"),
    (2, "good", 4.0, 3.0, "optimal"),
    (2, "bad", 10.0, 1.0, "heuristic"),
    (3, "exact", None, 9.0, "no-solution"),
    (3, "good", 5.0, 1.0, "heuristic"),
    (3, "bad", 5.5, 0.5, "heuristic"),
)


def test_ratios_to_the_optimum() -> None:
    """Losses are divided by what is proven of their problem, and by nothing else."""
    frame = with_optima(RUNS)
    assert frame["optimum"].tolist()[:6] == [2.0, 2.0, 2.0, 4.0, 4.0, 4.0]
    assert frame["ratio"].tolist()[:6] == [1.0, 1.5, 3.0, 1.0, 1.0, 2.5]
    assert frame["ratio"][6:].isna().all()
    assert "ratio" not in RUNS


def test_an_optimum_of_nothing() -> None:
    """Of two losses of 0 the ratio is 1; above an optimum of 0 there is none."""
    frame = frame_of(
        (1, "exact", 0.0, 1.0, "optimal"),
        (1, "good", 0.0, 1.0, "optimal"),
        (1, "bad", 1.0, 1.0, "heuristic"),
    )
    ratios = with_optima(frame)["ratio"]
    assert ratios.tolist()[:2] == [1.0, 1.0]
    assert np.isnan(ratios[2])


def test_means_have_intervals() -> None:
    """Student's interval of three values by its formula; runs without a value do not count."""
    found = means(RUNS, "loss").set_index("label")
    assert found["count"].to_dict() == {"exact": 2, "good": 3, "bad": 3}
    values = np.array([3.0, 4.0, 5.0])
    # The 97.5 % quantile of Student's t with two degrees of freedom is 4.303 in every table.
    half = 4.302652729911275 * values.std(ddof=1) / np.sqrt(3)
    row = found.loc["good"]
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((4.0, 4 - half, 4 + half))
    assert row[["instance", "n", "m", "k"]].tolist() == ["table", 14, 8, 3]


def test_intervals_by_resampling() -> None:
    """A bootstrap interval is SciPy's, lies around the mean, and depends on its seed alone."""
    values = np.random.default_rng(3).exponential(size=25)
    frame = frame_of(*((i, "good", v, 1.0, "heuristic") for i, v in enumerate(values)))
    (row,) = means(frame, "loss", method="bootstrap", seed=4).to_dict("records")
    expected = stats.bootstrap((values,), np.mean, rng=np.random.default_rng(4))
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected.confidence_interval))
    assert row["low"] < values.mean() < row["high"]


def test_single_and_equal_values() -> None:
    """One value has no interval, equal ones have one of no width."""
    one = means(RUNS[:1], "loss").iloc[0]
    assert one["mean"] == 2.0
    assert np.isnan([one["low"], one["high"]]).all()
    same = frame_of((1, "good", 2.0, 1.0, "heuristic"), (2, "good", 2.0, 1.0, "heuristic"))
    for method in ("t", "bootstrap"):
        row = means(same, "loss", method=method).iloc[0]
        assert (row["low"], row["high"]) == (2.0, 2.0)
    with pytest.raises(InputError, match="confidence is 1"):
        means(RUNS, "loss", confidence=1)
    with pytest.raises(InputError, match="'z'"):
        means(RUNS, "loss", method="z")


def test_the_share_that_is_gained() -> None:
    """Means of the samples with a proof: optimum 3, baseline 8, so that 3.5 gains nine tenths."""
    found = share_gained(RUNS, "bad").set_index("label")
    assert found["share"].to_dict() == pytest.approx({"exact": 1.0, "good": 0.9, "bad": 0.0})
    assert set(found["samples"]) == {2}
    with pytest.raises(InputError, match="no run is called 'worst'"):
        share_gained(RUNS, "worst")


def test_the_share_beside_another_recoding() -> None:
    """A baseline that promises something else is measured by the optimum of the one named."""
    own = RUNS.assign(recoding=np.where(RUNS["label"] == "bad", "k-concealment", "freeform"))
    found = share_gained(own, "bad").set_index("label")
    assert found["share"].to_dict() == pytest.approx({"exact": 1.0, "good": 0.9, "bad": 0.0})


def test_the_pareto_front() -> None:
    """Who is neither as near nor as fast as another is not on the front; equals both are."""
    frame = frame_of(
        (1, "exact", 1.0, 9.0, "optimal"),
        (1, "good", 2.0, 3.0, "heuristic"),
        (1, "slow", 2.0, 4.0, "heuristic"),
        (1, "fast", 5.0, 1.0, "heuristic"),
        (1, "fast too", 5.0, 1.0, "heuristic"),
        (1, "bad", 6.0, 2.0, "heuristic"),
    )
    found = pareto_front(frame).set_index("label")["on_front"]
    assert found[found].index.tolist() == ["exact", "good", "fast", "fast too"]


def test_what_is_drawn_of_a_front() -> None:
    """Methods that took no time have no place on a logarithmic axis; the line runs by time."""
    frame = frame_of(
        (1, "exact", 1.0, 9.0, "optimal"),
        (1, "good", 2.0, 3.0, "heuristic"),
        (1, "slow", 2.0, 4.0, "heuristic"),
        (1, "at once", 5.0, 0.0, "heuristic"),
    )
    points, line = drawn_front(pareto_front(frame))
    assert points["label"].tolist() == ["exact", "good", "slow"]
    assert line["label"].tolist() == ["good", "exact"]


def test_performance_profiles() -> None:
    """Steps at the ratios to the best; what found nothing never comes near."""
    found = performance_profile(RUNS)
    shares = {
        label: group[["ratio", "share"]].to_numpy().tolist()
        for label, group in found.groupby("label")
    }
    assert shares == {
        "exact": [[1.0, pytest.approx(2 / 3)]],
        "good": [[1.0, pytest.approx(2 / 3)], [1.5, pytest.approx(1.0)]],
        "bad": [
            [pytest.approx(1.1), pytest.approx(1 / 3)],
            [2.5, pytest.approx(2 / 3)],
            [3.0, pytest.approx(1.0)],
        ],
    }


def test_profiles_of_samples_that_are_whole_tables() -> None:
    """A table without samples, whose number is missing, is a problem too."""
    found = performance_profile(RUNS[:3].assign(sample=pd.array([None] * 3, dtype="Int64")))
    assert found[["label", "ratio"]].to_numpy().tolist() == [
        ["exact", 1.0],
        ["good", 1.5],
        ["bad", 3.0],
    ]


def test_slopes() -> None:
    """The difference quotient from the least number of attributes on."""
    rows = [(1, "good", None, 1.0, "heuristic")] * 3
    frame = frame_of(*rows).assign(m=[8, 2, 4], gcp=[0.7, 0.1, 0.2])
    found = slopes(frame)["slope"]
    assert found.tolist()[0] == pytest.approx(0.6 / 6)
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(0.1 / 2)


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
