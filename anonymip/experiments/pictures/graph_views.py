"""A cover as a graph, in its unified and its bipartite view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.experiments.pictures.picture import Picture
from anonymip.graphs import degree_of, random_matchings

#: Records of a graph that can be read.
MOST_RECORDS = 40


def cover_graph(cover: Cover, names: Sequence[str] | None = None, *, seed: int = 0) -> Picture:
    """Return the graph of published rows and the records that they cover, in two views [1]_.

    On the left the unified view: a record and its row are one node, and an arrow leads from the row
    to each other record of its set; a ring stands for the record itself. On the right rows and
    records are apart. The edges of a regular cover are of k colours: each colour is an assignment
    of all records to the rows.

    Parameters
    ----------
    cover
        Of at most :data:`MOST_RECORDS` records.
    names
        (n,) what records are called; None numbers them.
    seed
        Of the choice of the assignments.

    Raises
    ------
    InputError
        If there are too many records, or the names are not as many.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 2.1.
    """
    if cover.n > MOST_RECORDS:
        raise InputError(
            f"a graph of {cover.n} records cannot be read",
            remedy=f"Draw at most {MOST_RECORDS}",
        )
    named = [str(record) for record in range(cover.n)] if names is None else list(names)
    if len(named) != cover.n:
        raise InputError(f"{len(named)} names for {cover.n} records", remedy="Give one each")
    colours = _colours(cover, seed)
    picture = Picture(figsize=(9.0, 4.4), layout="constrained")
    unified, bipartite = picture.subplots(1, 2)
    _draw_unified(unified, cover, named, colours)
    _draw_bipartite(bipartite, cover, named, colours)
    return picture


def _colours(cover: Cover, seed: int) -> NDArray[np.int64]:
    """Return (edges,) the assignment that each edge belongs to; 0 if the cover is not regular."""
    found = np.zeros(len(cover.members), np.int64)
    degree = degree_of(cover)
    if degree is not None:
        matchings = random_matchings(cover, degree, np.random.default_rng(seed))
        for number, matching in enumerate(matchings):
            found[cover.members == matching[cover.owners]] = number
    return found


def _draw_unified(axes: Axes, cover: Cover, names: list[str], colours: NDArray[np.int64]) -> None:
    angles = np.pi / 2 - 2 * np.pi * np.arange(cover.n) / cover.n
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    for row, record, colour in zip(cover.owners, cover.members, colours, strict=True):
        if row == record:
            axes.plot(*(1.13 * places[row]), "o", ms=11, mfc="none", mec=f"C{colour}", mew=1.3)
        else:
            _draw_arrow(axes, places[row], places[record], f"C{colour}")
    _draw_nodes(axes, places, names)
    axes.set_aspect("equal")
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_axis_off()
    axes.set_title("unified: an arrow from a row to a record of its set")


def _draw_bipartite(axes: Axes, cover: Cover, names: list[str], colours: NDArray[np.int64]) -> None:
    heights = -np.arange(cover.n, dtype=np.float64)
    for row, record, colour in zip(cover.owners, cover.members, colours, strict=True):
        axes.plot([0, 1], [heights[row], heights[record]], color=f"C{colour}", lw=1.3)
    for side in (0.0, 1.0):
        _draw_nodes(axes, np.column_stack([np.full(cover.n, side), heights]), names)
    axes.text(0, 0.9, "rows", ha="center")
    axes.text(1, 0.9, "records", ha="center")
    axes.set_xlim(-0.25, 1.25)
    axes.set_ylim(heights[-1] - 0.7, 1.6)
    axes.set_axis_off()
    axes.set_title("bipartite")


def _draw_arrow(
    axes: Axes, start: NDArray[np.float64], end: NDArray[np.float64], colour: str
) -> None:
    # Bent, so that two rows that cover each other's records have two arrows.
    arrow = FancyArrowPatch(
        (start[0], start[1]),
        (end[0], end[1]),
        arrowstyle="-|>",
        mutation_scale=11,
        connectionstyle="arc3,rad=0.12",
        shrinkA=9,
        shrinkB=9,
        color=colour,
        lw=1.3,
    )
    axes.add_patch(arrow)


def _draw_nodes(axes: Axes, places: NDArray[np.float64], names: list[str]) -> None:
    axes.plot(places[:, 0], places[:, 1], "o", ms=16, mfc="white", mec="black", zorder=3, ls="")
    for place, name in zip(places, names, strict=True):
        axes.text(place[0], place[1], name, ha="center", va="center", fontsize=8, zorder=4)
