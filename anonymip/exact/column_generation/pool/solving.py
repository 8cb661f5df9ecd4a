"""The cheapest selection from a pool of columns, proven.

Given all columns that a release cheaper than some value may hold, the pool decides whether there
is one. Its relaxation is solved with rank-1 cuts; columns whose reduced costs lie above what is
left of the gap are dropped; what is left goes to a solver as an integer program where it is small,
and is branched on elsewhere, best bound first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.column_generation.cuts import RankOneCut
from anonymip.exact.column_generation.pool.pool import Pool
from anonymip.exact.column_generation.pool.search import PoolAnswer, PoolSearch
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions


def solve_pool(
    incidence: csr_array,
    costs: NDArray[np.float64],
    coverage: NDArray[np.int64],
    *,
    upper_bound: float,
    count_limit: int | None = None,
    cuts: Sequence[RankOneCut] = (),
    start: NDArray[np.int64] | None = None,
    solver: str | None = "highs",
    options: SolverOptions | None = None,
    max_nodes: int | None = None,
    known_after: tuple[int, Callable[[], float]] | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> PoolAnswer:
    """Return the cheapest selection from a pool, if one costs less than a bound.

    Parameters
    ----------
    incidence
        (c, t) members of each row type in each column, each column with at least one.
    costs
        (c,) finite, at least 0.
    coverage
        (t,) how often a selection covers each type, exactly.
    upper_bound
        What costs as much is not looked for: the loss of a known release, or a target.
    count_limit
        Most columns in a selection; None where coverage alone decides.
    cuts
        To begin with.
    start
        Columns that the relaxation begins with, such as those of a master's optimum.
    solver
        Of what is small; None to branch only.
    options
        Of the solver.
    max_nodes
        Of the branching, after which the answer is not complete; None for no limit.
    known_after
        After so many nodes a better upper bound may be known, which is asked for then.
    budget
        When to stop.
    seed
        Of the separation of cuts and of the solver.

    Notes
    -----
    The bound is that of the duals, lowered by what reduced costs below zero and rounding take from
    it, not the value that the solver of the linear programs reports. The same seed gives the same
    answer, unless time ends it.
    """
    unit = _unit(costs)
    pool = Pool(csr_array(incidence), costs / unit, coverage, count_limit)
    options = replace(options or SolverOptions(), seed=seed)
    search = PoolSearch(
        pool, upper_bound / unit, tuple(cuts), solver, options, budget or Budget(), max_nodes
    )
    if known_after is not None:
        nodes, known = known_after
        search.ask_after(nodes, lambda: known() / unit)
    answer = search.run(start)
    value = None if answer.chosen is None else Pool.cost(replace(pool, costs=costs), answer.chosen)
    bound = answer.bound * unit
    return replace(
        answer,
        value=value,
        bound=float(bound if value is None else min(bound, value)),
        duals=answer.duals * unit,
    )


def _unit(costs: NDArray[np.float64]) -> float:
    """Return the power of two next below the mean cost: solvers' tolerances suit costs of 1."""
    mean = float(costs.mean()) if len(costs) else 0.0
    return 2.0 ** np.floor(np.log2(mean)) if mean > 0 else 1.0
