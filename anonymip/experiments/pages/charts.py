"""Pictures of runs: where the optimum lies, loss against time, the spread over samples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from markupsafe import Markup

from anonymip.experiments.pages.rendering import Sheet, inline
from anonymip.experiments.pictures import draw_front
from anonymip.experiments.style import Look
from anonymip.experiments.summaries import drawn_front
from anonymip.experiments.thermometer import Column, draw_columns


def optimum_chart(means: pd.DataFrame, looks: Mapping[str, Look]) -> Markup:
    """Return, for each k, the mean losses of methods above and the mean best bound below.

    Parameters
    ----------
    means
        Of one table and recoding: ``k``, ``label``, ``shown``, ``floor`` (missing if there is no
        bound) and ``proven``, whether the floor is the optimum.
    looks
        Of all labels of the page.
    """
    columns = []
    for k, rows in means.groupby("k"):
        floor, proven = rows["floor"].iloc[0], bool(rows["proven"].iloc[0])
        losses = rows.dropna(subset=["shown"]).set_index("label")["shown"]
        columns.append(
            Column(
                int(str(k)),
                {str(label): float(loss) for label, loss in losses.items()},
                None if pd.isna(floor) else float(floor),
                proven,
                "proven optimum" if proven else "proven bound",
            )
        )

    def draw(sheet: Sheet) -> None:
        axes = sheet.figure.add_subplot()
        sheet.name_ends(axes, draw_columns(axes, columns, looks))
        axes.set_ylabel("loss")

    return inline(draw, "Losses of the methods above, the optimum or the best bound below")


def time_chart(front: pd.DataFrame, looks: Mapping[str, Look]) -> Markup | None:
    """Return the mean loss of each method against its mean time, those that none beats joined.

    Parameters
    ----------
    front
        ``label``, ``ratio``, ``seconds`` and ``on_front``.
    looks
        Of all labels of the page.
    """
    points, joined = drawn_front(front)
    if len(points) < 2:
        return None

    def draw(sheet: Sheet) -> None:
        axes = sheet.figure.add_subplot()
        named = draw_front(axes, points, joined, loss="ratio", time="seconds", looks=looks)
        sheet.name_points(axes, named)
        axes.set_xlabel("seconds")
        axes.set_ylabel("loss over the least found")

    return inline(draw, "Mean loss of each method against its mean time")


def spread_chart(runs: pd.DataFrame, looks: Mapping[str, Look]) -> Markup:
    """Return the ratios of all runs of each method, a line of points with its median.

    Parameters
    ----------
    runs
        ``label`` and ``ratio``, one row a run.
    looks
        Of all labels of the page.
    """
    labels = list(dict.fromkeys(map(str, runs["label"])))

    def draw(sheet: Sheet) -> None:
        axes = sheet.figure.add_subplot()
        for at, label in enumerate(labels):
            ratios = runs.loc[runs["label"] == label, "ratio"].to_numpy(np.float64)
            # Points of equal ratios lie beside each other, in the order of the runs.
            aside = 0.5 * (np.arange(len(ratios)) / max(1, len(ratios) - 1) - 0.5)
            axes.plot(ratios, at + aside, **looks[label].dots, markersize=4, alpha=0.6)
            middle = float(np.median(ratios))
            axes.plot([middle, middle], [at - 0.38, at + 0.38], color=looks[label].colour)
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlabel("loss over the least known")
        axes.grid(axis="x")

    return inline(draw, "Ratios of all runs of each method", height=1.0 + 0.4 * len(labels))
