"""Solve a drawn problem by several methods, publish, and let the judge look at all of it."""

from __future__ import annotations

import random
import re
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import anonymip
from anonymip import AnonymipError, InputError, NoSolution, Problem, Solution
from tests.fuzzing.certificates import check_certificate
from tests.fuzzing.judge.asked import Asked
from tests.fuzzing.judge.releases import differs, release_problems
from tests.fuzzing.package import frame_of, judged, problem_of

#: A bound exceeds an optimum if it does so by more than this part of it.
_BOUND = Fraction(1, 10**9)
#: What is called optimal may lose this part of what can be changed more than the optimum.
_OPTIMAL = Fraction(1, 10**6)
#: Sums in double precision are off by this part.
_DOUBLE = Fraction(1, 10**14)
#: Share of the solutions of classes and covers that are certified.
_CERTIFIED = 0.3
#: Seconds for tables that are too large for the judge's optimum.
_LARGE = 3.0

_OPTIONS: dict[str, list[dict[str, object]]] = {
    "equivalence-mip": [
        {"formulation": "bigm"},
        {"formulation": "bigm", "integer_ends": False, "warm_start": "none"},
        {"formulation": "hull"},
        {"formulation": "indicator"},
        {"formulation": "strengthened"},
        {"formulation": "strengthened", "warm_start": "none"},
        {"formulation": "set-partition"},
        {"formulation": "set-partition", "warm_start": "none"},
    ],
    "freeform-mip": [
        {"formulation": "set-cover"},
        {"formulation": "freeform"},
        {"formulation": "freeform", "own_record": "free", "warm_start": "none"},
        {"formulation": "freeform", "ranges": "gaps"},
        {"formulation": "freeform", "strengthened": False},
        {"formulation": "assignment"},
        {"warm_start": "none"},
    ],
    "split-carry": [
        {"S": 2},
        {"subsolver": "set-partition"},
        {"subsolver": "bigm", "S": 2},
        {"carry": "least"},
        {"order": "snake+2opt"},
    ],
    "local-search": [{"from_method": "mondrian"}, {"trials": False}],
    "ordered-cut": [{"order": "snake"}, {"order": "hilbert+2opt"}, {"order": "neighbour"}],
    "greedy-search": [{"search": "tree"}, {"search": "scan"}],
    "mondrian": [{"strict": False}],
    "hilbert": [{"cells": "HR"}, {"cells": "HS"}],
    "greedy": [{"chooser": "originals"}, {"part": 5}],
    "sort-greedy": [{"part": 5}],
    "hungarian": [{"part": 5}],
    "ring": [{"order": "variance"}, {"order": "neighbour+2opt"}],
    "k-concealment": [{"join": "loss"}],
    "reassign": [{"from_method": "ring"}, {"from_method": "hungarian"}],
    "pattern-ilp": [
        {"formulation": "pattern"},
        {"formulation": "pattern-strong"},
        {"formulation": "parts"},
        {"warm_start": "none"},
    ],
    "pattern-greedy": [{"mode": "paper"}, {"orders": 4}],
}


@dataclass
class Findings:
    """What a case brought."""

    area: str
    solves: int = 0
    faults: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)

    def fault(self, what: str) -> None:
        """Note a fault."""
        self.faults.append(what)

    def attempt(self, what: str, action: Callable[[], Any]) -> Any:
        """Return what an action gives, None if it is refused; what else it raises is a fault."""
        try:
            return action()
        except InputError as refusal:
            if refusal.remedy is None:
                self.fault(f"{what}: refused without a remedy: {refusal}")
            self.refusals[_shape(f"{what.split()[0]}: {refusal.message}")] += 1
        except AnonymipError as error:
            self.fault(f"{what}: {type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            self.fault(f"{what}: {type(error).__name__} at {where}: {error}")
        return None


def _shape(text: str) -> str:
    return re.sub(r"\d+", "#", re.sub(r"'[^']*'", "'..'", text))[:110]


class Reference:
    """What the judge knows of a problem."""

    def __init__(self, asked: Asked, *, large: bool) -> None:
        self.known, self.optimum = (False, None) if large else asked.optimum()
        loss = asked.loss
        self.unavoidable = Fraction(0) if loss.of_members else loss.unavoidable(asked.table)
        #: The largest bound and the least loss met, with what has them.
        self.bound: tuple[Fraction, str] | None = None
        self.loss: tuple[Fraction, str] | None = None

    def see(self, bound: float | None, loss: Fraction | None, what: str) -> None:
        """Note a bound and a loss."""
        if bound is not None and (self.bound is None or Fraction(bound) > self.bound[0]):
            self.bound = (Fraction(bound), what)
        if loss is not None and (self.loss is None or loss < self.loss[0]):
            self.loss = (loss, what)

    def bound_is_false(self, bound: float | Fraction) -> bool:
        """Return whether a bound lies above the optimum."""
        if not self.known or self.optimum is None:
            return False
        return Fraction(bound) - self.optimum > _BOUND * abs(self.optimum)

    def is_not_optimal(self, loss: Fraction) -> bool:
        """Return whether a loss that is called optimal is not."""
        if not self.known or self.optimum is None:
            return False
        room = _OPTIMAL * (self.optimum - self.unavoidable) + _DOUBLE * abs(self.optimum)
        return loss - self.optimum > room


def judge_solution(
    found: Findings, asked: Asked, reference: Reference, solution: Solution, what: str
) -> None:
    """Compare a solution with what the judge knows."""
    loss, wrong = judged(asked, solution)
    for one in wrong:
        found.fault(f"{what}: {one}")
    if differs(solution.objective, loss):
        found.fault(f"{what}: loss {solution.objective!r}, the judge has {float(loss)!r}")
    if wrong:
        return
    if reference.known and reference.optimum is None:
        found.fault(f"{what}: a solution where the judge knows none")
    bound = None if solution.bound is None else solution.bound.value
    reference.see(bound, loss, what)
    best = None if reference.optimum is None else float(reference.optimum)
    if bound is not None and reference.bound_is_false(bound):
        found.fault(f"{what}: bound {bound!r} above the optimum {best!r}")
    if solution.is_optimal and reference.is_not_optimal(loss):
        found.fault(f"{what}: optimal at {float(loss)!r}, the optimum is {best!r}")
    if solution.is_optimal and solution.gap is not None and solution.gap > 1e-6:
        found.fault(f"{what}: optimal beside a gap of {solution.gap!r}")


def run_solves(found: Findings, asked: Asked, rng: random.Random) -> None:
    """Solve a problem by several methods and judge what comes out."""
    problem = found.attempt("problem", lambda: problem_of(asked))
    if problem is None:
        return
    large = asked.table.n > 7
    reference = Reference(asked, large=large)
    solutions: list[Solution] = []
    for name, options, settings in _plans(problem, rng, large=large):
        what = f"{name} {options or ''} {settings or ''}".replace("  ", " ").strip()
        found.solves += 1
        solution = _solve(found, asked, problem, reference, what, name, options, settings)
        if solution is not None:
            judge_solution(found, asked, reference, solution, what)
            solutions.append(solution)
    bound = found.attempt("lower_bound", lambda: _lower_bound(problem, reference))
    if bound is not None:
        reference.see(bound.value, None, "lower_bound")
        if reference.bound_is_false(bound.value):
            found.fault(f"lower_bound: {bound.value!r} of {bound.method} above the optimum")
    _compare(found, reference)
    if solutions and rng.random() < 0.6:
        check_release(found, asked, rng.choice(solutions), rng)
    # Last, so that what was drawn before stays as it is.
    if solutions and asked.recoding in ("classes", "freeform") and rng.random() < _CERTIFIED:
        check_certificate(found, asked, reference, rng.choice(solutions))
    if solutions and not large:
        start_from_the_worst(found, asked, reference, solutions, rng)


def start_from_the_worst(
    found: Findings,
    asked: Asked,
    reference: Reference,
    solutions: list[Solution],
    rng: random.Random,
) -> None:
    """Let exact methods start from a bad release: a good one hides a bound that is false."""
    problem = solutions[0].problem
    worst = max(solutions, key=lambda one: one.objective)
    for name in dict.fromkeys(one.method for one in solutions):
        spec = anonymip.METHODS[name]
        method = spec.load()
        if spec.role != "exact" or "start" not in signature(method).parameters:
            continue
        options = dict(rng.choice(_OPTIONS.get(name, [{}])))
        what = f"{name} {options or ''} from {worst.method}"
        found.solves += 1
        solution = found.attempt(what, partial(method, problem, start=worst.assignment, **options))
        if solution is not None:
            judge_solution(found, asked, reference, solution, what)
            if solution.objective > worst.objective:
                found.fault(f"{what}: {solution.objective!r}, from {worst.objective!r}")


def _lower_bound(problem: Problem, reference: Reference) -> anonymip.Bound | None:
    try:
        return anonymip.lower_bound(problem)
    except NoSolution:
        if reference.known and reference.optimum is not None:
            raise
        return None


def _compare(found: Findings, reference: Reference) -> None:
    """Compare bounds and losses of all methods with each other, where no optimum is known."""
    if reference.bound is None or reference.loss is None:
        return
    (bound, of_bound), (loss, of_loss) = reference.bound, reference.loss
    if bound - loss > _BOUND * abs(loss) + _DOUBLE * abs(bound):
        found.fault(f"{of_bound}: bound {float(bound)!r} above {float(loss)!r} of {of_loss}")


def _plans(
    problem: Problem, rng: random.Random, *, large: bool
) -> list[tuple[str, dict[str, object], dict[str, Any]]]:
    """Return methods with their options and common settings."""
    recoding = problem.recoding.name
    fitting = [
        spec
        for spec in anonymip.METHODS.values()
        if spec.solves(recoding)
        and spec.solves_for(problem.k)
        and spec.obstacle(problem) is None
        and spec.role != "selection"
    ]
    exact = [spec.name for spec in fitting if spec.role == "exact"]
    others = [spec.name for spec in fitting if spec.role != "exact"]
    chosen = ["auto", *rng.sample(others, min(4, len(others)))]
    if not large:
        chosen += [name for name in exact for _ in range(2)]
    plans = []
    for name in chosen:
        options: dict[str, object] = {}
        if name in _OPTIONS and rng.random() < 0.6:
            options = dict(rng.choice(_OPTIONS[name]))
        settings: dict[str, Any] = {}
        if "solver" in anonymip.METHODS[name].takes and rng.random() < 0.06:
            settings["solver"] = "cbc"
        if large:
            settings["time_limit"] = _LARGE
        elif rng.random() < 0.03:
            settings["time_limit"] = rng.choice([1e-4, 0.01])
        if (name, options, settings) not in plans:
            plans.append((name, options, settings))
    return plans


def _solve(
    found: Findings,
    asked: Asked,
    problem: Problem,
    reference: Reference,
    what: str,
    name: str,
    options: dict[str, object],
    settings: dict[str, Any],
) -> Solution | None:
    def action() -> Solution | None:
        try:
            return anonymip.solve(problem, name, options=options, **settings)
        except NoSolution as error:
            if "report" in str(error):
                raise
            exists = reference.known and reference.optimum is not None
            if exists and _must_find(asked, name) and "time_limit" not in settings:
                found.fault(f"{what}: NoSolution, the judge has {float(reference.optimum or 0)!r}")
            return None

    solution: Solution | None = found.attempt(what, action)
    return solution


def _must_find(asked: Asked, name: str) -> bool:
    """Return whether a method must find a solution if there is one."""
    if name == "auto" and asked.recoding == "k-concealment" and asked.rules.diverse:
        # No formulation has the diversity of effective matches: heuristics look for it.
        return False
    if name == "auto" or anonymip.METHODS[name].role == "exact":
        return True
    ruled = asked.rules.diverse or asked.rules.caps or asked.rules.apart
    return not ruled and asked.recoding != "pattern" and not asked.reciprocal and not asked.degrees


def check_release(found: Findings, asked: Asked, solution: Solution, rng: random.Random) -> None:
    """Publish a solution, write it, and let verifier and judge read it."""
    what = f"release of {solution.method}"
    generator = np.random.default_rng(rng.randrange(2**32))
    layout = "columns" if rng.random() < 0.15 else "cells"
    keep_order = rng.random() < 0.2
    # Fewer than k of them are refused, which counts as a refusal.
    suppressed = "starred" if rng.random() < 0.3 else "left-out"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.csv"

        def action() -> Any:
            try:
                release = anonymip.publish(
                    solution, generator, layout=layout, keep_order=keep_order, suppressed=suppressed
                )
                release.write(path, original=frame_of(asked.table))
            except NoSolution:
                # No assignment of a cover is found that keeps a diversity.
                if asked.rules.diverse:
                    return None
                raise
            return release.verify()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verification = found.attempt(what, action)
        if verification is None:
            return
        for problem in verification.problems:
            found.fault(f"{what}: its own verifier says: {problem}")
        for problem in release_problems(asked, path, path.with_name(path.name + ".manifest.json")):
            found.fault(f"{what}: the judge says: {problem}")
