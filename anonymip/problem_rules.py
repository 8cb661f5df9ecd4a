"""What classes must keep besides their size: limits of generalization and diversity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.language.class_cells import cells_of_sets
from anonymip.problem import Problem
from anonymip.recodings.rules.limits import met_by_sets

#: Sets looked at at a time.
_BATCH = 20_000


def has_rules(problem: Problem) -> bool:
    """Return whether classes must keep more than their size."""
    return problem.diversity is not None or bool(problem.limits)


def is_plain(problem: Problem) -> bool:
    """Return whether the kernels can do the work: tables, and no rules that they do not know."""
    return problem.compiled.has_tables and not has_rules(problem)


def named_rules(problem: Problem) -> str:
    """Return the rules as a text."""
    rules = [*problem.limits, *([] if problem.diversity is None else [problem.diversity])]
    return ", ".join(f"the {rule}" for rule in rules)


def within_limits(problem: Problem, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return (B,) whether classes of the given records (B, s) keep all limits."""
    if not problem.limits:
        return np.ones(len(rows), np.bool_)
    parts = [rows[at : at + _BATCH] for at in range(0, len(rows), _BATCH)]
    microdata = problem.microdata
    met = [met_by_sets(microdata, problem.limits, p, cells_of_sets(microdata, p)) for p in parts]
    return np.concatenate([np.empty(0, np.bool_), *met])


def are_diverse(problem: Problem, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return (B,) whether classes of the given records (B, s) are diverse."""
    if problem.diversity is None:
        return np.ones(len(rows), np.bool_)
    return problem.diversity.met_by(problem.microdata.sensitive_codes[rows])


def losses_within_limits(problem: Problem, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (B,) losses of classes of the given records (B, s), infinite beyond a limit.

    The class's part of the sum; with the aggregate ``"max"`` the loss of one record.
    """
    if not problem.limits:
        return problem.compiled.class_losses(rows)
    losses = np.full(len(rows), np.inf)
    met = within_limits(problem, rows)
    losses[met] = problem.compiled.class_losses(rows[met])
    return losses
