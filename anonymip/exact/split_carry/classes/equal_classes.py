"""Which classes of a window are published with equal cells, and so are one class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.problem import Problem
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: How an attribute is published.
_RANGE, _SET, _NODE = 0, 1, 2
_MODES = {"range": _RANGE, "set": _SET, "node": _NODE}


class WindowCells(Packed):
    """The values of records by their places in the order, and how they are published.

    Parameters
    ----------
    codes
        (n, m) int32, codes by place; leaves where a node is published.
    modes
        (m,) int64, how an attribute is published.
    node_start, node_last, node_parent
        Of the attributes published as nodes: where their trees begin, the last leaf below each
        node, its parent.
    """

    codes: NDArray[np.int32]
    modes: NDArray[np.int64]
    node_start: NDArray[np.int64]
    node_last: NDArray[np.int64]
    node_parent: NDArray[np.int64]


def window_cells(problem: Problem, records: NDArray[np.int64]) -> WindowCells:
    """Return the cells of a problem whose records come in the given order."""
    microdata = problem.microdata
    codes = microdata.codes[records]
    modes = np.zeros(microdata.m, np.int64)
    starts, last, parent = np.zeros(microdata.m, np.int64), [-1], [-1]
    for a, attribute in enumerate(microdata.attributes):
        modes[a] = _MODES[str(attribute.publish)]
        if attribute.publish == "node" and attribute.hierarchy is not None:
            tree = attribute.hierarchy.tree
            codes[:, a] = microdata.leaves(a)[codes[:, a]]
            starts[a] = len(last)
            last += tree.last.tolist()
            parent += tree.parent.tolist()
    return WindowCells(
        np.ascontiguousarray(codes),
        modes,
        starts,
        np.array(last, np.int64),
        np.array(parent, np.int64),
    )


@kernel
def is_first(labels: NDArray[np.int64], begin: int, at: int) -> bool:
    """Return whether no row from `begin` on and before `at` has the label of `at`."""
    for before in range(begin, at):  # noqa: SIM110 - numba compiles no generators
        if labels[before] == labels[at]:
            return False
    return True


@kernel
def join_equal(
    cells: WindowCells,
    merged: bool,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    joint: NDArray[np.int64],
    marks: NDArray[np.int64],
) -> None:
    """Give the classes numbers in the order of first appearance, those of equal cells the same.

    Parameters
    ----------
    cells
        What is published of the rows.
    merged
        Whether equal cells count; else every class gets a number of its own.
    places, size, labels
        The window's rows, and their classes; -1 suppressed.
    joint
        (>= size,) receives the numbers; -1 suppressed.
    marks
        (>= size,) workspace.
    """
    held = 0
    for at in range(size):
        joint[at] = SUPPRESSED
        if labels[at] == SUPPRESSED:
            continue
        if not is_first(labels, 0, at):
            joint[at] = marks[labels[at]]
            continue
        # The first row of a class: marks hold the number that each class before it has got.
        found = -1
        if merged:
            # The first rows of all classes that are different so far: at most one has equal cells.
            for other in range(at):
                if (
                    labels[other] != SUPPRESSED
                    and is_first(joint, 0, other)
                    and _are_equal(cells, places, size, labels, labels[other], labels[at])
                ):
                    found = joint[other]
                    break
        if found < 0:
            found = held
            held += 1
        marks[labels[at]] = found
        joint[at] = found


@kernel
def _are_equal(
    cells: WindowCells,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    one: int,
    other: int,
) -> bool:
    """Return whether two classes are published with equal cells."""
    for a in range(len(cells.modes)):
        low, high = _ends(cells, places, size, labels, one, a)
        other_low, other_high = _ends(cells, places, size, labels, other, a)
        if cells.modes[a] == _NODE:
            if _node(cells, a, low, high) != _node(cells, a, other_low, other_high):
                return False
            continue
        if low != other_low or high != other_high:
            return False
        if cells.modes[a] == _SET and not (
            _holds_all(cells, places, size, labels, one, other, a)
            and _holds_all(cells, places, size, labels, other, one, a)
        ):
            return False
    return True


@kernel
def _ends(
    cells: WindowCells,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    label: int,
    attribute: int,
) -> tuple[int, int]:
    """Return the least and the greatest code of a class."""
    low, high = 2**31 - 1, -1
    for at in range(size):
        if labels[at] == label:
            code: int = np.int64(cells.codes[places[at], attribute])  # type: ignore[assignment]
            low = min(low, code)
            high = max(high, code)
    return low, high


@kernel
def _node(cells: WindowCells, attribute: int, low: int, high: int) -> int:
    """Return the lowest node above two leaves."""
    start = cells.node_start[attribute]
    node = low
    while cells.node_last[start + node] < high:
        node = cells.node_parent[start + node]
    return node


@kernel
def _holds_all(
    cells: WindowCells,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    one: int,
    other: int,
    attribute: int,
) -> bool:
    """Return whether a class holds all values of another one."""
    for at in range(size):
        if labels[at] != other:
            continue
        code = cells.codes[places[at], attribute]
        found = False
        for mine in range(size):
            if labels[mine] == one and cells.codes[places[mine], attribute] == code:
                found = True
                break
        if not found:
            return False
    return True
