"""Pictures for notebooks and papers: boxes, covers as graphs, bounds, solves, loss against time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.experiments.names import Named, one_plot
from anonymip.experiments.style import (
    BOUND,
    INK,
    OPTIMUM,
    PAINT,
    QUIET,
    SINGLE,
    Look,
    Picture,
    drawing,
    headline,
    logarithmic,
    looks_of,
)
from anonymip.experiments.summaries import drawn_front
from anonymip.graphs import degree_of, random_matchings
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Progress
from anonymip.solution import Solution, bound_text
from anonymip.solving import solve

_MOST_NAMED = 40  # points that are named by the numbers of their records, at most
#: How far a box stands off its records, and equal boxes off each other, as shares of the picture.
_MARGIN, _STEP = 0.015, 0.008
_NEAR = 0.025  # points as near as that share of the picture lie on each other
#: Colours of classes, of covers' boxes and of assignments, one after the other.
_COLOURS = [
    PAINT[name] for name in ("blue", "vermillion", "green", "purple", "sky", "gold", "pink")
]


def boxes(solution: Solution, x: str, y: str) -> Picture:
    """Return the records as points, and what is published of them as boxes [1]_.

    `solution`: classes have a box each, of one colour with its records. The records of a cover have
    a box each, of one colour with its record. Cells that are stars have none. `x, y`: two
    attributes that are published as ranges. Raises InputError if an attribute is none of the
    table's, or is not published as a range.

    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Fig. 2.
    """
    chosen = [_column(solution, name) for name in (x, y)]
    cells, assignment = solution.description, solution.assignment
    points = solution.problem.microdata.values[:, chosen]  # noqa: PD011 - of records, no frame
    lower, upper = cells.lower[:, chosen], cells.upper[:, chosen]
    shown = np.flatnonzero(~cells.suppressed[:, chosen].any(axis=1))
    groups = np.arange(len(points)) if solution.classes is None else solution.classes.labels
    colours = [_paint(int(group)) if group >= 0 else QUIET for group in groups]
    ends = np.concatenate([points, lower[shown], upper[shown]])
    span = np.maximum(np.ptp(ends, axis=0), 1e-9)
    each = "record" if isinstance(assignment, Cover) else "class"
    loss = solution.objective / solution.scale
    with one_plot() as (picture, axes, names):
        axes.scatter(points[:, 0], points[:, 1], c=colours, s=34, zorder=3)
        # All records of a class are published with one box.
        _, firsts = np.unique(groups, return_index=True)
        drawn: dict[tuple[float, ...], int] = {}
        for row in np.intersect1d(firsts, shown):
            corners = (*lower[row].tolist(), *upper[row].tolist())
            drawn[corners] = drawn.get(corners, -1) + 1
            margin = (_MARGIN + _STEP * drawn[corners]) * span
            low, high = lower[row] - margin, upper[row] + margin
            box = Rectangle(
                (low[0], low[1]),
                *(high - low),
                facecolor=(colours[row], 0.1),
                edgecolor=colours[row],
                linewidth=1.3,
            )
            axes.add_patch(box)
        axes.margins(0.08)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_title(f"k = {solution.problem.k}: a box a {each}, loss {loss:.4g}")
        names.at_points(axes, _numbers(points, span))
    return picture


def _numbers(points: Floats, span: Floats) -> list[Named]:
    """Return the numbers of the records at their points, those that lie on each other together."""
    _, first, inverse = np.unique(
        np.round(points / (_NEAR * span)), axis=0, return_index=True, return_inverse=True
    )
    if len(first) > _MOST_NAMED:
        return []
    together = [np.flatnonzero(inverse.ravel() == number) for number in range(len(first))]
    return [
        Named(place[0], place[1], ", ".join(map(str, records)), size=8)
        for place, records in zip(points[first], together, strict=True)
    ]


def _column(solution: Solution, name: str) -> int:
    attributes = solution.problem.microdata.attributes
    ranges = [attribute.name for attribute in attributes if attribute.publish == "range"]
    if name not in ranges:
        raise InputError(
            f"{name!r} is no attribute that is published as a range",
            remedy=f"Name two of {', '.join(ranges)}" if ranges else "Choose another table",
        )
    return solution.problem.microdata.names.index(name)


MOST_RECORDS = 40  # records of a graph that can be read
_RING = 1.14  # how far from the middle the ring of a node stands that its own set holds


def cover_graph(cover: Cover, names: Sequence[str] | None = None, *, seed: int = 0) -> Picture:
    """Return the graph of published rows and the records that they cover, in two views [1]_.

    On the left the unified view: a record and its row are one node, and an arrow leads from the row
    to each other record of its set; a ring stands for the record itself. On the right rows and
    records are apart. The edges of a regular cover are of k colours: each colour is an assignment
    of all records to the rows. `cover`: of at most :data:`MOST_RECORDS` records. `names`: (n,) what
    records are called; None numbers them. `seed`: of the choice of the assignments. Raises
    InputError if there are too many records, or the names are not as many.

    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 2.1.
    """
    if cover.n > MOST_RECORDS:
        raise InputError(
            f"a graph of {cover.n} records cannot be read", remedy=f"Draw at most {MOST_RECORDS}"
        )
    named = [str(record) for record in range(cover.n)] if names is None else list(names)
    if len(named) != cover.n:
        raise InputError(f"{len(named)} names for {cover.n} records", remedy="Give one each")
    colours = _colours(cover, seed)
    # A node has the same size in a graph of any number of records.
    side = max(4.2, 0.36 * cover.n)
    with drawing():
        picture = Picture(figsize=(1.9 * side, side), layout="constrained")
        unified, bipartite = picture.subplots(1, 2, width_ratios=(1.2, 0.7))
        _draw_unified(unified, cover, named, colours)
        _draw_bipartite(bipartite, cover, named, colours)
    return picture


def _colours(cover: Cover, seed: int) -> Ints:
    """Return (edges,) the assignment that each edge belongs to; 0 if the cover is not regular."""
    found = np.zeros(len(cover.members), np.int64)
    degree = degree_of(cover)
    if degree is not None:
        matchings = random_matchings(cover, degree, np.random.default_rng(seed))
        for number, matching in enumerate(matchings):
            found[cover.members == matching[cover.owners]] = number
    return found


def _paint(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _draw_unified(axes: Axes, cover: Cover, names: list[str], colours: Ints) -> None:
    angles = np.pi / 2 - 2 * np.pi * np.arange(cover.n) / cover.n
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    for row, record, colour in zip(cover.owners, cover.members, colours, strict=True):
        if row == record:
            axes.plot(*(_RING * places[row]), "o", ms=13, mfc="none", mec=_paint(colour), mew=1.5)
            continue
        arrow = FancyArrowPatch(
            (places[row, 0], places[row, 1]),
            (places[record, 0], places[record, 1]),
            arrowstyle="-|>",
            mutation_scale=12,
            # Bent, so that two rows that cover each other's records have two arrows.
            connectionstyle="arc3,rad=0.12",
            shrinkA=10,
            shrinkB=10,
            color=_paint(colour),
            lw=1.5,
        )
        axes.add_patch(arrow)
    _draw_nodes(axes, places, names)
    axes.set_aspect("equal")
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_axis_off()
    axes.set_title("an arrow from each row to the records of its set", loc="center")


def _draw_bipartite(axes: Axes, cover: Cover, names: list[str], colours: Ints) -> None:
    heights = -np.arange(cover.n, dtype=np.float64)
    for row, record, colour in zip(cover.owners, cover.members, colours, strict=True):
        axes.plot([0, 1], [heights[row], heights[record]], color=_paint(colour), lw=1.5)
    for side in (0.0, 1.0):
        _draw_nodes(axes, np.column_stack([np.full(cover.n, side), heights]), names)
    axes.text(0, 0.8, "rows", ha="center")
    axes.text(1, 0.8, "records", ha="center")
    axes.set_xlim(-0.25, 1.25)
    axes.set_ylim(heights[-1] - 0.7, 1.3)
    axes.set_axis_off()
    axes.set_title("rows and records apart", loc="center")


def _draw_nodes(axes: Axes, places: Floats, names: list[str]) -> None:
    axes.plot(places[:, 0], places[:, 1], "o", ms=18, mfc="white", mec=INK, zorder=3, ls="")
    for place, name in zip(places, names, strict=True):
        axes.text(place[0], place[1], name, ha="center", va="center", fontsize=9, zorder=4)


def bound_bars(
    bounds: Mapping[str, float], optimum: float, *, title: str = "", unit: str = "loss"
) -> Picture:
    """Return a bar for each bound, with its share of the optimum, and the optimum as a line.

    `bounds`: lower bounds by what they are of, such as the relaxations of formulations. `optimum`:
    proven optimum, or the least loss known. `title, unit`: of the picture, and of the numbers.
    Raises InputError if there is no bound.
    """
    if not bounds:
        raise InputError("there is no bound to draw", remedy="Give one at least")
    places = range(len(bounds))
    with drawing():
        picture = Picture(figsize=(SINGLE[0], 1.1 + 0.4 * len(bounds)), layout="constrained")
        axes = picture.add_subplot()
        axes.barh(places, list(bounds.values()), height=0.6, color=BOUND, alpha=0.85)
        axes.axvline(optimum, color=OPTIMUM, linewidth=2.5)
        # Above the plot, where no bar is; at the side that holds its words.
        axes.text(
            optimum,
            1.0,
            f"optimum {optimum:.4g} ",
            transform=axes.get_xaxis_transform(),
            ha="right" if optimum > 0 else "left",
            va="bottom",
        )
        axes.set_yticks(places, [_name(name, value, optimum) for name, value in bounds.items()])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        if title:
            headline(picture, title)
    return picture


def _name(name: str, bound: float, optimum: float) -> str:
    share = "" if optimum == 0 else f" ({bound / optimum:.0%})"
    return f"{name}: {bound_text(bound)}{share}"


@dataclass(frozen=True)
class SolveHistory:
    """A solution, and what its method reported on the way.

    `frame`: a row a message, in order, and one for the end: ``seconds`` since the start,
    compilation included, ``phase``, ``incumbent`` and ``bound``; missing where a message does not
    say.
    """

    solution: Solution
    frame: pd.DataFrame


def solve_with_history(problem: Problem, method: str = "auto", **settings: Any) -> SolveHistory:
    """Solve a problem as :func:`anonymip.solve` does, and keep its progress messages.

    `problem, method, settings`: as `solve` takes them.

    >>> import anonymip
    >>> problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    >>> history = solve_with_history(problem, "equivalence-mip")
    >>> history.solution.is_optimal
    True
    >>> bool(history.frame["incumbent"].iloc[-1] == history.solution.objective)
    True
    """
    rows: list[tuple[float, str, float | None, float | None]] = []
    listener = settings.pop("progress", None)
    began = time.perf_counter()

    def keep(message: Progress) -> None:
        seconds = time.perf_counter() - began
        rows.append((seconds, message.phase, message.incumbent, message.bound))
        if listener is not None:
            listener(message)

    solution = solve(problem, method, progress=keep, **settings)
    bound = None if solution.bound is None else solution.bound.value
    rows.append((time.perf_counter() - began, "end", solution.objective, bound))
    frame = pd.DataFrame(rows, columns=["seconds", "phase", "incumbent", "bound"])
    return SolveHistory(solution, frame.astype({"incumbent": "float64", "bound": "float64"}))


def solves_over_time(histories: Mapping[str, SolveHistory]) -> Picture:
    """Return incumbents (lines) and bounds (dashes) of solves over time, a colour a solve.

    `histories`: by name; of one objective and table, so that their losses can be compared. Raises
    InputError if there is none, or their losses are not in one unit.
    """
    units = {
        (one.solution.problem.objective.name, one.solution.scale) for one in histories.values()
    }
    if len(units) != 1:
        raise InputError(
            f"{len(histories)} histories with {len(units)} units of loss in one picture",
            remedy="Draw solves of one table and objective",
        )
    ((objective, scale),) = units
    looks = looks_of(histories)
    with one_plot() as (picture, axes, names):
        named = []
        for name, history in histories.items():
            colour = looks[name].colour
            for column, style in (("incumbent", "-"), ("bound", "--")):
                told, text = history.frame.dropna(subset=[column]), f"{name}: {column}"
                losses = told[column] / scale
                axes.step(told["seconds"], losses, style, where="post", color=colour, label=text)
                if len(told) and not (column == "bound" and history.solution.is_optimal):
                    end = told.iloc[-1]
                    named.append(Named(end["seconds"], end[column] / scale, text, colour, mark="_"))
            if history.solution.is_optimal:
                end = history.frame.iloc[-1]
                loss = end["incumbent"] / scale
                text = f"{name}: proven optimal"
                axes.plot(end["seconds"], loss, looks[name].mark, color=colour, label=text)
                named[-1] = Named(end["seconds"], loss, text, colour, mark=looks[name].mark)
        axes.set_xlabel("seconds")
        axes.set_ylabel(f"loss ({'global certainty penalty' if scale != 1 else objective})")
        axes.set_title("whole lines: best release known; dashed: proven bound")
        axes.grid(axis="y")
        names.at_ends(axes, named)
    return picture


def loss_against_time(
    front: pd.DataFrame, *, loss: str = "loss", time: str = "seconds", title: str = ""
) -> Picture:
    """Return a point for each method, those that none beats in both joined by a line.

    `front`: as :func:`anonymip.experiments.summaries.pareto_front` returns it, of one table and k:
    columns ``label``, `loss`, `time` and ``on_front``. `loss, time`: columns of the axes, and their
    names; the time is drawn on a logarithmic scale. `title`: of the picture. Raises InputError if
    no time is above 0.
    """
    points, joined = drawn_front(front, time=time)
    if points.empty:
        raise InputError(f"no {time!r} is above 0", remedy="Run the methods first")
    with one_plot() as (picture, axes, names):
        named = draw_front(axes, points, joined, loss=loss, time=time)
        axes.set_xlabel(time)
        axes.set_ylabel(loss)
        if title:
            headline(picture, title)
        names.at_points(axes, named)
    return picture


def draw_front(
    axes: Axes,
    points: pd.DataFrame,
    joined: pd.DataFrame,
    *,
    loss: str,
    time: str,
    looks: Mapping[str, Look] | None = None,
) -> list[Named]:
    """Draw points of methods over a logarithmic axis of time, and return their names.

    `axes`: where; nothing is named there yet. `points, joined`: as
    :func:`anonymip.experiments.summaries.drawn_front` returns them. `loss, time`: their columns.
    `looks`: of their labels; None looks them up.
    """
    looks = looks or looks_of(points["label"])
    axes.plot(joined[time], joined[loss], color=QUIET, linewidth=1.2, zorder=1)
    named = []
    for row in points.to_dict("records"):
        label = str(row["label"])
        look = looks[label]
        axes.plot(row[time], row[loss], **look.dots, markersize=7, label=label)
        named.append(Named(row[time], row[loss], label))
    logarithmic(axes, "x")
    axes.margins(x=0.1, y=0.1)
    axes.grid(visible=True)
    return named
