"""Patterns, levels and the algorithms with a guarantee: speed, loss, proofs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anonymip import (
    Attribute,
    FullDomain,
    HierarchyLoss,
    Mask,
    Microdata,
    PatternGuided,
    Problem,
    Solution,
    TableFormat,
    load_instance,
    solve,
)

_KS = (*range(2, 11), 25, 50, 75, 100)
_ADULT_KS = (2, 3, 10, 25, 50, 75, 100)
#: Columns of the tables of Bredereck et al. 2013, all taken as texts.
_CMC = (
    *("wife_age", "wife_education", "husband_education", "children_born", "wife_religion"),
    *("wife_working", "husband_occupation", "SOL_index", "media_exposure"),
    "contraceptive_method_use",
)
_ADULT_2 = (
    *("age", "workclass", "education", "marital-status", "occupation", "race", "sex"),
    *("native-country", "income"),
)
#: What the user of Section 3.6 asks for.
_USER = Mask(
    suppress_at_most=2,
    never=("education", "income"),
    together=(("workclass", "occupation"),),
    at_most_one=(("age", "sex", "race"),),
    allow_all_stars=True,
)
_TWO_STARS = Mask(suppress_at_most=2, allow_all_stars=True)
_OPTIMA = {
    "cmc": {2: 2932},
    "adult-2": dict(
        zip(_ADULT_KS, (29056, 43886, 88026, 125231, 161081, 185870, 197421), strict=True)
    ),
}


def _texts(instance: str, columns: tuple[str, ...]) -> Microdata:
    """Return columns of a table as published: values as texts, no record left out."""
    frame = load_instance(instance).original[list(columns)].astype(str)
    attributes = tuple(Attribute(name, "categorical") for name in columns)
    return Microdata(frame, attributes, table=TableFormat(missing=()))


def _row(solution: Solution, table: str, mask: str, **more: Any) -> dict[str, Any]:
    return {
        "table": table,
        "patterns": mask,
        "n": solution.problem.n,
        "m": solution.problem.m,
        "k": solution.problem.k,
        "method": solution.method,
        "loss": solution.objective,
        "bound": None if solution.bound is None else solution.bound.value,
        "gap": None if solution.gap is None else round(solution.gap, 5),
        "status": str(solution.status),
        "seconds": round(solution.seconds, 3),
        **more,
    }


def pattern_greedy() -> Iterator[dict[str, Any]]:
    """Run the greedy algorithm and local search under all patterns; greedy is the reference."""
    tables = {
        "nursery": (load_instance("nursery"), (2, 6, 25, 100)),
        "cmc": (_texts("cmc", _CMC), (2, 10, 100)),
        "adult-2": (_texts("adult-raw", _ADULT_2), (2, 10, 100)),
    }
    for name, (data, ks) in tables.items():
        for k in ks:
            problem = Problem(data, k, PatternGuided())
            greedy = solve(problem, "pattern-greedy", bound=False)
            for method in ("pattern-greedy", "pattern-search"):
                # The second run, when all kernels are loaded.
                found = solve(problem, method, bound=False)
                yield _row(
                    found,
                    name,
                    "all",
                    ratio=round(found.objective / max(greedy.objective, 1.0), 4),
                    reference="loss of pattern-greedy",
                )


def pattern_proofs() -> Iterator[dict[str, Any]]:
    """Prove optima; greedy is the reference of the loss, known optima are named."""
    cmc, adult = _texts("cmc", _CMC), _texts("adult-raw", _ADULT_2)
    runs = [
        ("nursery", "all", load_instance("nursery"), Mask(), _KS, None),
        ("cmc", str(_TWO_STARS), cmc, _TWO_STARS, _KS, None),
        ("adult-2", str(_USER), adult, _USER, _ADULT_KS, None),
        ("cmc", "all", cmc, Mask(), (2, 3), 100.0),
        ("adult-2", "all", adult, Mask(), (2, 3, 10), 30.0),
    ]
    for name, masked, data, mask, ks, limit in runs:
        for k in ks:
            problem = Problem(data, k, PatternGuided(mask))
            greedy = solve(problem, "pattern-greedy", bound=False)
            found = solve(problem, "pattern-ilp", time_limit=limit)
            known = _OPTIMA.get(name, {}).get(k) if masked != "all" else None
            yield _row(
                found,
                name,
                masked,
                ratio=round(greedy.objective / max(found.objective, 1.0), 4),
                reference="loss of pattern-greedy over this"
                + ("" if known is None else f"; known optimum {known}"),
            )


def guarantees() -> Iterator[dict[str, Any]]:
    """Run the algorithms of Aggarwal et al.; their own bound is the reference."""
    runs = [
        *(("forest", f"census:{n},4,1", 5) for n in (5_000, 20_000)),
        *(("edge-cover", f"census:{n},4,1", 2) for n in (500, 2_000)),
        *(("two-factor", f"census:{n},4,1", 3) for n in (100, 500)),
    ]
    for method, instance, k in runs:
        problem = Problem(load_instance(instance), k, objective=HierarchyLoss())
        found = solve(problem, method, bound=False)
        ratio = None if found.bound is None else round(found.objective / found.bound.value, 4)
        yield _row(found, instance, "", ratio=ratio, reference="the method's own bound")


def levels() -> Iterator[dict[str, Any]]:
    """Recode Adult by levels; no suppression is the reference."""
    data = load_instance("adult-hierarchies")
    reference = None
    for share in (0.0, 0.01, 0.1):
        recoding = FullDomain(suppression=share > 0, most_suppressed=share or None)
        found = solve(Problem(data, 5, recoding), "full-domain")
        reference = reference or found.objective
        yield _row(
            found,
            "adult-hierarchies",
            f"{share:.0%} suppressed at most",
            gcp=round(found.gcp, 4),
            ratio=round(found.objective / reference, 4),
            reference="ncp without suppression",
        )
