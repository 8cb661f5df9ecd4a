"""Exact solver of small problems of equivalence classes: some thirty records, any loss and rules.

Where the loss has monotone tables and there are no limits, compiled kernels do the work: a first
release by the best cut, duals from the linear relaxation over the sets of k rows, the list of the
classes that a better release may hold, and the cheapest exact cover by them. Where these sets are
too many, or the largest loss counts, swaps improve the release and nearest sets give the duals;
what is capped is tried again by column generation. Everything else goes through the enumeration of
all possible classes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anonymip.assignments import Classes
from anonymip.errors import InputError, NoSolution
from anonymip.exact.classes.small.column_generation import ColumnGeneration
from anonymip.exact.classes.small.enumerated_classes import solve_enumerated
from anonymip.exact.classes.small.kernels import PROVEN, compiles, small_rules, solve_rows
from anonymip.exact.classes.small.result import SmallResult
from anonymip.exact.classes.small.workspace import new_small_work
from anonymip.exact.trust import under_assumptions
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.budget import Budget
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped

#: Partial sets and partial covers that one search looks at by default.
MAX_NODES = 1_000_000
#: Rows up to which column generation tries what the search could not finish: with more it takes
#: long and seldom leads to a proof.
_COLUMN_GENERATION_ROWS = 30

#: Records up to which losses are compared exactly after another proof, and nodes of that.
_COMPARED, _COMPARED_NODES = 16, 200_000

#: Nodes that a kernel looks at in a second at least, on the sizes that it is made for.
_NODES_A_SECOND = 200_000


def solve_small(
    problem: Problem,
    *,
    budget: Budget | None = None,
    max_nodes: int = MAX_NODES,
    seed: int = 0,
) -> SmallResult:
    """Return the best classes of a small problem, or the best found and a lower bound.

    Parameters
    ----------
    problem
        With equivalence classes. Up to about thirty records are proven as a rule; more where many
        are alike.
    budget
        Ends the search; it is asked between searches, each of which looks at no more nodes than
        there is time for.
    max_nodes
        Partial sets and partial covers that one search looks at.
    seed
        Of the heuristics that the search starts from.

    Notes
    -----
    Complexity: exponential in the worst case. A sub-problem of 12 to 18 records with k = 3 takes
    microseconds where many records are alike, mostly less than half a millisecond else.

    Raises
    ------
    InputError
        If the problem has another recoding, or `max_nodes` is below 1.
    NoSolution
        If no release keeps the rules, or none was found before the search ended.
    """
    if not isinstance(problem.recoding, EquivalenceClasses):
        raise InputError(
            f"the recoding is {problem.recoding.name}", remedy="Use equivalence classes"
        )
    if max_nodes < 1:
        raise InputError(f"max_nodes is {max_nodes}", remedy="Give a whole number of at least 1")
    budget = budget or Budget()
    remaining = budget.remaining()
    if remaining is not None:
        max_nodes = max(1, min(max_nodes, int(remaining * _NODES_A_SECOND)))
    if compiles(problem):
        return _solve_compiled(problem, budget, max_nodes)
    return solve_enumerated(problem, budget, max_nodes, seed)


def _solve_compiled(problem: Problem, budget: Budget, max_nodes: int) -> SmallResult:
    tables, rules = problem.compiled.tables, small_rules(problem)
    every = np.arange(problem.n)
    rows = kernel_rows(problem.microdata, tables, every)
    work = new_small_work(tables, rules, problem.n)
    status = solve_rows(tables, rows, rules, work, every, problem.n, max_nodes)
    # Whole problems have a release: the class of all records keeps k and the diversity.
    proven, nodes = status == PROVEN, int(work.nodes[0])
    small = rules.summed and problem.n <= _COLUMN_GENERATION_ROWS
    if not proven and small and budget.stop_reason() is None:
        generation = ColumnGeneration(problem, rows, rules, work, max_nodes)
        proven = generation.prove(budget)
        nodes += generation.nodes
    solution = Solution.of(problem, Classes(work.labels.astype(np.int32)), method="small")
    labels, objective = solution.assignment.labels, solution.objective  # type: ignore[union-attr]
    if proven:
        return SmallResult(labels, objective, objective, True, nodes, None)
    stopped = budget.stop_reason()
    reason = "max_nodes" if stopped is None else stopped.value
    return SmallResult(
        labels, objective, min(float(work.result[1]), objective), False, nodes, reason
    )


def compare_exactly(solution: Solution, budget: Budget, seed: int) -> Solution:
    """Return the best release by exact sums of losses, where tolerances leave a gap.

    A solver, and duals that are repaired, take losses for equal that differ by less than their
    tolerances; in a small table they are told apart by a search that has none.

    Parameters
    ----------
    solution
        Of a method that went on until its proof ended.
    budget, seed
        Of the search.
    """
    bound, problem = solution.bound, solution.problem
    ended = solution.status.stopped is Stopped.GAP and budget.stop_reason() is None
    fits = isinstance(problem.recoding, EquivalenceClasses) and problem.n <= _COMPARED
    if bound is None or not ended or not fits:
        return solution
    try:
        small = solve_small(problem, budget=budget, max_nodes=_COMPARED_NODES, seed=seed)
    except NoSolution:
        return solution
    best = solution
    if small.objective < solution.objective:
        best = Solution.of(
            problem,
            Classes(small.labels),
            method=solution.method,
            bound=bound,
            stopped=solution.status.stopped,
            options=solution.options,
            seconds=solution.seconds,
            seed=solution.seed,
            trace=solution.trace,
            solver=solution.solver,
        )
    if not small.proven or small.bound is None:
        return best
    source = under_assumptions(problem, "search of all classes")
    remark = "losses within tolerances were compared by a search of all classes"
    proven = best.with_bound(Bound(small.bound, source, "argument"))
    return replace(proven, trace=(*best.trace, remark))
