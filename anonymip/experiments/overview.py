"""An experiment at a glance: one line for each table, k and method, over samples and seeds."""

from __future__ import annotations

from typing import Any

import pandas as pd

from anonymip.errors import gap_text
from anonymip.experiments.records import markdown_table
from anonymip.experiments.summaries import GROUP, means, with_optima
from anonymip.status import Stopped

#: What the releases of a recoding promise: losses can be compared, these cannot.
PROMISES = {
    "classes": "k rows look alike",
    "freeform": "k equally likely matches",
    "one-k": "k rows for each original",
    "k-one": "k originals for each row",
    "k-k": "k rows an original, k originals a row",
    "k-concealment": "k possible matches",
    "pattern": "k rows look alike",
    "pattern-levels": "k rows look alike",
    "full-domain": "k rows look alike",
}
#: Means and intervals of equal values differ by less, as a share of them.
_ROUNDING = 1e-12
_KEYS = [*GROUP, "recoding", "label"]


def overview(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over samples and seeds, a row for each table, k, recoding and method.

    `frame`: one row a run. Returns: the columns of :data:`anonymip.experiments.summaries.GROUP`,
    ``recoding``, ``label`` and ``promise``; ``runs``, and how many of them have a release
    (``solved``) and a proven optimum (``optimal``); means of ``loss`` (of GCP the mean penalty of a
    cell), with the ends of its 95 % interval ``loss_low`` and ``loss_high``, of ``ratio``, the loss
    over the proven optimum, likewise, of ``gap`` and ``seconds``; missing where there is none.
    """
    runs = with_optima(frame)
    is_gcp = runs["objective_name"] == "gcp"
    runs = runs.assign(
        loss=runs["loss"].mask(is_gcp, runs["gcp"]),
        solved=runs["loss"].notna(),
        optimal=runs["status"] == Stopped.OPTIMAL.value,
    )
    groups = runs.groupby(_KEYS, sort=False, dropna=False)
    table = groups.agg(
        runs=("label", "size"),
        solved=("solved", "sum"),
        optimal=("optimal", "sum"),
        gap=("gap", "mean"),
        seconds=("seconds", "mean"),
    ).reset_index()
    for value in ("loss", "ratio"):
        found = means(runs, value, _KEYS).drop(columns="count")
        names = {"mean": value, "low": f"{value}_low", "high": f"{value}_high"}
        table = table.merge(found.rename(columns=names), on=_KEYS, how="left")
    promises = table["recoding"].map(PROMISES).fillna("")
    table.insert(len(_KEYS), "promise", promises)
    return table


#: Columns of an overview for people; without the first, where there is one table alone.
COLUMNS = (
    *("table", "k", "method", "recoding", "promise", "loss", "to optimum", "gap"),
    *("optimal", "seconds"),
)


def overview_texts(frame: pd.DataFrame) -> list[list[str]]:
    """Return the overview of runs as texts for people, in the order of :data:`COLUMNS`."""
    rows = overview(frame).to_dict("records")
    return [_texts({str(name): value for name, value in row.items()}) for row in rows]


def _texts(row: dict[str, Any]) -> list[str]:
    size = "unknown size" if pd.isna(row["n"]) else f"{row['n']} x {row['m']}"
    return [
        f"{row['instance']} ({size})",
        str(row["k"]),
        row["label"],
        row["recoding"],
        row["promise"],
        _mean(row, "loss", 5) if row["solved"] else "none",
        _mean(row, "ratio", 4),
        "unknown"
        if pd.isna(row["gap"])
        else gap_text(row["gap"], closed=row["optimal"] == row["solved"]),
        f"{row['optimal']} of {row['runs']}",
        "" if pd.isna(row["seconds"]) else f"{row['seconds']:.3g}",
    ]


def _mean(row: dict[str, Any], name: str, digits: int) -> str:
    if pd.isna(row[name]):
        return "unknown"
    text = f"{row[name]:.{digits}g}"
    half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    if pd.isna(half):
        return text
    return f"{text} ± {half:.2g}" if half > _ROUNDING * abs(row[name]) else f"{text} ± 0"


def to_markdown(frame: pd.DataFrame) -> str:
    """Return the overview of runs as a table in Markdown."""
    return markdown_table(COLUMNS, overview_texts(frame))


def reasons(frame: pd.DataFrame) -> list[str]:
    """Return why runs have no release, in a line each, those of one reason together."""
    without = frame[frame["loss"].isna()]
    groups = without.groupby(["instance", "k", "label", "status", "reason"], sort=False)
    return [
        f"{instance}, k = {k}, {label}: {status}: {reason}"
        + (f" ({len(rows)} runs)" if len(rows) > 1 else "")
        for (instance, k, label, status, reason), rows in groups
    ]
