"""The linear relaxation of set partitioning by groups, which grows by groups and by triples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array, hstack, vstack

from anonymip.bounds.patterns.pattern_groups import RecordGroups
from anonymip.bounds.patterns.pattern_program import PatternProgram
from anonymip.runtime.budget import Budget
from anonymip.solvers.linear_programs import GrowingProgram


class Relaxation:
    """Every record is in groups once in sum, or alone at the cost of that if it is allowed.

    Each solve goes on from the last basis.

    Parameters
    ----------
    program
        Of the problem.
    """

    def __init__(self, program: PatternProgram) -> None:
        self._program = program
        self._losses: dict[bytes, float] = {}
        self._groups: RecordGroups | None = None
        self._alone = program.type_count if np.isfinite(program.price) else 0
        records = program.counts.astype(np.float64)
        self._model = GrowingProgram(records, records)
        if self._alone:
            price = np.full(program.type_count, program.price)
            self._model.add_columns(price, csc_array(np.eye(program.type_count)))

    def add(self, groups: RecordGroups, triples: NDArray[np.int64]) -> RecordGroups:
        """Add what is new or cheaper than known, given all triples so far; return all groups."""
        cost = losses(self._program, groups)
        new = np.zeros(len(groups), np.bool_)
        for at, (members, loss) in enumerate(zip(groups.members, cost.tolist(), strict=True)):
            if loss < self._losses.get(key := members.tobytes(), np.inf):
                self._losses[key], new[at] = loss, True
        groups = groups.only(new)
        matrix = incidence(groups, self._program.type_count)
        if len(groups):
            held = held_by(matrix, triples)
            self._model.add_columns(cost[new], csc_array(vstack([matrix, held])))
        self._groups = groups if self._groups is None else self._groups.and_also(groups)
        return self._groups

    def forbid(self, groups: RecordGroups, triples: NDArray[np.int64]) -> None:
        """Let all groups, which are given, hold two or three of each new triple once in sum."""
        if not len(triples):
            return
        held = held_by(incidence(groups, self._program.type_count), triples)
        count = len(triples)
        alone = csc_array((count, self._alone))
        self._model.add_rows(
            csr_array(hstack([alone, held])), np.full(count, -np.inf), np.ones(count)
        )

    def solve(
        self, budget: Budget
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """Return value, shares of groups, duals of row types and of triples; None without time."""
        found = self._model.solve(budget)
        if found is None:
            return None
        t = self._program.type_count
        triples = np.maximum(0.0, -found.duals[t:])
        return found.value, found.point[self._alone :], found.duals[:t], triples


def incidence(groups: RecordGroups, type_count: int) -> csc_array:
    """Return (t, g) the records of each row type in each group."""
    group, place = np.nonzero(groups.members >= 0)
    ones = np.ones(len(group))
    shape = (type_count, len(groups))
    return csc_array(coo_array((ones, (groups.members[group, place], group)), shape=shape))


def held_by(matrix: csc_array, triples: NDArray[np.int64]) -> csc_array:
    """Return (c, g) whether a group holds two or three of a triple, given its incidence."""
    count = len(triples)
    rows = np.repeat(np.arange(count), 3)
    chosen = coo_array(
        (np.ones(len(rows)), (rows, triples.ravel())), shape=(count, matrix.shape[0])
    )
    held = csc_array(chosen.tocsr() @ matrix)
    held.data = (held.data >= 2).astype(np.float64)
    held.eliminate_zeros()
    return held


def losses(program: PatternProgram, groups: RecordGroups) -> NDArray[np.float64]:
    """Return (g,) the loss of all records of each group."""
    return np.asarray(program.costs[groups.patterns] * groups.sizes, np.float64)
