"""Dominance: one release of a table says more than another in every cell, whatever the loss.

References
----------
.. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy Preserving
   Data Publishing, SIGMOD 2010, Definition 3.
"""

from __future__ import annotations

import numpy as np

from anonymip.assignments import CellSets
from anonymip.errors import InputError
from anonymip.instances import Microdata
from anonymip.runtime.arrays import Flags, Ints
from anonymip.solution import Solution


def dominates(better: Solution, worse: Solution) -> bool:
    """Return whether one solution preserves a better utility than another.

    What it publishes for each record lies within what the other one publishes for it, in every
    attribute, and somewhere says more [1]_. Then no monotone loss ranks it behind the other. Two
    solutions of which neither dominates the other can be equal, or each be better somewhere.

    Raises
    ------
    InputError
        If they are no solutions of the same table.
    """
    return bool(within(better, worse).all() and not within(worse, better).all())


def within(one: Solution, other: Solution) -> Flags:
    """Return (n, m) whether the cells of one solution lie within those of another.

    Ranges, sets and nodes are compared as the sets of values that they cover; a star covers
    everything. Complexity: O(n m) for ranges and nodes; sets are sorted. Raises InputError if they
    are no solutions of the same table.
    """
    microdata = one.problem.microdata
    _refuse_other_table(microdata, other.problem.microdata)
    inner, outer = one.description, other.description
    inside = np.empty((microdata.n, microdata.m), np.bool_)
    for a, attribute in enumerate(microdata.attributes):
        if attribute.hierarchy is not None:
            tree = attribute.hierarchy.tree
            below, above = inner.nodes[:, a], outer.nodes[:, a]
            inside[:, a] = tree.first[above] <= tree.first[below]
            inside[:, a] &= tree.last[below] <= tree.last[above]
        elif attribute.publish == "range":
            inside[:, a] = outer.lower[:, a] <= inner.lower[:, a]
            inside[:, a] &= inner.upper[:, a] <= outer.upper[:, a]
        else:
            inside[:, a] = _subsets(inner.members, outer.members, a, len(microdata.levels[a]))
    inside[inner.suppressed] = False
    inside[outer.suppressed] = True
    return inside


def _refuse_other_table(one: Microdata, other: Microdata) -> None:
    if one is other:
        return
    alike = (
        one.n == other.n
        and one.attributes == other.attributes
        and all(map(np.array_equal, one.levels, other.levels))
        and np.array_equal(one.codes, other.codes)
    )
    if not alike:
        raise InputError(
            "the two solutions are of different tables", remedy="Compare solutions of one table"
        )


def _subsets(inner: CellSets, outer: CellSets, a: int, width: int) -> Flags:
    """Return (n,) whether the set of each record lies within the other one."""
    keys = _keys(inner, a, width)
    missing = ~np.isin(keys, _keys(outer, a, width))
    inside = np.ones(len(inner.start), np.bool_)
    inside[keys[missing] // width] = False
    return inside


def _keys(cells: CellSets, a: int, width: int) -> Ints:
    """Return a number for each record and each value in its set."""
    start, count = cells.start[:, a], cells.count[:, a]
    first = np.cumsum(count) - count
    place = np.arange(count.sum()) + np.repeat(start - first, count)
    keys: Ints = np.repeat(np.arange(len(start)), count) * width + cells.codes[place]
    return keys
