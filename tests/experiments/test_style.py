"""Tests of the style: looks of methods, colours for all eyes, and names that cover nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray

from anonymip.experiments import style
from anonymip.experiments.names import Named, Names, beside, heights
from anonymip.experiments.style import (
    COLOURS,
    LOOKS,
    Picture,
    drawing,
    headline,
    legend_below,
    looks_of,
)
from anonymip.methods.built_in import BUILT_IN

#: What eyes without one kind of cones see of linear RGB: G. Machado, M. Oliveira, L. Fernandes,
#: A Physiologically-based Model for Simulation of Color Vision Deficiency, IEEE Transactions on
#: Visualization and Computer Graphics 15, 2009, Table 1, severity 1.
EYES = {
    "all": np.eye(3),
    "no red": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> NDArray[np.float64]:
    """Return the linear RGB of a colour."""
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(colour: str, eyes: str) -> NDArray[np.float64]:
    """Return a colour in CIELAB, as some eyes see it."""
    xyz = TO_XYZ @ np.clip(EYES[eyes] @ linear(colour), 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it: 1 to 21."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def shown_names(figure: Figure) -> list[tuple[str, NDArray[np.float64]]]:
    """Return the texts of a figure with their boxes in dots; none is cut off or covers another."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    texts = [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text) and text.get_text() and text.get_visible()
    ]
    ticks = {
        tick: low <= tick.get_position()[way] <= high
        for axes in figure.axes
        for way, axis in enumerate((axes.xaxis, axes.yaxis))
        for low, high in [sorted(axis.get_view_interval())]
        for tick in axis.get_ticklabels(which="both")
    }
    found = []
    width, height = figure.bbox.width, figure.bbox.height
    for text in texts:
        box = np.asarray(Text.get_window_extent(text, renderer).extents)
        if not ticks.get(text, True):
            continue  # behind the end of its axis, and not drawn
        assert (box >= -1).all(), text.get_text()
        assert box[2] <= width + 1, text.get_text()
        assert box[3] <= height + 1, text.get_text()
        found.append((text.get_text(), box))
    for (one, a), (other, b) in combinations(found, 2):
        over = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
        assert not (over > 1).all(), f"{one!r} and {other!r} cover each other"
    return sorted(found, key=lambda item: -item[1][3])


def test_every_method_has_a_look_of_its_own() -> None:
    """No two methods of the table have both colour and mark in common; all others have a look."""
    assert set(LOOKS) <= set(BUILT_IN)
    assert len({(look.name, look.mark) for look in LOOKS.values()}) == len(LOOKS)
    assert len(set(looks_of(BUILT_IN).values())) == len(BUILT_IN)
    assert {look.name for look in LOOKS.values()} <= set(COLOURS)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("eyes", EYES)
def test_colours_differ_for_all_eyes(theme: int, eyes: str) -> None:
    """The colours of methods are apart in CIELAB, and stand out from their paper."""
    paint = {name: shades[theme] for name, shades in COLOURS.items()}
    paper = ("#ffffff", "#14181f")[theme]
    assert all(contrast(colour, paper) > 2.3 for colour in paint.values())
    used = [paint[name] for name in dict.fromkeys(look.name for look in LOOKS.values())]
    for one, other in combinations(used, 2):
        assert np.linalg.norm(lab(one, eyes) - lab(other, eyes)) > 12, (one, other)


def test_a_method_that_is_not_in_the_table_has_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows from name and recoding alone, whatever else is in the picture."""
    before = looks_of(["ring"])["ring"]
    monkeypatch.setattr(style, "LOOKS", {name: LOOKS[name] for name in LOOKS if name != "ring"})
    look = looks_of(["mondrian", "ring"])["ring"]
    assert look == looks_of(["ring"])["ring"] == style.look_of("ring")
    assert look.line == before.line
    assert (look.name, look.mark) not in {(one.name, one.mark) for one in LOOKS.values()}
    assert looks_of(["ring (a variant)"])["ring (a variant)"] == look


def test_labels_look_like_their_methods() -> None:
    """Names of papers and variants have the colour of the method; all of a picture differ."""
    names = ["NH", "optimum", "split-carry S=3", "split-carry S=4", "nh", "mine", "yours"]
    looks = looks_of(names)
    assert looks["NH"] == LOOKS["nh"]
    assert looks["optimum"] == LOOKS["column-generation"]
    assert looks["split-carry S=3"] == LOOKS["split-carry"]
    assert looks["split-carry S=4"].name == LOOKS["split-carry"].name
    assert len(set(looks.values())) == len(names)
    taken = {(look.name, look.mark) for look in LOOKS.values()}
    assert not {(looks[name].name, looks[name].mark) for name in ("mine", "yours")} & taken
    assert looks_of(["greedy-search"])["greedy-search"] == LOOKS["greedy-search"]
    # There are more labels than looks of any kind only where nobody can tell them apart.
    many = [f"method {number}" for number in range(90)]
    assert len(set(looks_of(many).values())) == 90


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(-50, 450), st.floats(5, 30)), min_size=1, max_size=9))
def test_names_at_ends_keep_apart(drawn: list[tuple[float, float]]) -> None:
    """They do not overlap, stand within the plot where they fit, and keep their order."""
    wanted, sizes = np.array(drawn).T
    room = 400.0
    found = heights(wanted, sizes, room)
    order = np.argsort(found)
    gaps = np.diff(found[order]) - (sizes[order][1:] + sizes[order][:-1]) / 2
    assert (gaps >= -1e-9).all()
    assert found.min() - sizes[order][0] / 2 >= -1e-9
    assert found.max() + sizes[order][-1] / 2 <= max(room, sizes.sum()) + 1e-9
    for one, other in combinations(range(len(wanted)), 2):
        if wanted[one] < wanted[other]:
            assert found[one] < found[other]


def test_names_at_ends_stay_where_nothing_is_in_the_way() -> None:
    """A name that has room stands at its line; of equal heights the first stands on top."""
    found = heights(np.array([50.0, 200.0, 200.0]), np.array([10.0, 10.0, 10.0]), 300.0)
    assert found.tolist() == [50.0, 205.0, 195.0]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12, unique=True)
)
def test_names_of_points_cover_nothing(cells: list[tuple[int, int]]) -> None:
    """Where points have room, no name covers a point or a name, or leaves the plot."""
    anchors = np.array(cells, float) * [90.0, 40.0] + 60.0
    sizes = np.tile([50.0, 11.0], (len(cells), 1))
    window = np.array([0.0, 0.0, 720.0, 400.0])
    centres = anchors + beside(anchors, sizes, np.zeros((0, 2)), window)
    low, high = centres - sizes / 2, centres + sizes / 2
    assert (low >= window[:2]).all()
    assert (high <= window[2:]).all()
    for one in range(len(cells)):
        assert not ((low[one] < anchors) & (anchors < high[one])).all(axis=1).any()
        for other in range(one):
            assert not ((low[one] < high[other]) & (low[other] < high[one])).all()


def test_a_name_avoids_lines() -> None:
    """A line that leads to the right of a point sends its name elsewhere."""
    line = np.column_stack([np.arange(100.0, 200.0, 3.0), np.full(34, 100.0)])
    (offset,) = beside(
        np.array([[100.0, 100.0]]),
        np.array([[40.0, 10.0]]),
        line,
        np.array([0.0, 0.0, 300.0, 200.0]),
    )
    assert offset[0] <= 0 or abs(offset[1]) > 5


def test_long_titles_and_legends_are_not_cut() -> None:
    """Titles break into lines, legends have as many columns as fit, names keep apart."""
    with drawing():
        figure = Picture(figsize=(5.0, 4.0), layout="constrained")
        axes = figure.add_subplot()
        lines = {
            f"a method of a long name, number {number}": axes.plot([0, 1], [0, 1])[0]
            for number in range(5)
        }
        headline(figure, "a title of very many words " * 6, "")
        legend_below(figure, lines, "and a note at the foot")
        names = Names(figure)
        names.at_ends(axes, [Named(1.0, 1.0, f"line {number}") for number in range(6)])
        names.at_points(axes, [Named(0.5, 0.5, f"point {number}") for number in range(3)])
        names.settle()
    ticks = [text for text, _ in shown_names(figure) if text.replace(".", "").isdigit()]
    assert len(shown_names(figure)) - len(ticks) == 2 + 5 + 6 + 3
