"""What is published of two attributes, as boxes: of a class one, of a cover one a record."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Rectangle

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.experiments.pictures.picture import Picture
from anonymip.solution import Solution

#: Points that are named by the numbers of their records, at most.
_MOST_NAMED = 40
#: How far a box stands off its records, and equal boxes off each other, as shares of the picture.
_MARGIN, _STEP = 0.015, 0.008
#: Points as near as that share of the picture lie on each other.
_NEAR = 0.025
_COLOURS = 10


def boxes(solution: Solution, x: str, y: str) -> Picture:
    """Return the records as points, and what is published of them as boxes [1]_.

    Parameters
    ----------
    solution
        Classes have a box each, of one colour with its records. The records of a cover have a box
        each, of one colour with its record. Cells that are stars have none.
    x, y
        Two attributes that are published as ranges.

    Raises
    ------
    InputError
        If an attribute is none of the table's, or is not published as a range.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Fig. 2.
    """
    chosen = [_column(solution, name) for name in (x, y)]
    cells, assignment = solution.description, solution.assignment
    points = solution.problem.microdata.values[:, chosen]
    lower, upper = cells.lower[:, chosen], cells.upper[:, chosen]
    shown = np.flatnonzero(~cells.suppressed[:, chosen].any(axis=1))
    groups = np.arange(len(points)) if solution.classes is None else solution.classes.labels
    colours = [f"C{group % _COLOURS}" if group >= 0 else "grey" for group in groups]
    ends = np.concatenate([points, lower[shown], upper[shown]])
    span = np.maximum(np.ptp(ends, axis=0), 1e-9)
    picture = Picture(figsize=(5.6, 4.2), layout="constrained")
    axes = picture.add_subplot()
    axes.scatter(points[:, 0], points[:, 1], c=colours, s=28, zorder=3)
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
            facecolor=(colours[row], 0.12),
            edgecolor=colours[row],
        )
        axes.add_patch(box)
    # Points that lie on each other are named together.
    _, first, inverse = np.unique(
        np.round(points / (_NEAR * span)), axis=0, return_index=True, return_inverse=True
    )
    if len(first) <= _MOST_NAMED:
        for number, place in enumerate(points[first]):
            name = ", ".join(map(str, np.flatnonzero(inverse.ravel() == number)))
            axes.annotate(
                name, (place[0], place[1]), xytext=(4, 4), textcoords="offset points", fontsize=8
            )
    axes.margins(0.06)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    each = "record" if isinstance(assignment, Cover) else "class"
    loss = solution.objective / solution.scale
    axes.set_title(f"k = {solution.problem.k}: a box a {each}, loss {loss:.4g}")
    return picture


def _column(solution: Solution, name: str) -> int:
    attributes = solution.problem.microdata.attributes
    ranges = [attribute.name for attribute in attributes if attribute.publish == "range"]
    if name not in ranges:
        raise InputError(
            f"{name!r} is no attribute that is published as a range",
            remedy=f"Name two of {', '.join(ranges)}" if ranges else "Choose another table",
        )
    return solution.problem.microdata.names.index(name)
