"""Draws the panels of a reproduction in the form of the paper's figure."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anonymip.experiments.reproductions.series import table_of
from anonymip.experiments.reproductions.specification import Panel, Reproduction, Undecided

_MARKERS = "ovs^D<>pP*X"
#: Most panels in one line; more of them stand two by two.
_ACROSS = 3
_DOTS = 90


def draw(asked: Reproduction, rows: pd.DataFrame) -> Figure:
    """Return the figure: a plot for each panel; what the paper prints is drawn hollow.

    Parameters
    ----------
    asked
        What is reproduced.
    rows
        One row a run.
    """
    across = len(asked.panels) if len(asked.panels) <= _ACROSS else 2
    down = math.ceil(len(asked.panels) / across)
    figure = Figure(figsize=(4.6 * across, 3.6 * down), layout="constrained", dpi=_DOTS)
    colors: dict[str, int] = {}
    for place, panel in enumerate(asked.panels, 1):
        axes = figure.add_subplot(down, across, place)
        _draw_panel(axes, panel, rows, colors)
    figure.suptitle(f"{asked.paper}, {asked.place}: {asked.title}", fontsize=10)
    return figure


def series_of(panel: Panel, rows: pd.DataFrame) -> pd.DataFrame:
    """Return what a panel draws; empty where the rows do not hold it."""
    try:
        return panel.series(rows)
    except Undecided:
        return pd.DataFrame({"label": [], "x": [], "y": []})


def _draw_panel(axes: Axes, panel: Panel, rows: pd.DataFrame, colors: dict[str, int]) -> None:
    drawn = series_of(panel, rows)
    if len(drawn):
        (_draw_bars if panel.kind == "bars" else _draw_lines)(axes, panel, drawn, colors)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    axes.title.set_fontsize(9)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    elif len(drawn):
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.grid(axis="y", alpha=0.3)
    if len(drawn):
        axes.legend(fontsize=6)


def _draw_lines(axes: Axes, panel: Panel, drawn: pd.DataFrame, colors: dict[str, int]) -> None:
    for label, line in drawn.groupby("label", sort=False):
        line = line.sort_values("x")
        at = colors.setdefault(str(label), len(colors))
        color, marker = f"C{at % 10}", _MARKERS[at % len(_MARKERS)]
        axes.plot(line["x"], line["y"], f"-{marker}", color=color, label=str(label), markersize=4)
        if "low" in line and not panel.log_y:
            axes.fill_between(line["x"], line["low"], line["high"], color=color, alpha=0.15)
        printed = panel.printed.get(str(label))
        if printed:
            axes.plot(
                sorted(printed),
                [printed[x] for x in sorted(printed)],
                f":{marker}",
                color=color,
                fillstyle="none",
                markersize=6,
                linewidth=0.8,
                label=f"{label}, as printed",
            )


def _draw_bars(axes: Axes, panel: Panel, drawn: pd.DataFrame, colors: dict[str, int]) -> None:
    table = table_of(drawn)
    width = 0.8 / len(table.columns)
    for place, label in enumerate(table):
        at = colors.setdefault(str(label), len(colors))
        left = [one + (place + 0.5) * width - 0.4 for one in range(len(table))]
        axes.bar(left, table[label], width, color=f"C{at % 10}", label=str(label))
    axes.set_xticks(range(len(table)), [f"{x:g}" for x in table.index])
