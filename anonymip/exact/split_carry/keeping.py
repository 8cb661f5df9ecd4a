"""Keeping a chain in a checkpoint while it grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.state import (
    LINK_COLUMNS,
    NO_START,
    REASON,
    REASONS,
    START,
    START_ACCEPTED,
    START_REFUSED,
)
from anonymip.runtime.budget import Budget


class Keepable(Protocol):
    """A chain as a file keeps it."""

    def mark(self) -> Any:
        """Return a copy of what further links change of the chain."""
        ...

    def arrays_at(self, mark: Any) -> Mapping[str, NDArray[Any]]:
        """Return the arrays of the chain as it was at a mark."""
        ...

    def can_go_on(self) -> bool:
        """Return whether a later run may go on behind the last link."""
        ...

    def proven_since(self, mark: Any) -> bool:
        """Return whether all links since a mark are proven."""
        ...


class Keeper:
    """Keeps a chain in a checkpoint while it grows.

    A link that is cut short, by Ctrl-C or the end of the time, is good enough for a release that
    is made now. A run that goes on later is to solve it in full, so it is not kept.

    Parameters
    ----------
    checkpoint
        The file; with None nothing is kept.
    chain
        As it is before the links to come.
    budget
        Of the links.
    """

    def __init__(self, checkpoint: Checkpoint | None, chain: Keepable, budget: Budget) -> None:
        self._checkpoint, self._chain, self._budget = checkpoint, chain, budget
        self._mark = None if checkpoint is None else chain.mark()

    def notice(self) -> None:
        """Take notice of the links since the last call; write the file if it is time to."""
        if self._checkpoint is None or not self._chain.can_go_on():
            return
        ended = self._budget.stop_reason() is not None
        if ended and not self._chain.proven_since(self._mark):
            return
        self._mark = self._chain.mark()
        if self._checkpoint.is_due:
            self.keep()

    def keep(self) -> None:
        """Write the file, without links that were cut short; called when a run stops."""
        if self._checkpoint is not None:
            self._checkpoint.write(self._chain.arrays_at(self._mark))


def is_table(table: NDArray[Any]) -> bool:
    """Return whether an array is a table of links."""
    if table.dtype != np.float64 or table.shape[1:] != (LINK_COLUMNS,):
        return False
    starts = (NO_START, START_REFUSED, START_ACCEPTED)
    return bool(
        np.isin(table[:, START], starts).all()
        and np.isin(table[:, REASON], np.arange(len(REASONS))).all()
    )
