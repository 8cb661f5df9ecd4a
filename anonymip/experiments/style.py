"""The style of every picture: colours, one look a method, names beside what they name, files.

Pictures of the package, of pages, notebooks, reproductions and benchmarks are drawn within
:func:`drawing`, take the looks of their methods from :func:`looks_of`, and leave the places of
names to :class:`Names`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from pathlib import Path
from textwrap import fill
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin
from scipy.optimize import isotonic_regression

#: Dots an inch in files and notebooks.
RESOLUTION = 190
#: A figure of one plot, and a plot among others, in inches: two stand beside each other, so that
#: the letters can still be read where a page is 800 pixels wide.
SINGLE, ONE_OF_MANY = (7.2, 4.2), (4.9, 3.3)

#: The colours by name, on light paper and on dark. Under red and green blindness all differ from
#: each other, and no method is told by its colour alone.
COLOURS = {
    "blue": ("#1050a0", "#2f86e0"),
    "vermillion": ("#c84300", "#ee6a2c"),
    "green": ("#00a07a", "#14b087"),
    "purple": ("#8e1c6e", "#b9479a"),
    "sky": ("#58a6e0", "#8ccbf5"),
    "gold": ("#cda400", "#f0d050"),
    "pink": ("#e377a8", "#f2a0c8"),
    "ink": ("#1c2430", "#e6e9ee"),
    "quiet": ("#7a8593", "#9aa5b4"),
}
PAINT = {name: light for name, (light, _) in COLOURS.items()}
INK, QUIET = PAINT["ink"], PAINT["quiet"]
#: Of the proven optimum, of a proven bound, and of what lies between a bound and a release.
OPTIMUM, BOUND, OPEN = PAINT["green"], PAINT["blue"], PAINT["gold"]

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": 10,
    "figure.titlesize": 11.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    # Numbers of small ticks stand in one line with those of large ones.
    "xtick.minor.pad": 5.0,
    "ytick.minor.pad": 5.0,
    "legend.fontsize": 9,
    "legend.frameon": False,
    **dict.fromkeys(
        (
            *("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"),
            *("xtick.color", "ytick.color", "grid.color"),
        ),
        INK,
    ),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.alpha": 0.15,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
}


def drawing(**more: Any) -> Any:
    """Return a block within which figures are drawn in the style, with `more` settings."""
    settings: Any = {**_STYLE, **more}
    return mpl.rc_context(settings)


@dataclass(frozen=True)
class Look:
    """How a method is drawn: name of its colour, its mark, and the style of its lines."""

    name: str
    mark: str
    line: str = "-"

    @property
    def colour(self) -> str:
        """The colour on light paper."""
        return PAINT[self.name]

    @property
    def dots(self) -> dict[str, Any]:
        """What draws it as points."""
        return {"color": self.colour, "marker": self.mark, "linestyle": "none"}

    @property
    def lines(self) -> dict[str, Any]:
        """What draws it as a line with points."""
        return {**self.dots, "linestyle": self.line}


#: Lines of methods whose releases promise the same are alike: classes whole, covers dashed.
_CLASSES, _COVERS, _OTHERS = "-", "--", "-."
#: How each method is drawn. What proves has a star; no two share both colour and mark.
LOOKS: Mapping[str, Look] = {
    "auto": Look("ink", "o", _CLASSES),
    "column-generation": Look("ink", "*", _CLASSES),
    "equivalence-mip": Look("blue", "*", _CLASSES),
    "split-carry": Look("sky", "s", _CLASSES),
    "local-search": Look("blue", "P", _CLASSES),
    "initial": Look("purple", "v", _CLASSES),
    "ordered-cut": Look("pink", "X", _CLASSES),
    "greedy-search": Look("green", "^", _CLASSES),
    "k-member": Look("gold", "D", _CLASSES),
    "mdav": Look("sky", "h", _CLASSES),
    "mondrian": Look("vermillion", "o", _CLASSES),
    "hilbert": Look("blue", ">", _CLASSES),
    "hp": Look("green", "<", _CLASSES),
    "anatomy": Look("gold", "X", _CLASSES),
    "forest": Look("green", "p", _CLASSES),
    "edge-cover": Look("blue", "d", _CLASSES),
    "two-factor": Look("vermillion", "8", _CLASSES),
    "hilbert-diversity": Look("purple", ">", _CLASSES),
    "freeform-mip": Look("sky", "*", _COVERS),
    "greedy": Look("sky", "o", _COVERS),
    "sort-greedy": Look("pink", "D", _COVERS),
    "hungarian": Look("blue", "s", _COVERS),
    "min-cost-flow": Look("green", "P", _COVERS),
    "ring": Look("gold", "h", _COVERS),
    "nh": Look("vermillion", "v", _COVERS),
    "reassign": Look("purple", "X", _COVERS),
    "k-concealment": Look("purple", "d", _COVERS),
    "pattern-ilp": Look("gold", "*", _OTHERS),
    "pattern-fpt": Look("green", "*", _OTHERS),
    "pattern-pairs": Look("pink", "*", _OTHERS),
    "pattern-greedy": Look("blue", "o", _OTHERS),
    "pattern-search": Look("green", "s", _OTHERS),
    "pattern-levels": Look("purple", "*", _OTHERS),
    "full-domain": Look("vermillion", "*", _OTHERS),
}
#: What papers call methods, and what is no method's name.
_ALSO = {"optimum": "column-generation", "hs": "hilbert", "at": "anatomy"}
_MARKS = "osD^vP<>Xphd8"
_LINES = ("-", "--", "-.", ":")
#: Looks that no method has, for names that no method is behind: neighbours differ in both.
_PLAIN = ("blue", "vermillion", "green", "purple", "sky", "gold")
_FREE = tuple(
    Look(name, mark)
    for name, mark in islice(
        zip(cycle(_PLAIN), cycle(_MARKS), strict=False), len(_PLAIN) * len(_MARKS)
    )
    if (name, mark) not in {(look.name, look.mark) for look in LOOKS.values()}
)


def looks_of(labels: Iterable[str]) -> dict[str, Look]:
    """Return a look for each label, no two alike; a method looks the same in every picture.

    A label is a method's name, or begins with it (``split-carry S=3``): variants of one method
    share its colour. Other labels have looks that no method has.

    Parameters
    ----------
    labels
        All that one picture or page shows, in its order.
    """
    found: dict[str, Look] = {}
    for label in dict.fromkeys(map(str, labels)):
        name = _method_in(label)
        own = LOOKS[name] if name else None
        found[label] = next(look for look in _choices(own) if look not in found.values())
    return found


def _choices(own: Look | None) -> Iterable[Look]:
    if own is None:
        yield from _FREE
        own = Look("quiet", "o")
    yield own
    for line in _LINES:
        for mark in _MARKS:
            yield Look(own.name, mark, line)


def _method_in(label: str) -> str | None:
    """Return the method that a label names at its beginning."""
    told = label.lower()
    name = next((one for one in (*LOOKS, *_ALSO) if one == told), None)
    if name is None:
        starts = [one for one in LOOKS if told.startswith(one) and told[len(one)] in " ,:;(="]
        name = max(starts, key=len, default=None)
    return None if name is None else _ALSO.get(name, name)


class Picture(Figure):
    """A figure of matplotlib that a notebook shows as the value of a cell.

    Notebooks know figures once pyplot has drawn one, which would choose a window system.
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        data = png(self)
        width, height = self.get_size_inches()
        # Twice as many dots as the page has, in the size that the page would give it.
        return data, {"width": round(96 * width), "height": round(96 * height)}


#: Small ticks of a logarithmic axis have numbers where it spans less than the first: all of them
#: where it spans less than the second, else those that begin with 2 or 5.
_SPARSE, _FEW = 100.0, 3.0


def logarithmic(axes: Axes, which: str) -> None:
    """Make an axis of a plot, ``"x"`` or ``"y"``, logarithmic, its numbers written out."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis

    def small(value: float, _: int | None) -> str:
        low, high = sorted(axis.get_view_interval())
        shown = high < _FEW * low or (high < _SPARSE * low and f"{value:e}"[0] in "25")
        return f"{value:g}" if shown else ""

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(small))


def headline(figure: Figure, text: str, note: str = "") -> None:
    """Write a figure's title at its left, in lines that fit, and a note at its foot."""
    letters = int(figure.get_size_inches()[0] * 72 / (0.56 * _STYLE["figure.titlesize"]))
    figure.suptitle(fill(text, letters), x=0.012, ha="left")
    if note:
        figure.supxlabel(
            fill(note, int(1.25 * letters)), fontsize=9, color=QUIET, x=0.012, ha="left"
        )


def legend_below(figure: Figure, named: Mapping[str, Artist], note: str = "") -> None:
    """Name colours and marks below all plots, where nothing is covered, with a note above."""
    if not named:
        return
    letters = figure.get_size_inches()[0] * 72 / (0.6 * _STYLE["legend.fontsize"])
    columns = max(1, min(len(named), int(letters / (max(map(len, named)) + 7))))
    # Rows of equal lengths, since matplotlib fills columns.
    columns = -(-len(named) // -(-len(named) // columns))
    legend = figure.legend(
        list(named.values()),
        list(named),
        title=note,
        loc="outside lower left",
        ncols=columns,
        alignment="left",
    )
    legend.get_title().set(color=QUIET, fontsize=9)


def png(figure: Figure, about: str | None = None) -> bytes:
    """Return a figure as a small PNG of 256 colours.

    Parameters
    ----------
    figure
        The figure.
    about
        What the file says of itself.
    """
    drawn = io.BytesIO()
    with drawing():
        figure.savefig(drawn, format="png", dpi=RESOLUTION, facecolor="white")
    picture = Image.open(drawn).convert("RGB")
    picture = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    told = PngImagePlugin.PngInfo()
    if about is not None:
        told.add_text("Description", about)
    written = io.BytesIO()
    picture.save(written, "PNG", optimize=True, pnginfo=told, dpi=(RESOLUTION, RESOLUTION))
    return written.getvalue()


def save(figure: Figure, path: Path, ending: str) -> None:
    """Write a figure into a file, in the format of an ending such as ``.svg``."""
    if ending.lower() == ".png":
        path.write_bytes(png(figure))
        return
    with drawing():
        figure.savefig(path, format=ending.lower()[1:])


@dataclass(frozen=True)
class Named:
    """A name in a plot, and the place that it is of, in the plot's own units.

    Parameters
    ----------
    x, y
        The place.
    text, size
        The name, and how large it is written.
    colour, mark
        Of what is named: a name at the right of the plot has the mark before it, or a line to its
        place if there is none.
    """

    x: float
    y: float
    text: str
    colour: str = INK
    size: float = 9
    mark: str = ""


@dataclass
class Names:
    """The names of points and lines in a figure, placed when all of it is drawn.

    Parameters
    ----------
    figure
        Where they stand.
    """

    figure: Figure
    _ends: list[tuple[Axes, list[Named]]] = field(default_factory=list)
    _points: list[tuple[Axes, list[Named], float]] = field(default_factory=list)

    def at_ends(self, axes: Axes, named: Sequence[Named]) -> None:
        """Name lines at the right of a plot, each at the height of its end."""
        if named:
            self._ends.append((axes, list(named)))

    def at_points(self, axes: Axes, named: Sequence[Named], *, above: float = -np.inf) -> None:
        """Name points beside them, where neither points, lines nor other names are.

        Parameters
        ----------
        axes, named
            Where, and what.
        above
            The height in the plot's units that no name stands below.
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
    leading = {
        "arrowstyle": "-",
        "linewidth": 0.9,
        "relpos": (0.0, 0.5),
        "shrinkA": 2,
        "shrinkB": 3,
    }
    return [
        axes.annotate(
            one.text,
            xy=(one.x, one.y),
            xytext=(1.0, 0.5),
            textcoords=_beside(axes, _ASIDE),
            ha="left",
            va="center",
            fontsize=one.size,
            annotation_clip=False,
            arrowprops=None if one.mark else {**leading, "color": one.colour},
        )
        for one in named
    ]


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


def heights(
    wanted: NDArray[np.float64], sizes: NDArray[np.float64], room: float
) -> NDArray[np.float64]:
    """Return (p,) the centres of intervals that do not overlap, nearest to where they should be.

    Parameters
    ----------
    wanted, sizes
        (p,) centres and lengths.
    room
        They lie between 0 and this, if their lengths do not add up to more.
    """
    # Of equal heights the first stands on top.
    order = np.argsort(wanted[::-1], kind="stable")
    order = len(wanted) - 1 - order
    lengths = sizes[order]
    below = np.cumsum(lengths) - lengths / 2
    # Without their lengths the intervals are points that keep their order.
    free = isotonic_regression(wanted[order] - below).x
    found: NDArray[np.float64] = np.empty(len(order))
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
        axes.annotate(
            one.text,
            xy=(one.x, one.y),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=one.size,
            color=one.colour,
            annotation_clip=False,
            zorder=6,
        )
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


def _dots(axes: Axes, places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (p, 2) where places of a plot are in its picture."""
    return np.asarray(axes.transData.transform(places), np.float64)


def _drawn_in(axes: Axes) -> NDArray[np.float64]:
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


def beside(
    anchors: NDArray[np.float64],
    sizes: NDArray[np.float64],
    lines: NDArray[np.float64],
    window: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return (p, 2) where the centres of boxes stand from their points.

    Each box takes the cheapest of 40 places about its point, those of the most crowded points
    first; then each moves while that makes it cheaper, so that the sum of the costs falls.

    Parameters
    ----------
    anchors, sizes
        (p, 2) points, and widths and heights of the boxes.
    lines
        (q, 2) places that had better not be covered.
    window
        (4,) left, low, right and high end of where boxes may stand.
    """
    ways = np.tile(_WAYS, (len(_STEPS), 1))
    steps = np.repeat(_STEPS, len(_WAYS))
    stride = ways * (steps / np.hypot(*ways.T))[:, None]
    moves: NDArray[np.float64] = ways * sizes[:, None] / 2 + stride
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
    found: NDArray[np.float64] = moves[np.arange(len(anchors)), chosen]
    return found


def _inside(
    points: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return (b,) how many points lie in each box."""
    within = (low[:, None] < points) & (points < high[:, None])
    return np.asarray(np.count_nonzero(within.all(axis=2), axis=1), np.int64)
