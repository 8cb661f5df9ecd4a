"""Rings: each record's set are its next neighbours on closed orders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError, NoSolution
from anonymip.problem import Problem
from anonymip.recodings import Freeform


def ring_degree(problem: Problem, method: str) -> tuple[int, bool]:
    """Return the size of the sets that the recoding asks for and whether they are reciprocal.

    Raises
    ------
    InputError
        If the records are to have sets of different sizes.
    """
    recoding = problem.recoding
    if not isinstance(recoding, Freeform):
        return problem.k, False
    sizes = recoding.sizes(problem)
    if sizes.min() != sizes.max():
        raise InputError(
            f"{method} gives all records sets of one size, asked for are {sizes.min()} to "
            f"{sizes.max()}",
            remedy="Use greedy, sort-greedy or freeform-mip for degrees of their own",
        )
    return int(sizes[0]), recoding.reciprocal


def reciprocal_degree(problem: Problem, degree: int, smallest: int, odd: bool) -> int:
    """Return the size of sets with which every part has a reciprocal ring: the given one or more.

    Parameters
    ----------
    problem
        What is asked.
    degree
        Size of sets asked for.
    smallest
        Size of the smallest part.
    odd
        Whether some part has an odd number of records.

    Raises
    ------
    NoSolution
        If an odd part has no room for one more, or the recoding names the degrees.

    Notes
    -----
    A reciprocal graph on s records in sets of d has s (d - 1) / 2 edges besides its loops, so s or
    d is odd only one at a time: with s odd and d even there is none.
    """
    if degree % 2 == 1 or not odd:
        return degree
    recoding = problem.recoding
    if degree + 1 > smallest or (isinstance(recoding, Freeform) and recoding.degrees is not None):
        raise NoSolution(
            f"an odd number of records has no reciprocal sets of {degree}",
            remedy=f"Ask for k = {degree + 1}, or for sets that need not be reciprocal",
        )
    return degree + 1


def ring_sets(
    order: NDArray[np.int64], starts: NDArray[np.int64], degree: int, reciprocal: bool = False
) -> NDArray[np.int32]:
    """Return (n, degree) the set of each record on the ring of its part, ascending.

    The set of a record are the record and the next ones on the closed order of its part. A
    reciprocal ring takes half of them from before it; of an even number, the one left over is
    paired off within segments of the ring.

    Parameters
    ----------
    order
        (n,) records; the parts follow each other.
    starts
        Where each part begins in `order`; parts have `degree` records or more.
    degree
        Size of the sets.
    reciprocal
        Whether i lies in the set of l if l lies in that of i; with an even degree all parts need an
        even number of records.

    Notes
    -----
    Every record lies in as many sets as its set has records: the graph is regular. Complexity:
    O(n degree).
    """
    n = len(order)
    sizes = np.diff(np.append(starts, n))
    size, begin = np.repeat(sizes, sizes), np.repeat(starts, sizes)
    within = np.arange(n) - begin
    if not reciprocal:
        reach = np.arange(degree)
    else:
        half = (degree - 1) // 2
        reach = np.arange(-half, half + 1)
    # One subtraction closes the ring faster than a remainder.
    places = within[:, None] + reach
    places += np.where(places < 0, size[:, None], 0)
    places -= np.where(places >= size[:, None], size[:, None], 0)
    if reciprocal and degree % 2 == 0:
        places = np.column_stack([places, _partners(within, size, degree)])
    sets = np.empty((n, degree), np.int32)
    sets[order] = order[places + begin[:, None]]
    sets.sort(axis=1)
    return sets


def _partners(within: NDArray[np.int64], size: NDArray[np.int64], degree: int) -> NDArray[np.int64]:
    """Return (n,) the place across a segment: too far away to be a neighbour already.

    Segments have `degree` records, the last one of a part up to twice as many.
    """
    segment = np.minimum(within // degree, size // degree - 1)
    first = segment * degree
    length = np.where(segment == size // degree - 1, size - first, degree)
    return first + (within - first + length // 2) % length
