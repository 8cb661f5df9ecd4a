"""Patterns of levels, solved as patterns of stars: each level of an attribute is a column."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.assignments import Patterns
from anonymip.bounds.patterns.pattern_lagrangian import pattern_bound
from anonymip.errors import InputError, argument
from anonymip.exact.model_run import SolverChoices
from anonymip.exact.patterns.pattern_ilp import pattern_ilp
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.instances.attribute import Attribute
from anonymip.instances.microdata import Microdata
from anonymip.objectives.losses.penalties import Suppressions
from anonymip.objectives.star_costs import level_costs
from anonymip.problem import Problem
from anonymip.recodings.pattern_levels import PatternLevels
from anonymip.recodings.patterns import Mask, PatternGuided
from anonymip.recodings.rows import level_maps
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.tolerances import same_loss

#: Share of the time that local search may take; the rest is for its bound.
_SEARCH = 0.7


def pattern_levels(
    problem: Problem,
    *,
    formulation: str = "auto",
    warm_start: str = "greedy",
    budget: Budget | None = None,
    seed: int = 0,
    **solving: Unpack[SolverChoices],
) -> Solution:
    """Solve patterns of levels to optimality, or as far as the budget goes.

    `problem`: with patterns of levels as its recoding. `formulation`: as in
    :func:`~anonymip.exact.patterns.pattern_ilp.pattern_ilp`; or ``"search"``: the local search of
    patterns and its bound, for tables too large for a proof. `warm_start, budget, seed, solving`:
    as there. Raises InputError if the problem asks for another recoding, or has too many
    combinations of levels; NoSolution if no release exists, or nothing was found within the budget.

    Each level of an attribute below the highest becomes a column that shows what the records are
    on it, and a pattern of levels stars the columns below its level. Levels nest, so that records
    look alike under the stars exactly if they do on the levels; a star costs what its level adds.
    So releases and losses of both tables are the same, and with them optimum and bound.
    """
    watch = Stopwatch()
    spread = spread_levels(problem)
    if formulation == "search":
        budget = budget or Budget()
        found = pattern_search(spread, budget=budget.share(_SEARCH), seed=seed)
        by_duals = pattern_bound(spread, budget=budget)
        found = found if by_duals is None else found.with_bound(by_duals)
    else:
        found = pattern_ilp(
            spread,
            formulation=formulation,
            warm_start=warm_start,
            budget=budget,
            seed=seed,
            **solving,
        )
    assert isinstance(found.assignment, Patterns)
    assert isinstance(spread.recoding, PatternGuided)
    solution = Solution.of(
        problem,
        spread.recoding.classes(spread, found.assignment),
        method="pattern-levels",
        stopped=found.status.stopped,
        options={"formulation": formulation, "warm_start": warm_start},
        seconds=watch.seconds,
        seed=seed,
        trace=(f"{spread.m} levels of {problem.m} attributes are columns", *found.trace),
        solver=found.solver,
    )
    if found.bound is None:
        return solution
    bound = found.bound
    # Sums of what levels add differ in their last digits from what the levels cost.
    if bound.value > solution.objective and same_loss(bound.value, solution.objective):
        bound = replace(bound, value=solution.objective)
    return solution.with_bound(bound)


def spread_levels(problem: Problem) -> Problem:
    """Return the problem of patterns of stars in which each level is a column.

    Raises InputError if the problem asks for another recoding, or has too many combinations of
    levels.
    """
    recoding, microdata = problem.recoding, problem.microdata
    if not isinstance(recoding, PatternLevels):
        raise InputError(
            f"the problem asks for recoding {recoding.name}, not for patterns of levels",
            remedy=f"Use {argument('recoding', 'pattern-levels')}",
        )
    maps = level_maps(microdata)
    added = [np.diff(cost) for cost in level_costs(problem.compiled, [m.cells for m in maps])]
    columns: dict[str, NDArray[np.object_]] = {}
    costs: dict[str, float] = {}
    names: list[list[str]] = []
    for a, each in enumerate(maps):
        names.append([f"level {level} of {a}" for level in range(each.height)])
        for level, name in enumerate(names[-1]):
            columns[name] = each.cells[level][microdata.codes[:, a]].astype(str).astype(object)
            costs[name] = float(added[a][level])
    sensitive = {
        f"sensitive {at}": microdata.frame[name] for at, name in enumerate(microdata.sensitive)
    }
    patterns = tuple(
        tuple(name for own, level in zip(names, pattern, strict=True) for name in own[:level])
        for pattern in recoding.patterns(problem).tolist()
    )
    spread = Microdata(
        pd.DataFrame({**columns, **sensitive}),
        tuple(Attribute(name, "categorical") for name in columns),
        tuple(sensitive),
    )
    return Problem(
        spread,
        problem.k,
        PatternGuided(Mask(patterns=patterns)),
        Suppressions(costs),
        problem.diversity,
    )
