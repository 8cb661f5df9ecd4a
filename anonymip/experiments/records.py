"""Results as flat records: the ``--json`` output of every command that computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anonymip.problem import Problem
from anonymip.publishing import versions
from anonymip.solution import Bound, Solution

if TYPE_CHECKING:
    from anonymip.models.export import ExportedModel


def solution_record(solution: Solution, instance: str) -> dict[str, Any]:
    """Return a solution as a record for JSON.

    Parameters
    ----------
    solution
        What was found.
    instance
        Name of the instance or path of the file.
    """
    problem, bound = solution.problem, solution.bound
    return {
        **_asked(problem, instance),
        "method": solution.method,
        "options": dict(solution.options),
        "objective": solution.objective,
        "objective_name": problem.objective.name,
        "ncp": solution.ncp,
        "gcp": solution.gcp,
        "bound": None if bound is None else bound.value,
        "gap": solution.gap,
        "status": str(solution.status),
        "proof": None if bound is None else bound.proof,
        "seconds": solution.seconds,
        "groups": _groups(solution),
        "solver": solution.solver,
        "versions": versions(),
        "seed": solution.seed,
    }


def _groups(solution: Solution) -> list[int | None]:
    """Return the class of each original row: -1 suppressed, None left out by the missing policy."""
    microdata = solution.problem.microdata
    groups: list[int | None] = [None] * len(microdata.original)
    for row, label in zip(microdata.rows.tolist(), solution.assignment.labels, strict=True):
        groups[row] = int(label)
    return groups


def bound_record(problem: Problem, bound: Bound | None, instance: str) -> dict[str, Any]:
    """Return a bound without a solution as a record for JSON; what is unknown is null."""
    return {
        **_asked(problem, instance),
        "method": "bound" if bound is None else bound.method,
        "options": {},
        "objective": None,
        "objective_name": problem.objective.name,
        "ncp": None,
        "gcp": None,
        "bound": None if bound is None else bound.value,
        "gap": None,
        "status": "no-bound" if bound is None else "bound",
        "proof": None if bound is None else bound.proof,
        "seconds": 0.0 if bound is None else bound.seconds,
        "groups": None,
        "solver": None,
        "versions": versions(),
        "seed": None,
    }


def model_record(
    problem: Problem, instance: str, method: str, formulation: str, written: ExportedModel
) -> dict[str, Any]:
    """Return an exported model as a record for JSON.

    Parameters
    ----------
    problem
        What is modelled.
    instance
        Name of the instance or path of the file.
    method, formulation
        Whose model it is.
    written
        What was written.
    """
    return {
        **_asked(problem, instance),
        "method": method,
        "objective_name": problem.objective.name,
        "formulation": formulation,
        "rows": written.rows,
        "columns": written.columns,
        "integer_columns": written.integer_columns,
        "nonzeros": written.nonzeros,
        "files": [str(path) for path in written.files],
        "versions": versions(),
    }


def _asked(problem: Problem, instance: str) -> dict[str, Any]:
    return {
        "instance": instance,
        "n": problem.n,
        "m": problem.m,
        "k": problem.k,
        "recoding": problem.recoding.name,
        "diversity": None if problem.diversity is None else str(problem.diversity),
        "limits": [str(limit) for limit in problem.limits],
    }
