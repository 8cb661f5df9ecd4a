"""Lower bounds for notions that ask less of a published record than to cover k originals."""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import numpy as np

from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound
from anonymip.objectives.language.class_cells import cells_of_sets
from anonymip.problem import Problem
from anonymip.recodings import KConcealment, KOne, OneK
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound
from anonymip.tolerances import LOSS_RELATIVE


def weaker_notion_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release.

    With (1,k)-anonymity a record may be published exactly, if others cover it: the bound is what
    exact cells lose. With k-concealment an original has a match besides its own that lies in some
    assignment, so a cycle of matches goes through it, and its published record covers another
    record too: the nearest-neighbour bound with k = 2 holds.

    Parameters
    ----------
    problem
        With a monotone objective.
    effort
        As of the nearest-neighbour bound.
    budget
        When it ends, records not looked at count with the loss of being published exactly.

    Returns
    -------
    Bound or None
        None if the objective is neither proven nor declared monotone, or the recoding is another
        one.
    """
    compiled = problem.compiled
    if not compiled.monotone:
        return None
    if isinstance(problem.recoding, KConcealment):
        # A bound without the diversity holds with it.
        pairs = problem.replace(k=2, recoding=KOne(), diversity=None)
        found = nearest_neighbour_bound(pairs, effort=effort, budget=budget)
        return None if found is None else replace(found, method=f"{found.method} of one other")
    if not isinstance(problem.recoding, OneK):
        return None
    watch = Stopwatch()
    losses = compiled.record_losses(cells_of_sets(problem.microdata, np.arange(problem.n)[:, None]))
    losses = losses - LOSS_RELATIVE * np.abs(losses)
    value = fsum(losses) if compiled.aggregate == "sum" else float(losses.max())
    method = "exact cells"
    if compiled.assumed:
        method += f" (assuming that {' and '.join(compiled.assumed)})"
    return Bound(value, method, "argument", watch.seconds)
