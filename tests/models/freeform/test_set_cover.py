"""Freeform generalization by sets: columns, relaxation, starts, identical rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import InputError, NoSolution, Problem, build, load_instance, read, set_start
from anonymip.assignments import Cover
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.models import model_size
from anonymip.recodings import KK, Freeform
from tests.brute_force import Column, Rules
from tests.exact.classes.test_formulations import RULES, mixed
from tests.models.pair_formulations import relaxation_bound, violations
from tests.random_problems import FALLING, LOSSES, PRODUCT, Case, cases, ruled_cases


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
