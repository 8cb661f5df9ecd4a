"""The style of every picture: colours, one look a method, titles, legends, files.

Pictures of the package, of pages, notebooks, reproductions and benchmarks are drawn within
:func:`drawing`, take the looks of their methods from :func:`looks_of`, and leave the places of
names to :class:`anonymip.experiments.names.Names`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from textwrap import fill
from typing import Any
from zlib import crc32

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from PIL import Image, PngImagePlugin

from anonymip.methods import METHODS

RESOLUTION = 190  # dots an inch in files and notebooks
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

_INKED = (
    *("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"),
    *("xtick.color", "ytick.color", "grid.color"),
)
_STYLE: Any = {
    **mpl.rc_params_from_file(
        str(Path(__file__).with_name("pictures.mplstyle")), use_default_template=False
    ),
    **dict.fromkeys(_INKED, INK),
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
#: How methods are drawn whose looks were chosen, to be told apart where they are drawn together.
#: What proves has a star; no two share both colour and mark. Another method's look follows from its
#: name and recoding, see :func:`look_of`.
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
#: Looks that none of these methods has, for other names: neighbours differ in both.
_PLAIN = ("blue", "vermillion", "green", "purple", "sky", "gold")
_FREE = tuple(
    Look(name, mark)
    for name, mark in islice(
        zip(cycle(_PLAIN), cycle(_MARKS), strict=False), len(_PLAIN) * len(_MARKS)
    )
    if (name, mark) not in {(look.name, look.mark) for look in LOOKS.values()}
)


def look_of(method: str) -> Look:
    """Return how a method is drawn: as chosen, or else as no other is, by its name."""
    chosen = LOOKS.get(method)
    if chosen is not None:
        return chosen
    line = {"classes": _CLASSES, "freeform": _COVERS}.get(METHODS[method].recoding, _OTHERS)
    return replace(_FREE[crc32(method.encode()) % len(_FREE)], line=line)


def looks_of(labels: Iterable[str]) -> dict[str, Look]:
    """Return a look for each label, no two alike; a method looks the same in every picture.

    A label is a method's name, or begins with it (``split-carry S=3``): variants of one method
    share its colour. Other labels have looks that none of :data:`LOOKS` has. `labels`: all that one
    picture or page shows, in its order.
    """
    found: dict[str, Look] = {}
    for label in dict.fromkeys(map(str, labels)):
        name = _method_in(label)
        own = look_of(name) if name else None
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
    name = next((one for one in (*METHODS, *_ALSO) if one == told), None)
    if name is None:
        starts = [one for one in METHODS if told.startswith(one) and told[len(one)] in " ,:;(="]
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
    """Return a figure as a small PNG of 256 colours, which says `about` of itself."""
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
