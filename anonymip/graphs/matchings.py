"""Random matchings of a cover: along one of them a release shows its sensitive values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import InputError, InvalidAssignment
from anonymip.graphs.cycle_walks import cycle_matching
from anonymip.graphs.effective import components, effective_matches
from anonymip.graphs.open_edges import OpenEdges, close_edges, open_edges
from anonymip.graphs.random_walks import walk_matching

#: Ways to draw matchings: of Goel, Kapralov and Khanna, and of Wong et al.
WAYS = ("random walks", "cycle walks")


def degree_of(cover: Cover) -> int | None:
    """Return the degree of a regular cover; None if it is not regular.

    A cover is regular if all its sets have one size and every original lies in as many of them.
    """
    degree = int(cover.sizes[0])
    regular = (cover.sizes == degree).all() and (cover.degrees == degree).all()
    return degree if regular else None


def random_matchings(
    cover: Cover, count: int, rng: np.random.Generator, *, way: str = "random walks"
) -> NDArray[np.int32]:
    """Draw disjoint perfect matchings of a regular cover, one after the other.

    With as many of them as the degree the cover is used up: it falls into these matchings
    (König's theorem; Wong et al. [1]_, Lemma 1).

    Parameters
    ----------
    cover
        Regular; its records need not lie in their own sets.
    count
        How many, at most the degree.
    rng
        Source of randomness.
    way
        ``"random walks"`` of Goel, Kapralov and Khanna, or ``"cycle walks"`` of Wong et al., which
        are slower. Matchings drawn in these ways are distributed differently, and evenly in
        neither, which :func:`draw_matching` does not need.

    Returns
    -------
    matchings
        (count, n) int32, the original of each published record.

    Raises
    ------
    InputError
        If there are not so many, or the way is unknown.
    InvalidAssignment
        If the cover is not regular.

    Notes
    -----
    Complexity: O(n log n) expected for each matching with random walks, O(n) cycles of O(edges)
    at worst with cycle walks.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 4.2.1.
    """
    if way not in WAYS:
        raise InputError(
            f"unknown way {way!r} to draw matchings", remedy=f"Use {' or '.join(WAYS)}"
        )
    degree = degree_of(cover)
    if degree is None:
        raise InvalidAssignment(None, "is not regular: it does not fall into disjoint matchings")
    if not 0 <= count <= degree:
        raise InputError(
            f"{count} disjoint matchings of a cover of degree {degree}",
            remedy=f"Ask for at most {degree}",
        )
    edges, component = open_edges(cover), components(cover)
    matchings = np.empty((count, cover.n), np.int32)
    for number in range(count):
        if way == "random walks":
            matchings[number] = walk_matching(edges, rng)
        else:
            matchings[number] = _cycles(edges, component, rng)
        close_edges(edges, matchings[number])
    return matchings


def draw_matching(
    cover: Cover, rng: np.random.Generator, *, way: str = "random walks"
) -> NDArray[np.int32]:
    """Draw the assignment along which a cover is published.

    A regular cover of degree d is cut into d disjoint matchings, and one of them is taken, each
    with the same chance. Every match lies in exactly one of them, so every published record has
    each of the d originals of its set with probability 1/d, whatever the distribution of the
    matchings (Wong et al. [1]_, Section 5.2). Since the choice does not depend on the matchings it
    comes first, and only so many are drawn as it needs (Section 5.2.1).

    To draw a single matching and publish it would be no shortcut: some matches lie in more
    matchings than others (on the ring of 5 records with k = 3 in 5 and in 4 out of 13), and are
    taken more often than one time in d by whatever is drawn first: by cycle walks on that ring 36
    times in 100. Only the later matchings, which have to take what is left, even this out.

    Parameters
    ----------
    cover
        Every record lies in its own set.
    rng
        Source of randomness; :func:`numpy.random.default_rng` without a seed takes it from the
        operating system.
    way
        As in :func:`random_matchings`; only for regular covers.

    Returns
    -------
    matching
        (n,) int32, the original of each published record.

    Raises
    ------
    InputError
        If the way is unknown.
    InvalidAssignment
        If a record does not lie in its own set and the cover has no matching.

    Notes
    -----
    A cover that is not regular (a degree for each record, or one of the weaker notions) need not
    fall into disjoint matchings. One matching is then drawn by cycle walks over its effective
    matches; the originals of a set are all possible, but not equally likely.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010.
    """
    _refuse_unknown(way)
    degree = degree_of(cover)
    if degree:
        published = int(rng.integers(degree))
        drawn: NDArray[np.int32] = random_matchings(cover, published + 1, rng, way=way)[published]
        return drawn
    edges = open_edges(cover, effective_matches(cover))
    return _cycles(edges, components(cover), rng)


def _refuse_unknown(way: str) -> None:
    if way not in WAYS:
        raise InputError(f"unknown way to draw: {way!r}", remedy=f"Use {' or '.join(WAYS)}")


def _cycles(
    edges: OpenEdges, component: NDArray[np.integer], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw a matching by cycle walks from a random permutation within components."""
    start = np.lexsort((rng.random(len(component)), component))
    permutation = np.empty(len(component), np.int32)
    permutation[np.argsort(component, kind="stable")] = start
    matching: NDArray[np.int32] = cycle_matching(edges, permutation, rng)
    if len(matching) < len(component):
        raise InvalidAssignment(None, "has no perfect matching")
    return matching
