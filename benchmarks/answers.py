"""A fixed list of calls and what they answer, to hold two versions of the package together.

``python -m benchmarks.answers write FILE`` keeps the answers of this version,
``python -m benchmarks.answers compare FILE`` lists where this version answers otherwise. With
``--only TEXT`` it is asked only calls whose line holds the text, such as a method or an instance.
An answer is everything but seconds and versions: assignment, loss, bound, status, trace, the JSON
record, and the release drawn with a given seed, its rows and its manifest, each to the last bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anonymip import (
    Attribute,
    EquivalenceClasses,
    Freeform,
    FullDomain,
    Hierarchy,
    KConcealment,
    KOne,
    Mask,
    Microdata,
    PatternGuided,
    PatternLevels,
    Problem,
    load_instance,
    publish,
    solve,
)
from anonymip.errors import AnonymipError
from anonymip.experiments import solution_record
from anonymip.methods import METHODS
from anonymip.objectives import load_objective
from anonymip.recodings import Cap, Diversity

_CHANGING = ("seconds", "versions")  # what may differ between two runs of one version

CLASSES, COVERS = EquivalenceClasses(), Freeform()
STARS = PatternGuided(Mask(suppress_at_most=3, allow_all_stars=True))
_BY_RECODING = {
    "classes": (CLASSES, EquivalenceClasses(suppression=True)),
    "freeform": (COVERS,),
    "k-one": (KOne(),),
    "k-concealment": (KConcealment(),),
    "pattern": (STARS, PatternGuided(Mask())),
    "pattern-levels": (PatternLevels(), PatternLevels(Mask(suppress_at_most=3))),
    "full-domain": (FullDomain(), FullDomain(most_suppressed=2)),
}
_TWO_LEAVES = Hierarchy.from_groups(["1", "2"])
_TINY = ("health-records", "aggarwal-4", "wong-5")
_SMALL = ("person20", "clinic-12", "census:18,4,1")
_LARGE = ("census:300,6,2", "census:120,8,3")
#: Options that change what a method does, beside its defaults.
_OPTIONS: dict[str, tuple[dict[str, object], ...]] = {
    "equivalence-mip": tuple(
        {"formulation": name}
        for name in ("set-partition", "bigm", "hull", "indicator", "strengthened")
    ),
    "ordered-cut": ({"order": "hilbert"}, {"order": "neighbour+2opt"}, {"order": "snake"}),
    "mondrian": ({"strict": False},),
    "split-carry": ({"S": 3}, {"S": 5}),
    "ring": ({"order": "variance"},),
    "greedy": ({"reciprocal": True},),
}


def _cases() -> Iterator[tuple[str, Problem, str, dict[str, object]]]:
    """Yield instance, problem, method and options of every call."""
    for method, spec in METHODS.items():
        small = spec.role == "exact" or method in ("auto", "two-factor")
        names = (*_TINY, *_SMALL) if small else (*_TINY[:1], *_SMALL, *_LARGE)
        for recoding in _BY_RECODING[spec.recoding]:
            for name in names:
                k = 2 if "k=2" in spec.needs or name == "aggarwal-4" else 3
                data = load_instance(name)
                diverse = Diversity(l=1.5) if "diversity" in spec.needs else None
                if diverse is None or data.sensitive:
                    yield name, Problem(data, k, recoding, diversity=diverse), method, {}
        for options in _OPTIONS.get(method, ()):
            names = ("health-records",) if small else ("person20", "census:300,6,2")
            for name in names:
                recoding = _BY_RECODING[spec.recoding][0]
                yield name, Problem(load_instance(name), 3, recoding), method, options
    yield from _with_rules()


def _with_rules() -> Iterator[tuple[str, Problem, str, dict[str, object]]]:
    """Yield calls with diversity, limits, other losses and the weaker notions."""
    clinic, person = load_instance("clinic-12"), load_instance("person20")
    diverse = Problem(clinic, 3, diversity=Diversity(l=2))
    capped = Problem(clinic, 3, limits=(Cap("Age", 20),))
    for method in ("auto", "greedy-search", "k-member", "mondrian", "local-search"):
        yield "clinic-12", diverse, method, {}
        yield "clinic-12", capped, method, {}
        for loss in ("set-gcp", "liang-gcp", "weighted-loss"):
            yield "person20", Problem(person, 3, objective=load_objective(loss)), method, {}
    for method in ("auto", "nh", "ring"):
        yield "clinic-12", diverse.replace(recoding=COVERS), method, {}
    for recoding in (KOne(), KConcealment()):
        yield "person20", Problem(person, 3, recoding), "auto", {}
    # Two leaves: losses of all pairs of ranks, as many as those of a capped term.
    kinds = (Attribute("SEX", "hierarchical", hierarchy=_TWO_LEAVES), Attribute("AGE"))
    frame = load_instance("census:18,2,1").frame.astype({"SEX": str})
    of_two = Problem(Microdata(frame, kinds), 3, COVERS)
    for method, spec in METHODS.items():
        if spec.recoding == "freeform" and "k=2" not in spec.needs:
            yield "two leaves", of_two, method, {}


def _answer(problem: Problem, instance: str, method: str, options: dict[str, object]) -> Any:
    """Return what a call answers, or how it refuses."""
    try:
        solution = solve(problem, method, options=options, seed=1)
    except AnonymipError as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}
    record = solution_record(solution, instance)
    answer: dict[str, Any] = {
        name: value for name, value in record.items() if name not in _CHANGING
    }
    answer["trace"] = list(solution.trace)
    try:
        release = publish(solution, rng=np.random.default_rng(7))
    except AnonymipError as refusal:
        return {**answer, "release": f"{type(refusal).__name__}: {refusal}"}
    manifest = {key: value for key, value in release.manifest.items() if key not in _CHANGING}
    answer["release"] = _digest(release.frame.to_csv(index=False))
    return {**answer, "manifest": _digest(json.dumps(manifest, sort_keys=True))}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def answers(only: str = "") -> dict[str, Any]:
    """Return the answers of all calls, or of those that `only` is part of, by what was asked."""
    found: dict[str, Any] = {}
    for instance, problem, method, options in _cases():
        asked = (
            f"{instance} k={problem.k} {problem.recoding} {problem.objective.name} "
            f"{problem.diversity} {[str(limit) for limit in problem.limits]} {method} {options}"
        )
        if only in asked:
            found[asked] = _answer(problem, instance, method, options)
    return found


def differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the part and a line for each call, and each part of its answer, that differs."""
    for asked in dict.fromkeys((*before, *now)):
        first, second = before.get(asked), now.get(asked)
        if first is None or second is None:
            only = f"only {'now' if first is None else 'before'}"
            yield only, f"{asked}: {only}"
            continue
        for part in dict.fromkeys((*first, *second)):
            if first.get(part) != second.get(part):
                line = f"{asked}: {part}: {first.get(part)!r} -> {second.get(part)!r}"
                yield _kind(part, first.get(part), second.get(part)), line[:400]


def _kind(part: str, first: object, second: object) -> str:
    """Return the part of an answer, and of numbers whether they differ by rounding only."""
    if (
        isinstance(first, float)
        and isinstance(second, float)
        and math.isclose(first, second, rel_tol=1e-12, abs_tol=1e-12)
    ):
        return f"{part} (rounding)"
    return part


def main() -> None:
    """Write the answers of this version, or compare them with those of another."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers")
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="part of the line that names a call")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    now = json.loads(json.dumps(answers(given.only), default=str))
    if given.what == "write":
        given.file.write_text(json.dumps(now, indent=1), encoding="utf-8")
        print(f"{len(now)} answers are in {given.file}")
        return
    before = json.loads(given.file.read_text(encoding="utf-8"))
    before = {asked: answer for asked, answer in before.items() if given.only in asked}
    found = list(differences(before, now))
    print(*(line for _, line in found), f"{len(now)} calls, {len(found)} differences", sep="\n")
    for part, count in Counter(part for part, _ in found).most_common():
        print(f"{count:5} {part}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
