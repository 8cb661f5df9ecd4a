"""What a checkpoint keeps of a chain of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.keeping import is_table
from anonymip.exact.split_carry.state import (
    CARRIED,
    LINKS,
    OPEN,
    PROVEN,
    READ,
    UNUSED,
    Chain,
    new_chain,
)


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


@dataclass(frozen=True, eq=False)
class ChainFile:
    """A chain of classes as a checkpoint keeps it.

    Parameters
    ----------
    chain
        That goes on in place.
    """

    chain: Chain

    def mark(self) -> dict[str, NDArray[Any]]:
        """Return a copy of what further links change of the chain, but for labels and table."""
        arrays = arrays_of(self.chain)
        return {name: arrays[name].copy() for name in ("carried", "started", "cursor", "sums")}

    def arrays_at(self, mark: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of the chain as it was at a mark."""
        cursor, chain = mark["cursor"], self.chain
        labels = chain.labels.copy()
        # What was fixed since then had been carried over, or was not read.
        labels[mark["carried"]] = OPEN
        labels[cursor[READ] :] = OPEN
        return {
            **arrays_of(chain),
            **mark,
            "labels": labels,
            "table": chain.table[: cursor[LINKS]],
        }

    def can_go_on(self) -> bool:
        """Return that any link may be the last of a run."""
        return True

    def proven_since(self, mark: Mapping[str, NDArray[Any]]) -> bool:
        """Return whether all links since a mark are proven."""
        table, first = self.chain.table, int(mark["cursor"][LINKS])
        return bool(table[first : self.chain.cursor[LINKS], PROVEN].all())


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
    # Files of earlier versions hold the time that was left, which is given again.
    chain.sums[UNUSED] = 0.0
    return chain
