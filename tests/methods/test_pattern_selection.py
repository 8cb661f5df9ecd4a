"""`auto` for patterns and full domains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    Attribute,
    Diversity,
    FullDomain,
    Mask,
    Microdata,
    PatternGuided,
    PatternLevels,
    Problem,
    Suppressions,
    solve,
)
from anonymip.methods.selection import REACH


def table(n: int, columns: int = 4) -> Microdata:
    """Return a seeded table of texts with a sensitive column."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"q{at}": rng.choice(list("abcd"), n) for at in range(columns)})
    frame["s"] = rng.choice(list("xyz"), n)
    attributes = tuple(Attribute(f"q{at}", "categorical") for at in range(columns))
    return Microdata(frame, attributes, sensitive=("s",))


def test_few_pairs_are_solved_to_optimality() -> None:
    """The integer program runs, and the solution says why."""
    data = table(30)
    solution = solve(
        Problem(data, 2, PatternGuided(Mask(suppress_at_most=2, allow_all_stars=True)))
    )
    assert solution.method == "pattern-ilp"
    assert solution.is_optimal
    pairs = len(data.row_types().first) * 12
    assert solution.trace[0] == (
        f"auto picked pattern-ilp: {pairs} pairs of a row and a pattern: provable"
    )


@pytest.mark.parametrize("recoding", [PatternGuided(), PatternGuided(single_use=True)])
def test_many_pairs_get_the_search(
    recoding: PatternGuided, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the number that is proven in time a heuristic runs, and keeps the rules."""
    monkeypatch.setitem(REACH, "normal", replace(REACH["normal"], few_pairs=100))
    solution = solve(Problem(table(200), 3, recoding))
    assert solution.method == "pattern-search"
    assert solution.trace[0].startswith("auto picked pattern-search: ")
    assert solution.bound is not None


def test_proofs_by_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs more than normal effort is searched, and proven with thorough effort."""
    monkeypatch.setitem(REACH, "normal", replace(REACH["normal"], proven_pairs=10, tried=0))
    for recoding, searched, proven in (
        (PatternGuided(), "pattern-search", "pattern-ilp"),
        (PatternLevels(), "pattern-levels", "pattern-levels"),
    ):
        problem = Problem(table(40), 4, recoding, Suppressions())
        normal, thorough = solve(problem), solve(problem, effort="thorough")
        assert (normal.method, thorough.method) == (searched, proven)
        assert "a proof needs more than normal effort" in normal.trace[0]
        assert thorough.is_optimal
        assert normal.bound is not None
        assert normal.bound.value <= thorough.objective <= normal.objective
        assert normal.trace != thorough.trace


@pytest.mark.thorough
def test_the_program_is_tried_for_some_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the release of the search, so that no effort loses more than a lower one."""
    normal = replace(REACH["normal"], proven_pairs=10, tried=6_000)
    for effort, reach in (("quick", replace(normal, tried=0)), ("normal", normal)):
        monkeypatch.setitem(REACH, effort, reach)
    problem = Problem(table(40), 4, PatternGuided(), Suppressions())
    found = [solve(problem, effort=effort) for effort in ("quick", "normal", "thorough")]
    assert [one.method for one in found] == ["pattern-search", "pattern-ilp", "pattern-ilp"]
    assert [one.options.get("nodes", 0) > 0 for one in found] == [False, True, False]
    losses = [one.objective for one in found]
    assert losses == sorted(losses, reverse=True)
    assert losses[1] < losses[0]
    assert found[2].is_optimal


def test_a_diversity_is_kept() -> None:
    """Whatever is picked, every class is diverse."""
    problem = Problem(table(40), 2, PatternGuided(), diversity=Diversity(distinct=2))
    solution = solve(problem)
    assert solution.classes is not None
    secrets = problem.microdata.frame["s"].to_numpy()
    assert all(len(set(secrets[group])) > 1 for group in solution.classes.groups())


def test_full_domains_have_their_method() -> None:
    """The optimum over the levels, which are few."""
    solution = solve(Problem(table(60, 3), 2, FullDomain(suppression=True)))
    assert solution.method == "full-domain"
    assert solution.is_optimal
