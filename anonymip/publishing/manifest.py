"""The manifest: what a release promises, without any value of the original."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from anonymip._version import __version__
from anonymip.assignments import Assignment, Cover
from anonymip.graphs import degree_of
from anonymip.instances import Attribute
from anonymip.publishing.cautions.homogeneous import Counts
from anonymip.publishing.claims import claimed_form, cover_assumptions, cover_checks
from anonymip.publishing.star_claims import (
    describe_costs,
    describe_stars,
    star_checks,
)
from anonymip.publishing.suppressed import LEFT_OUT, left_out, suppression_assumptions
from anonymip.recodings import Cap, Diversity, Limit
from anonymip.solution import Bound, Solution, bound_text, relative_gap

FORMAT = "anonymip-release/1"
#: Measured as ``docs/joined.md`` says.
_ONCE = (
    "nothing else is published of these records: two releases joined by a column of unique values "
    "left 9 of 10 among 400 census records (8 attributes, k = 5) fewer than k possible rows"
)


def manifest_path(table: Path) -> Path:
    """Return where the manifest of a release lies."""
    return table.parent / f"{table.name}.manifest.json"


def versions() -> dict[str, str]:
    """Return the versions of Python, the package and what its results depend on."""
    return {"python": platform.python_version(), "anonymip": __version__, **_dependencies()}


@cache
def _dependencies() -> dict[str, str]:
    """Return the versions of what is installed: a comparison asks for them with every row."""
    names = ("pyomo", "highspy", "pulp", "numpy", "pandas", "scipy", "numba")
    return {name: metadata.version(name) for name in names}


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
    solution: Solution,
    columns: list[dict[str, Any]],
    layout: str,
    keep_order: bool,
    *,
    is_seeded: bool = False,
    formulas_escaped: bool = False,
    suppressed: str = LEFT_OUT,
    homogeneous: Counts | None = None,
) -> dict[str, Any]:
    """Return the manifest of a release that is not yet verified.

    Parameters
    ----------
    solution
        What is published.
    columns
        Entries for the published columns.
    layout, keep_order, suppressed
        As in :func:`anonymip.publish`.
    is_seeded
        Whether the caller gave the source of randomness.
    formulas_escaped
        Whether cells that a spreadsheet would run have an apostrophe in front.
    homogeneous
        How many classes share a sensitive value; None of a cover.
    """
    problem, table = solution.problem, solution.problem.microdata.table
    value, bound = _published_value(solution), _published_bound(solution)
    gone = left_out(solution, suppressed)
    return {
        "format": FORMAT,
        "recoding": claimed_form(solution),
        "k": problem.k,
        "n": problem.n,
        "m": problem.m,
        "objective": {
            "name": problem.objective.name,
            "value": value,
            **describe_costs(solution),
        },
        "ncp": solution.ncp,
        "gcp": solution.gcp,
        "bound": None
        if bound is None
        else {"value": bound.value, "method": bound.method, "proof": bound.proof},
        "gap": relative_gap(value, bound),
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
            **({"formulas": "escaped"} if formulas_escaped else {}),
        },
        "order": "kept" if keep_order else "shuffled",
        "suppressed": solution.suppressed - gone["suppressed"],
        "left_out": gone,
        "homogeneous": homogeneous,
        **describe_stars(solution, suppressed),
        "diversity": _describe_diversity(problem.diversity, solution.assignment),
        "limits": [_describe_limit(limit) for limit in problem.limits],
        "checked": _checks(solution),
        "assumed": [
            *suppression_assumptions(solution, suppressed),
            *_assumptions(solution, keep_order, is_seeded),
        ],
    }


def _describe_diversity(
    diversity: Diversity | None, assignment: Assignment
) -> dict[str, Any] | None:
    if diversity is None:
        return None
    described: dict[str, Any] = {"l": float(diversity.l), "distinct": int(diversity.distinct)}
    if diversity.t is not None:
        described |= {"t": float(diversity.t), "ordered": diversity.ordered}
    if isinstance(assignment, Cover):
        # How many rows of a record share its probability.
        return {**described, "matches": degree_of(assignment)}
    return described


def _describe_limit(limit: Limit) -> dict[str, Any]:
    """Describe a limit; the two values that stay apart are values of the table, and not named."""
    if isinstance(limit, Cap):
        return {"attribute": limit.attribute, "rule": "cap", "most": float(limit.most)}
    return {"attribute": limit.attribute, "rule": "apart"}


def _checks(solution: Solution) -> list[str]:
    problem = solution.problem
    if isinstance(solution.assignment, Cover):
        checks = cover_checks(solution, solution.assignment)
    else:
        checks = [f"every class has at least k = {problem.k} records"]
        if problem.diversity is not None:
            checks.append(f"every class has the {problem.diversity}")
        checks += star_checks(solution)
    checks += [f"no published cell breaks the {limit}" for limit in problem.limits]
    if problem.compiled.tier == "members":
        checks.append(
            "the objective looks at the members of classes: it is recomputed from the original "
            "records and their classes, not from the published cells"
        )
    else:
        checks.append("the objective is recomputed from the published cells")
    return checks


def _published_value(solution: Solution) -> float:
    """Return the objective, rounded up to 4 digits if it looks at the members of classes.

    All its digits would then be a function of the values inside the classes.
    """
    value = solution.objective
    if solution.problem.compiled.tier != "members" or value == 0:
        return value
    return -float(bound_text(-value))


def _published_bound(solution: Solution) -> Bound | None:
    """Return the bound with 4 digits: all digits are a function of the original values."""
    if solution.bound is None:
        return None
    if solution.is_optimal:
        # Of a loss of members not even a closed bound shows all digits.
        is_members = solution.problem.compiled.tier == "members"
        value = _published_value(solution) if is_members else solution.bound.value
        return replace(solution.bound, value=value)
    return replace(solution.bound, value=float(bound_text(solution.bound.value)))


def _assumptions(solution: Solution, keep_order: bool, is_seeded: bool) -> list[str]:
    assumed = ["the quasi-identifiers are all that an adversary can link", _ONCE]
    recoding = solution.problem.recoding
    form = claimed_form(solution)
    if form != recoding.name:
        assumed.append(f"the rules of recoding {recoding.name} beyond those of {form}")
    if solution.bound is not None and solution.bound.proof == "solver":
        # Another method than the release's may have found it.
        source = solution.solver or f"the solver of {solution.bound.method}"
        assumed.append(f"the bound is what {source} reports")
    assumed += solution.problem.compiled.assumed
    if solution.problem.compiled.tier == "members":
        assumed.append("4 digits of the objective give nothing away about values inside a class")
    if isinstance(solution.assignment, Cover):
        # Kept order reveals of a cover no more than its method, which an adversary may know.
        assumed += cover_assumptions(solution, solution.assignment, is_seeded)
    elif keep_order:
        assumed.append("an adversary does not know the order of the original's rows")
    return assumed


def as_verified(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of the same release once it has been read back and verified."""
    checked = "the release was read back and verified by separate code"
    return {**manifest, "checked": [*manifest["checked"], checked]}


def of_file(manifest: dict[str, Any], table: Path) -> dict[str, Any]:
    """Return the manifest of a release whose table has been written, with the file's digest."""
    with table.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {**manifest, "table": {**manifest["table"], "sha256": digest}}
