"""State of the search for columns root by root: what it is given, where it stands, what it found.

All are plain arrays, so that they are kept from call to call and a kernel allocates nothing.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.objectives.kernels.growing_sets import GrowingSets, TermRows, new_growing_sets
from anonymip.recodings.rules.diversity_counts import DiversityRule, ValueCounts, new_counts
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.packed import Packed

#: Places of `RootedPath.place`: rows of the partial set, number of the root, size looked for, where
#: the columns of both begin among those found, and where their members begin.
DEPTH, ROOT, SIZE, FIRST, FIRST_MEMBER = 0, 1, 2, 3, 4


class SearchRows(Packed, read_only=True):
    """Row types."""

    #: (t,) dual of a row of each type, and how many rows it has.
    duals: Floats
    copies: Ints
    terms: TermRows  # the rows, as the loss reads them
    diversity: DiversityRule  # what a set must hold of the sensitive columns; of the types
    conflicts: Flags  # (t, t) types that never share a set; (0, 0) if all may


class RootedRules(Packed):
    """Which columns are looked for."""

    #: Fewest and most rows of a column, at least 2.
    smallest: int
    largest: int
    pruned: bool  # whether the record loss is monotone, so that partial sets can be cut off by it
    summed: bool  # whether a column of s rows costs s times its record loss, or once
    keep: int  # most columns kept of each root and size: the best ones
    nodes_a_size: int  # partial sets looked at for each root and size at which to give it up
    #: Whether a column is not wanted where one row less, not the root, is a column at least as
    #: good: under `summed`, and where no diversity is asked for, wherever a row's dual is not above
    #: the record loss.
    undominated: bool


class Roots(Packed):
    """Where to search: a row that each column holds, and what it may hold beside."""

    types: Ints  # (roots,) the roots
    #: (roots,) parts of `near`.
    begin: Ints
    end: Ints
    #: Types that columns of a root may hold: near[begin:end], in falling order of their duals.
    near: Ints
    below: Floats  # (roots,) reduced costs from here on are not wanted
    least: Floats  # (roots,) becomes a lower bound on the reduced costs of all columns of the root


class CutsOfRows(Packed):
    """Rank-1 cuts: columns pay the dual of a cut for every `divisor` of its members in the cut."""

    #: Cuts of the row type i: cuts[starts[i]:starts[i + 1]].
    starts: Ints
    cuts: Ints
    #: (cuts,) of each cut.
    divisors: Ints
    duals: Floats
    held: Ints  # (cuts,) workspace: members of the partial set in each cut


class RootedPath(Packed):
    """The partial set and what may follow; where there is one, the first index is its size."""

    place: Annotated[Ints, "5"]  # see `DEPTH` and those that follow it
    #: Partial sets looked at in all, and for the root and size at hand; how often a root and size
    #: was given up.
    nodes: Annotated[Ints, "3"]
    #: Reduced costs from here on are not wanted for the root and size at hand.
    cutoff: Annotated[Floats, "1"]
    members: Annotated[Ints, "deep"]  # types of its rows
    #: Its record loss, the duals of its rows and those of its cuts, summed, and the lowest dual of
    #: its rows beside the root.
    losses: Annotated[Floats, "deep"]
    duals: Annotated[Floats, "deep"]
    penalties: Annotated[Floats, "deep"]
    lowest: Annotated[Floats, "deep", np.inf]
    sets: GrowingSets  # what it covers
    used: Annotated[Ints, "types"]  # rows of each type
    #: What may follow, as part of `followers`: from the end of the one before to behind the last,
    #: and the next.
    end: Annotated[Ints, "deep"]
    at: Annotated[Ints, "deep"]
    top: Annotated[Floats, "deep"]  # workspace: the highest duals of what may follow, falling
    counts: ValueCounts  # of the sensitive values


class RootedFollowers(Packed):
    """What may follow each partial set of the path, one behind the other.

    Types with the record loss of the partial set with each, what each adds to the duals of cuts,
    and a lower bound on the reduced costs of all columns in which the type is the furthest of those
    that join the partial set.
    """

    rows: Annotated[Ints, "room"]
    losses: Annotated[Floats, "room"]
    penalties: Annotated[Floats, "room"]
    bounds: Annotated[Floats, "room"]


class ColumnsFound(Packed):
    """The columns found."""

    held: Annotated[Ints, "2"]  # how many they are, and how many members they have together
    sizes: Annotated[Ints, "columns"]  # rows of each
    reduced: Annotated[Floats, "columns"]  # reduced cost of each
    members: Annotated[Codes, "room"]  # their types, column by column, ascending


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
    deep = largest + 1
    words = int(rows.terms.set_words.max(initial=-1)) + 1
    return RootedPath.of_sizes(
        deep=deep,
        types=len(rows.copies),
        sets=new_growing_sets(rows.terms.tables, deep, words),
        counts=new_counts(rows.diversity, deep),
    )
