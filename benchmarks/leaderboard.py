"""Distances of every heuristic to the proven optima of the library of instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from anonymip.experiments.leaderboard import METHOD_COLUMNS, Leaderboard, Standing, measure
from anonymip.instances.library.catalogue import library

#: Recodings whose methods are in docs/methods.md, and the columns of the leaderboard that are.
_RECODINGS = ("classes", "freeform")
_COLUMNS = [name for name in METHOD_COLUMNS if name not in ("median", "seconds")]


def leaderboard() -> Iterator[dict[str, Any]]:
    """Run all heuristics on the instances whose optimum is proven."""
    for entry in library().values():
        if entry.is_proven:
            for one in measure([entry]).standings:
                yield {
                    "instance": entry.name,
                    "n": entry.records,
                    "k": entry.k,
                    "recoding": entry.recoding,
                    "method": one.method,
                    "loss": one.loss,
                    "seconds": round(one.seconds, 3),
                    "reference": "the proven optimum",
                }


def board_of(measured: pd.DataFrame) -> Leaderboard:
    """Return what was measured beside what the library knows now."""
    entries = library()
    standings = tuple(
        Standing(entries[row.instance], row.method, row.loss, row.seconds)
        for row in measured.itertuples()
        if row.instance in entries and pd.notna(row.loss)
    )
    return Leaderboard(tuple(entries.values()), standings)


def page(measured: pd.DataFrame) -> str:
    """Return the page of the leaderboard."""
    return board_of(measured).to_markdown(
        f"AnonyMIP {version_of(measured)}: `python -m benchmarks leaderboard`."
    )


def markdown(measured: pd.DataFrame) -> str:
    """Return the table of docs/methods.md."""
    places = [METHOD_COLUMNS.index(name) for name in _COLUMNS]
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    for row in board_of(measured).method_texts():
        if row[0] in _RECODINGS:
            lines.append(f"| {' | '.join(row[place] for place in places)} |")
    return "\n".join(lines)


def version_of(measured: pd.DataFrame) -> str:
    """Return the version of the package that measured; the oldest, if there are several."""
    found = measured["versions"].str.extract(r"anonymip ([\d.]+)")[0].dropna()
    return min(found, key=lambda text: tuple(map(int, text.split("."))))
