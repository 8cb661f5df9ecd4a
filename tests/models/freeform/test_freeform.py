"""Models of freeform generalization: by pairs, and by sets that cover."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import InputError, NoSolution, Problem, build, load_instance, read, set_start
from anonymip.assignments import Cover
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.models import model_size
from anonymip.models.export import export_model
from anonymip.models.freeform.covering_rows import largest_flow
from anonymip.models.parts import equivalence_context as limits
from anonymip.recodings import KK, Freeform, KConcealment, KOne, OneK
from tests.brute_force import Column, Rules
from tests.cover_brute_force import effective_pairs, reciprocal_covers, regular_optimum
from tests.exact.classes.test_formulations import RULES, mixed
from tests.hard_losses import FALLING, PRODUCT
from tests.models.pair_formulations import relaxation_bound, violations
from tests.random_problems import LOSSES, Case, cases, ruled_cases

NOTIONS = (Freeform(), OneK(), KOne(), KK(), KConcealment())


def test_rows_by_hand() -> None:
    """Eqs. (4) to (7) on the values 5, 2, 9 in the domain 0 to 100."""
    column = Column((5, 2, 9), domain=(0, 100), integer=True)
    model = build(Case((column,), 2, LOSSES["gcp"]).problem().replace(recoding=Freeform()))
    steps = {
        index: (float(row.lower), -float(row.body.linear_coefs[1]))
        for index, row in model.upper_covers.items()
    }
    # Original l lies above record i: the upper end is at least q_i + (q_l - q_i) x(l, i).
    assert steps == {(0, 1, 0): (2, 3), (2, 0, 0): (5, 4), (2, 1, 0): (2, 7)}
    assert set(model.lower_covers) == {(1, 0, 0), (0, 2, 0), (1, 2, 0)}
    assert [model.scaled_upper[i, 0].lb for i in range(3)] == [5, 2, 9]
    assert [model.scaled_lower[i, 0].ub for i in range(3)] == [5, 2, 9]
    assert [model.match[i, i].lb for i in range(3)] == [1, 1, 1]


def test_gaps_by_hand() -> None:
    """Values 5, 2, 9: gaps 2 to 5 and 5 to 9; who covers the far one covers the near one."""
    column = Column((5, 2, 9), integer=True)
    model = build(
        Case((column,), 2, LOSSES["gcp"]).problem().replace(recoding=Freeform()), ranges="gaps"
    )
    assert set(model.nested_gaps) == {(1, 0, 0), (2, 0, 1)}
    farthest = {
        index: next(gap for gap, one in model.covered.items() if one is row.body.linear_vars[0])
        for index, row in model.gap_covers.items()
    }
    assert farthest[2, 1, 0] == (1, 0, 1)
    assert farthest[1, 2, 0] == (2, 0, 0)
    assert farthest[1, 0, 0] == (0, 0, 0)
    assert farthest[2, 0, 0] == (0, 0, 1)


def test_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate is no less than the rows, and the limit names both numbers."""
    problem = Problem(load_instance("health-records"), 3, Freeform())
    rows = sum(len(c) for c in build(problem).component_objects(pyo.Constraint))
    size = model_size(problem)
    assert rows <= size <= 2 * rows
    monkeypatch.setattr(limits, "LARGEST_MODEL", size - 1)
    with pytest.raises(InputError, match=rf"has about {size} constraints.*limit is {size - 1}"):
        build(problem)


@settings(max_examples=25)
@given(case=cases(largest=6, suppression=False))
def test_relaxations_are_ordered(case: Case) -> None:
    """Free own records <= fixed, bounds <= gaps, plain <= strengthened, all <= optimum."""
    problem = case.problem().replace(recoding=Freeform())
    numbers = [abs(float(v)) for column in case.columns if column.numeric for v in column.values]
    # A relaxation of numbers of 1e9 is no more exact than their tolerances.
    assume(max(numbers, default=0.0) < 1e4)
    found = {
        choices: relaxation_bound(
            problem, "freeform", own_record=choices[0], ranges=choices[1], strengthened=choices[2]
        )
        for choices in product(("free", "fixed"), ("bounds", "gaps"), (False, True))
    }
    slack = 1e-6 * max(1.0, max(map(abs, found.values())))
    for (own, ranges, strong), bound in found.items():
        assert bound <= found["fixed", ranges, strong] + slack
        assert bound <= found[own, "gaps", strong] + slack
        assert bound <= found[own, ranges, True] + slack
    assert found["fixed", "gaps", True] <= case.cover_optimum() + slack


def test_gaps_and_neighbours_are_stronger_than_the_rows_of_the_paper() -> None:
    """On the health records each choice raises the bound of the relaxation."""
    problem = Problem(load_instance("health-records"), 3, Freeform())
    plain = relaxation_bound(problem, "freeform", strengthened=False)
    gaps = relaxation_bound(problem, "freeform", ranges="gaps", strengthened=False)
    strong = relaxation_bound(problem, "freeform")
    both = relaxation_bound(problem, "freeform", ranges="gaps")
    assert plain < gaps < both
    assert plain < strong <= both


def assert_start_fits(problem: Problem, cover: Cover, **choices: object) -> None:
    """Assert that a cover keeps all rows, loses what the model says, and is read back."""
    model = build(problem, **choices)
    set_start(model, cover)
    assert violations(model) == []
    losses = problem.compiled.losses_of(problem.recoding.describe(problem, read(model)))
    assert pyo.value(model.loss) == pytest.approx(
        problem.compiled.aggregated(losses), rel=1e-9, abs=1e-9
    )


@settings(max_examples=60)
@given(
    case=cases(largest=6, suppression=False),
    notion=st.sampled_from(NOTIONS),
    ranges=st.sampled_from(["bounds", "gaps"]),
    strengthened=st.booleans(),
    data=st.data(),
)
def test_starts_keep_all_rows(
    case: Case, notion: object, ranges: str, strengthened: bool, data: st.DataObject
) -> None:
    """A random regular cover is a point of every model, those of weaker notions too."""
    weights = data.draw(st.lists(st.floats(0, 1), min_size=case.n, max_size=case.n).map(np.array))
    _, sets = regular_optimum(
        case.n, [case.k] * case.n, lambda one: float(np.ptp(weights[list(one)]))
    )
    problem = case.problem().replace(recoding=notion)
    assert_start_fits(problem, Cover.of(sets), ranges=ranges, strengthened=strengthened)
    model = build(problem)
    set_start(model, Cover.of(sets))
    np.testing.assert_array_equal(read(model).members, Cover.of(sets).members)  # type: ignore[union-attr]


@pytest.mark.parametrize("rules", ["none", "l-diversity", "distinct"])
@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_starts_with_larger_sets(rules: str, worst: bool, reciprocal: bool) -> None:
    """The whole table in every set: kept where larger sets may be needed, else made smaller."""
    case = mixed("curved", rules=RULES[rules], worst=worst)
    problem = case.problem().replace(recoding=Freeform(reciprocal=reciprocal))
    whole = Cover.of(np.tile(np.arange(6), (6, 1)))
    assert_start_fits(problem, whole)
    model = build(problem)
    set_start(model, whole)
    size = 2 if rules == "none" and not reciprocal else 6
    assert set(read(model).sizes.tolist()) == {size}


def test_start_of_degrees_of_their_own() -> None:
    """Sets of three and of two records."""
    problem = mixed().problem().replace(recoding=Freeform(degrees=(3, 3, 3, 2, 2, 3)))
    cover = Cover.of([[0, 1, 2], [1, 2, 5], [0, 2, 5], [3, 4], [3, 4], [0, 1, 5]])
    assert_start_fits(problem, cover)


def test_reciprocal_starts() -> None:
    """Every reciprocal cover of five records in sets of three is a point of the model."""
    case = Case((Column((0, 1, 5, 6, 20), integer=True),), 3, LOSSES["gcp"])
    problem = case.problem().replace(recoding=Freeform(reciprocal=True))
    covers = list(reciprocal_covers(5, 3))
    assert len(covers) == 12  # cycles through five records
    for sets in covers:
        assert_start_fits(problem, Cover.of(sets))


def test_flow_counts_effective_matches_alone() -> None:
    """A match that lies in no assignment is in the cover, but not counted."""
    sets = [[0, 1, 2], [0, 1], [2, 3], [2, 3]]
    problem = Case((Column((0, 1, 2, 3), integer=True),), 2, LOSSES["gcp"]).problem()
    problem = problem.replace(recoding=KConcealment())
    assert_start_fits(problem, Cover.of(sets))
    model = build(problem)
    set_start(model, Cover.of(sets))
    counted = {(i, of) for (of, i), one in model.effective.items() if one.value == 1}
    assert counted == {(i, of) for i, of in effective_pairs(sets) if i != of}
    assert model.match[2, 0].value == 1


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_largest_flow_is_enough(n: int) -> None:
    """All edges from one half to the other, and a single way back: the flow that needs most."""
    half = n // 2
    sets = [{i, 0} for i in range(half)] + [{i, *range(half)} for i in range(half, n)]
    sets[0].add(n - 1)
    sets[-1].update(range(half, n))
    cover = Cover.of([sorted(one) for one in sets])
    problem = Case((Column(tuple(range(n)), integer=True),), 2, LOSSES["gcp"]).problem()
    model = build(problem.replace(recoding=KConcealment()))
    set_start(model, cover)
    assert violations(model) == []
    assert max(one.value for one in model.flow.values()) == largest_flow(n)


@pytest.mark.parametrize("ranges", ["bounds", "gaps"])
def test_export(tmp_path: Path, ranges: str) -> None:
    """Models of covers are written like all others."""
    problem = Problem(load_instance("health-records"), 3, Freeform())
    for ending in (".lp", ".mps", ".nl"):
        written = export_model(build(problem, ranges=ranges), tmp_path / f"model{ending}")
        assert written.integer_columns >= 42
        assert all(file.stat().st_size for file in written.files)


@settings(max_examples=50)
@given(
    case=cases(largest=7, attributes=2, suppression=False), start=st.sampled_from(["best", "none"])
)
def test_equals_brute_force(case: Case, start: str) -> None:
    """Repeated rows are one type; sets are dealt out to records in them."""
    case = replace(case, k=min(case.k, 4)) if case.n == 7 else case
    problem = case.problem().replace(recoding=Freeform())
    solution = freeform_mip(problem, formulation="set-cover", warm_start=start)
    best = case.cover_optimum()
    assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert solution.is_optimal or 0 < abs(best) < 1e-3
    assert solution.bound is not None
    assert solution.bound.value <= best + case.slack(best)


@settings(max_examples=30)
@given(case=ruled_cases(largest=6))
def test_limits_are_kept(case: Case) -> None:
    """Sets beyond a limit are no columns; if too few are left there is no release."""
    rules = None if case.rules is None else Rules(caps=case.rules.caps, apart=case.rules.apart)
    case = replace(case, rules=rules, suppression=False, worst=False)
    problem = case.problem().replace(recoding=Freeform())
    best = case.cover_optimum()
    if best == math.inf:
        with pytest.raises(NoSolution):
            freeform_mip(problem, formulation="set-cover")
    else:
        solution = freeform_mip(problem, formulation="set-cover")
        assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("k", [3, 4, 6])
def test_losses_without_tables(solver: str, k: int) -> None:
    """Declared monotone, of the general tier: what the flow of matches cannot model."""
    case = Case(mixed().columns, k, PRODUCT)
    problem = case.problem().replace(recoding=Freeform())
    solution = freeform_mip(problem, solver=solver)
    assert solution.options["formulation"] == "set-cover"
    assert solution.is_optimal
    assert solution.objective == pytest.approx(case.cover_optimum())


@settings(max_examples=30)
@given(case=cases(largest=6, attributes=2, suppression=False, losses=("gcp", "hierarchy")))
def test_relaxation_is_below_the_optimum(case: Case) -> None:
    """Every set in the relaxation is a whole set, and its bound is below the optimum."""
    problem = case.problem().replace(recoding=Freeform())
    bound = relaxation_bound(problem, "set-cover")
    best = case.cover_optimum()
    assert bound <= best + 1e-6 * max(1.0, best)


def test_relaxation_is_stronger_than_that_of_the_flow() -> None:
    """On the health records."""
    problem = Problem(load_instance("health-records"), 3, Freeform())
    flow = relaxation_bound(problem, "freeform", ranges="gaps")
    assert flow < relaxation_bound(problem, "set-cover") - 1e-3


def test_columns_by_hand() -> None:
    """Rows a, a, b, c and k = 2: six pairs of four rows are four sets of three types."""
    column = Column((0, 0, 4, 10), integer=True)
    problem = Case((column,), 2, LOSSES["gcp"]).problem().replace(recoding=Freeform())
    assert model_size(problem, "set-cover") == 4  # aa, ab, ac, bc
    model = build(problem, "set-cover")
    assert len(model.chosen) == 4
    assert len(model.cover) == 3
    sizes = {first: row.lower for first, row in model.cover.items()}
    assert sizes == {0: 4, 2: 2, 3: 2}


@pytest.mark.parametrize("degree", [3, 5, 7])
def test_round_trip_of_starts(degree: int) -> None:
    """A ring fits the model, larger sets are made smaller, and what is read has the same loss."""
    problem = Problem(load_instance("health-records"), 3, Freeform())
    ring = Cover.of((np.arange(7)[:, None] + np.arange(degree)) % 7)
    model = build(problem, "set-cover")
    set_start(model, ring)
    assert violations(model) == []
    found = read(model)
    assert isinstance(found, Cover)
    problem.recoding.check(problem, found)
    if degree == 3:
        describe = problem.recoding.describe
        losses = [problem.compiled.total(describe(problem, one)) for one in (ring, found)]
        assert losses[0] == pytest.approx(losses[1])


def test_what_it_does_not_model_is_refused() -> None:
    """The message says what, with a remedy."""
    problem = mixed("weighted").problem().replace(recoding=Freeform())
    diverse = mixed("weighted", rules=RULES["distinct"]).problem().replace(recoding=Freeform())
    falling = Case(mixed().columns, 2, FALLING).problem().replace(recoding=Freeform())
    for other, why in (
        (problem.replace(recoding=KK()), "k-k"),
        (problem.replace(recoding=Freeform(reciprocal=True)), "reciprocal"),
        (problem.replace(recoding=Freeform(degrees=(2, 2, 3, 3, 3, 3))), "differ in size"),
        (diverse, "diversity"),
        (falling, "needs a monotone objective"),
        (mixed("weighted", worst=True).problem().replace(recoding=Freeform()), "largest"),
    ):
        with pytest.raises(InputError, match=why) as caught:
            build(other, "set-cover")
        assert caught.value.remedy
    with pytest.raises(InputError, match="more than the 3 sets"):
        build(problem, "set-cover", max_sets=3)


def test_degrees_that_are_all_alike() -> None:
    """Degrees of 4 for k = 2: sets of four."""
    case = mixed("weighted")
    problem = case.problem().replace(recoding=Freeform(degrees=(4,) * 6))
    solution = freeform_mip(problem)
    assert solution.options["formulation"] == "set-cover"
    assert solution.objective == pytest.approx(case.cover_optimum([4] * 6))
