"""Tests of the pictures for notebooks and papers."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import FancyArrowPatch, Rectangle
from PIL import Image

from anonymip import (
    Cover,
    Freeform,
    InputError,
    Mask,
    PatternGuided,
    Problem,
    Solution,
    compare,
    load_instance,
)
from anonymip.experiments.pictures import (
    bound_bars,
    boxes,
    cover_graph,
    loss_against_time,
    solve_with_history,
    solves_over_time,
)
from anonymip.experiments.style import LOOKS
from anonymip.experiments.thermometer import thermometer
from anonymip.runtime.budget import Progress
from tests.by_hand import by_classes, by_patterns, table_of
from tests.experiments.test_style import shown_names

PEOPLE = table_of(
    {"age": [20, 22, 40, 44], "income": [10, 30, 20, 60], "sex": ["F", "F", "M", "M"]}
)
RING = Cover.of([[0, 1], [1, 2], [2, 3], [0, 3]])


def classes(labels: Sequence[int]) -> Solution:
    """Return a solution by classes of the four people."""
    return by_classes(Problem(PEOPLE, k=2), labels)


def cover() -> Solution:
    """Return a solution by the ring of the four people."""
    return Solution.of(Problem(PEOPLE, k=2, recoding=Freeform()), RING, method="test")


def rectangles(axes: Axes) -> list[Rectangle]:
    """Return the boxes in a picture."""
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def encloses(box: Rectangle, records: Sequence[int]) -> bool:
    """Return whether a box holds the points of these records and of no others."""
    (left, low), (right, high) = box.get_bbox().get_points()
    age, income = PEOPLE.frame["age"], PEOPLE.frame["income"]
    inside = (left < age) & (age < right) & (low < income) & (income < high)
    return np.flatnonzero(inside).tolist() == list(records)


@pytest.mark.thorough
def test_notebooks_show_pictures_by_themselves() -> None:
    """Pictures, the thermometer too, hand a notebook a PNG without pyplot."""
    table = compare(Problem(load_instance("health-records"), k=3), [3], ["initial"])
    for picture in (thermometer(table), boxes(classes([0, 0, 1, 1]), "age", "income")):
        data, size = picture._repr_png_()
        assert data.startswith(b"\x89PNG")
        # As large as before on the page, with twice the dots.
        assert Image.open(io.BytesIO(data)).width > 1.9 * size["width"]


def test_each_class_has_a_box_around_its_records() -> None:
    """The box holds the points of the class, in one colour with them."""
    (axes,) = boxes(classes([0, 0, 1, 1]), "age", "income").axes
    first, second = rectangles(axes)
    assert encloses(first, [0, 1])
    assert encloses(second, [2, 3])
    colours = axes.collections[0].get_facecolor()
    assert first.get_edgecolor() == tuple(colours[0]) == tuple(colours[1])
    assert second.get_edgecolor() == tuple(colours[2]) != first.get_edgecolor()
    assert {text.get_text() for text in axes.texts} == {"0", "1", "2", "3"}


def test_each_record_of_a_cover_has_a_box() -> None:
    """There are as many boxes as records, each around its set, and the title says the loss."""
    solution = cover()
    (axes,) = boxes(solution, "age", "income").axes
    found = rectangles(axes)
    assert len(found) == 4
    assert encloses(found[0], [0, 1])
    # Income 20 to 60 and age 40 to 44 hold no third record; 20 to 44 and 10 to 60 hold all.
    assert encloses(found[2], [2, 3])
    assert encloses(found[3], [0, 1, 2, 3])
    assert f"{solution.gcp:.4g}" in axes.get_title(loc="left")


def test_equal_boxes_are_nested() -> None:
    """Boxes of equal corners stand off each other, so that each can be counted."""
    problem = Problem(PEOPLE, k=2, recoding=Freeform())
    twice = Cover.of([[0, 1], [0, 1], [2, 3], [2, 3]])
    (axes,) = boxes(Solution.of(problem, twice, method="test"), "age", "income").axes
    one, two, *_ = rectangles(axes)
    assert two.get_width() > one.get_width()
    assert two.get_x() < one.get_x()


def test_stars_have_no_box() -> None:
    """What is published as stars in one of the two attributes is a point without a box."""
    mask = Mask(allow_all_stars=True, never=("sex",))
    starred = int(np.flatnonzero(mask.stars(PEOPLE.names).all(axis=1))[0])
    problem = Problem(PEOPLE, k=2, recoding=PatternGuided(mask))
    solution = by_patterns(problem, np.full(4, starred))
    assert solution.description.suppressed[:, 0].all()
    (axes,) = boxes(solution, "age", "income").axes
    assert rectangles(axes) == []


def test_attributes_without_ranges_are_refused() -> None:
    """A set of categories has no place on an axis; the message names those that have."""
    with pytest.raises(InputError, match=r"'sex'.*age, income"):
        boxes(classes([0, 0, 1, 1]), "age", "sex")


def test_the_graph_has_all_edges_in_both_views() -> None:
    """An arrow for each edge to another record, a ring for one's own; k colours at each node."""
    unified, bipartite = cover_graph(RING, ["a", "b", "c", "d"]).axes
    assert len([patch for patch in unified.patches if isinstance(patch, FancyArrowPatch)]) == 4
    edges = [line for line in bipartite.lines if len(np.asarray(line.get_xdata())) == 2]
    ends = {
        tuple(-int(y) for y in np.asarray(line.get_ydata())): to_rgba(line.get_color())
        for line in edges
    }
    assert set(ends) == {(row, record) for row in range(4) for record in RING.of_record(row)}
    for node in range(4):
        assert len({colour for (row, _), colour in ends.items() if row == node}) == 2
        assert len({colour for (_, record), colour in ends.items() if record == node}) == 2
    assert [text.get_text() for text in unified.texts] == ["a", "b", "c", "d"]


def test_graphs_that_are_not_regular_have_one_colour() -> None:
    """Where the edges do not fall into assignments, none is made up."""
    _, bipartite = cover_graph(Cover.of([[0, 1, 2], [1], [0, 2]])).axes
    edges = [line for line in bipartite.lines if len(np.asarray(line.get_xdata())) == 2]
    assert len(edges) == 6
    assert len({to_rgba(line.get_color()) for line in edges}) == 1


def test_graphs_that_nobody_reads_are_refused() -> None:
    """Too many records, or names for others, are bad input."""
    with pytest.raises(InputError, match="41 records"):
        cover_graph(Cover.of([[row] for row in range(41)]))
    with pytest.raises(InputError, match="2 names for 4 records"):
        cover_graph(RING, ["a", "b"])


def test_bounds_are_bars_with_their_share_of_the_optimum() -> None:
    """Each bar is as long as its bound, and says how much of the optimum it is."""
    (axes,) = bound_bars({"big-M": 1.0, "hull": 3.0}, 4.0).axes
    assert [bar.get_width() for bar in rectangles(axes)] == [1.0, 3.0]
    named = [label.get_text() for label in axes.get_yticklabels()]
    assert named == ["big-M: 1 (25%)", "hull: 3 (75%)"]
    assert float(np.asarray(axes.lines[0].get_xdata())[0]) == 4.0
    with pytest.raises(InputError, match="no bound"):
        bound_bars({}, 4.0)


def test_a_history_ends_with_the_solution() -> None:
    """The last row is what the solve returned; what it reported before stands above in order."""
    heard: list[Progress] = []
    problem = Problem(load_instance("health-records"), k=3)
    history = solve_with_history(problem, "equivalence-mip", progress=heard.append)
    solution, frame = history.solution, history.frame
    assert solution.bound is not None
    assert frame["phase"].tolist() == [*(message.phase for message in heard), "end"]
    end = frame.iloc[-1]
    assert (end["incumbent"], end["bound"]) == (solution.objective, solution.bound.value)
    assert frame["seconds"].is_monotonic_increasing
    assert (frame["incumbent"].dropna() >= solution.objective - 1e-9).all()


def test_histories_are_drawn_in_the_unit_of_texts() -> None:
    """Incumbent and bound are steps that meet at the proven optimum; units are not mixed."""
    problem = Problem(load_instance("health-records"), k=3)
    history = solve_with_history(problem, "equivalence-mip")
    (axes,) = solves_over_time({"HiGHS": history}).axes
    incumbent, bound, proven = (line for line in axes.lines if ": " in str(line.get_label()))
    for line in (incumbent, bound, proven):
        last = float(np.asarray(line.get_ydata())[-1])
        assert last == pytest.approx(history.solution.gcp, abs=1e-12)
    other = solve_with_history(Problem(PEOPLE, k=2), "mondrian")
    with pytest.raises(InputError, match="2 units"):
        solves_over_time({"one": history, "two": other})


def test_only_methods_that_none_beats_are_joined() -> None:
    """The line of loss against time leads through the front, in the order of time."""
    front = pd.DataFrame(
        {
            "label": ["slow", "beaten", "fast"],
            "loss": [1.0, 3.0, 2.0],
            "seconds": [5.0, 4.0, 0.1],
            "on_front": [True, False, True],
        }
    )
    (axes,) = loss_against_time(front).axes
    assert np.asarray(axes.lines[0].get_xdata()).tolist() == [0.1, 5.0]
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == [2.0, 1.0]
    assert [line.get_label() for line in axes.lines[1:]] == ["slow", "beaten", "fast"]
    assert {text.get_text() for text in axes.texts} == {"slow", "beaten", "fast"}
    with pytest.raises(InputError, match="above 0"):
        loss_against_time(front.assign(seconds=0.0))


def test_numbers_of_records_lie_beside_each_other() -> None:
    """Names of points that stand near each other cover no other name."""
    near = table_of({"age": [20, 21, 21, 22, 22, 40], "income": [10, 10, 11, 10, 11, 90]})
    solution = by_classes(Problem(near, k=2), [0, 0, 0, 1, 1, 1])
    picture = boxes(solution, "age", "income")
    shown_names(picture)
    assert {text.get_text() for text in picture.axes[0].texts} == set("012345")


def test_methods_look_alike_in_all_pictures() -> None:
    """A method has the colour and the mark of its table in each picture that shows it."""
    look = LOOKS["initial"]
    table = compare(Problem(load_instance("health-records"), k=3), [3], ["k-member", "initial"])
    front = pd.DataFrame(
        {"label": ["initial"], "loss": [1.0], "seconds": [5.0], "on_front": [True]}
    )
    for picture in (thermometer(table), loss_against_time(front)):
        (line,) = (one for one in picture.axes[0].lines if one.get_label() == "initial")
        assert (line.get_color(), line.get_marker()) == (look.colour, look.mark)
