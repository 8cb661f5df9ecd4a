"""How far a chain of covers has come, and what a checkpoint keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import InvalidAssignment
from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.freeform.cover_windows import CoverPiece, join_pieces
from anonymip.exact.split_carry.keeping import is_table
from anonymip.exact.split_carry.state import LINK_COLUMNS, Link, links_in, row_of

#: Part of a record that no link has fixed.
_OPEN = -1


@dataclass(eq=False)
class CoverChain:
    """A chain of covers and how far it has come; a place is a record's position in the order.

    Parameters
    ----------
    records
        (n,) int64, the records in their order.
    read
        Places read.
    places
        Those of them that are carried over, ascending.
    going
        Sets that some of these are carried over with.
    fixed
        What each link has fixed.
    links
        The links solved so far.
    """

    records: NDArray[np.int64]
    read: int = 0
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    going: list[CoverPiece] = field(default_factory=list)
    fixed: list[list[CoverPiece]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.records)

    @property
    def done(self) -> bool:
        """Whether all records are fixed."""
        return self.read == self.n and not len(self.places)

    def mark(self) -> CoverChain:
        """Return a copy of the chain as it is now; what its lists hold does not change."""
        return replace(self, fixed=list(self.fixed), links=list(self.links))

    def arrays_at(self, mark: CoverChain) -> dict[str, NDArray[Any]]:
        """Return the arrays of the chain as it was at a mark."""
        return arrays_of(mark)

    def can_go_on(self) -> bool:
        """Return whether a later run may go on from here.

        Not behind a link that took back earlier ones, of which nothing remains; and one that
        holds the whole table is solved again, for the sake of its bound.
        """
        return len(self.fixed) == len(self.links) and all(
            link.size < self.n for link in self.links[-1:]
        )

    def proven_since(self, mark: CoverChain) -> bool:
        """Return whether all links since a mark are proven."""
        return all(link.proven for link in self.links[len(mark.links) :])

    @property
    def table(self) -> NDArray[np.float64]:
        """(links, columns) as a chain of classes holds them."""
        return np.array([row_of(link) for link in self.links]).reshape(-1, LINK_COLUMNS)

    def cover(self) -> Cover:
        """Return the sets of all records that are fixed; the others have none."""
        return join_pieces(self.n, [piece for link in self.fixed for piece in link])

    def fixed_places(self, last: int) -> NDArray[np.int64]:
        """Return the places that the last so many links have fixed, in no order."""
        number = np.empty(self.n, np.int64)
        number[self.records] = np.arange(self.n)
        pieces = [piece for link in self.fixed[-last:] for piece in link]
        return np.concatenate([np.empty(0, np.int64), *(number[piece.records] for piece in pieces)])


def arrays_of(chain: CoverChain) -> dict[str, NDArray[Any]]:
    """Return the arrays that a chain can be made of again."""
    parts = np.full(chain.n, _OPEN, np.int64)
    for number, pieces in enumerate(chain.fixed):
        for piece in pieces:
            parts[piece.records] = number
    sets = join_pieces(chain.n, [*chain.going, *(p for link in chain.fixed for p in link)])
    return {
        "records": chain.records,
        "cursor": np.array([chain.read, len(chain.fixed)]),
        "places": chain.places,
        "parts": parts,
        "start": sets.start,
        "members": sets.members,
        "table": chain.table,
    }


def resumed_covers(checkpoint: Checkpoint | None, n: int) -> CoverChain | None:
    """Return the chain over n records that a file keeps, None if it is not there.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, or of another computation.
    """
    arrays = None if checkpoint is None else checkpoint.read()
    if checkpoint is None or arrays is None:
        return None
    if not _is_whole(arrays, n):
        raise checkpoint.damaged()
    try:
        return _chain_of(arrays)
    except InvalidAssignment as error:
        raise checkpoint.damaged() from error


def _is_whole(arrays: Mapping[str, NDArray[Any]], n: int) -> bool:
    """Return whether arrays are those of a chain over n records, but for its sets."""
    names = ("records", "cursor", "places", "parts", "start", "members")
    if set(arrays) != {*names, "table"} or not is_table(arrays["table"]):
        return False
    if any(arrays[name].ndim != 1 or arrays[name].dtype.kind != "i" for name in names):
        return False
    if any(len(arrays[name]) != size for name, size in (("cursor", 2), ("parts", n))):
        return False
    (read, links), places, parts = arrays["cursor"].tolist(), arrays["places"], arrays["parts"]
    if not np.array_equal(np.sort(arrays["records"]), np.arange(n)) or not 0 <= read <= n:
        return False
    # Every place that was read is either fixed or carried over.
    by_place = parts[arrays["records"]]
    return (
        len(arrays["start"]) == n + 1
        and len(arrays["table"]) == links
        and bool(((parts >= _OPEN) & (parts < links)).all())
        and bool((by_place[read:] == _OPEN).all())
        and np.array_equal(places, np.flatnonzero(by_place[:read] == _OPEN))
    )


def _chain_of(arrays: Mapping[str, NDArray[Any]]) -> CoverChain:
    """Return the chain of its arrays.

    Raises
    ------
    InvalidAssignment
        If the sets name what is no record, or records that do not belong to their part.
    """
    records, parts = arrays["records"], arrays["parts"]
    sets = Cover(arrays["start"], arrays["members"])
    everything = CoverPiece(np.arange(len(records)), sets)
    read, links = arrays["cursor"].tolist()
    order = np.argsort(parts, kind="stable")
    ends = np.searchsorted(parts[order], np.arange(links + 1))
    carried = records[arrays["places"]]
    going = carried[sets.sizes[carried] > 0]
    own = [order[begin:end] for begin, end in pairwise(ends.tolist())]
    return CoverChain(
        records.astype(np.int64),
        read,
        arrays["places"].astype(np.int64),
        [everything.part(going)] if len(going) else [],
        [[everything.part(part)] if len(part) else [] for part in own],
        list(links_in(arrays["table"])),
    )
