"""Matchings of a cover: random ones, along which releases show sensitive values, and their edges.

A match is effective if it lies in some matching; a graph may be a ring.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from anonymip.assignments import Cover
from anonymip.errors import InputError, InvalidAssignment, unknown_name
from anonymip.runtime.arrays import Codes, Flags, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


def effective_matches(cover: Cover) -> Flags:
    """Return (edges,) whether each entry of `cover.members` can be true.

    A match is *effective* if some assignment, one original for each published record, contains it
    (Wong et al. [1]_, Def. 4). Every record lies in its own set, so the identity is an assignment,
    and another match (l, i) is effective exactly if it closes a cycle: if l and i lie in one
    strongly connected component (Theorem 1).

    `cover`: every record lies in its own set. Complexity: O(n + edges).

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 4.1.
    """
    component = components(cover)
    inside: Flags = component[cover.owners] == component[cover.members]
    return inside


def components(cover: Cover) -> Codes:
    """Return (n,) numbers of the strongly connected components of a generalization graph.

    No assignment leads from one component into another (Wong et al., Theorem 2).

    Complexity: O(n + edges).
    """
    labels: Codes = connected_components(_graph(cover), directed=True, connection="strong")[1]
    return labels


def _graph(cover: Cover) -> csr_array:
    """Return the (n, n) matrix of a generalization graph, a row a published record."""
    ones = np.ones(len(cover.members), np.int32)
    return csr_array((ones, cover.members, cover.start), (cover.n, cover.n))


def effective_sizes(cover: Cover) -> tuple[Ints, Ints]:
    """Return (n,) effective matches of each published record, and of each original record."""
    effective = effective_matches(cover)
    published = np.bincount(cover.owners[effective], minlength=cover.n)
    original = np.bincount(cover.members[effective], minlength=cover.n)
    return published, original


#: Entries of the sets that are compared at a time.
_BATCH = 4_000_000


def ring_successors(cover: Cover) -> Ints | None:
    """Return (n,) the next record on the ring of each record; None if the cover is no rings.

    The set of a record must be the record and its next ones on a closed order, all sets of one
    size; several rings, as of a table in parts, and classes are rings too. On a ring of more than K
    records only the set of the next record lacks exactly the record itself; on one of K all sets
    are equal, and any closed order will do. What is found is checked. Complexity: O(n K^2).
    """
    degree = degree_of(cover)
    if degree is None:
        return None
    n, sets = cover.n, cover.matches
    if degree == 1:
        return np.arange(n)
    # How many records two sets share; many more where the second holds the owner of the first.
    edges = _graph(cover)
    back, following = edges.T.tocsr(), np.full(n, -1, np.int64)
    step = max(1, _BATCH // degree**2)
    for begin in range(0, n, step):
        part = slice(begin, begin + step)
        shared = edges[part].multiply(edges[part] @ back + degree * back[part]).tocoo()
        found = shared.data == degree - 1
        following[begin + shared.row[found]] = shared.col[found]
    # The members of sets that all records in them share follow each other, ascending.
    open_ends = np.flatnonzero(following < 0)
    own = sets[open_ends]
    shared = (sets[own] == own[:, None, :]).all(axis=(1, 2))
    open_ends, own = open_ends[shared], own[shared]
    place = (own == open_ends[:, None]).argmax(axis=1)
    following[open_ends] = own[np.arange(len(own)), (place + 1) % degree]
    if (following < 0).any() or (np.bincount(following, minlength=n) != 1).any():
        return None
    # Whether every set is the record and the next ones.
    walked = np.empty((n, degree), np.int64)
    walked[:, 0] = np.arange(n)
    for place in range(1, degree):
        walked[:, place] = following[walked[:, place - 1]]
    return following if (np.sort(walked, axis=1) == sets).all() else None


class OpenEdges(Packed):
    """Edges that are left; removing one costs no more than finding it.

    The originals of the published record i are the first `left[i]` from `start[i]` on in `members`;
    both are (n,).
    """

    start: Ints
    left: Ints
    members: Codes


def open_edges(cover: Cover, kept: Flags) -> OpenEdges:
    """Return some edges of a cover, in arrays of their own."""
    left = np.bincount(cover.owners[kept], minlength=cover.n)
    return OpenEdges(np.cumsum(left) - left, left, cover.members[kept])


@kernel
def close_edges(edges: OpenEdges, matching: Codes) -> None:
    """Take the edges of a matching out of those that are open."""
    for record in range(len(edges.start)):
        first = edges.start[record]
        last = first + edges.left[record] - 1
        place = first
        while edges.members[place] != matching[record]:
            place += 1
        edges.members[place] = edges.members[last]
        edges.members[last] = matching[record]
        edges.left[record] -= 1


#: Ways to draw matchings: of Goel, Kapralov and Khanna, and of Wong et al.
WAYS = ("random walks", "cycle walks")


@kernel
def walk_matching(edges: OpenEdges, order: Ints, rng: np.random.Generator) -> Codes:
    """Return (n,) the original of each published record in a random perfect matching.

    Published records are served in random order. Each walks along random edges, and from an
    original that is taken on to the published record that holds it, until it meets a free one.
    Every published record remembers by which edge the walk left it last; following these edges
    from the first one gives the walk without its loops [2]_, an augmenting path.

    `edges`: a regular bipartite graph with at least one edge at each record. `order`: (n,) records
    in random order, drawn by the caller, since that takes seconds to compile. `rng`: source of
    randomness. Complexity: O(n log n) steps expected, whatever the degree: the walk for the j-th
    record takes about 2 + n / (n - j) of them [1]_. The paper gives up walks that take much longer,
    for a bound that holds with high probability; without this they end with probability 1.
    """
    n = len(edges.start)
    taken_by = np.full(n, -1, np.int32)
    held = np.full(n, -1, np.int64)  # place of the edge that matches a published record
    leaving = np.zeros(n, np.int64)
    for first in order:
        record = first
        while True:
            place = edges.start[record] + int(rng.random() * edges.left[record])
            if place == held[record]:
                continue
            leaving[record] = place
            holder = taken_by[edges.members[place]]
            if holder < 0:
                break
            record = holder
        # The edges by which the walk left its records last are an augmenting path.
        record = first
        while record >= 0:
            place = leaving[record]
            original = edges.members[place]
            holder = taken_by[original]
            taken_by[original] = record
            held[record] = place
            record = holder
    matching = np.empty(n, np.int32)
    for record in range(n):
        matching[record] = edges.members[held[record]]
    return matching


@kernel
def cycle_matching(
    edges: OpenEdges, permutation: Codes, order: Ints, rng: np.random.Generator
) -> Codes:
    """Return (n,) the original of each published record in a random perfect matching.

    Start from a permutation, whose pairs need not be edges. While a record has no valid match,
    take one of these at random; it takes a random open original, whose holder has to take another
    one, and so on until one takes what the first one gave up. No original is visited twice in
    one walk; where no original is left, the walk steps back. Then all records of the cycle are
    matched [1]_.

    `edges`: a graph with a perfect matching. `permutation`: (n,) a first original for each
    published record, all different. `order`: (n,) records in random order. `rng`: source of
    randomness. Returns: empty if there is no perfect matching.

    The paper walks from originals to published records; this is its mirror image, since a cover
    lists the originals of published records. The walk always closes: by Hall's condition the
    published records reached from the first one have at least as many open originals as they are,
    and held ones only among their own, unless what the first one gave up is among them.
    Complexity: O(edges) a cycle. Cycles are few where walks are long: a walk that
    avoids what it has seen takes in a good share of a component.
    """
    n = len(edges.start)
    matching = permutation.copy()
    holder = np.empty(n, np.int32)
    valid = np.zeros(n, np.bool_)
    # A pair of the permutation is valid if it is an open edge.
    for record in range(n):
        holder[matching[record]] = record
        for place in range(edges.start[record], edges.start[record] + edges.left[record]):
            if edges.members[place] == matching[record]:
                valid[record] = True
    seen = np.full(n, -1, np.int32)  # number of the walk that saw an original last
    tried = np.zeros(n, np.int64)
    taking = np.empty(n, np.int32)
    parent = np.empty(n, np.int32)
    for walk, first in enumerate(order):
        if valid[first]:
            continue
        # Walk until some record takes what the first one gave up; without one left, step back.
        goal = matching[first]
        record = first
        parent[first] = -1
        tried[first] = 0
        while True:
            # None is left: who wanted the original of this record tries another one.
            if tried[record] == edges.left[record]:
                record = parent[record]
                if record < 0:
                    return np.empty(0, np.int32)
                continue
            # Originals tried come first, so each open one is picked once.
            begin = edges.start[record] + tried[record]
            place = begin + int(rng.random() * (edges.left[record] - tried[record]))
            original = edges.members[place]
            edges.members[place] = edges.members[begin]
            edges.members[begin] = original
            tried[record] += 1
            # Seen in this walk: it lies on it already, or leads nowhere.
            if seen[original] == walk:
                continue
            seen[original] = walk
            taking[record] = original
            if original == goal:
                break
            # Its holder has to take another one; it is asked once, as an original is seen once.
            parent[holder[original]] = record
            record = holder[original]
            tried[record] = 0
        # Match all records of the cycle.
        record = first
        while True:
            original = taking[record]
            following = holder[original]
            matching[record] = original
            holder[original] = record
            valid[record] = True
            if original == goal:
                break
            record = following
    return matching


def degree_of(cover: Cover) -> int | None:
    """Return the degree of a regular cover; None if it is not regular.

    A cover is regular if all its sets have one size and every original lies in as many of them.
    """
    degree = int(cover.sizes[0])
    regular = (cover.sizes == degree).all() and (cover.degrees == degree).all()
    return degree if regular else None


def random_matchings(
    cover: Cover, count: int, rng: np.random.Generator, *, way: str = "random walks"
) -> Codes:
    """Draw disjoint perfect matchings of a regular cover, one after the other.

    With as many of them as the degree the cover is used up: it falls into these matchings
    (König's theorem; Wong et al. [1]_, Lemma 1).

    `cover`: regular; its records need not lie in their own sets. `count`: how many, at most the
    degree. `rng`: source of randomness. `way`: ``"random walks"`` of Goel, Kapralov and Khanna, or
    ``"cycle walks"`` of Wong et al., which are slower. Matchings drawn in these ways are
    distributed differently, and evenly in neither, which :func:`draw_matching` does not need.
    Returns: (count, n) int32, the original of each published record. Raises InputError if there are
    not so many, or the way is unknown; InvalidAssignment if the cover is not regular.

    Complexity: O(n log n) expected for each matching with random walks, O(n) cycles of O(edges)
    at worst with cycle walks.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 4.2.1.
    """
    _refuse_unknown(way)
    degree = degree_of(cover)
    if degree is None:
        raise InvalidAssignment(None, "is not regular: it does not fall into disjoint matchings")
    if not 0 <= count <= degree:
        raise InputError(
            f"{count} disjoint matchings of a cover of degree {degree}",
            remedy=f"Ask for at most {degree}",
        )
    edges = open_edges(cover, np.ones(len(cover.members), np.bool_))
    component = components(cover)
    matchings = np.empty((count, cover.n), np.int32)
    for number in range(count):
        if way == "random walks":
            matchings[number] = walk_matching(edges, rng.permutation(cover.n), rng)
        else:
            matchings[number] = _cycles(edges, component, rng)
        close_edges(edges, matchings[number])
    return matchings


def draw_matching(cover: Cover, rng: np.random.Generator, *, way: str = "random walks") -> Codes:
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

    `cover`: every record lies in its own set. `rng`: source of randomness;
    :func:`numpy.random.default_rng` without a seed takes it from the operating system. `way`: as in
    :func:`random_matchings`; only for regular covers. Returns: (n,) int32, the original of each
    published record. Raises InputError if the way is unknown; InvalidAssignment if a record does
    not lie in its own set and the cover has no matching.

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
        drawn: Codes = random_matchings(cover, published + 1, rng, way=way)[published]
        return drawn
    edges = open_edges(cover, effective_matches(cover))
    return _cycles(edges, components(cover), rng)


def _refuse_unknown(way: str) -> None:
    if way not in WAYS:
        raise unknown_name("way to draw", way, WAYS)


def _cycles(edges: OpenEdges, component: NDArray[np.integer], rng: np.random.Generator) -> Codes:
    """Draw a matching by cycle walks from a random permutation within components."""
    start = np.lexsort((rng.random(len(component)), component))
    permutation = np.empty(len(component), np.int32)
    permutation[np.argsort(component, kind="stable")] = start
    order = rng.permutation(len(component))
    matching: Codes = cycle_matching(edges, permutation, order, rng)
    if len(matching) < len(component):
        raise InvalidAssignment(None, "has no perfect matching")
    return matching


def perfect_matching(graph: Cover) -> Codes | None:
    """Return (n,) an original for each published record, each original once; None if impossible.

    `graph`: the edges; records need not lie in their own sets. Complexity: O(edges sqrt(n)), by
    Hopcroft and Karp's algorithm. The matching is no random one: nothing is to be published along
    it.
    """
    matched = maximum_bipartite_matching(_graph(graph), perm_type="column").astype(np.int32)
    return None if (matched < 0).any() else matched
