"""k units a class: against enumeration, in every exact method, and what is refused."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from anonymip import (
    Apart,
    Attribute,
    Diversity,
    InputError,
    Microdata,
    Problem,
    anonymize,
    lower_bound,
    solve,
    verify,
)
from anonymip.exact.column_generation.column_generation import relaxation_bound
from anonymip.recodings.rules.diversity import Units
from anonymip.runtime.budget import Budget
from tests.random_problems import Case, groups_of, unit_cases

pytestmark = pytest.mark.filterwarnings("ignore:the attributes have different weights")

VISITS = pd.DataFrame(
    {
        "who": ["Ann", "Ann", "Bea", "Cyd", "Dan", "Dan", "Dan", "Eli"],
        "age": [30, 30, 31, 33, 60, 60, 60, 66],
        "ward": [1, 2, 1, 2, 1, 2, 3, 3],
    }
)


def visits(k: int = 2, **asked: object) -> Problem:
    """Return a problem of five persons with eight visits."""
    data = Microdata(VISITS, (Attribute("age"), Attribute("ward")), unit="who")
    return Problem(data, k, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["auto", "column-generation", "equivalence-mip"])
@settings(max_examples=40)
@given(case=unit_cases(largest=7, diverse=True))
def test_exact_methods_equal_brute_force(method: str, case: Case) -> None:
    """All losses, limits, diversities, suppressions: the least loss of classes of k units."""
    problem, best = case.problem(), case.optimum()
    if method == "column-generation":
        assume(not case.worst and problem.compiled.superadditive)
    solution = solve(problem, method, effort="thorough")
    assert solution.is_optimal
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert case.rules is not None
    for group in groups_of(solution.assignment):
        assert case.rules.met_by(case.columns, group)


@pytest.mark.parametrize("formulation", ["bigm", "set-partition"])
@settings(max_examples=18)
@given(case=unit_cases(largest=6, diverse=True))
def test_formulations_equal_brute_force(formulation: str, case: Case) -> None:
    """The pair models count values a class holds; sets are listed up to the size needed."""
    solution = solve(case.problem(), "equivalence-mip", options={"formulation": formulation})
    assert solution.is_optimal
    assert solution.objective == pytest.approx(case.optimum(), rel=1e-6, abs=1e-9)


@settings(max_examples=40)
@given(unit_cases(diverse=True))
def test_bounds_hold_and_larger_classes_gain_nothing(case: Case) -> None:
    """No bound exceeds the optimum, which classes of the size that is said to suffice reach."""
    problem, best = case.problem(), case.optimum()
    bound = lower_bound(problem)
    if bound is not None:
        assert bound.value <= best + case.slack(best)
    relaxed, _ = relaxation_bound(problem, [], effort="quick", budget=Budget())
    if relaxed is not None:
        assert relaxed.value <= best + case.slack(best)
    largest = problem.recoding.max_size(problem).size
    assume(largest is not None and not case.worst)
    kept = [g for g in case.releases() if max(map(len, g), default=0) <= largest]
    least = min((case.release_loss(groups) for groups in kept), default=math.inf)
    assert least == pytest.approx(best, rel=1e-9, abs=1e-12)


def _may_be_cut(units: tuple[str, ...], k: int) -> bool:
    """Return whether rows fall into two parts of k units, trying all ways."""
    return any(
        min(len({u for u, one in zip(units, sides, strict=True) if one is side}) for side in (0, 1))
        >= k
        for sides in product((0, 1), repeat=len(units))
    )


@settings(max_examples=60)
@given(st.lists(st.sampled_from("ABCDE"), min_size=2, max_size=9).map(tuple), st.integers(2, 3))
@example(("A", "A", "A", "A", "B"), 2)
@example(("A", "A", "B", "B", "C", "D"), 3)
def test_cuts_of_classes(units: tuple[str, ...], k: int) -> None:
    """A class is cut exactly if it can be, into parts of k units that cannot be cut further."""
    assume(len(set(units)) >= k)
    rule, codes = Units(distinct=k, column="u"), np.unique(units, return_inverse=True)[1][:, None]
    parts = rule.cut(np.arange(len(units)), codes)
    assert (len(parts) > 1) == _may_be_cut(units, k)
    assert Counter(np.concatenate(parts).tolist()) == Counter(range(len(units)))
    for part in parts:
        held = tuple(units[row] for row in part)
        assert len(set(held)) >= k
        assert not _may_be_cut(held, k)
        assert len(part) <= rule.largest(codes)


def test_persons_are_counted_not_rows() -> None:
    """Two rows of one person do not hide her: by rows Ann's and Dan's are classes of their own."""
    by_rows = solve(visits().without_rules)
    solution = solve(visits())
    assert by_rows.objective < solution.objective
    assert solution.is_optimal
    for group in solution.assignment.groups():  # type: ignore[union-attr]
        assert VISITS["who"].iloc[group].nunique() >= 2
    assert str(solution.problem.diversity) == "minimum of 2 units (column 'who')"
    assert "with k = 2 units" in solution.sentence()


def test_k_and_the_rule_go_together() -> None:
    """Another k asks for as many units; without the unit rows are counted again."""
    problem = visits()
    assert problem.replace(k=3).diversity == Units(distinct=3, column="who")
    free = problem.without_rules
    assert free.diversity is None
    assert free.microdata.unit is None
    assert free.microdata.drop == ("who",)
    assert free.k == 2
    assert not free.limits


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"k": 6}, "there are 5 values"),
        ({"recoding": "freeform"}, "does not count units"),
        ({"recoding": "k-one"}, "does not count units"),
        ({"recoding": "full-domain"}, "does not count units"),
        ({"diversity": Diversity(l=2)}, "a diversity needs sensitive columns"),
    ],
)
def test_what_has_no_units_refuses_them(asked: dict[str, object], said: str) -> None:
    """Too few units, covers and levels, and a diversity without sensitive columns."""
    with pytest.raises(InputError, match=said):
        visits(**asked)  # type: ignore[arg-type]


def test_roles_of_the_unit() -> None:
    """It has one role, no gaps, and makes no method that needs sensitive values run."""
    with pytest.raises(InputError, match="is keep and unit"):
        Microdata(VISITS, (Attribute("age"),), keep=("who",), unit="who")
    with pytest.raises(InputError, match="person"):
        Microdata(VISITS, (Attribute("age"),), unit="person")
    for gap in (None, ""):
        gaps = VISITS.assign(who=[gap, *VISITS["who"][1:]])
        with pytest.raises(InputError, match="names the units, has 1 missing"):
            Microdata(gaps, (Attribute("age"),), unit="who")
    with pytest.raises(InputError, match="needs a diversity"):
        solve(visits(), "anatomy")


def test_limits_stand_beside_units() -> None:
    """What must stay apart stays apart."""
    release = anonymize(VISITS, ["age", "ward"], 2, unit="who", limits=Apart("age", 30, 60))
    assert release.verified


def test_rows_are_diverse_beside_units() -> None:
    """Both conditions are kept, told and verified; neither alone would do."""
    table = VISITS.assign(ill=["a", "b", "a", "a", "b", "a", "b", "b"])
    asked = {"sensitive": ["ill"], "unit": "who", "keep_order": True}
    alone = anonymize(table, ["age", "ward"], 2, **asked)  # type: ignore[arg-type]
    one_value = alone.manifest["homogeneous"]["ill"]["classes"]
    diversity = Diversity(distinct=2)
    release = anonymize(table, ["age", "ward"], 2, diversity=diversity, **asked)  # type: ignore[arg-type]
    assert one_value > release.manifest["homogeneous"]["ill"]["classes"] == 0
    assert release.solution.is_optimal
    assert release.solution.objective >= alone.solution.objective
    assert "k = 2 units and diversity 2 distinct" in release.solution.problem.release_name
    assert release.manifest["unit"] == "who"
    assert release.manifest["diversity"] == {"l": 1.0, "distinct": 2}
    assert any("how many rows a unit has" in one for one in release.manifest["assumed"])
    found = release.verify()
    assert found.ok
    assert any("units of 'who'" in one for one in found.checks)
    assert any("promised diversity" in one for one in found.checks)
    # What only one of the two conditions allows is no release of both.
    claimed = {**alone.manifest, "diversity": {"l": 1.0, "distinct": 2}}
    refused = verify(table, alone.frame, claimed)
    assert any("lack the promised diversity" in one for one in refused.problems)
    with pytest.raises(InputError, match="in column 'ill' there are 2 values"):
        anonymize(table, ["age"], 2, diversity=Diversity(distinct=3), **asked)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="t-closeness is kept by releases by patterns"):
        anonymize(table, ["age"], 2, diversity=Diversity(t=0.5), **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("diversity", "told"),
    [
        (None, "all the units"),
        (Diversity(l=2), "more than 1/2 of the units"),
        (Diversity(l=1.2), ""),
    ],
)
def test_persons_who_share_a_value_are_told(diversity: Diversity | None, told: str) -> None:
    """Ann's other visits make the rows diverse, and not the persons: all had the flu."""
    people = pd.DataFrame(
        {
            "who": ["Ann"] * 3 + ["Bea", "Cyd"],
            "age": [30] * 5,
            "ill": ["flu", "gout", "gout", "flu", "flu" if diversity is None else "cold"],
        }
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        anonymize(people, ["age"], 3, sensitive=["ill"], unit="who", diversity=diversity)
    messages = [str(one.message) for one in caught]
    shared = [one for one in messages if "the units have one value" in one]
    assert len(shared) == bool(told)
    assert all(told in one and "in 1 class " in one for one in shared)
