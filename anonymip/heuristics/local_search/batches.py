"""Moves between classes for any objective and all rules, evaluated in batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from anonymip.assignments import Classes
from anonymip.effort import EFFORTS, MAY_GAIN
from anonymip.heuristics.growing.groups import groups_by_size, labels_of
from anonymip.heuristics.local_search.rounds import most_steps
from anonymip.problem import Problem, are_diverse, losses_within_limits
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

#: Classes that one class is compared with.
_NEIGHBOURS = 6
#: Gains below this share of the losses that they are differences of are rounding.
_ROUNDING = 1e-10

#: Steps of the kernels that take as long as a batch does before it evaluates anything.
_STEPS_A_BATCH = 100_000

#: What becomes of two classes: the records of both.
_Pair = tuple[list[int], list[int]]


def improve_in_batches(
    problem: Problem, labels: NDArray[np.integer], effort: str, budget: Budget
) -> tuple[Ints, Stopped | None, str]:
    """Return labels that are no worse, why the work stopped early, and a remark.

    Complexity of a round: O(n k) evaluations of a class for classes of about k records, in
    batches of NumPy. Suppressed records stay what they are.
    """
    given = np.asarray(labels, np.int64)
    left = most_steps(effort, problem.n)
    groups = [group.tolist() for group in Classes(given).groups()]  # type: ignore[arg-type]
    rounds, improved = 0, True
    stopped = budget.stop_reason()
    while improved and stopped is None and left > 0:
        improved, near, total = False, _neighbours(problem, groups), len(groups)
        for one in range(total):
            stopped = budget.stop_reason()
            if stopped is not None or left <= 0:
                break
            budget.report("improving classes", done=one, total=total)
            improved |= _split(problem, groups, one)
            for other in near[one]:
                while groups[one] and groups[other] and left > 0:
                    # The steps of the kernels that take as long as comparing two classes here.
                    candidates = (1 + len(groups[one])) * (1 + len(groups[other])) - 1
                    left -= _STEPS_A_BATCH + 2 * candidates * problem.k * problem.m
                    if not _improve_two(problem, groups, one, other):
                        break
                    improved = True
        groups = [group for group in groups if group]
        rounds += 1
    remark = f"{rounds} rounds in batches"
    if stopped is not None:
        remark += f", then {stopped.value}"
    elif left > 0:
        remark += ": nothing more gained"
    else:
        remark += f", stopped by effort {effort}{'' if effort == EFFORTS[-1] else MAY_GAIN}"
    return labels_of(groups, problem.n), stopped, remark


def _neighbours(problem: Problem, groups: list[list[int]]) -> list[list[int]]:
    """Return the classes nearest to each: by means of the values' ranks."""
    widths = np.array([max(1, len(level) - 1) for level in problem.microdata.levels])
    points = problem.microdata.codes / widths
    centres = np.array([points[group].mean(axis=0) for group in groups])
    count = min(_NEIGHBOURS + 1, len(groups))
    if count < 2:
        return [[] for _ in groups]
    found = np.asarray(cKDTree(centres).query(centres, k=count, p=1)[1])
    return [[int(at) for at in row if at != one] for one, row in enumerate(found)]


def _losses(problem: Problem, groups: list[list[int]]) -> Floats:
    """Return (groups,) losses; infinite beyond a limit or without the diversity, 0 if empty."""
    losses = np.zeros(len(groups))
    for at, rows in groups_by_size(groups):
        found = losses_within_limits(problem, rows)
        losses[at] = np.where(are_diverse(problem, rows), found, np.inf)
    return losses


def _best_of(problem: Problem, old: _Pair, candidates: list[_Pair]) -> _Pair | None:
    """Return the pair that gains most over the old one; None if none gains."""
    if not candidates:
        return None
    flat = [group for pair in (old, *candidates) for group in pair]
    parts = _losses(problem, flat).reshape(-1, 2)
    sums = parts.sum(axis=1)
    slack = _ROUNDING * np.abs(parts[0]).sum()
    if problem.compiled.aggregate == "sum":
        best = 1 + int(sums[1:].argmin())
        return candidates[best - 1] if sums[0] - sums[best] > slack else None
    # An empty class loses nothing: it must not hide what the other one loses.
    empty = np.array([[not one, not other] for one, other in (old, *candidates)])
    largest = np.where(empty, -np.inf, parts).max(axis=1)
    best = 1 + int(np.lexsort((sums[1:], largest[1:]))[0])
    falls = largest[0] - largest[best]
    better = falls > slack or (falls >= 0 and sums[0] - sums[best] > slack)
    return candidates[best - 1] if better else None


def _improve_two(problem: Problem, groups: list[list[int]], one: int, other: int) -> bool:
    """Move a record, swap two or merge two classes, whatever gains most."""
    first, second, k = groups[one], groups[other], problem.k
    candidates: list[_Pair] = []
    if len(first) > k:
        candidates += [([r for r in first if r != x], [*second, x]) for x in first]
    if len(second) > k:
        candidates += [([*first, y], [r for r in second if r != y]) for y in second]
    candidates += [
        ([*(r for r in first if r != x), y], [*(r for r in second if r != y), x])
        for x in first
        for y in second
    ]
    candidates.append(([*first, *second], []))
    found = _best_of(problem, (first, second), candidates)
    if found is None:
        return False
    groups[one], groups[other] = sorted(found[0]), sorted(found[1])
    return True


def _split(problem: Problem, groups: list[list[int]], one: int) -> bool:
    """Cut a class of 2k records or more in two along an attribute, while that gains."""
    improved = False
    while len(groups[one]) >= 2 * problem.k:
        group = np.array(groups[one])
        candidates: list[_Pair] = []
        for a in range(problem.m):
            order = group[np.argsort(problem.microdata.codes[group, a], kind="stable")].tolist()
            cuts = range(problem.k, len(order) - problem.k + 1)
            candidates += [(order[:cut], order[cut:]) for cut in cuts]
        found = _best_of(problem, (groups[one], []), candidates)
        if found is None:
            break
        groups[one] = sorted(found[0])
        groups.append(sorted(found[1]))
        improved = True
    return improved
