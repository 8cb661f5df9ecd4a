"""State of the search for columns root by root: what it is given, where it stands, what it found.

All are plain arrays, so that they are kept from call to call and a kernel allocates nothing.
"""

from __future__ import annotations

import numpy as np

from anonymip.objectives.kernels.growing_sets import GrowingSets, TermRows, new_growing_sets
from anonymip.recodings.rules.diversity_counts import DiversityRule, ValueCounts, new_counts
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.packed import Packed

#: Places of `RootedPath.place`: rows of the partial set, number of the root, size looked for, where
#: the columns of both begin among those found, and where their members begin.
DEPTH, ROOT, SIZE, FIRST, FIRST_MEMBER = 0, 1, 2, 3, 4


class SearchRows(Packed, read_only=True):
    """Row types.

    Parameters
    ----------
    duals, copies
        (t,) dual of a row of each type, and how many rows it has.
    terms
        The rows, as the loss reads them.
    diversity
        What a set must hold of the sensitive columns; of the types.
    conflicts
        (t, t) types that never share a set; (0, 0) if all may.
    """

    duals: Floats
    copies: Ints
    terms: TermRows
    diversity: DiversityRule
    conflicts: Flags


class RootedRules(Packed):
    """Which columns are looked for.

    Parameters
    ----------
    smallest, largest
        Fewest and most rows of a column, at least 2.
    pruned
        Whether the record loss is monotone, so that partial sets can be cut off by it.
    summed
        Whether a column of s rows costs s times its record loss, or once.
    keep
        Most columns kept of each root and size: the best ones.
    nodes_a_size
        Partial sets looked at for each root and size at which to give it up.
    undominated
        Whether a column is not wanted where one row less, not the root, is a column at least as
        good: under `summed`, and where no diversity is asked for, wherever a row's dual is not
        above the record loss.
    """

    smallest: int
    largest: int
    pruned: bool
    summed: bool
    keep: int
    nodes_a_size: int
    undominated: bool


class Roots(Packed):
    """Where to search: a row that each column holds, and what it may hold beside.

    Parameters
    ----------
    types
        (roots,) the roots.
    begin, end
        (roots,) parts of `near`.
    near
        Types that columns of a root may hold: near[begin:end], in falling order of their duals.
    below
        (roots,) reduced costs from here on are not wanted.
    least
        (roots,) becomes a lower bound on the reduced costs of all columns of the root.
    """

    types: Ints
    begin: Ints
    end: Ints
    near: Ints
    below: Floats
    least: Floats


class CutsOfRows(Packed):
    """Rank-1 cuts: a column pays the dual of a cut for every `divisor` of its members in the cut.

    Parameters
    ----------
    starts, cuts
        Cuts of the row type i: cuts[starts[i]:starts[i + 1]].
    divisors, duals
        (cuts,) of each cut.
    held
        (cuts,) workspace: members of the partial set in each cut.
    """

    starts: Ints
    cuts: Ints
    divisors: Ints
    duals: Floats
    held: Ints


class RootedPath(Packed):
    """The partial set and what may follow; where there is one, the first index is its size.

    Parameters
    ----------
    place
        (5,) see `DEPTH` and those that follow it.
    nodes
        (3,) partial sets looked at in all, and for the root and size at hand; how often a root
        and size was given up.
    cutoff
        (1,) reduced costs from here on are not wanted for the root and size at hand.
    members
        (largest,) types of its rows.
    losses, duals, penalties, lowest
        (largest + 1,) its record loss, the duals of its rows and those of its cuts, summed, and the
        lowest dual of its rows beside the root.
    sets
        What it covers.
    used
        (t,) rows of each type.
    end, at
        (largest + 1,) what may follow, as part of `followers`: from the end of the one before to
        behind the last, and the next.
    top
        (largest + 1,) workspace: the highest duals of what may follow, falling.
    counts
        Of the sensitive values.
    """

    place: Ints
    nodes: Ints
    cutoff: Floats
    members: Ints
    losses: Floats
    duals: Floats
    penalties: Floats
    lowest: Floats
    sets: GrowingSets
    used: Ints
    end: Ints
    at: Ints
    top: Floats
    counts: ValueCounts


class RootedFollowers(Packed):
    """What may follow each partial set of the path, one behind the other.

    Types with the record loss of the partial set with each, what each adds to the duals of cuts,
    and a lower bound on the reduced costs of all columns in which the type is the furthest of those
    that join the partial set.
    """

    rows: Ints
    losses: Floats
    penalties: Floats
    bounds: Floats


class ColumnsFound(Packed):
    """The columns found.

    `held` (2,) says how many they are, and how many members they have together; `sizes` and
    `reduced` (capacity,) are rows and reduced cost of each, `members` their types, column by
    column, ascending.
    """

    held: Ints
    sizes: Ints
    reduced: Floats
    members: Codes


class RootedSearch(Packed):
    """A search: what it is given, where it stands, and what it has found."""

    rows: SearchRows
    cuts: CutsOfRows
    rules: RootedRules
    roots: Roots
    path: RootedPath
    followers: RootedFollowers
    found: ColumnsFound


def new_rooted_path(rows: SearchRows, largest: int) -> RootedPath:
    """Return the workspace of a search for columns of up to `largest` rows, not begun."""
    deep, whole = largest + 1, np.int64
    words = int(rows.terms.set_words.max(initial=-1)) + 1
    return RootedPath(
        np.zeros(5, whole),
        np.zeros(3, whole),
        np.zeros(1),
        np.zeros(deep, whole),
        np.zeros(deep),
        np.zeros(deep),
        np.zeros(deep),
        np.full(deep, np.inf),
        new_growing_sets(rows.terms.tables, deep, words),
        np.zeros(len(rows.copies), whole),
        np.zeros(deep, whole),
        np.zeros(deep, whole),
        np.zeros(deep),
        new_counts(rows.diversity, deep),
    )


def new_rooted_followers(room: int) -> RootedFollowers:
    """Return memory for so many followers of all partial sets of a path."""
    return RootedFollowers(np.zeros(room, np.int64), np.zeros(room), np.zeros(room), np.zeros(room))


def new_columns_found(columns: int, members: int) -> ColumnsFound:
    """Return memory for so many columns with so many members together."""
    return ColumnsFound(
        np.zeros(2, np.int64),
        np.zeros(columns, np.int64),
        np.zeros(columns),
        np.zeros(members, np.int32),
    )
