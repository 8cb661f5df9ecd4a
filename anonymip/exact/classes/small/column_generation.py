"""Better duals for a small sub-problem by column generation, where the first ones prove too little.

The master is the linear relaxation of set partitioning over some sets; the depth-first search finds
the sets of negative reduced cost under its duals. When there is none left, the sum of the duals
bounds every release. What remains is the exact cover by the sets whose reduced cost is below the
gap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Classes
from anonymip.exact.classes.small.exact_cover import cheapest_cover, sort_found
from anonymip.exact.classes.small.row_types import label_cover
from anonymip.exact.classes.small.set_search import COMPLETE, list_sets, rank_types
from anonymip.exact.classes.small.workspace import SmallRules, SmallWork
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solvers.linear_programs import solve_linear_program
from anonymip.tolerances import DUAL_ROUNDING, LOSS_RELATIVE, VISIBLE_SLACK

#: Rounds of column generation at most; thirty types take about twenty.
_ROUNDS = 300
#: Sets that enter the master in a round at most.
_SETS_A_ROUND = 2_000


class ColumnGeneration:
    """Column generation over the sets of a sub-problem that the kernel has capped.

    Parameters
    ----------
    problem
        The sub-problem: all rows of its table.
    rows, rules, work
        As the kernel left them.
    max_nodes
        Partial sets and covers that one search looks at.
    """

    def __init__(
        self,
        problem: Problem,
        rows: KernelRows,
        rules: SmallRules,
        work: SmallWork,
        max_nodes: int,
    ) -> None:
        self.problem, self.rows, self.rules, self.work = problem, rows, rules, work
        self.max_nodes, self.nodes = max_nodes, 0
        self.chosen = np.arange(problem.n)
        self.count = int(np.argmax(work.begin[1:] == problem.n)) + 1
        self.counts = np.diff(work.begin[: self.count + 1])
        self.merged = np.empty(problem.n, np.int64)
        self.merged[work.order[: problem.n]] = np.repeat(np.arange(self.count), self.counts)
        self.scale = abs(float(work.result[0])) + abs(float(work.result[1]))

    def prove(self, budget: Budget) -> bool:
        """Improve labels and bound in the workspace; return whether the labels are proven best."""
        duals = self._valid_duals(budget)
        if duals is None:
            return False
        loss, dual_sum = float(self.work.result[0]), float(duals @ self.counts)
        dual_sum -= LOSS_RELATIVE * float(np.abs(duals) @ self.counts)
        slack = LOSS_RELATIVE * 1e-3 * (abs(loss) + abs(dual_sum))
        slack += DUAL_ROUNDING * float(np.abs(duals) @ self.counts)
        self.work.result[1] = max(self.work.result[1], min(dual_sum, loss))
        if slack > VISIBLE_SLACK * abs(loss):
            return False
        if loss - dual_sum > slack:
            if self._list(duals, loss - dual_sum - slack) != COMPLETE:
                return False
            sort_found(self.work.found, self.count)
            self.work.nodes[0] = 0
            sets, complete = cheapest_cover(
                self.rules.summed,
                self.work.packing,
                self.work.found,
                self.work.cover,
                self.count,
                loss - dual_sum,
                slack,
                self.work.nodes,
                self.max_nodes,
            )
            self.nodes += int(self.work.nodes[0])
            if sets:
                label_cover(self.work, self.count, sets)
            if not complete:
                return False
        return True

    def _valid_duals(self, budget: Budget) -> NDArray[np.float64] | None:
        """Return (types,) duals without a set of negative reduced cost; None without time."""
        duals = self.work.duals[: self.count].copy()
        cutoff = float(self.work.result[0]) - float(duals @ self.counts)
        while self._list(duals, cutoff) != COMPLETE:
            cutoff /= 2
            if cutoff <= LOSS_RELATIVE * self.scale or budget.stop_reason() is not None:
                return None
        known, losses = self._known_classes()
        columns, costs = [known], [losses]
        sets, reduced = self._found()
        columns.append(sets)
        costs.append(reduced + sets @ duals)
        tolerance = LOSS_RELATIVE * self.scale / self.problem.n
        for _ in range(_ROUNDS):
            if budget.stop_reason() is not None:
                return None
            solved = self._duals(np.concatenate(columns), np.concatenate(costs), budget)
            if solved is None:
                return None
            duals = solved
            status = self._list(duals, -tolerance)
            if status == COMPLETE and not self.work.found.held[0]:
                repaired: NDArray[np.float64] = duals - tolerance
                return repaired
            if not self.work.found.held[0]:
                return None
            sets, reduced = self._found()
            columns.append(sets)
            costs.append(reduced + sets @ duals)
        return None

    def _duals(
        self, sets: NDArray[np.float64], costs: NDArray[np.float64], budget: Budget
    ) -> NDArray[np.float64] | None:
        """Return the duals of the master over some sets; None if there is no time."""
        wanted = self.counts.astype(np.float64)
        found = solve_linear_program(costs, sets.T, wanted, wanted, presolve=False, budget=budget)
        return None if found is None else found.duals

    def _list(self, duals: NDArray[np.float64], cutoff: float) -> int:
        """List the sets whose reduced cost is below the cutoff."""
        self.work.duals[: self.count] = duals
        rank_types(self.rows, self.rules, self.work, self.chosen, self.count)
        self.work.nodes[0] = 0
        tables, size = self.problem.compiled.tables, self.problem.n
        status = list_sets(tables, self.rules, self.work, self.count, size, cutoff, self.max_nodes)
        self.nodes += int(self.work.nodes[0])
        return int(status)

    def _found(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (sets, types) counts of the listed sets and their reduced costs, the least."""
        packing, held = self.work.packing, int(self.work.found.held[0])
        costs = self.work.found.costs[:held]
        least = np.argsort(costs, kind="stable")[:_SETS_A_ROUND]
        words = self.work.found.packed[least]
        ranked = (words[:, None] & packing.fields[: self.count]) >> packing.shift[: self.count]
        sets = np.empty((len(least), self.count))
        sets[:, self.work.types.rank[: self.count]] = ranked
        return sets, costs[least].copy()

    def _known_classes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (classes, types) counts of the known classes and their losses."""
        groups = Classes(self.work.labels[: self.problem.n].astype(np.int32)).groups()
        sets = np.zeros((len(groups), self.count))
        losses = np.empty(len(groups))
        for label, group in enumerate(groups):
            np.add.at(sets[label], self.merged[group], 1.0)
            losses[label] = self.problem.compiled.class_losses(group[None, :])[0]
        return sets, losses
