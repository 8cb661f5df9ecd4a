"""The goals of column generation on instances of the library, and what it reaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from anonymip.instances.library.catalogue import find_entry
from anonymip.solution import bound_text
from benchmarks.leaderboard import version_of

#: A unit of the loss that does not matter, for figures that are asked for with more digits.
_SLACK = 1e-3


@dataclass(frozen=True)
class Goal:
    """What is asked on one instance."""

    name: str  # of the library's entry
    limit: float  # seconds of time limit that it is measured with
    gap: float = 0.0  # largest gap; 0 if the optimum is to be proven
    seconds: float | None = None  # of the processor that it may take; None if nothing is asked
    optimum: float | None = None  # if it is known
    #: Bounds that are to be reached; None if nothing is asked.
    linear_program: float | None = None
    with_cuts: float | None = None


GOALS = (
    Goal("census-8-n20-k3", 60, 0, 1, 32.6157, 32.352),
    Goal("census-8-n50-k3", 60, 0, 1, 52.3947, 51.922),
    Goal("census-8-n100-k3", 60, 0, 22, 75.7678, 73.597, 74.457),
    Goal("census-8-n200-k3", 60, 0, 8, 118.1986, 116.248, 117.859),
    Goal("census-8-n300-k3", 60, 0, 8, 154.6317, 152.832, 154.130),
    Goal("census-8-n500-k3", 600, 0, None, None, 220.953, 222.851),
    Goal("census-8-n1000-k3", 900, 0, None, None, 378.247, 381.495),
    Goal("census-8-n50-k5", 60, 0, 4, 85.5263, 83.222),
    Goal("census-8-n75-k5", 180, 0, 42, 107.078, 104.782, 106.351),
    Goal("census-8-n100-k5", 600, 0, 60, 126.4846, 122.470, 125.060),
    Goal("census-8-n150-k5", 150, 0.006, 150, None, 156.363, 159.343),
    Goal("census-8-n100-k10", 300, 0.01),
    Goal("census-8-n5000-k3", 600, 0.02, None, None, 1238, 1249),
    Goal("census-4-n200-k3", 60, 0, 5, 16.235),
    Goal("census-4-n200-k5", 300, 0, 21, 31.194),
    Goal("census-4-n100000-k5", 300, 0.05),
    Goal("census-mixed-n50-k3", 60, 0, 1, 31.850),
    Goal("census-mixed-n100-k3", 600, 0),
    Goal("freeform-n14-k3", 60, 0, 1, 11.5503, 11.5503),
    Goal("freeform-n50-k3", 60, 0, 1, 24.1588, 24.1564),
    Goal("freeform-n100-k3", 60, 0, 1, 34.5683, 34.5135),
    Goal("freeform-n200-k3", 60, 0, 1, 62.7389, 62.6441),
    Goal("freeform-n300-k3", 60, 0, 2, 81.8655, 81.7416),
    Goal("freeform-n500-k3", 300, 0, None, None, 119.7433),
    Goal("freeform-n1000-k3", 600, 0, None, None, 201.0340),
    Goal("freeform-n2000-k3", 300, 0.005, None, None, 314.2417),
    Goal("freeform-n50-k5", 60, 0, 1, 42.9735, 42.9321),
    Goal("freeform-n100-k5", 180, 0, 73, 62.8142, 62.7474),
    Goal("freeform-n200-k5", 300, 0, None, None, 110.1623),
    Goal("freeform-n500-k5", 300, 0.003),
    Goal("freeform-n1000-k5", 300, 1, None, None, 356.5113),
    Goal("freeform-n50-k10", 60, 0, 1, 77.9118, 77.9118),
)

_COLUMNS = (
    *("instance", "n", "m", "k", "recoding", "LP bound", "asked", "with cuts", "asked"),
    *("best loss", "bound", "gap", "asked", "seconds", "asked", "verdict"),
)
_TEXT = """\
# The exact engine

AnonyMIP {version}: `python -m benchmarks.exact_engine`.

What `column-generation` reaches on instances of [the library](../library.md), beside what is asked
of it; *short* marks what falls short, and in what.

The bounds of the linear program and with cuts are those on the way, where the engine took it.
Seconds are those of the processor, with all processes that were started, compilation left out.
"""


def page(measured: pd.DataFrame) -> str:
    """Return the page of what was measured; instances not measured are said to be so."""
    rows = {row["instance"]: row for row in measured.to_dict("records")}
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    for goal in GOALS:
        lines.append(f"| {' | '.join(_cells(goal, rows.get(goal.name)))} |")
    return "\n".join([_TEXT.format(version=version_of(measured)), *lines]) + "\n"


def _cells(goal: Goal, row: dict[str, Any] | None) -> list[str]:
    entry = find_entry(goal.name)
    gap = "proven" if goal.gap == 0 else f"{100 * goal.gap:.1f} %" if goal.gap < 1 else ""
    if goal.optimum is not None:
        gap = f"{goal.optimum:.7g}"
    size, *found, verdict = [""] * 7 + ["not measured"]
    if row is not None:
        proven = row["status"] == "optimal"
        size, *found, verdict = [
            str(row["m"]),
            _number(row["linear_program"]),
            _number(row["with_cuts"]),
            f"{row['loss']:.7g}",
            "unknown" if pd.isna(row["bound"]) else bound_text(row["bound"], 7),
            "proven"
            if proven
            else "unknown"
            if pd.isna(row["gap"])
            else f"{100 * row['gap']:.2f} %",
            f"{row['processor_seconds']:.1f}",
            verdict_on(goal, row),
        ]
    lp, cuts, loss, bound, reached, seconds = found
    return [
        *(goal.name, str(entry.records), size, str(entry.k), entry.recoding),
        *(lp, _number(goal.linear_program), cuts, _number(goal.with_cuts)),
        *(loss, bound, reached, gap, seconds, _number(goal.seconds), verdict),
    ]


def verdict_on(goal: Goal, row: dict[str, Any]) -> str:
    """Return ``reached``, or ``short`` with what falls short."""
    short = []
    if row["status"] != "optimal":
        if pd.isna(row["gap"]) or row["gap"] > goal.gap:
            short.append("gap")
        for name, figure in (("LP bound", goal.linear_program), ("cuts", goal.with_cuts)):
            # The bound at the end is at least that of the way.
            if figure is not None and row["bound"] < figure - _slack(figure):
                short.append(name)
    elif goal.optimum is not None and abs(row["loss"] - goal.optimum) > _slack(goal.optimum):
        short.append("another optimum")
    if goal.seconds is not None and row["processor_seconds"] > goal.seconds:
        short.append("seconds")
    return f"short: {', '.join(short)}" if short else "reached"


def _slack(figure: float) -> float:
    """Return half a unit of the last digit that a figure is given with, or what matters less."""
    decimals = len(f"{figure:.7g}".partition(".")[2])
    return max(_SLACK, 0.5 * 10.0**-decimals)


def _number(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.7g}"
