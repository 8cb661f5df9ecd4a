"""Bounds from the nearest neighbours to the linear program: as high as an effort reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anonymip.assignments import SUPPRESSED, Classes, Cover, Patterns
from anonymip.bounds.combinatorial import is_cut, lower_bound_of
from anonymip.bounds.ladder import Ladder, raises_duals
from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound
from anonymip.effort import check_effort
from anonymip.errors import InputError
from anonymip.exact.column_generation.column_generation import may_be_bounded, relaxation_bound
from anonymip.heuristics.freeform.left_out import savings
from anonymip.heuristics.growing.finish import marginal_saving
from anonymip.heuristics.growing.raised_price import bound_within_limit, with_price
from anonymip.methods.registry import METHODS, find_method, refuse_unfit
from anonymip.methods.spec import MethodSpec
from anonymip.problem import Problem, has_rules
from anonymip.recodings.output_rows import recoding_of
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.solution import Bound, Solution

#: The names that the kernels of bounds are known by, as those of methods are by theirs: of all
#: bounds, and of those that raise duals of records.
BOUND, ASCENT = "bound", "dual-ascent"
#: A price is raised by this share of what the next record's leaving would save of a cover, which
#: needs new members in its place.
_OF_SAVINGS = 0.6
_LARGEST = "thorough"  # a method that is asked for is tried on tables as large as with this effort


def best_bound(
    problem: Problem,
    releases: Sequence[Solution] = (),
    *,
    known: Bound | None = None,
    ladder: Ladder | None = None,
    method: str | None = None,
    effort: str | None = None,
    budget: Budget | None = None,
) -> Bound | None:
    """Return the best lower bound within reach; None if no argument holds.

    `releases`: known releases, which help the linear program. `known`: the combinatorial bound, if
    it was computed before. `ladder`: the climb to it, if it was begun before: it goes on. `method`:
    ``"column-generation"``: the linear program is tried on tables as large as a thorough effort
    tries, and a problem that it does not fit is refused. None for what the effort suggests.
    `effort`: how much work; None for thorough within a time limit, else normal. `budget`: when it
    ends, the best bound so far is the result. Raises InputError if the method has no bound of its
    own, or does not fit the problem. Raises UnsupportedObjective if the objective lacks what the
    method needs. Raises CompilationStopped if the budget ends while kernels are compiled, before
    any bound is known.

    The linear program over all sets of records is above every combinatorial bound but for its
    rounding, which matters where nothing is lost: then nearest neighbours prove it. Where it is not
    tried, or not solved within the effort, what comes between is computed too. A limit of
    suppression is kept by a price: see :mod:`anonymip.heuristics.growing.raised_price`.
    """
    budget = budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    free = with_price(problem, 0.0) if problem.is_capped else problem
    if method is not None:
        refuse_unfit(_bounding(method), free)
    settings = effort if method is None else _LARGEST, effort, budget
    found = _bound_of_any_number(free, releases, known, ladder, *settings)
    if not problem.is_capped or problem.compiled.aggregate != "sum":
        return found
    raised = _raised_price(problem, releases)
    if not raised or budget.stop_reason() is not None:
        return found
    priced = _bound_of_any_number(with_price(problem, raised), (), None, None, *settings)
    both = [found, None if priced is None else bound_within_limit(problem, raised, priced)]
    return max(filter(None, both), key=lambda bound: bound.value, default=None)


def _bound_of_any_number(
    problem: Problem,
    releases: Sequence[Solution],
    known: Bound | None,
    ladder: Ladder | None,
    tried: str,
    effort: str,
    budget: Budget,
) -> Bound | None:
    """Return the best bound where any number may be suppressed.

    `tried`: effort on whose largest tables the linear program is tried.
    """
    if ladder is not None and (ladder.ended or not may_be_bounded(problem, tried)):
        known = ladder.climb(budget)
    cut = is_cut(problem) and not has_rules(problem)
    if cut or not may_be_bounded(problem, tried):
        return known or lower_bound_of(problem, effort=effort, budget=budget)
    bounds: list[Bound | None] = [known if ladder is None else ladder.best]
    solved = False
    try:
        if bounds[-1] is None:
            bounds.append(nearest_neighbour_bound(problem, effort="quick", budget=budget))
        found = bounds[-1]
        if found is not None and any(one.with_bound(found).is_optimal for one in releases):
            return found
        highest, solved = relaxation_bound(problem, releases, effort=effort, budget=budget)
        bounds.append(highest)
        if ladder is not None and not solved:
            bounds.append(ladder.climb(budget))
        elif known is None and not solved:
            bounds.append(lower_bound_of(problem, effort=effort, budget=budget))
    except CompilationStopped:
        if not any(bounds):
            raise
    return max(filter(None, bounds), key=lambda bound: bound.value, default=None)


def runs_of_bound(problem: Problem, effort: str, *, limited: bool = False) -> list[str]:
    """Return the names that the kernels of the best bound are known by.

    A bound in a share of a time limit is `limited`.
    """
    ascends = raises_duals(problem) and (limited or not may_be_bounded(problem, effort))
    return [BOUND, ASCENT] if ascends else [BOUND]


def _bounding(method: str) -> MethodSpec:
    """Return a method that bounds without solving."""
    spec = find_method(method)
    if not _bounds(spec):
        able = [name for name, one in METHODS.items() if _bounds(one)]
        raise InputError(
            f"method {method} has no bound apart from its solution",
            remedy=f"Use {', '.join(able)}, or solve with it: the solution has a bound",
        )
    return spec


def _bounds(spec: MethodSpec) -> bool:
    return any(option.name == "bound_only" for option in spec.options)


def best_bound_in_time(
    problem: Problem, releases: Sequence[Solution], **settings: Any
) -> Bound | None:
    """Return :func:`best_bound`, or None too if the run ends while kernels are compiled."""
    try:
        return best_bound(problem, releases, **settings)
    except CompilationStopped:
        return None


def _raised_price(problem: Problem, releases: Sequence[Solution]) -> float:
    """Return by how much a price is raised whose bound is likely to be best; 0 for none."""
    best = min(releases, key=lambda one: one.objective, default=None)
    if best is None:
        return 0.0
    if isinstance(best.assignment, Cover):
        left = np.sort(savings(problem, best.assignment)[best.assignment.sizes > 0])
        full = best.assignment.suppressed == problem.most_suppressed > 0
        return float(max(0.0, left[-1])) * _OF_SAVINGS if full and len(left) else 0.0
    if isinstance(best.assignment, Classes):
        return marginal_saving(problem, np.asarray(best.assignment.labels, np.int64))
    if not isinstance(best.assignment, Patterns):
        return 0.0
    # How much more than a suppressed record the record loses that loses most.
    shown = best.assignment.index != SUPPRESSED
    starred = recoding_of(problem).stars(problem).all(axis=1).any()
    if starred or shown.all() or not shown.any():
        return 0.0
    losses = problem.compiled.losses_of(best.description, best.assignment)[shown]
    return max(0.0, float(losses.max() - problem.compiled.suppression_price))
