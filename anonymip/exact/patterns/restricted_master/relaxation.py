"""The linear relaxation of set partitioning by groups, which grows by groups and by triples."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, vstack

from anonymip.bounds.patterns.pattern_groups import RecordGroups
from anonymip.bounds.patterns.pattern_program import PatternProgram
from anonymip.runtime.budget import Budget


class Relaxation:
    """Every record is in groups once in sum, or alone at its price if there is one.

    HiGHS goes on from the last basis each time.

    Parameters
    ----------
    program
        Of the problem.
    """

    def __init__(self, program: PatternProgram) -> None:
        self._program = program
        self._losses: dict[bytes, float] = {}
        self._groups: RecordGroups | None = None
        self._alone = program.kinds if np.isfinite(program.price) else 0
        self._model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._model.setOptionValue("output_flag", False)
        self._model.setOptionValue("threads", 1)
        records = program.counts.astype(np.float64)
        none = np.zeros(program.kinds, np.int32)
        empty = np.empty(0)
        self._model.addRows(program.kinds, records, records, 0, none, empty.astype(np.int32), empty)
        if self._alone:
            self._columns(np.full(program.kinds, program.price), csc_array(np.eye(program.kinds)))

    def add(self, groups: RecordGroups, triples: NDArray[np.int64]) -> RecordGroups:
        """Add what is new or cheaper than known, given all triples so far; return all groups."""
        cost = losses(self._program, groups)
        new = np.zeros(len(groups), np.bool_)
        for at, (members, loss) in enumerate(zip(groups.members, cost.tolist(), strict=True)):
            if loss < self._losses.get(key := members.tobytes(), np.inf):
                self._losses[key], new[at] = loss, True
        groups = groups.only(new)
        matrix = incidence(groups, self._program.kinds)
        if len(groups):
            self._columns(cost[new], csc_array(vstack([matrix, held_by(matrix, triples)])))
        self._groups = groups if self._groups is None else self._groups.and_also(groups)
        return self._groups

    def forbid(self, groups: RecordGroups, triples: NDArray[np.int64]) -> None:
        """Let all groups, which are given, hold two or three of each new triple once in sum."""
        if not len(triples):
            return
        held = held_by(incidence(groups, self._program.kinds), triples).tocsr()
        count = len(triples)
        self._model.addRows(
            count,
            np.full(count, -highspy.kHighsInf),
            np.ones(count),
            held.nnz,
            held.indptr[:-1].astype(np.int32),
            (held.indices + self._alone).astype(np.int32),
            held.data,
        )

    def solve(
        self, budget: Budget
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the value, shares of groups, prices of kinds and of triples; None without time."""
        left = budget.remaining()
        if left is not None:
            # The limit counts from when the model was made.
            self._model.setOptionValue("time_limit", self._model.getRunTime() + max(left, 1e-3))
        self._model.run()
        if self._model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._model.getSolution()
        shares = np.asarray(solution.col_value, np.float64)[self._alone :]
        prices = np.asarray(solution.row_dual, np.float64)
        kinds = self._program.kinds
        loss = float(self._model.getInfo().objective_function_value)
        return loss, shares, prices[:kinds], np.maximum(0.0, -prices[kinds:])

    def _columns(self, cost: NDArray[np.float64], matrix: csc_array) -> None:
        count = len(cost)
        self._model.addCols(
            count,
            cost,
            np.zeros(count),
            np.full(count, highspy.kHighsInf),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.float64),
        )


def incidence(groups: RecordGroups, kinds: int) -> csc_array:
    """Return (t, g) the records of each kind in each group."""
    group, place = np.nonzero(groups.members >= 0)
    ones = np.ones(len(group))
    shape = (kinds, len(groups))
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
