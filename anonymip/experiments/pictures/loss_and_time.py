"""What methods lose against the time that they take."""

from __future__ import annotations

import pandas as pd

from anonymip.errors import InputError
from anonymip.experiments.pictures.picture import MARKERS, Picture, add_legend
from anonymip.experiments.summaries import drawn_front


def loss_against_time(
    front: pd.DataFrame, *, loss: str = "loss", time: str = "seconds", title: str = ""
) -> Picture:
    """Return a point for each method, those that none beats in both joined by a line.

    Parameters
    ----------
    front
        As :func:`anonymip.experiments.summaries.pareto_front` returns it, of one table and k:
        columns ``label``, `loss`, `time` and ``on_front``.
    loss, time
        Columns of the axes, and their names; the time is drawn on a logarithmic scale.
    title
        Of the picture.

    Raises
    ------
    InputError
        If no time is above 0.
    """
    points, joined = drawn_front(front, time=time)
    if points.empty:
        raise InputError(f"no {time!r} is above 0", remedy="Run the methods first")
    picture = Picture(figsize=(6.6, 4.0), layout="constrained")
    axes = picture.add_subplot()
    axes.plot(joined[time], joined[loss], color="grey", linewidth=1, zorder=0)
    for number, row in enumerate(points.to_dict("records")):
        axes.plot(
            row[time],
            row[loss],
            MARKERS[number % len(MARKERS)],
            color=f"C{number % 10}",
            label=str(row["label"]),
        )
    axes.set_xscale("log")
    axes.set_xlabel(time)
    axes.set_ylabel(loss)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    add_legend(axes)
    return picture
