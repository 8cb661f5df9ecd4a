"""Pictures of runs: where the optimum lies, loss against time, the spread over samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anonymip.experiments.pages.rendering import PALETTE, drawing, inline
from anonymip.experiments.summaries import drawn_front

_MARKERS = "ovs^D<>pP*X"


def optimum_chart(means: pd.DataFrame) -> Markup:
    """Return, for each k, the mean losses of methods above and the mean best bound below.

    Parameters
    ----------
    means
        Of one table and recoding: ``k``, ``label``, ``shown``, ``floor`` (missing if there is no
        bound) and ``proven``, whether the floor is the optimum.
    """
    ks, labels = sorted(set(means["k"])), list(dict.fromkeys(means["label"]))
    with drawing():
        figure = Figure(figsize=(max(5.0, 1.4 * len(ks) + 3.2), 3.6), layout="constrained")
        axes = figure.add_subplot()
        for place, k in enumerate(ks):
            rows = means[means["k"] == k]
            _draw_floor(axes, place, rows)
            for row in rows.dropna(subset=["shown"]).to_dict("records"):
                at = labels.index(row["label"])
                shift = 0.0 if len(labels) == 1 else 0.6 * (at / (len(labels) - 1) - 0.5)
                _draw_point(axes, place + shift, row["shown"], at, row["label"])
        axes.set_xticks(range(len(ks)), [f"k = {k}" for k in ks])
        axes.set_xlim(-0.6, len(ks) - 0.4)
        axes.set_ylabel("loss")
        if axes.get_ylim()[0] > 0:
            axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        _add_legend(axes)
    return inline(figure, "Losses of the methods above, the optimum or the best bound below")


def _draw_floor(axes: Axes, place: int, rows: pd.DataFrame) -> None:
    floor = rows["floor"].dropna()
    if floor.empty:
        return
    best, value = float(rows["shown"].min()), float(floor.iloc[0])
    proven = bool(rows["proven"].iloc[0])
    ends = [place - 0.4, place + 0.4]
    if not proven:
        axes.fill_between(
            ends, value, best, color=PALETTE[1], alpha=0.2, label="the optimum lies here"
        )
    axes.plot(
        ends,
        [value, value],
        color=PALETTE[2] if proven else PALETTE[0],
        linewidth=2.5,
        label="proven optimum" if proven else "proven bound",
    )


def _draw_point(axes: Axes, x: float, y: float, at: int, label: str) -> None:
    axes.plot(
        x, y, _MARKERS[at % len(_MARKERS)], color=PALETTE[at % len(PALETTE)], label=str(label)
    )


def _add_legend(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), loc="center left", bbox_to_anchor=(1.0, 0.5))


def time_chart(front: pd.DataFrame) -> Markup | None:
    """Return the mean loss of each method against its mean time, those that none beats joined.

    Parameters
    ----------
    front
        ``label``, ``ratio``, ``seconds`` and ``on_front``.
    """
    points, joined = drawn_front(front)
    if len(points) < 2:
        return None
    with drawing():
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(joined["seconds"], joined["ratio"], color=PALETTE[-1], linewidth=1, zorder=0)
        for at, row in enumerate(points.to_dict("records")):
            _draw_point(axes, row["seconds"], row["ratio"], at, row["label"])
        axes.set_xscale("log")
        axes.set_xlabel("seconds")
        axes.set_ylabel("loss over the least found")
        axes.grid()
        _add_legend(axes)
    return inline(figure, "Mean loss of each method against its mean time")


def spread_chart(runs: pd.DataFrame) -> Markup:
    """Return the ratios of all runs of each method, a line of points with its median.

    Parameters
    ----------
    runs
        ``label`` and ``ratio``, one row a run.
    """
    labels: list[Any] = list(dict.fromkeys(runs["label"]))
    with drawing():
        figure = Figure(figsize=(6.4, 1.0 + 0.34 * len(labels)), layout="constrained")
        axes = figure.add_subplot()
        for at, label in enumerate(labels):
            ratios = runs.loc[runs["label"] == label, "ratio"].to_numpy(np.float64)
            # Points of equal ratios lie beside each other, in the order of the runs.
            beside = 0.5 * (np.arange(len(ratios)) / max(1, len(ratios) - 1) - 0.5)
            axes.plot(ratios, at + beside, ".", color=PALETTE[at % len(PALETTE)], alpha=0.6)
            middle = float(np.median(ratios))
            axes.plot([middle, middle], [at - 0.35, at + 0.35], color=PALETTE[at % len(PALETTE)])
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()
        axes.grid(axis="x")
    return inline(figure, "Ratios of all runs of each method")
