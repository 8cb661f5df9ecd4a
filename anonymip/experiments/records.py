"""Results as flat records, the ``--json`` output of every command that computes, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anonymip.assignments import Cover, Levels, Patterns
from anonymip.problem import Problem
from anonymip.publishing.manifest import describe_mask, versions
from anonymip.recodings import PatternGuided
from anonymip.solution import Bound, Solution

if TYPE_CHECKING:
    from anonymip.models.export import ExportedModel


def solution_record(solution: Solution, instance: str) -> dict[str, Any]:
    """Return a solution as a record for JSON."""
    problem, bound = solution.problem, solution.bound
    return {
        **asked_of(problem, instance),
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
        "bound_by": None if bound is None else bound.method,
        "seconds": solution.seconds,
        **sets_of(solution),
        "solver": solution.solver,
        "versions": versions(),
        "seed": solution.seed,
    }


def sets_of(solution: Solution) -> dict[str, Any]:
    """Return what each original row is published with; None for rows the missing policy left out.

    ``groups``: its class, -1 if suppressed; of a cover ``matches``: the rows that it covers. Of
    patterns also ``patterns``, its starred columns, of full domains ``levels`` by column.
    """
    microdata, assignment = solution.problem.microdata, solution.assignment
    found: list[Any] = [None] * len(microdata.original)
    rows = microdata.rows
    if isinstance(assignment, Cover):
        for record, row in enumerate(rows.tolist()):
            found[row] = rows[assignment.of_record(record)].tolist()
        return {"matches": found}
    if solution.classes is not None:
        for row, label in zip(rows.tolist(), solution.classes.labels.tolist(), strict=True):
            found[row] = label
    sets: dict[str, Any] = {"groups": found}
    if isinstance(assignment, Levels):
        sets["levels"] = dict(zip(microdata.names, assignment.levels.tolist(), strict=True))
    if isinstance(assignment, Patterns):
        starred: list[list[str] | None] = [None] * len(microdata.original)
        stars = solution.description.suppressed
        for row, hidden in zip(rows.tolist(), stars.tolist(), strict=True):
            shown = zip(microdata.names, hidden, strict=True)
            starred[row] = [name for name, star in shown if star]
        sets["patterns"] = starred
    return sets


def bound_record(problem: Problem, bound: Bound | None, instance: str) -> dict[str, Any]:
    """Return a bound without a solution as a record for JSON; what is unknown is null."""
    return {
        **asked_of(problem, instance),
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
        "bound_by": None if bound is None else bound.method,
        "seconds": 0.0 if bound is None else bound.seconds,
        "groups": None,
        "solver": None,
        "versions": versions(),
        "seed": None,
    }


def model_record(
    problem: Problem, instance: str, method: str, formulation: str, written: ExportedModel
) -> dict[str, Any]:
    """Return an exported model as a record for JSON."""
    return {
        **asked_of(problem, instance),
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


def asked_of(problem: Problem, instance: str) -> dict[str, Any]:
    """Return what is asked of a table, as all records have it; ``mask`` of patterns alone."""
    recoding = problem.recoding
    mask = {"mask": describe_mask(recoding)} if isinstance(recoding, PatternGuided) else {}
    return {
        "instance": instance,
        "n": problem.n,
        "m": problem.m,
        "k": problem.k,
        "recoding": problem.recoding.name,
        "diversity": None if problem.diversity is None else str(problem.diversity),
        "limits": [str(limit) for limit in problem.limits],
        **mask,
    }


def markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return texts as a table in Markdown, ended by a new line."""
    lines = [f"| {' | '.join(cells)} |\n" for cells in (names, *rows)]
    return "".join([lines[0], f"|{'---|' * len(names)}\n", *lines[1:]])
