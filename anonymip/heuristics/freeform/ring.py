"""Ring generalization over the whole table."""

from __future__ import annotations

from anonymip.heuristics.freeform.left_out import leaves_out
from anonymip.heuristics.freeform.partitioned import finish_cover
from anonymip.heuristics.freeform.rings import ring_of_all
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution


@leaves_out
def ring(
    problem: Problem, *, order: str = "hilbert", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Cover each record with the k - 1 next ones on a closed order [1]_.

    Over the whole table, as Xue et al. do [2]_, where the paper takes partitions; for those see
    :func:`~anonymip.heuristics.freeform.nh.nh`. Where reciprocal sets are asked for, the k - 1
    others lie on both sides; of an odd number of records and an even k the sets have k + 1 records
    then. Under a diversity records move in the order until any k that follow each other are
    diverse, with more than k where the values leave no other way (Section 6 of [1]_).

    `problem`: with freeform generalization, any objective. `order`: name of an order: ``variance``,
    ``cardinality``, ``snake``, ``hilbert``, ``neighbour``; each with ``+2opt``. `budget`: of the
    order. Complexity: O(n k) behind the sort. Raises InputError if there is no such order, or
    records are to have sets of different sizes; NoSolution if the sets break a limit, no order is
    diverse, or there are no reciprocal sets.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 5.1.
    .. [2] M. Xue, P. Karras, C. Raissi, J. Vaidya, K.-L. Tan: Anonymizing Set-Valued Data by
       Nonreciprocal Recoding, KDD 2012.
    """
    watch, budget = Stopwatch(), budget or Budget()
    cover = ring_of_all(problem, find_order(problem, order, budget), "ring")
    stopped, options = budget.stop_reason(), {"order": order}
    return finish_cover(problem, cover, "ring", watch, stopped=stopped, options=options)
