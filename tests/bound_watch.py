"""Holds every bound of a test run against every loss: none may exceed what any method found.

A plugin of pytest. Solutions and bounds of whatever is tested are recorded by what was asked: the
table, k, the recoding, the loss and the rules. A bound above the loss of a release of the same
problem fails the test in which the second of both was found. Tests that make up bounds say so by
the marker ``false_bounds``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from anonymip import solving
from anonymip.bounds import combinatorial
from anonymip.exact.split_carry.checkpoint import Fingerprint
from anonymip.problem import Problem
from anonymip.solution import Bound, Solution
from anonymip.tolerances import contradicts


class _Found(NamedTuple):
    """A number, by which method, in which test."""

    value: float
    method: str
    test: str

    def __str__(self) -> str:
        return f"{self.value!r} of {self.method} ({self.test})"


class Watch:
    """The least loss and the highest bound of every problem so far, and what contradicts what."""

    def __init__(self) -> None:
        self.test: str | None = None
        self.losses: dict[Fingerprint, _Found] = {}
        self.bounds: dict[Fingerprint, _Found] = {}
        self.contradictions: list[str] = []

    def see(self, problem: Problem, value: float, method: str, *, bound: bool) -> None:
        """Keep a loss or a bound of a problem, if some test runs that watches."""
        if self.test is None or not problem.compiled.has_tables:
            return  # Two functions of one name may differ.
        asked = Fingerprint.of(problem, {})
        found, kept = _Found(float(value), method, self.test), self.bounds if bound else self.losses
        if asked not in kept or (value > kept[asked].value) == bound:
            kept[asked] = found
        if asked in self.losses and asked in self.bounds:
            loss, highest = self.losses[asked], self.bounds[asked]
            if contradicts(loss.value, highest.value, 1e-9 * max(1.0, abs(loss.value))):
                text = f"bound {highest} exceeds the loss {loss} of {problem}"
                self.contradictions.append(text)


WATCH = Watch()


def _watch_solutions() -> None:
    make, with_bound = Solution.of.__func__, Solution.with_bound  # type: ignore[attr-defined]

    @wraps(make)
    def of(cls: type[Solution], problem: Problem, *args: Any, **given: Any) -> Solution:
        solution: Solution = make(cls, problem, *args, **given)
        WATCH.see(problem, solution.objective, solution.method, bound=False)
        return solution

    @wraps(with_bound)
    def told(self: Solution, bound: Bound) -> Solution:
        solution = with_bound(self, bound)
        WATCH.see(self.problem, bound.value, bound.method, bound=True)
        return solution

    Solution.of = classmethod(of)  # type: ignore[assignment, method-assign]
    Solution.with_bound = told  # type: ignore[method-assign]


def _watch_bounds(module: ModuleType, name: str) -> None:
    """Record what a function that returns bounds returns, whoever has imported it by name."""
    compute: Callable[..., Bound | None] = getattr(module, name)

    @wraps(compute)
    def watched(problem: Problem, *args: Any, **given: Any) -> Bound | None:
        bound = compute(problem, *args, **given)
        if bound is not None:
            WATCH.see(problem, bound.value, bound.method, bound=True)
        return bound

    for other in [each for name, each in sys.modules.items() if name.startswith("anonymip")]:
        for known, value in list(vars(other).items()):
            if value is compute:
                setattr(other, known, watched)


def pytest_configure() -> None:
    """Watch from the first test on."""
    _watch_solutions()
    _watch_bounds(combinatorial, "lower_bound_of")
    _watch_bounds(import_module("anonymip.methods.best_bound"), "best_bound")
    _watch_bounds(solving, "lower_bound")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test whose bounds or losses contradict others."""
    WATCH.test = None if item.get_closest_marker("false_bounds") else item.nodeid
    try:
        return (yield)
    finally:
        WATCH.test = None
        if WATCH.contradictions:
            found = "\n".join(WATCH.contradictions)
            WATCH.contradictions.clear()
            pytest.fail(found, pytrace=False)
