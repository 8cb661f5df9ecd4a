"""Names of points and lines, beside what they name: where they cover nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text
from matplotlib.transforms import ScaledTranslation, Transform
from scipy.optimize import isotonic_regression

from anonymip.experiments.style import INK, QUIET, SINGLE, Picture, drawing
from anonymip.runtime.arrays import Floats, Ints


@dataclass(frozen=True)
class Named:
    """A name in a plot, and the place that it is of, in the plot's own units."""

    x: float
    y: float
    text: str
    colour: str = INK  # of what is named, as is the mark
    size: float = 9
    mark: str = ""  # before a name at the right of the plot; without one a line leads to its place


@dataclass
class Names:
    """The names of points and lines in a figure, placed when all of it is drawn."""

    figure: Figure
    _ends: list[tuple[Axes, list[Named]]] = field(default_factory=list)
    _points: list[tuple[Axes, list[Named], float]] = field(default_factory=list)

    def at_ends(self, axes: Axes, named: Sequence[Named]) -> None:
        """Name lines at the right of a plot, each at the height of its end."""
        if named:
            self._ends.append((axes, list(named)))

    def at_points(self, axes: Axes, named: Sequence[Named], *, above: float = -np.inf) -> None:
        """Name points beside them, where neither points, lines nor other names are.

        `above`: the height in the plot's units that no name stands below.
        """
        if named:
            self._points.append((axes, list(named), above))

    def settle(self) -> None:
        """Place all names; nothing may be drawn into the figure after it."""
        with drawing():
            written = [(axes, named, _write_ends(axes, named)) for axes, named in self._ends]
            # Names at the right take their width from the plots: their places are known then.
            renderer = _laid_out(self.figure)
            for axes, named, texts in written:
                _spread(axes, named, texts, renderer)
            renderer = _laid_out(self.figure)
            for axes, named, above in self._points:
                _write_points(axes, named, above, renderer)


@contextmanager
def one_plot(size: tuple[float, float] = SINGLE) -> Iterator[tuple[Picture, Axes, Names]]:
    """Have a picture of one plot drawn in the style, and its names placed at the end."""
    with drawing():
        picture = Picture(figsize=size, layout="constrained")
        axes, names = picture.add_subplot(), Names(picture)
        yield picture, axes, names
        names.settle()


def _laid_out(figure: Figure) -> RendererBase:
    canvas: Any = FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    return cast("RendererBase", canvas.get_renderer())


#: Points between a plot and the names at its right, and between two names.
_ASIDE, _BETWEEN = 18.0, 1.5


def _beside(axes: Axes, points: float) -> Transform:
    """Return shares of a plot, so many points to the right."""
    root = cast("Figure", axes.get_figure(root=True))
    return axes.transAxes + ScaledTranslation(points / 72, 0, root.dpi_scale_trans)


def _write_ends(axes: Axes, named: list[Named]) -> list[Annotation]:
    """Write names at the right of a plot."""
    leading = {"arrowstyle": "-", "linewidth": 0.9, "relpos": (0.0, 0.5), "shrinkA": 2}
    texts = []
    for one in named:
        line = None if one.mark else {**leading, "shrinkB": 3, "color": one.colour}
        texts.append(_write(axes, one, (1.0, 0.5), _beside(axes, _ASIDE), "left", arrowprops=line))
    return texts


def _write(axes: Axes, one: Named, at: Any, of: Any, side: str, **looks: Any) -> Annotation:
    """Write a name at a place, in coordinates `of` something."""
    looks |= {"ha": side, "va": "center", "fontsize": one.size, "annotation_clip": False}
    return axes.annotate(one.text, xy=(one.x, one.y), xytext=at, textcoords=of, **looks)


def _spread(
    axes: Axes, named: list[Named], texts: list[Annotation], renderer: RendererBase
) -> None:
    """Move names up and down until none covers another, as little as that takes."""
    box = axes.get_window_extent(renderer)
    wanted = np.array([_dots(axes, np.array([text.xy]))[0, 1] - box.y0 for text in texts])
    # The window of an annotation holds its line as well; letters alone count.
    sizes = np.array([Text.get_window_extent(text, renderer).height for text in texts])
    gap = _BETWEEN * _point(renderer)
    found = heights(wanted, sizes + gap, box.height) / box.height
    for text, one, height in zip(texts, named, found, strict=True):
        text.set_position((1.0, height))
        if one.mark:
            looks: Any = {"color": one.colour, "marker": one.mark, "linestyle": "none"}
            looks |= {"transform": _beside(axes, _ASIDE - 8), "clip_on": False, "in_layout": False}
            if one.mark == "_":
                looks |= {"markersize": 10, "markeredgewidth": 3}
            axes.add_artist(Line2D([1.0], [height], **looks))


def heights(wanted: Floats, sizes: Floats, room: float) -> Floats:
    """Return (p,) the centres of intervals that do not overlap, nearest to where they should be.

    `wanted, sizes`: (p,) centres and lengths. `room`: they lie between 0 and this, if their lengths
    do not add up to more.
    """
    # Of equal heights the first stands on top.
    order = np.argsort(wanted[::-1], kind="stable")
    order = len(wanted) - 1 - order
    lengths = sizes[order]
    below = np.cumsum(lengths) - lengths / 2
    # Without their lengths the intervals are points that keep their order.
    free = isotonic_regression(wanted[order] - below).x
    found: Floats = np.empty(len(order))
    found[order] = np.clip(free, 0, max(0.0, room - lengths.sum())) + below
    return found


#: Points between a point and its name, by how far it may have to go, and where a line leads to it.
_STEPS, _FAR = (5.0, 9.0, 15.0, 24.0, 34.0), 12.0
_WAYS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)], float)
#: What it costs to cover a point or a name, to cross a line, and to leave the plot: as much as to
#: stand so many points farther away.
_COVERED, _CROSSED, _OUTSIDE = 40.0, 6.0, 400.0


def _write_points(axes: Axes, named: list[Named], above: float, renderer: RendererBase) -> None:
    """Write names beside points, with a line to those that stand far from theirs."""
    unit = _point(renderer)
    texts = [
        _write(axes, one, (0, 0), "offset points", "center", color=one.colour, zorder=6)
        for one in named
    ]
    anchors = _dots(axes, np.array([(one.x, one.y) for one in named]))
    boxes = [text.get_window_extent(renderer) for text in texts]
    sizes = np.array([(box.width, box.height) for box in boxes]) + 2 * unit
    window = np.asarray(axes.get_window_extent(renderer).extents, np.float64).copy()
    if np.isfinite(above):
        window[1] = _dots(axes, np.array([(named[0].x, above)]))[0, 1]
    offsets = beside(anchors / unit, sizes / unit, _drawn_in(axes) / unit, window / unit)
    for text, one, offset, size in zip(texts, named, offsets, sizes / unit, strict=True):
        text.set_in_layout(False)
        text.set_position((offset[0], offset[1]))
        edge = np.maximum(np.abs(offset) - size / 2, 0)
        if np.hypot(*edge) > _FAR:
            line = axes.annotate(
                "",
                xy=(one.x, one.y),
                xytext=tuple(np.clip(0, offset - size / 2, offset + size / 2)),
                textcoords="offset points",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.7, "shrinkB": 4},
            )
            line.set_in_layout(False)


def _point(renderer: RendererBase) -> float:
    """Return how many dots a point has."""
    return float(np.asarray(renderer.points_to_pixels(1.0)))


def _dots(axes: Axes, places: Floats) -> Floats:
    """Return (p, 2) where places of a plot are in its picture."""
    return np.asarray(axes.transData.transform(places), np.float64)


def _drawn_in(axes: Axes) -> Floats:
    """Return (p, 2) places on the lines and edges of boxes in a plot, a few dots apart."""
    paths = [
        np.asarray(line.get_xydata(), np.float64)
        for line in axes.lines
        if line.get_transform() == axes.transData and line.get_linestyle() not in ("None", "none")
    ]
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    paths += [box.get_bbox().corners()[[0, 1, 3, 2, 0]] for box in boxes]
    places = [np.zeros((0, 2))]
    for path in paths:
        for start, end in pairwise(_dots(axes, path)):
            steps = max(2, int(np.hypot(*(end - start)) / 3))
            places.append(start + np.linspace(0, 1, steps)[:, None] * (end - start))
    return np.concatenate(places)


def beside(anchors: Floats, sizes: Floats, lines: Floats, window: Floats) -> Floats:
    """Return (p, 2) where the centres of boxes stand from their points.

    Each box takes the cheapest of 40 places about its point, those of the most crowded points
    first; then each moves while that makes it cheaper, so that the sum of the costs falls.
    `anchors, sizes`: (p, 2) points, and widths and heights of the boxes. `lines`: (q, 2) places
    that had better not be covered. `window`: (4,) left, low, right and high end of where boxes may
    stand.
    """
    ways = np.tile(_WAYS, (len(_STEPS), 1))
    steps = np.repeat(_STEPS, len(_WAYS))
    stride = ways * (steps / np.hypot(*ways.T))[:, None]
    moves: Floats = ways * sizes[:, None] / 2 + stride
    centres = anchors[:, None] + moves
    cost = np.empty(centres.shape[:2])
    for own, centre, size in zip(cost, centres, sizes, strict=True):
        ends = centre - size / 2 - 1, centre + size / 2 + 1
        outside = ((ends[0] < window[:2]) | (ends[1] > window[2:])).any(axis=1)
        own[:] = _COVERED * _inside(anchors, *ends) + _CROSSED * _inside(lines, *ends)
        own += _OUTSIDE * outside + steps + 2 * (ways != 0).all(axis=1)
    apart = np.hypot(*(anchors[:, None] - anchors).transpose(2, 0, 1))
    crowd = np.sort(apart, axis=1)[:, 1:4].sum(axis=1)
    chosen, shares = np.full(len(anchors), -1), np.linspace(0, 1, 8)[:, None]
    for _ in range(8):
        before = chosen.copy()
        for box in np.argsort(crowd, kind="stable"):
            total = cost[box].copy()
            for one in np.flatnonzero(chosen >= 0):
                if one != box:
                    there = centres[one, chosen[one]]
                    over = np.maximum(
                        (sizes[box] + sizes[one]) / 2 - np.abs(centres[box] - there), 0
                    )
                    total += _COVERED * (over > 0).all(axis=1) * (1 + over.min(axis=1))
                    # A line to a name had better not lead through another.
                    leads = anchors[box] + moves[box, :, None] * shares
                    through = (np.abs(leads - there) < sizes[one] / 2).all(axis=2).any(axis=1)
                    lead = anchors[one] + moves[one, chosen[one]] * shares
                    ends = centres[box] - sizes[box] / 2, centres[box] + sizes[box] / 2
                    total += _COVERED * (through | (_inside(lead, *ends) > 0))
            chosen[box] = np.argmin(total)
        if (chosen == before).all():
            break
    found: Floats = moves[np.arange(len(anchors)), chosen]
    return found


def _inside(points: Floats, low: Floats, high: Floats) -> Ints:
    """Return (b,) how many points lie in each box."""
    within = (low[:, None] < points) & (points < high[:, None])
    return np.asarray(np.count_nonzero(within.all(axis=2), axis=1), np.int64)
