"""The state of a chain of sub-problems: arrays of numbers that a file can keep exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymip.assignments import SUPPRESSED
from anonymip.runtime.arrays import Floats, Ints
from anonymip.status import Stopped

#: Label of a record that no link has fixed yet.
OPEN = -2

#: What the cursor of a chain holds at its places.
READ, CARRIED, NEXT_LABEL, LINKS = range(4)
#: What the sums of a chain hold at their places.
LOSS, UNUSED = range(2)
#: The columns of the table of links.
SIZE, FROM_BEFORE, OBJECTIVE, BOUND, PROVEN, START, SECONDS, REASON = range(8)
LINK_COLUMNS = 8
#: What the column of the start says.
NO_START, START_REFUSED, START_ACCEPTED = -1.0, 0.0, 1.0
#: What keeps links from a proof, and how remarks name them; the column of the reason says which of
#: them it is. The first means none.
REASONS = {
    "": "proven",
    "time": "out of time",
    "interrupt": "interrupted",
    "cap": "at the cap of the search",
    "solver": "not closed by the solver",
    "rules": "with rows that fit no class",
    "failed": "in which the solver failed",
    "licence": "above the size of the solver's licence",
}
#: Those that proven links have as well, since something else took the solver's place.
REPLACED = ("failed", "licence")
_REASONS = tuple(REASONS)


class Chain(NamedTuple):
    """A chain and how far it has come; a place is a record's position in the order.

    All of it is arrays that change in place. A copy of the arrays, the first `cursor[CARRIED]` of
    `carried` and `started` and the first `cursor[LINKS]` rows of `table`, is all that a chain
    needs to go on.
    """

    records: Ints  # (n,) int64, the records in their order
    #: (n,) int64, class of the record at each place: at least 0 fixed, -1 fixed as suppressed, -2
    #: not fixed.
    labels: Ints
    #: (n,) int64, of which the first `cursor[CARRIED]` count: places carried over into the next
    #: link, ascending, so the oldest come first.
    carried: Ints
    #: (n,) int64, the class that each of them comes with, numbered from 0 in the order of first
    #: appearance; -1 for those that come without one.
    started: Ints
    cursor: Ints  # (4,) int64: places read; places carried over; next label; links solved
    #: (2,) float64: loss of the fixed classes, their largest where the objective takes the maximum;
    #: 0, which was the seconds left unused in files of earlier versions.
    sums: Floats
    #: (most links, 8) float64, of which the first `cursor[LINKS]` rows count, see :class:`Link`; a
    #: bound is NaN where it is unknown.
    table: Floats

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.records)

    @property
    def done(self) -> bool:
        """Whether all records are fixed."""
        return int(self.cursor[READ]) == self.n and int(self.cursor[CARRIED]) == 0

    @property
    def solved(self) -> int:
        """Number of links solved so far."""
        return int(self.cursor[LINKS])


@dataclass(frozen=True)
class Link:
    """One sub-problem of a chain."""

    size: int  # its records
    carried: int  # those of them that came from the link before
    objective: float  # loss of the classes found for it, of which some are carried over
    #: No classes of these records lose less, None if unknown. Says nothing of the whole table.
    bound: float | None
    proven: bool  # whether the classes are proven to be the best of these records
    #: Whether the solver took the start; None where nothing was handed to a solver.
    start_accepted: bool | None
    seconds: float  # spent on it; links that were solved in one go share their time evenly
    #: What kept it from a proof: ``"time"``, ``"interrupt"``, ``"cap"`` of the search, ``"solver"``
    #: (a gap that was allowed, a limit of its own, a bound that is not relied on), ``"rules"`` (no
    #: release of its records was found); empty if it is proven. Also that something took the place
    #: of a solver that had ``"failed"``, or whose ``"licence"`` is for smaller models, whether or
    #: not that proved it.
    reason: str = ""


def new_chain(records: Ints, links: int) -> Chain:
    """Return a chain over records in their order that has not begun.

    `records`: (n,) the order, or a segment of it. `links`: room for so many links.
    """
    n = len(records)
    return Chain(
        np.ascontiguousarray(records, np.int64),
        np.full(n, OPEN, np.int64),
        np.zeros(n, np.int64),
        np.full(n, SUPPRESSED, np.int64),
        np.zeros(4, np.int64),
        np.array([0.0, 0.0]),
        np.zeros((links, LINK_COLUMNS)),
    )


def links_of(chain: Chain) -> tuple[Link, ...]:
    """Return the links solved so far, in their order."""
    starts = {NO_START: None, START_REFUSED: False, START_ACCEPTED: True}
    return tuple(
        Link(
            size=int(row[SIZE]),
            carried=int(row[FROM_BEFORE]),
            objective=row[OBJECTIVE],
            bound=None if np.isnan(row[BOUND]) else row[BOUND],
            proven=bool(row[PROVEN]),
            start_accepted=starts[row[START]],
            seconds=row[SECONDS],
            reason=_REASONS[int(row[REASON])],
        )
        for row in chain.table[: chain.cursor[LINKS]].tolist()
    )


def add_link(chain: Chain, link: Link) -> None:
    """Append a link to the table."""
    chain.table[chain.cursor[LINKS]] = (
        link.size,
        link.carried,
        link.objective,
        np.nan if link.bound is None else link.bound,
        link.proven,
        {None: NO_START, False: START_REFUSED, True: START_ACCEPTED}[link.start_accepted],
        link.seconds,
        _REASONS.index(link.reason),
    )
    chain.cursor[LINKS] += 1


def reason_of(reported: str | None) -> str:
    """Return the reason of a link for what a solver reports.

    `reported`: the value of a :class:`~anonymip.status.Stopped`, or what the search of small
    sub-problems reports.
    """
    known = {Stopped.TIME.value: "time", Stopped.INTERRUPT.value: "interrupt"}
    known |= {Stopped.ERROR.value: "failed"}
    known |= dict.fromkeys(("max_nodes", "max_sets", "size"), "cap")
    return known.get(reported or "", "solver")
