"""Formulations of equivalence classes: size, bound of the relaxation, time to the proof."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from anonymip import InputError, Problem, build, load_instance, solve_model
from anonymip.models import formulations_of, relax
from anonymip.solvers import SolverOptions, get_solver
from anonymip.solvers.standard_form import compile_standard_form

_INSTANCES = (
    ("aggarwal-4", 2),
    ("wong-5", 2),
    ("health-records", 3),
    ("census:10,2,1", 3),
    ("census:12,4,1", 3),
    ("person20", 3),
)
_SECONDS = 120.0


def formulations() -> Iterator[dict[str, Any]]:
    """Solve small instances in every formulation, and its relaxation."""
    for instance, k in _INSTANCES:
        try:
            problem = Problem(load_instance(instance), k)
        except InputError as error:
            print(f"formulations: {instance} left out: {error}")
            continue
        rows = [_row(instance, problem, name) for name in formulations_of("classes")]
        proven = [row["objective"] for row in rows if row["status"] == "optimal"]
        optimum = min(proven) if proven else None
        for row in rows:
            gap = None if optimum is None else (optimum - row["lp_bound"]) / optimum
            yield {**row, "root_gap": None if gap is None else round(gap, 4)}


def _row(instance: str, problem: Problem, formulation: str) -> dict[str, Any]:
    model = build(problem, formulation)
    form = compile_standard_form(model)
    # HiGHS knows no rows that hold only where a binary variable is 1.
    solver = "scip" if form.has_indicators else "highs"
    row: dict[str, Any] = {
        "instance": instance,
        "k": problem.k,
        "formulation": formulation,
        "rows": form.matrix.shape[0],
        "columns": form.matrix.shape[1],
        "nonzeros": form.matrix.nnz,
    }
    answer: dict[str, Any] = {"objective": None, "nodes": None, "seconds": None, "status": "-"}
    if get_solver(solver).availability().installed:
        result = solve_model(model, solver, SolverOptions(time_limit=_SECONDS))
        answer = {
            "objective": None if result.objective is None else round(result.objective, 6),
            "nodes": result.nodes,
            "seconds": round(result.seconds, 2),
            "status": result.stopped.value,
        }
    relaxed = build(problem, formulation)
    relax(relaxed)
    bound = solve_model(relaxed).objective
    # Adding 0.0 turns -0.0 into 0.0.
    bound = None if bound is None else round(bound, 6) + 0.0
    return {**row, "lp_bound": bound, "solver": solver, **answer}


def markdown(frame: pd.DataFrame) -> str:
    """Return the table of docs/formulations.md."""
    heads = (
        ("instance", "instance"),
        ("k", "k"),
        ("formulation", "formulation"),
        ("rows", "rows"),
        ("columns", "columns"),
        ("nonzeros", "non-zeros"),
        ("lp_bound", "LP bound"),
        ("root_gap", "root gap"),
        ("nodes", "nodes"),
        ("seconds", "seconds"),
        ("solver", "solver"),
        ("status", "status"),
    )
    lines = ["| " + " | ".join(head for _, head in heads) + " |", "|" + "---|" * len(heads)]
    for row in frame.to_dict("records"):
        lines.append("| " + " | ".join(_cell(name, row[name]) for name, _ in heads) + " |")
    return "\n".join(lines)


def _cell(name: str, value: Any) -> str:
    if value is None or pd.isna(value):
        return "-"
    if name == "root_gap":
        return f"{100 * value:.1f} %"
    if name == "lp_bound":
        return f"{value:.4f}"
    return f"{value:,.0f}" if name == "nodes" else str(value)
