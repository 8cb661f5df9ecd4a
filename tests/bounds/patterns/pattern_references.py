"""Naive counterparts of the bounds of pattern problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from anonymip import Attribute, Microdata, PatternGuided, Problem, Suppressions
from tests.random_patterns import PatternCase


def lettered(rows: Sequence[str]) -> Microdata:
    """Return a table of one-letter cells."""
    frame = pd.DataFrame([list(row) for row in rows], columns=list("abcdef")[: len(rows[0])])
    return Microdata(frame, tuple(Attribute(name, "categorical") for name in frame.columns))


def hard_pattern_problem(n: int = 80) -> Problem:
    """Return random records under all patterns, which duals alone do not solve."""
    drawn = np.random.default_rng(4).integers(0, 4, (n, 6))
    rows = ["".join("wxyz"[value] for value in row) for row in drawn]
    return Problem(lettered(rows), 2, PatternGuided(), Suppressions())


def shown(case: PatternCase) -> list[list[tuple[str, ...] | None]]:
    """Return what each record shows through each pattern; None if fewer than k show it."""
    cells = [
        [
            tuple("*" if star else cell for cell, star in zip(row, stars, strict=True))
            for stars in case.patterns
        ]
        for row in case.rows
    ]
    counts = Counter((j, own[j]) for own in cells for j in range(len(case.patterns)))
    return [[one if counts[j, one] >= case.k else None for j, one in enumerate(o)] for o in cells]


def pattern_losses(case: PatternCase) -> list[float]:
    """Return the cost of each pattern."""
    return [float(sum(c for c, s in zip(case.costs, p, strict=True) if s)) for p in case.patterns]


def row_sum(case: PatternCase) -> float | None:
    """Return the sum of each record's cheapest pattern; None if one has none."""
    costs, lone = pattern_losses(case), float(sum(case.costs))
    total = 0.0
    for own in shown(case):
        terms = [cost for cost, row in zip(costs, own, strict=True) if row is not None]
        if case.suppression:
            terms.append(lone)
        if not terms:
            return None
        total += min(terms)
    return total


def relaxation(case: PatternCase, *, relaxed: bool) -> float:
    """Return the linear relaxation with a link of every record to every row it may be shown as."""
    costs, lone = pattern_losses(case), float(sum(case.costs))
    cells = shown(case)
    rows = sorted({(j, one) for own in cells for j, one in enumerate(own) if one is not None})
    number = {row: at for at, row in enumerate(rows)}
    stars = [j for j, pattern in enumerate(case.patterns) if all(pattern)]
    pairs = [(i, number[j, one]) for i, o in enumerate(cells) for j, one in enumerate(o) if one]
    free = case.suppression or (relaxed and bool(stars) and len(case.rows) >= case.k)
    n, width = len(case.rows), len(pairs) + len(rows) + (len(case.rows) if free else 0)
    cost = np.zeros(width)
    below, equal = [], np.zeros((n, width))
    filled = np.zeros((len(rows), width))
    for at, (i, row) in enumerate(pairs):
        cost[at] = costs[rows[row][0]]
        link = np.zeros(width)
        link[at], link[len(pairs) + row] = 1.0, -1.0
        below.append(link)
        filled[row, at], filled[row, len(pairs) + row] = -1.0, float(case.k)
        equal[i, at] = 1.0
    for i in range(n if free else 0):
        cost[len(pairs) + len(rows) + i] = lone
        equal[i, len(pairs) + len(rows) + i] = 1.0
    matrix = np.array([*below, *filled]).reshape(-1, width)
    result = linprog(
        cost, A_ub=matrix, b_ub=np.zeros(len(matrix)), A_eq=equal, b_eq=np.ones(n), bounds=(0, None)
    )
    assert result.status == 0
    return float(result.fun)


def lagrangian(case: PatternCase, duals: list[Fraction]) -> Fraction:
    """Return the least of all choices of rows and records at duals, each record by itself.

    Rows that the same records may be shown as count once, at the lowest cost; where records may be
    suppressed alone, rows of stars only do not count.
    """
    total = sum(duals, Fraction(0))
    cells = shown(case)
    rows: dict[frozenset[int], Fraction] = {}
    for j, cost in enumerate(pattern_losses(case)):
        if case.suppression and all(case.patterns[j]):
            continue
        for row in {own[j] for own in cells if own[j] is not None}:
            members = frozenset(i for i, own in enumerate(cells) if own[j] == row)
            rows[members] = min(rows.get(members, Fraction(int(cost))), Fraction(int(cost)))
    for members, cheapest in rows.items():
        best = Fraction(0)
        for chosen in product((False, True), repeat=len(members)):
            taken = [i for i, one in zip(sorted(members), chosen, strict=True) if one]
            if len(taken) >= case.k:
                best = min(best, sum((cheapest - duals[i] for i in taken), Fraction(0)))
        total += best
    return total
