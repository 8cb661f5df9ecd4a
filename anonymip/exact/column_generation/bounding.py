"""The bound of the linear program over all sets, for releases that other methods found."""

from __future__ import annotations

from collections.abc import Sequence

from anonymip.errors import InputError
from anonymip.exact.column_generation.conditions import column_rules
from anonymip.exact.column_generation.proving import Proof
from anonymip.exact.column_generation.settings import Settings, Work
from anonymip.exact.column_generation.state import Run
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.solvers import SolverOptions

#: Partial sets looked at, half a million a second.
_SEARCHED = {"quick": 500_000, "normal": 5_000_000, "thorough": 100_000_000}
#: Row types times the square of k up to which it is tried: 9,000 took 1.5 s with k = 3, 12,500 took
#: 9 s with k = 5 and 10,000 as long with k = 10; covers have sets of one size, and take a quarter.
_TRIED = {"quick": 4_000, "normal": 15_000, "thorough": 100_000}
_OF_COVERS = 0.25


def relaxation_bound(
    problem: Problem,
    releases: Sequence[Solution],
    *,
    effort: str,
    budget: Budget,
    tried: str | None = None,
) -> tuple[Bound | None, bool]:
    """Return the bound of column generation, and whether it is that of the linear program.

    Parameters
    ----------
    problem
        What is asked.
    releases
        Known ones, from whose sets the master starts.
    effort
        How much is looked at, and how large the table may be.
    budget
        Ends the rounds; the bound of the last one holds.
    tried
        The effort that says how large the table may be; None for the same.

    Returns
    -------
    tuple
        The bound is None if the problem does not meet the conditions of column generation, is too
        large for the effort, or no round ended.

    Notes
    -----
    Complexity: exponential in k in the worst case, bounded by what the effort allows. 1,000
    records of 8 attributes take 2 seconds with k = 3; 300 take 3 seconds with k = 5.
    """
    if not may_be_bounded(problem, tried or effort):
        return None, False
    # What holds without rules holds under them.
    freed = problem.replace(diversity=None, limits=())
    try:
        rules = column_rules(freed)
    except InputError:
        return None, False
    work = Work(0, 0, nodes=0, deals=0, regions=0, branches=0, searched=_SEARCHED[effort])
    settings = Settings("highs", SolverOptions(), 0.0, work, 0, bound_only=True)
    run = Run(freed, rules, Stopwatch())
    for release in releases:
        run.offer(release.assignment)
    proof = Proof(run, settings, run.reporting(budget))
    proof.prove(releases)
    return run.bound, proof.relaxed


def may_be_bounded(problem: Problem, effort: str) -> bool:
    """Return whether loss, recoding and size of a problem are such that this is tried."""
    compiled = problem.compiled
    if problem.recoding.name not in ("classes", "freeform"):
        return False
    if not compiled.has_tables or not compiled.monotone or compiled.aggregate != "sum":
        return False
    types = len(problem.microdata.row_types().first)
    share = _OF_COVERS if problem.recoding.name == "freeform" else 1.0
    return share * types * problem.k**2 <= _TRIED[effort]
