"""The panels of a reproduction, drawn in the form of the paper's figure."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from anonymip.experiments.names import Named, Names
from anonymip.experiments.style import (
    INK,
    ONE_OF_MANY,
    SINGLE,
    Look,
    Picture,
    drawing,
    headline,
    legend_below,
    logarithmic,
    looks_of,
)
from reproductions.series import table_of
from reproductions.specification import Panel, Reproduction, Undecided

#: What a picture says of the values that the paper prints.
_PRINTED = "dotted lines and hollow marks: as printed in the paper"


def draw(asked: Reproduction, rows: pd.DataFrame) -> Picture:
    """Return the figure: a plot for each panel; what the paper prints is drawn hollow.

    `asked`: what is reproduced. `rows`: one row a run.
    """
    series = [series_of(panel, rows) for panel in asked.panels]
    looks = looks_of(label for drawn in series for label in drawn["label"])
    across = min(2, len(asked.panels))
    down = math.ceil(len(asked.panels) / across)
    wide, high = SINGLE if len(asked.panels) == 1 else ONE_OF_MANY
    # Plots side by side stand apart, names at the right of one beside numbers of the next.
    with drawing(
        **{"figure.constrained_layout.w_pad": 0.08, "figure.constrained_layout.h_pad": 0.08}
    ):
        figure = Picture(figsize=(wide * across, high * down + 0.3), layout="constrained")
        names = Names(figure)
        for place, (panel, drawn) in enumerate(zip(asked.panels, series, strict=True), 1):
            axes = figure.add_subplot(down, across, place)
            _draw_panel(axes, panel, drawn, looks, names)
        legend = {
            label: bars
            for axes in figure.axes
            for bars, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        note = _PRINTED if any(panel.printed for panel in asked.panels) else ""
        legend_below(figure, legend, note)
        title = f"{asked.paper}, {asked.place}: {asked.title}"
        headline(figure, title, "" if legend else note)
        names.settle()
    return figure


def series_of(panel: Panel, rows: pd.DataFrame) -> pd.DataFrame:
    """Return what a panel draws; empty where the rows do not hold it."""
    try:
        return panel.series(rows)
    except Undecided:
        return pd.DataFrame({"label": [], "x": [], "y": []})


def _draw_panel(
    axes: Axes, panel: Panel, drawn: pd.DataFrame, looks: Mapping[str, Look], names: Names
) -> None:
    axes.set_title(panel.title)
    if drawn.empty:
        return
    if panel.kind == "bars" and drawn["label"].is_unique:
        _draw_values(axes, panel, drawn, looks)
        return
    axes.set(xlabel=panel.x, ylabel="" if panel.y == panel.title else panel.y)
    if panel.log_x:
        logarithmic(axes, "x")
    if panel.log_y:
        logarithmic(axes, "y")
    if panel.kind == "bars":
        _draw_bars(axes, drawn, looks)
    else:
        names.at_ends(axes, _draw_lines(axes, panel, drawn, looks))
    if not panel.log_y:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.grid(axis="y")


def _draw_lines(
    axes: Axes, panel: Panel, drawn: pd.DataFrame, looks: Mapping[str, Look]
) -> list[Named]:
    """Draw a line for each method, and return what is named at its end."""
    named = []
    last = max([*drawn["x"], *(x for line in panel.printed.values() for x in line)])
    for label, line in drawn.groupby("label", sort=False):
        line = line.sort_values("x")
        look = looks[str(label)]
        axes.plot(line["x"], line["y"], **look.lines)
        if "low" in line and not panel.log_y:
            axes.fill_between(
                line["x"], line["low"], line["high"], color=look.colour, alpha=0.15, linewidth=0
            )
        printed = sorted(panel.printed.get(str(label), {}).items())
        axes.plot(
            [x for x, _ in printed],
            [y for _, y in printed],
            **{**look.lines, "linestyle": ":"},
            fillstyle="none",
            markersize=7,
            linewidth=1.0,
        )
        end = line.dropna(subset=["y"]).iloc[-1]
        # A line from an end within the plot to its name would look like one of the lines.
        mark = look.mark if end["x"] < last else ""
        named.append(Named(end["x"], end["y"], str(label), look.colour, mark=mark))
    return named


def _draw_bars(axes: Axes, drawn: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw a bar for each method at each x, its mark at its end."""
    table = table_of(drawn)
    width = 0.8 / len(table.columns)
    for place, label in enumerate(table):
        look = looks[str(label)]
        middle = np.arange(len(table)) + (place + 0.5) * width - 0.4
        axes.bar(middle, table[label], 0.9 * width, color=look.colour, alpha=0.75)
        axes.plot(middle, table[label], **look.dots, label=str(label))
    axes.axhline(0, linewidth=0.8, color=INK)
    axes.set_xticks(range(len(table)), [f"{x:g}" for x in table.index])


def _draw_values(axes: Axes, panel: Panel, drawn: pd.DataFrame, looks: Mapping[str, Look]) -> None:
    """Draw one value for each method, in a line of its own that bears its name."""
    labels, values = list(map(str, drawn["label"])), drawn["y"].to_numpy(np.float64)
    if panel.log_y:
        logarithmic(axes, "x")
    start = 10.0 ** np.floor(np.log10(values.min())) if panel.log_y else min(0.0, values.min())
    for place, (label, value) in enumerate(zip(labels, values, strict=True)):
        look = looks[label]
        axes.plot([start, value], [place, place], color=look.colour, linewidth=4, alpha=0.35)
        axes.plot(value, place, **look.dots, markersize=7)
        axes.annotate(
            f"{value:.{panel.digits}g}",
            (value, place),
            (8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    low, high = start, values.max()
    # Room for the number behind the longest line.
    axes.set_xlim(low, high * (high / low) ** 0.25 if panel.log_y else high + 0.22 * (high - low))
    if len(set(drawn["x"])) > 1:
        named = [f"{label} ({x:g} {panel.x})" for label, x in zip(labels, drawn["x"], strict=True)]
    else:
        named = labels
    axes.set_yticks(range(len(labels)), named)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlabel("" if panel.y == panel.title else panel.y)
    axes.grid(axis="x")
