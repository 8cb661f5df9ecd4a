"""The manifest: what a release promises, without any value of the original."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from anonymip import __version__
from anonymip.instances import Attribute
from anonymip.solution import Bound, Solution, bound_text, relative_gap

FORMAT = "anonymip-release/1"


def manifest_path(table: Path) -> Path:
    """Return where the manifest of a release lies."""
    return table.parent / f"{table.name}.manifest.json"


def versions() -> dict[str, str]:
    """Return the versions of Python, the package and what its results depend on."""
    names = ("pyomo", "highspy", "pulp", "numpy", "pandas", "scipy", "numba")
    return {
        "python": platform.python_version(),
        "anonymip": __version__,
        **{name: metadata.version(name) for name in names},
    }


def describe_attribute(attribute: Attribute) -> dict[str, Any]:
    """Return what the manifest says of a quasi-identifier; observed domains are raw values."""
    return {
        "name": attribute.name,
        "role": "quasi-identifier",
        "kind": attribute.kind,
        "publish": attribute.publish,
        "integer": attribute.integer,
        "domain": None if attribute.domain is None else list(attribute.domain),
    }


def make_manifest(
    solution: Solution, columns: list[dict[str, Any]], layout: str, keep_order: bool
) -> dict[str, Any]:
    """Return the manifest of a release that is not yet verified.

    Parameters
    ----------
    solution
        What is published.
    columns
        Entries for the published columns.
    layout, keep_order
        As in :func:`anonymip.publish`.
    """
    problem, table = solution.problem, solution.problem.microdata.table
    bound = _published_bound(solution)
    return {
        "format": FORMAT,
        "recoding": problem.recoding.name,
        "k": problem.k,
        "n": problem.n,
        "m": problem.m,
        "objective": {"name": problem.objective.name, "value": solution.objective},
        "ncp": solution.ncp,
        "gcp": solution.gcp,
        "bound": None
        if bound is None
        else {"value": bound.value, "method": bound.method, "proof": bound.proof},
        "gap": relative_gap(solution.objective, bound),
        "status": str(solution.status),
        "method": solution.method,
        "options": dict(solution.options),
        "solver": solution.solver,
        "versions": versions(),
        "columns": columns,
        "table": {
            "separator": table.separator.strip() or table.separator,
            "encoding": table.encoding,
            "layout": layout,
            "missing": {
                "policy": table.policy,
                "tokens": list(table.missing),
                "label": table.label,
            },
        },
        "order": "kept" if keep_order else "shuffled",
        "suppressed": solution.assignment.suppressed,
        "checked": [
            f"every class has at least k = {problem.k} records",
            "the objective is recomputed from the published cells",
        ],
        "assumed": _assumptions(solution, keep_order),
    }


def _published_bound(solution: Solution) -> Bound | None:
    """Return the bound with 4 digits: all digits are a function of the original values."""
    if solution.bound is None or solution.is_optimal:
        return solution.bound
    return replace(solution.bound, value=float(bound_text(solution.bound.value)))


def _assumptions(solution: Solution, keep_order: bool) -> list[str]:
    assumed = ["the quasi-identifiers are all that an adversary can link"]
    if solution.bound is not None and solution.bound.proof == "solver":
        assumed.append(f"the bound is the word of {solution.solver}")
    if keep_order:
        assumed.append("an adversary does not know the order of the original's rows")
    return assumed


def as_verified(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of the same release once it has been read back and verified."""
    checked = "the release was read back and verified by separate code"
    return {**manifest, "checked": [*manifest["checked"], checked]}
