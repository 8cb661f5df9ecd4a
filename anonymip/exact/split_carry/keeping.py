"""What a checkpoint keeps of a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.state import (
    CARRIED,
    LINK_COLUMNS,
    LINKS,
    NO_START,
    OPEN,
    PROVEN,
    READ,
    REASON,
    REASONS,
    START,
    START_ACCEPTED,
    START_REFUSED,
    UNUSED,
    Chain,
    new_chain,
)
from anonymip.runtime.budget import Budget


def arrays_of(chain: Chain) -> dict[str, NDArray[Any]]:
    """Return the arrays of a chain, without the room that it does not use yet."""
    carried, links = int(chain.cursor[CARRIED]), int(chain.cursor[LINKS])
    used = {
        "carried": chain.carried[:carried],
        "started": chain.started[:carried],
        "table": chain.table[:links],
        "room": np.array(len(chain.table)),
    }
    return {**chain._asdict(), **used}


def chain_of(arrays: Mapping[str, NDArray[Any]]) -> Chain:
    """Return the chain of its arrays, with the room that it had."""
    chain = new_chain(arrays["records"], int(arrays["room"]))
    for name, array in chain._asdict().items():
        array[: len(arrays[name])] = arrays[name]
    return chain


class Keeper:
    """Keeps a chain in a checkpoint while it grows.

    A link that is cut short, by Ctrl-C or the end of the time, is good enough for a release that
    is made now. A run that goes on later is to solve it in full, so it is not kept.

    Parameters
    ----------
    checkpoint
        The file; with None nothing is kept.
    chain
        As it stands before the links to come.
    budget
        Of the links.
    """

    def __init__(self, checkpoint: Checkpoint | None, chain: Chain, budget: Budget) -> None:
        self._checkpoint, self._budget = checkpoint, budget
        self._before = _before_links(chain)

    def __call__(self, chain: Chain) -> None:
        """Take notice of the links since the last call; write the file if it is time to."""
        if self._checkpoint is None:
            return
        first = int(self._before["cursor"][LINKS])
        solved = chain.table[first : chain.cursor[LINKS], PROVEN]
        if self._budget.stop_reason() is not None and not solved.all():
            return
        self._before = _before_links(chain)
        if self._checkpoint.is_due:
            self._checkpoint.write(arrays_of(chain))

    def keep(self, chain: Chain) -> None:
        """Write the file, without links that were cut short; called when a run stops."""
        if self._checkpoint is not None:
            self._checkpoint.write(arrays_of(chain) | self._undone(chain))

    def _undone(self, chain: Chain) -> dict[str, NDArray[Any]]:
        """Return the arrays of the chain as it was when it was noticed last."""
        cursor = self._before["cursor"]
        labels = chain.labels.copy()
        # What was settled since then had been carried, or was not read.
        labels[self._before["carried"]] = OPEN
        labels[cursor[READ] :] = OPEN
        return {**self._before, "labels": labels, "table": chain.table[: cursor[LINKS]]}


def _before_links(chain: Chain) -> dict[str, NDArray[Any]]:
    """Return a copy of what tells a chain apart from the same chain some links later."""
    arrays = arrays_of(chain)
    return {name: arrays[name].copy() for name in ("carried", "started", "cursor", "sums")}


def is_table(table: NDArray[Any]) -> bool:
    """Return whether an array is a table of links."""
    if table.dtype != np.float64 or table.shape[1:] != (LINK_COLUMNS,):
        return False
    starts = (NO_START, START_REFUSED, START_ACCEPTED)
    return bool(
        np.isin(table[:, START], starts).all()
        and np.isin(table[:, REASON], np.arange(len(REASONS))).all()
    )


def _is_whole(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether arrays are those of a chain: kernels check no bounds."""
    if set(arrays) != {*Chain._fields, "room"} or arrays["room"].shape != ():
        return False
    records = arrays["records"]
    if records.ndim != 1:
        return False
    n, room = len(records), int(arrays["room"])
    form = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    for name, array in new_chain(np.arange(n), 1)._asdict().items():
        shape = form[name][1]
        free = name in ("carried", "started", "table")
        if form[name][0] != array.dtype or (not free and shape != array.shape):
            return False
    read, carried, label, links = arrays["cursor"].tolist()
    return (
        0 <= carried <= read <= n
        and 0 <= label <= n
        and 0 <= links <= room <= n
        and form["carried"][1] == form["started"][1] == (carried,)
        and is_table(arrays["table"])
        and len(arrays["table"]) == links
        and len(np.unique(records)) == n
        and bool(((arrays["carried"] >= 0) & (arrays["carried"] < read)).all())
        and bool((np.diff(arrays["carried"]) > 0).all())
        and bool(((arrays["started"] >= SUPPRESSED) & (arrays["started"] < n)).all())
        and bool((arrays["labels"] >= OPEN).all())
    )


def resumed(checkpoint: Checkpoint | None) -> Chain | None:
    """Return the chain that a file keeps, None if it is not there."""
    arrays = None if checkpoint is None else checkpoint.read()
    if checkpoint is None or arrays is None:
        return None
    if not _is_whole(arrays):
        raise checkpoint.damaged()
    chain = chain_of(arrays)
    # Time is given anew.
    chain.sums[UNUSED] = 0.0
    return chain
