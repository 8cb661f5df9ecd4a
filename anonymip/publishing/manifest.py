"""The manifest: what a release promises, without any value of the original."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip._version import __version__
from anonymip.assignments import Assignment, Cover, Levels, Patterns
from anonymip.errors import InputError
from anonymip.graphs import components, degree_of
from anonymip.instances import Attribute
from anonymip.objectives import GCP, Suppressions
from anonymip.objectives.language.protocol import declares
from anonymip.objectives.language.record import Record, cells_of
from anonymip.privacy import is_table_of
from anonymip.problem import Problem
from anonymip.publishing.cautions import Counts
from anonymip.publishing.suppressed import LEFT_OUT, STARRED, left_out, suppression_assumptions
from anonymip.recodings import Cap, Diversity, FullDomain, Limit, PatternGuided
from anonymip.recodings.registry import published_form
from anonymip.recodings.rules.diversity import Units, of_rows
from anonymip.runtime.arrays import Ints
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
        **{name: value for name, value in attribute.scaling.items() if value is not None},
        **({} if attribute.missing is None else {"missing": attribute.missing}),
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
    weighted: float | None = None,
) -> dict[str, Any]:
    """Return the manifest of a release that is not yet verified.

    `columns`: entries for the published columns. `is_seeded`: whether the caller gave the source of
    randomness. `homogeneous`: how many classes share a sensitive value; None of a cover.
    `weighted`: the gcp by sampling weights; None without.
    """
    problem, table = solution.problem, solution.problem.microdata.table
    value, bound = _published_value(solution), _published_bound(solution)
    gone, weights = left_out(solution, suppressed), problem.microdata.weights
    return {
        "format": FORMAT,
        "recoding": claimed_form(solution),
        "k": problem.k,
        **({} if problem.microdata.unit is None else {"unit": problem.microdata.unit}),
        "n": problem.n,
        "m": problem.m,
        "objective": {"name": problem.objective.name, "value": value, **describe_costs(solution)},
        "ncp": solution.ncp,
        "gcp": solution.gcp,
        **({} if weighted is None else {"weights": {"column": weights, "gcp": weighted}}),
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
            **({"decimal": table.decimal} if table.decimal != "." else {}),
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
        "diversity": _describe_diversity(of_rows(problem.diversity), solution.assignment),
        "limits": [_describe_limit(limit) for limit in problem.limits],
        "checked": _checks(solution),
        "assumed": [
            *suppression_assumptions(solution, suppressed),
            *_assumptions(solution, keep_order, is_seeded),
        ],
    }


def weighted_gcp(
    solution: Solution, published: NDArray[np.integer], shown: NDArray[np.integer]
) -> float | None:
    """Return the mean penalty of a cell by the sampling weights of a release; None without.

    A suppressed record without a row counts with the mean weight of the others: its own is not to
    be told from the loss. `published`: (rows,) the records whose cells are published, `shown`:
    whose weights each shows.
    """
    problem = solution.problem
    if problem.microdata.weights is None:
        return None
    record = Record(GCP().compile(problem).domains, cells_of(solution.description))
    penalties = sum(record.spread[name] for name in problem.microdata.names)
    weights = problem.microdata.sampling_weights[shown]
    lost = float(np.average(penalties[published], weights=weights)) / problem.m
    share = len(published) / problem.n
    return share * lost + 1 - share


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
        units = isinstance(problem.diversity, Units)
        counted = f"units (column {problem.microdata.unit!r})" if units else "records"
        checks = [f"every class has at least k = {problem.k} {counted}"]
        diversity = of_rows(problem.diversity)
        if diversity is not None:
            checks.append(f"every class has the {diversity}{' among its rows' * units}")
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
    return solution.bound.rounded()


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
    if solution.problem.microdata.pseudonyms:
        assumed.append("an adversary has no key of pseudonyms, and knows nobody by several rows")
    if getattr(solution.problem.diversity, "beside", None) is not None:
        assumed.append("an adversary does not know how many rows a unit has: diversity counts rows")
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


def cut_off(path: str | Path) -> str | None:
    """Return what shows that a run was cut off while it put a release in place, None if nothing.

    A release is put in place manifest first and table last, so that a table never lies beside a
    manifest that was there before it. `path`: of the table; the manifest lies beside it.
    """
    table = Path(path)
    manifest = manifest_path(table)
    if not os.path.isfile(manifest):
        return None
    if not os.path.lexists(table):
        return (
            f"{manifest} lies there without its table: a run that wrote both was cut off, or the "
            "table was taken away"
        )
    try:
        mismatch = os.path.isfile(table) and is_table_of(table, manifest) is False
    except InputError:
        # What is no manifest was not left by a run that was cut off.
        mismatch = False
    if not mismatch:
        return None
    return (
        f"{table} is not the table that {manifest} was written for: a run that wrote both was cut "
        "off, or one of them was changed since"
    )


#: What was checked of the sets, by recoding.
_SETS = {
    "one-k": "every original record lies in the sets of at least k = {k} published rows",
    "k-one": "every published row covers at least k = {k} original records",
    "k-k": "every published row covers at least k = {k} original records, and every original "
    "record lies in the sets of as many rows",
    "k-concealment": "for every original record at least k = {k} published rows lie in some "
    "assignment of all records as its own",
}
_PERSON_FIRST = "an adversary looks for a person's row, not for a row's person"
_ROW_FIRST = "an adversary looks for a row's person, not for a person's row"
_ALL_COUNT = "an adversary does not rule out matches that lie in no assignment"
#: What these notions leave open, beside the chances.
_OPEN = {
    "one-k": (_PERSON_FIRST, _ALL_COUNT),
    "k-one": (_ROW_FIRST, _ALL_COUNT),
    "k-k": (_ALL_COUNT,),
    "k-concealment": (_PERSON_FIRST,),
}


def claimed_form(solution: Solution) -> str:
    """Return the recoding that a release claims.

    A freeform cover with a degree for each record need not fall into k disjoint assignments. All
    its matches lie in some assignment, so that it is released as what it is: k-concealment.
    """
    form = published_form(solution.problem.recoding)
    return "k-concealment" if form == "freeform" and _degree(solution) is None else form


def cover_checks(solution: Solution, cover: Cover) -> list[str]:
    """Return what was checked of the sets of a cover."""
    form, diversity = claimed_form(solution), solution.problem.diversity
    if form == "freeform":
        degree, kept = _degree(solution), " that is not suppressed" if cover.suppressed else ""
        checks = [
            f"every published row covers {degree} original records",
            f"every original record{kept} lies in {degree} sets",
            f"{degree} disjoint assignments of records to rows exist",
        ]
    else:
        checks = [_SETS[form].format(k=solution.problem.k)]
    if diversity is not None:
        checks.append(f"the original records in every set have the {diversity}")
        checks.append(f"the rows that can be a record's own show values with the {diversity}")
    return checks


def cover_assumptions(solution: Solution, cover: Cover, is_seeded: bool) -> list[str]:
    """Return what is assumed of the assignment along which a cover is published."""
    form = claimed_form(solution)
    who = "its publisher" if is_seeded else "the operating system"
    drawn = "with which the assignment of sensitive and kept values was drawn"
    assumed = [f"an adversary cannot repeat the random numbers of {who}, {drawn}"]
    if form != "freeform":
        assumed.append("an adversary takes all rows that can be a person's for equally likely")
        assumed += _OPEN[form]
    else:
        kept = cover.without_suppressed()[1]
        # Unless the sets are classes. Of reciprocal sets it is proven along the identity alone.
        if (np.bincount(components(kept)) != degree_of(kept)).any():
            assumed.append(
                "an adversary knows of nobody for certain which row is hers: c known rows may "
                "leave another person fewer than k - c"
            )
    if solution.problem.diversity is not None:
        assumed.append(
            "an adversary knows which rows were made for sets that hold a person: counted over all "
            "rows whose cells contain her, the shares of sensitive values can be others"
        )
    return assumed


def _degree(solution: Solution) -> int | None:
    cover = solution.assignment
    return degree_of(cover.without_suppressed()[1]) if isinstance(cover, Cover) else None


def describe_stars(solution: Solution, suppressed: str) -> dict[str, Any]:
    """Return the keys by which a manifest says what is starred, none of classes and covers.

    ``stars`` says what rows of stars only are: ``"suppressed"`` if one of them was suppressed as
    a whole, which then nobody can distinguish from the others; else they are a class like any
    other.
    """
    assignment, problem = solution.assignment, solution.problem
    if not isinstance(assignment, Patterns | Levels):
        return {}
    starred = suppressed == STARRED and assignment.suppressed > 0
    claims: dict[str, Any] = {"stars": "suppressed" if starred else "class"}
    if isinstance(assignment, Levels):
        levels = zip(problem.microdata.names, assignment.levels.tolist(), strict=True)
        return {**claims, "levels": dict(levels)}
    if isinstance(problem.recoding, PatternGuided):
        claims["mask"] = describe_mask(problem.recoding)
    return claims


def describe_mask(recoding: PatternGuided) -> dict[str, Any]:
    """Return the rules of a mask by their names, or its patterns, and how often each serves."""
    mask = recoding.mask
    rules = mask.rules()
    if mask.patterns is not None:
        rules["patterns"] = [list(pattern) for pattern in mask.patterns]
    return {**rules, "allow_all_stars": mask.allow_all_stars, "single_use": recoding.single_use}


def describe_costs(solution: Solution) -> dict[str, Any]:
    """Return what the objective charges for stars, so that its value can be computed again."""
    objective = solution.problem.objective
    price = solution.problem.suppression_price
    priced = {} if price is None else {"suppression_price": price}
    if not isinstance(objective, Suppressions):
        return priced
    return {
        **priced,
        "costs": {name: float(cost) for name, cost in objective.costs.items()},
        "pattern_costs": [
            {"columns": list(columns), "cost": float(cost)}
            for columns, cost in objective.patterns.items()
        ],
    }


def star_checks(solution: Solution) -> list[str]:
    """Return what was checked of patterns or levels."""
    assignment, recoding = solution.assignment, solution.problem.recoding
    if isinstance(assignment, Levels):
        return ["every cell of a column is generalized to the level of the column"]
    if not isinstance(assignment, Patterns):
        return []
    checks = ["every cell is exact or a star", "the stars of every row are a pattern of the mask"]
    if getattr(recoding, "single_use", False):
        checks.append("rows with stars in the same columns look alike")
    return checks


def revealing_columns(solution: Solution) -> list[str]:
    """Return the columns whose observed domain the published loss could reveal of hidden values.

    A suppressed record hides values that may end the domain, by whose width the losses of all
    ranges are divided. If each value that makes the domain has more records than are suppressed,
    some of it are published, and the loss tells no more than they do. Where cells are exact, nodes
    or stars, the certainty penalty, the losses of hierarchies and what stars cost do not know a
    domain that was observed; of another loss that is not known.
    """
    problem = solution.problem
    if isinstance(solution.assignment, Patterns | Levels):
        if declares(problem.objective, "blind_to_domains"):
            return []
        starred = np.any(solution.description.suppressed, axis=0)
        return _observed(problem, np.where(starred, problem.n, 0))
    return _observed(problem, np.full(problem.m, solution.assignment.suppressed))


def columns_at_risk(problem: Problem) -> list[str]:
    """Return the columns of :func:`revealing_columns` that a release of a problem may have."""
    recoding, n = problem.recoding, problem.n
    most = np.full(problem.m, problem.most_suppressed)
    blind = declares(problem.objective, "blind_to_domains")
    if isinstance(recoding, PatternGuided | FullDomain) and blind:
        return []
    if isinstance(recoding, PatternGuided):
        most = np.where(recoding.stars(problem).any(axis=0) | (most > 0), n, 0)
    if isinstance(recoding, FullDomain):
        most[:] = n
    return _observed(problem, most)


def _observed(problem: Problem, hidden: Ints) -> list[str]:
    """Return the columns whose domain is what was observed, and may end in values that are hidden.

    `hidden`: (m,) cells of each column that are not published, or may not be.
    """
    return [
        attribute.name
        for a, attribute in enumerate(problem.microdata.attributes)
        if hidden[a]
        and attribute.domain is None
        and (attribute.hierarchy is None or attribute.hierarchy.observed)
        and _rarest(problem, a) <= hidden[a]
    ]


def _rarest(problem: Problem, a: int) -> int:
    """Return how many records have the rarest of the values that make an observed domain.

    These are the ends of ranges under the certainty penalty, and of the calendar; else all values.
    """
    microdata = problem.microdata
    attribute, level = microdata.attributes[a], microdata.levels[a]
    places, size = microdata.codes[:, a].astype(np.int64), len(level)
    if attribute.hierarchy is not None:
        places, size = microdata.leaves(a)[places], len(attribute.hierarchy.leaves)
    counts = np.bincount(places, minlength=size)
    ends = attribute.publish == "range" and isinstance(problem.objective, GCP)
    if attribute.is_numeric:
        counts = counts[level.astype(np.float64) < microdata.beyond[a]]
    elif attribute.kind == "date" and attribute.hierarchy is not None:
        ends, labels = True, np.array(attribute.hierarchy.leaves)
        counts = counts[labels != microdata.table.label]
    return int(min(counts[[0, -1]] if ends and len(counts) else counts, default=problem.n + 1))
