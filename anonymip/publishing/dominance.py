"""Dominance: one release of a table says more than another in every cell, whatever the loss.

W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy Preserving Data
Publishing, SIGMOD 2010, Definition 3.
"""

from __future__ import annotations

import numpy as np

from anonymip.assignments import CellSets
from anonymip.errors import InputError
from anonymip.instances import Microdata
from anonymip.runtime.arrays import Flags
from anonymip.solution import Solution


def dominates(better: Solution, worse: Solution) -> bool:
    """Return whether one solution preserves a better utility than another.

    What it publishes for each record lies within what the other one publishes for it, in every
    attribute, and somewhere says more. Then no monotone loss ranks it behind the other. Two
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
    everything. Complexity: O(n m), times the size of sets.
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
            inside[:, a] = _subsets(inner.members, outer.members, a)
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


def _subsets(inner: CellSets, outer: CellSets, a: int) -> Flags:
    """Return (n,) whether the set of each record lies within the other one."""
    places = [side[:, a] for sets in (inner, outer) for side in (sets.start, sets.stop)]
    _, first, number = np.unique(places, axis=1, return_index=True, return_inverse=True)
    inside = [{*inner.of(i, a).tolist()} <= {*outer.of(i, a).tolist()} for i in first.tolist()]
    return np.array(inside, np.bool_)[number.ravel()]
