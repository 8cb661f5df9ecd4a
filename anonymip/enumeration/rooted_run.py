"""A search for columns as Python runs it: in steps, with room made where it is needed."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from anonymip.enumeration.rooted_search import COMPLETE, CRAMPED, FULL, search_columns
from anonymip.enumeration.rooted_state import (
    ROOT,
    SIZE,
    ColumnsFound,
    CutsOfRows,
    RootedFollowers,
    RootedPath,
    RootedRules,
    Roots,
    SearchRows,
    new_columns_found,
    new_rooted_followers,
    new_rooted_path,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.budget import Budget

#: No limit of columns or nodes.
UNLIMITED = 2**62

_SECONDS_A_STEP = 0.1


class RootedRun:
    """Runs searches for columns, one after the other; the memory stays.

    Parameters
    ----------
    tables, rows
        As for `search_columns`.
    largest
        Most rows of a column.

    Attributes
    ----------
    found
        Columns of the last search.
    reason
        What ended it early: ``"max_columns"``, ``"max_nodes"``, or the value of
        :class:`~anonymip.status.Stopped`; None if nothing did.
    complete
        Whether it went through and gave no root up.
    nodes
        Partial sets that it looked at.
    """

    def __init__(self, tables: LossTables, rows: SearchRows, largest: int) -> None:
        self.tables, self.rows = tables, rows
        self.found = new_columns_found(1_000, 1_000 * largest)
        self.reason: str | None = None
        self.complete, self.nodes = False, 0
        self._path = new_rooted_path(tables, rows, largest)
        self._followers = new_rooted_followers(4 * len(rows.copies) + 64)

    def search(
        self,
        cuts: CutsOfRows,
        rules: RootedRules,
        roots: Roots,
        budget: Budget,
        *,
        phase: str = "pricing",
        max_columns: int = UNLIMITED,
        max_nodes: int = UNLIMITED,
    ) -> None:
        """Search all roots, until something ends it.

        Of roots that were not searched to the end nothing is proven: `least` is minus infinity.
        """
        path = self._path
        _restart(path, rules.largest)
        self.found.held[:] = 0
        self.complete, self.reason = False, None
        amount, searched = 100, 0
        while self.reason is None:
            stopped = budget.stop_reason()
            if stopped is not None:
                self.reason = stopped.value
                break
            start, before = time.perf_counter(), int(path.nodes[0])
            most = min(before + amount, max_nodes)
            status = search_columns(
                self.tables,
                self.rows,
                cuts,
                rules,
                roots,
                path,
                self._followers,
                self.found,
                most,
            )
            searched = int(path.place[ROOT])
            budget.report(phase, done=int(self.found.held[0]))
            if self.found.held[0] > max_columns:
                self.reason = "max_columns"
            elif status == COMPLETE:
                self.complete, searched = int(path.nodes[2]) == 0, len(roots.types)
                break
            elif status == FULL:
                held, *arrays = self.found
                self.found = ColumnsFound(held, *map(_larger, arrays))
            elif status == CRAMPED:
                self._followers = RootedFollowers(*map(_larger, self._followers))
            elif most == max_nodes:
                self.reason = "max_nodes"
            else:
                rate = amount / max(time.perf_counter() - start, 1e-6)
                amount = max(1, min(int(rate * _SECONDS_A_STEP), 4 * amount))
        roots.least[max(0, searched) :] = -math.inf
        self.nodes = int(path.nodes[0])


def _restart(path: RootedPath, largest: int) -> None:
    path.place[:] = 0
    path.place[ROOT], path.place[SIZE] = -1, largest
    path.nodes[:] = 0
    path.used[:] = 0
    path.counts.held[:] = 0


def _larger(array: Any) -> Any:
    """Return an array with twice the room."""
    return np.concatenate([array, np.empty_like(array)])
