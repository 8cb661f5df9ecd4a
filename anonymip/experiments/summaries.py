"""Summaries of a table of runs: ratios, means with their confidence, fronts and profiles.

All functions take the frame of an experiment (:class:`anonymip.experiments.Results`), or any frame
with the columns that they name, and change nothing in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError
from anonymip.runtime.arrays import Floats
from anonymip.status import Stopped

#: What tells one table from another, and samples of one table.
TABLE, SAMPLE = ("instance", "n", "m"), ("instance", "n", "m", "sample")
GROUP = (*TABLE, "k")  # what a group of comparable means has in common


def with_optima(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with two columns more, about the optimum of each row's own problem.

    ``optimum``: its loss, where a run proved it, else missing. ``ratio``: the row's loss over it;
    1 if both are 0, and missing where only the optimum is.
    """
    proven = frame[frame["status"] == Stopped.OPTIMAL.value]
    optimum = frame["problem"].map(proven.groupby("problem")["loss"].min()).astype("float64")
    loss = frame["loss"].astype("float64")
    ratio = (loss / optimum.where(optimum != 0)).mask((loss == 0) & (optimum == 0), 1.0)
    return frame.assign(optimum=optimum, ratio=ratio)


def means(
    frame: pd.DataFrame,
    value: str,
    by: Sequence[str] = (*GROUP, "recoding", "label"),
    *,
    confidence: float = 0.95,
    method: str = "t",
    seed: int = 0,
) -> pd.DataFrame:
    """Return the mean of a column with a confidence interval, a row for each group.

    `frame`: one row a run; those without the value are left out. `value`: name of the column. `by`:
    columns that make the groups. `confidence`: probability that the interval is to hold the mean
    with. `method`: ``"t"``: Student's interval, as if the values were normal; ``"bootstrap"``: from
    resampling them [1]_. `seed`: of the resampling. Returns: the columns of the groups, then
    ``count``, ``mean``, ``low`` and ``high``; one value has no interval. Raises InputError if the
    confidence lies not between 0 and 1, or there is no such method.

    .. [1] B. Efron: Better Bootstrap Confidence Intervals, Journal of the American Statistical
       Association 82, 1987.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}", remedy="Give a number between 0 and 1")
    if method not in ("t", "bootstrap"):
        raise InputError(f"method of intervals is {method!r}", remedy="Use t or bootstrap")
    rows = []
    groups = frame.dropna(subset=[value]).groupby(list(by), dropna=False, sort=False)
    for names, group in groups:
        values = group[value].to_numpy(np.float64)
        low, high = _interval(values, confidence, method, seed)
        found = {"count": len(values), "mean": values.mean(), "low": low, "high": high}
        rows.append({**dict(zip(by, names, strict=True)), **found})
    return pd.DataFrame(rows, columns=[*by, "count", "mean", "low", "high"])


def _interval(values: Floats, confidence: float, method: str, seed: int) -> tuple[float, float]:
    if len(values) < 2:
        return np.nan, np.nan
    mean = float(values.mean())
    if np.ptp(values) == 0:
        return mean, mean
    # Half a second to import, which few need.
    from scipy import stats

    if method == "bootstrap":
        found = stats.bootstrap(
            (values,),
            np.mean,
            confidence_level=confidence,
            method="BCa",
            rng=np.random.default_rng(seed),
        )
        return float(found.confidence_interval.low), float(found.confidence_interval.high)
    half = float(stats.sem(values) * stats.t.ppf((1 + confidence) / 2, len(values) - 1))
    return mean - half, mean + half


def share_gained(frame: pd.DataFrame, baseline: str, *, recoding: str = "freeform") -> pd.DataFrame:
    """Return the share that each method gains of what lies between a baseline and the optimum [1]_.

    1 is the optimum, 0 the baseline; what is worse than that is negative. Means are taken over
    samples and repetitions first, of those on which the optimum is proven and the baseline ran.
    `frame`: one row a run. `baseline`: label of the method that gains nothing. `recoding`: whose
    optimum counts; the rows of other recodings are measured by it too. Returns: the columns of
    :data:`GROUP`, ``label``, ``samples`` and ``share``; missing where the baseline is optimal.
    Raises InputError if the baseline has no run.

    .. [1] K. Doka et al.: k-Anonymization by Freeform Generalization, ASIACCS 2015, Section 8.2
       and Fig. 7a.
    """
    tables = [*SAMPLE, "k"]
    proven = frame[(frame["status"] == Stopped.OPTIMAL.value) & (frame["recoding"] == recoding)]
    measured = frame.dropna(subset=["loss"])
    ran = measured[measured["label"] == baseline]
    if ran.empty:
        known = ", ".join(sorted(set(measured["label"])))
        raise InputError(f"no run is called {baseline!r}", remedy=f"There are: {known}")
    ends = pd.DataFrame(
        {
            "best": proven.groupby(tables, dropna=False)["loss"].min(),
            "worst": ran.groupby(tables, dropna=False)["loss"].mean(),
        }
    ).dropna()
    rows = measured.merge(ends.reset_index(), on=tables)
    whole = rows.groupby([*GROUP, "label"], sort=False)
    means_of = whole[["loss", "best", "worst"]].mean()
    span = means_of["worst"] - means_of["best"]
    share = (means_of["worst"] - means_of["loss"]) / span.where(span != 0)
    samples = whole["sample"].nunique(dropna=False)
    return pd.DataFrame({"samples": samples, "share": share}).reset_index()


def pareto_front(
    frame: pd.DataFrame, *, by: Sequence[str] = GROUP, loss: str = "loss", time: str = "seconds"
) -> pd.DataFrame:
    """Return the mean loss and time of each method, and whether none is better in both.

    `frame`: one row a run; those without a loss are left out. `by`: columns within which methods
    are compared. `loss, time`: columns that are to be small. Returns: the columns `by`, ``label``,
    `loss`, `time` and ``on_front``: false where another method is at least as good in both, and
    better in one.
    """
    measured = frame.dropna(subset=[loss, time])
    points = measured.groupby([*by, "label"], sort=False, dropna=False)[[loss, time]]
    found = points.mean().reset_index()
    on_front = np.ones(len(found), np.bool_)
    for _, group in found.groupby(list(by), dropna=False):
        values = group[[loss, time]].to_numpy(np.float64)
        no_worse = (values[:, None] <= values[None]).all(axis=2)
        better = (values[:, None] < values[None]).any(axis=2)
        on_front[group.index.to_numpy()] = ~np.any(no_worse & better, axis=0)
    return found.assign(on_front=on_front)


def drawn_front(front: pd.DataFrame, *, time: str = "seconds") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what is drawn of a front on a logarithmic axis of time: its points, and its line.

    `front`: as :func:`pareto_front` returns it, of one table and k. `time`: the column of the axis.
    Returns: the methods that took any time; of these, the ones that none beats in both, by time.
    """
    points = front[front[time] > 0]
    return points, points[points["on_front"]].sort_values(time)


def performance_profile(frame: pd.DataFrame, *, value: str = "loss") -> pd.DataFrame:
    """Return performance profiles [1]_: on which share of the problems a method is near the best.

    `frame`: one row a run; samples, values of k and repetitions are problems of their own. A method
    that found nothing, or did not run, is infinitely far from the best. `value`: column that is to
    be small: a loss or seconds. Returns: columns ``label``, ``ratio`` and ``share``: the share of
    the problems on which the method is within this ratio of the best of all. One row for each step
    of a method, ratios ascending.

    .. [1] E. Dolan, J. More: Benchmarking Optimization Software with Performance Profiles,
       Mathematical Programming 91, 2002, doi:10.1007/s101070100263.
    """
    problems = [*SAMPLE, "k", "repetition"]
    grouped = frame.groupby([*problems, "label"], dropna=False, sort=False)[value].min()
    # A pivot table leaves out missing numbers of samples, or makes up problems.
    values = grouped.unstack("label").dropna(how="all")  # noqa: PD010
    best = values.min(axis=1).to_numpy(np.float64)[:, None]
    table = values.to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(table == best, 1.0, np.where(np.isnan(table), np.inf, table / best))
    rows: list[dict[str, Any]] = []
    for label, column in zip(values.columns, ratios.T, strict=True):
        steps, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        shares = np.cumsum(counts) / len(column)
        rows += [
            {"label": label, "ratio": ratio, "share": share}
            for ratio, share in zip(steps.tolist(), shares.tolist(), strict=True)
        ]
    return pd.DataFrame(rows, columns=["label", "ratio", "share"])


def slopes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the column ``slope``: how the GCP grows with the attributes [1]_.

    (GCP(d) - GCP(d0)) / (d - d0), d0 the least number of attributes that the method ran with on the
    same instance, records, sample, k and seed; missing at d0. `frame`: one row a run.

    .. [1] K. Doka et al.: k-Anonymization by Freeform Generalization, ASIACCS 2015, Section 8.4.
    """
    # Rows that were stored lack the columns that were empty: whole tables have no samples.
    columns = ("instance", "n", "sample", "k", "label", "repetition")
    same = [name for name in columns if name in frame]
    measured = frame.dropna(subset=["gcp"]).sort_values("m", kind="stable")
    first = measured.groupby(same, dropna=False)[["m", "gcp"]].first()
    first.columns = pd.Index(["first_m", "first_value"])
    start = frame[same].merge(first.reset_index(), on=same, how="left")
    steps = frame["m"].to_numpy(np.float64, na_value=np.nan) - start["first_m"].to_numpy(
        np.float64, na_value=np.nan
    )
    rise = frame["gcp"].to_numpy(np.float64) - start["first_value"].to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return frame.assign(slope=np.where(steps > 0, rise / steps, np.nan))
