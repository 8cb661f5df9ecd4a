"""Tables of the papers: reductions of hard problems, tight cases of proofs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.instances.attribute import Attribute
from anonymip.instances.microdata import Microdata
from anonymip.runtime.arrays import Ints

Edge = tuple[int, int]
Starred = tuple[int, ...]  # the columns that a pattern stars; a mask is a sequence of them


def triangle_table(edges: Sequence[Edge], *, binary: bool = False) -> Microdata:
    """Return the table of Aggarwal et al., Theorem 1 [1]_: k = 3, one record an edge of a graph.

    With 3m edges no release by suppression stars fewer than 9 m t cells, where t = ceil(log2(3m +
    1)) is the number of blocks of columns. Exactly 9 m t are enough if and only if the edges split
    into m triangles. In each block the record of edge (a, b) has a 1 and a 2 at a and b and zeros
    elsewhere; the binary digits of the edge's rank, counted from 1, say which way round.

    `edges`: pairs of vertices, numbered from 0; a simple graph whose number of edges is a multiple
    of three. `binary`: the preliminary table of the proof instead: one block with ones at a and b.
    Its optimum is 9 m if and only if the edges split into triangles and stars of three edges.
    Raises InputError if the graph is not simple or its number of edges no multiple of three.

    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 3.

    >>> table = triangle_table([(0, 1), (1, 2), (0, 2)])
    >>> table.n, table.m
    (3, 6)
    """
    distinct = {frozenset(edge) for edge in edges}
    if len(distinct) < len(edges) or any(len(edge) != 2 for edge in distinct):
        raise InputError(
            "the graph has a loop or the same edge twice", remedy="Give a simple graph"
        )
    if not edges or len(edges) % 3:
        raise InputError(
            f"the graph has {len(edges)} edges", remedy="Give a positive multiple of three"
        )
    if min(min(edge) for edge in edges) < 0:
        raise InputError("a vertex is negative", remedy="Number the vertices from 0")
    vertices = 1 + max(max(edge) for edge in edges)
    digits = 1 if binary else len(edges).bit_length()
    table = np.zeros((len(edges), digits * vertices), np.int64)
    for at, (a, b) in enumerate(edges):
        for block in range(digits):
            turned = not binary and (at + 1) >> (digits - 1 - block) & 1
            table[at, block * vertices + a] = 2 if turned else 1
            table[at, block * vertices + b] = 1 if binary or turned else 2
    return _categorical(table)


def block_table(k: int) -> Microdata:
    """Return k records of k blocks of 2^(k-2) bits, record i with ones in block i alone [1]_.

    All pairs of records differ in 2^(k-1) bits, as in :func:`alternating_table`. Yet, with l =
    2^(k-2), the class of all k records costs k^2 l stars here and less than 4 k l there: distances
    alone do not decide.

    `k`: number of records, 2 to 16. Raises InputError if k is out of range.

    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 4.

    >>> block_table(4).m, alternating_table(4).m
    (16, 16)
    """
    _refuse_width(k)
    return _categorical(np.repeat(np.eye(k, dtype=np.int64), 2 ** (k - 2), axis=1))


def alternating_table(k: int) -> Microdata:
    """Return k records of 2^k bits, record i in 2^i equal blocks, ones and zeros in turn.

    The counterpart of :func:`block_table`: same distances, k (2^k - 2) stars. The paper counts 4 k
    l = k 2^k, but the first bits of all records agree, as do the last. `k`: number of records, 2 to
    16. Raises InputError if k is out of range.
    """
    _refuse_width(k)
    places = np.arange(2**k)
    return _categorical(np.stack([1 - (places >> (k - i) & 1) for i in range(1, k + 1)]))


def tight_cycle_table() -> Microdata:
    """Return the 8 vectors after Lemma 11 of Aggarwal et al. [1]_, where its analysis is tight.

    They lie on a cycle, each one bit from the next: the lightest 2-factor weighs 8, and cutting the
    cycle gives 24 stars for k = 3, three times as much. That is the optimum too.

    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 6.

    >>> tight_cycle_table().n
    8
    """
    words = ("0000", "0001", "0011", "0111", "1111", "1110", "1100", "1000")
    return _categorical(np.array([[int(bit) for bit in word] for word in words]))


def set_cover_table(
    elements: int, sets: Sequence[tuple[int, int, int]]
) -> tuple[Microdata, tuple[Starred, ...]]:
    """Return table and mask of Bredereck et al., Theorem 1 [1]_: k = 3 and three columns.

    If the smallest cover of the elements by sets has h sets, the optimum is 4 |U| + 3 |F| + 3 h
    stars. Every element has two records that share nothing but the element; every set has three
    records that share its name in two columns, one for each of its elements.

    `elements`: size of the universe, numbered from 0. `sets`: sets of three different elements,
    which cover the universe. Returns: a table of 2 |U| + 3 |F| records, and the columns starred by
    each of the two patterns: the last two, or the first. Raises InputError if a set has not three
    elements of the universe, or they do not cover it.

    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity, Algorithms
       6(4), 2013, doi:10.3390/a6040678.

    >>> table, mask = set_cover_table(4, [(0, 1, 2), (1, 2, 3)])
    >>> table.n, mask
    (14, ((1, 2), (0,)))
    """
    for chosen in sets:
        if len(set(chosen)) != 3 or not set(chosen) <= set(range(elements)):
            raise InputError(
                f"the set {chosen} has not three elements of 0 to {elements - 1}",
                remedy="Give three different elements",
            )
    if set().union(*sets) != set(range(elements)):
        raise InputError("the sets do not cover the universe", remedy="Add sets")
    rows = []
    for element in range(elements):
        for copy in "ab":
            rows.append((f"u{element}", f"only {element}{copy}1", f"only {element}{copy}2"))
    for at, chosen in enumerate(sets):
        rows += [(f"u{element}", f"s{at}", f"s{at}") for element in chosen]
    return _categorical(np.array(rows, dtype=object)), ((1, 2), (0,))


def greedy_trap(m: int) -> tuple[Microdata, tuple[Starred, ...]]:
    """Return table and mask of the tight case of Bredereck et al., Theorem 4 [1]_: k = m.

    The greedy heuristic publishes the m records of ones exactly and stars all others, (m - 1) m^2
    cells; the optimum is m^2, one star a record: each record of ones goes to another column's
    records, which lack one for m.

    `m`: number of columns, and k; at least 2. Returns: a table of m records of ones and, for each
    column, m - 1 that have a value of their own in it; and the columns starred by each pattern:
    none, each one alone, all. Raises InputError if m is less than 2.

    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity, Algorithms
       6(4), 2013, doi:10.3390/a6040678.

    >>> table, mask = greedy_trap(3)
    >>> table.n, mask
    (9, ((), (0,), (1,), (2,), (0, 1, 2)))
    """
    if m < 2:
        raise InputError(f"m is {m}", remedy="Give at least 2: k is as large")
    rows = np.ones((m + m * (m - 1), m), np.int64)
    for column in range(m):
        for copy in range(m - 1):
            at = column * (m - 1) + copy
            rows[m + at, column] = 2 + at
    return _categorical(rows), ((), *((column,) for column in range(m)), tuple(range(m)))


def _refuse_width(k: int) -> None:
    if not 2 <= k <= 16:
        raise InputError(f"k is {k}", remedy="Give 2 to 16: the table has about 2^k columns")


def _categorical(table: Ints | NDArray[np.object_]) -> Microdata:
    """Return a table of categorical attributes a0, a1, ..."""
    names = [f"a{column}" for column in range(table.shape[1])]
    frame = pd.DataFrame(table.astype(str), columns=names)
    return Microdata(frame, tuple(Attribute(name, "categorical") for name in names))
