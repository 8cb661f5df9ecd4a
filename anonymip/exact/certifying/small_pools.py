"""The sets that duals leave for releases up to a goal, as long as they are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonymip.certificates.check import Duals, Table, search
from anonymip.enumeration.pricing import CutDuals, Pricing
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget

#: Distinct records up to which the checker's own search is faster than loading a compiled one.
_FEW = 40


class Pools:
    """Finds the sets of a problem whose reduced costs are at most a limit.

    Parameters
    ----------
    problem, table
        The same, for the package and in whole numbers.
    """

    def __init__(self, problem: Problem, table: Table) -> None:
        self.table = table
        self._pricing: Pricing | None = None
        if len(table.rows) > _FEW:
            self._pricing = Pricing(
                problem,
                smallest=problem.k,
                largest=table.largest,
                weight="size" if table.classes else "one",
            )

    def up_to(
        self, node: dict[str, Any], limit: int, most: int, budget: Budget
    ) -> dict[tuple[int, ...], int] | None:
        """Return the sets with their costs; None if there are too many, or time ended."""
        duals = Duals(self.table, node)
        if self._pricing is None:
            found = search(self.table, duals, limit)
            return found if len(found) <= most else None
        # Floats find all that lies below a little more; whole numbers decide.
        scale, first = self.table.scale, self._pricing.types.first
        rows = [self.table.types[record] for record in first.tolist()]
        number = {row: at for at, row in enumerate(rows)}
        cuts = node["cuts"]
        members = [[number[row] for row in cut[0]] for cut in cuts]
        of = np.array([duals.of[row] / scale for row in rows])
        slack = 1e-9 * float(np.abs(of).max())
        priced = self._pricing.all_below(
            of,
            (limit - duals.count) / scale + slack,
            CutDuals(
                np.concatenate([[0], np.cumsum([len(m) for m in members], dtype=np.int64)]),
                np.array([at for m in members for at in m], np.int64),
                np.array([cut[1] for cut in cuts], np.int64),
                np.array([cut[2] / scale for cut in cuts]),
            ),
            max_columns=most,
            budget=budget,
        )
        if not priced.complete:
            return None
        found = {}
        for column in range(len(priced)):
            held = priced.types[priced.starts[column] : priced.starts[column + 1]].tolist()
            key = tuple(sorted(rows[at] for at in held))
            cost = cost_of(self.table, key)
            if duals.reduced(key, cost) <= limit:
                found[key] = cost
        return found


def cost_of(table: Table, members: tuple[int, ...]) -> int:
    """Return the cost of an admissible set of distinct records."""
    loss, covered = 0, None
    for row in members:
        loss, covered = table.grown(covered, row)
    return table.cost(loss, len(members))
