"""Squared errors on the tables of the CASC project, with which microaggregation is measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from anonymip import SSE, Microdata, Problem, load_instance, solve
from anonymip.solution import bound_text
from benchmarks.heuristics import processor_seconds, row_of

TABLES = ("tarragona", "casc")
#: Methods with their options and effort.
_WHOLE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("mdav", {}, "normal"),
    ("k-member", {}, "normal"),
    ("local-search", {"from_method": "best"}, "normal"),
    ("local-search", {"from_method": "best"}, "thorough"),
    ("auto", {}, "normal"),
)
_EXACT = "column-generation"
_SAMPLED = (_WHOLE[0], _WHOLE[2], (_EXACT, {}, "normal"))
#: Records of a sample by k, few enough for a proof in a second, and how many samples are drawn.
_RECORDS, _SAMPLES = {3: 30, 5: 18}, 5


def microaggregation() -> Iterator[dict[str, Any]]:
    """Compare methods on the whole tables, and with the optimum on samples of them."""
    for name in TABLES:
        data = load_instance(name)
        for k in (3, 5, 10):
            for choice in _WHOLE:
                yield {"instance": name, "sample": None, **_measured(data, k, *choice)}
        for k, records in _RECORDS.items():
            for sample in range(_SAMPLES):
                rows = np.random.default_rng(sample).permutation(data.n)[:records]
                for choice in _SAMPLED:
                    row = _measured(data.take(rows), k, *choice)
                    yield {"instance": name, "sample": sample, **row}


def _measured(
    data: Microdata, k: int, method: str, options: dict[str, Any], effort: str
) -> dict[str, Any]:
    """Return what one method loses, in hundredths of what one class of all records loses."""
    points = SSE().points(data)
    whole = float(np.square(points - points.mean(axis=0)).sum())
    busy = processor_seconds()
    solution = solve(Problem(data, k, objective=SSE()), method, options=options, effort=effort)
    bound = solution.bound
    return {
        **{name: value for name, value in row_of(solution).items() if name not in ("ncp", "gcp")},
        "variant": effort,
        "loss": solution.objective,
        "information_loss": round(100 * solution.objective / whole, 4),
        "bound": None if bound is None else bound.value,
        "least": None if bound is None else 100 * bound.value / whole,
        "rung": None if bound is None else bound.method,
        "processor_seconds": round(processor_seconds() - busy, 2),
        "reference": "100 SSE / SST",
    }


def markdown(measured: pd.DataFrame) -> str:
    """Return the tables of the gallery: the whole tables, and the samples with their optimum."""
    whole = measured[measured["sample"].isna()]
    names = ("table", "k", "`mdav`", "`k-member`", "`local-search`", "the same, `thorough`")
    names = (*names, "`auto`", "nothing is below", "gap", "processor seconds")
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for (name, k), rows in whole.groupby(["instance", "k"], sort=False):
        losses = " | ".join(f"{loss:.2f}" for loss in rows["information_loss"])
        gap = f"{100 * rows['gap'].min():.0f} %"
        spent = " / ".join(f"{one:.0f}" for one in rows["processor_seconds"])
        least = bound_text(rows["least"].max())
        lines.append(f"| `{name}` | {k} | {losses} | {least} | {gap} | {spent} |")
    lines += ["", *_samples_text(measured.dropna(subset=["sample"]))]
    seconds = whole["processor_seconds"].sum()
    lines += ["", f"The {len(whole)} runs of the first table took {seconds:.0f} processor seconds."]
    lines.append(f"{measured['machine'].iloc[0]}; {measured['versions'].iloc[0]}.")
    return "\n".join(lines)


def _samples_text(samples: pd.DataFrame) -> list[str]:
    """Return the table of the samples: mean and worst distance to the proven optimum."""
    lines = [
        "| samples of | records | k | optima proven | `mdav` above them | `local-search` |",
        "|---|---|---|---|---|---|",
    ]
    for (name, n, k), rows in samples.groupby(["instance", "n", "k"], sort=False):
        table = rows.pivot_table(index="sample", columns="method", values="loss")
        proven = int((rows[rows["method"] == _EXACT]["status"] == "optimal").sum())
        cells = []
        for method in ("mdav", "local-search"):
            above = 100 * (table[method] / table[_EXACT] - 1)
            cells.append(f"{above.mean():.1f} %, at most {above.max():.1f} %")
        lines.append(f"| `{name}` | {n} | {k} | {proven} of {len(table)} | {' | '.join(cells)} |")
    return lines
