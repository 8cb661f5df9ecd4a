"""With k = 2 the assignment equals brute force and proves it, for every tier of losses."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from anonymip import SSE, Budget, InputError, NoSolution, Problem, Progress, Stopped
from anonymip.exact.freeform.freeform_mip import (
    best_partners,
    dual_bound,
    freeform_mip,
    pair_losses_within_limits,
    pair_obstacle,
)
from anonymip.recodings import KK, Freeform
from tests.brute_force import Column, Rules
from tests.cover_brute_force import regular_optimum
from tests.hard_losses import PRODUCT, SWINGING
from tests.random_problems import LOSSES, Case, cases, larger_microdata, ruled_cases


@settings(max_examples=100)
@given(case=cases(largest=7, suppression=False))
def test_equals_brute_force(case: Case) -> None:
    """Found without a solver, proven by duals."""
    case = replace(case, k=2)
    solution = freeform_mip(case.problem().replace(recoding=Freeform()), formulation="assignment")
    best = case.cover_optimum()
    assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert solution.bound is not None
    assert solution.bound.proof == "argument"
    assert solution.bound.value <= best + case.slack(best)
    assert solution.is_optimal
    assert solution.solver is None


@settings(max_examples=60)
@given(case=ruled_cases(largest=6))
def test_limits_are_kept(case: Case) -> None:
    """Pairs that a limit keeps apart are no partners."""
    rules = None
    if case.rules is not None:
        rules = Rules(caps=case.rules.caps, apart=case.rules.apart)
    case = replace(case, k=2, rules=rules, suppression=False, worst=False)
    best = case.cover_optimum()
    problem = case.problem().replace(recoding=Freeform())
    if best == math.inf:
        with pytest.raises(NoSolution, match="limits"):
            freeform_mip(problem, formulation="assignment")
    else:
        solution = freeform_mip(problem, formulation="assignment")
        assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert solution.is_optimal


@pytest.mark.parametrize("loss", [PRODUCT, SWINGING], ids=["product", "swinging"])
def test_losses_without_tables(loss: object) -> None:
    """Declared monotone: proven under that assumption; not monotone: no bound is claimed."""
    columns = (
        Column((0, 4, 9, 1, 7, 3), integer=True),
        Column(tuple("ppqrqp"), False, as_set=True),
    )
    case = Case(columns, 2, loss)  # type: ignore[arg-type]
    solution = freeform_mip(case.problem().replace(recoding=Freeform()), formulation="assignment")
    assert solution.objective == pytest.approx(case.cover_optimum())
    if loss is PRODUCT:
        assert solution.is_optimal
        assert solution.bound is not None
        assert "assuming that" in solution.bound.method
    else:
        assert solution.bound is None
        assert any("not monotone" in remark for remark in solution.trace)


def test_losses_of_members() -> None:
    """Squared errors of pairs, by brute force in plain Python."""
    values = (1.0, 2.5, 7.0, 7.5, 9.0)
    case = Case((Column(values),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=Freeform(), objective=SSE("none"))

    def loss(records: tuple[int, ...]) -> float:
        some = np.array([values[record] for record in records])
        return float(((some - some.mean()) ** 2).sum()) / len(records)

    best, _ = regular_optimum(5, [2] * 5, loss)
    assert freeform_mip(problem).objective == pytest.approx(best)


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), whole=st.booleans())
def test_duals_prove_assignments(seed: int, n: int, whole: bool) -> None:
    """The bound is the optimum but for rounding, and below it for any other permutation."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(-3, 9, (n, n)).astype(float) if whole else rng.normal(size=(n, n)) * 1e6
    np.fill_diagonal(costs, np.inf)
    answer = best_partners(costs, Budget())
    assert answer is not None
    partners, duals = answer
    best = costs[linear_sum_assignment(costs)].sum()
    assert costs[np.arange(n), partners].sum() == pytest.approx(best, rel=1e-12)
    found = dual_bound(costs, partners, duals)
    largest = np.abs(costs[np.isfinite(costs)]).max()
    assert best - 2e-9 * n * largest - 1e-12 <= found <= best
    other = np.roll(np.arange(n), 1)
    assert dual_bound(costs, other, duals) <= best
    assert dual_bound(costs, other, rng.normal(size=n) * largest) <= best


def interrupted_in(phase: str) -> Budget:
    """Return a budget that is interrupted when it hears of a phase."""

    def listen(message: Progress) -> None:
        if message.phase == phase:
            budget.interrupt()

    budget = Budget(progress=listen)
    return budget


def test_an_assignment_that_is_cut_off_is_none() -> None:
    """Records without a partner are neither an answer nor a proof that there is none."""
    costs = np.random.default_rng(1).random((400, 400))
    np.fill_diagonal(costs, np.inf)
    assert best_partners(costs, interrupted_in("assignment of pairs")) is None


def test_few_records_are_assigned_whatever_the_limit() -> None:
    """Loading kernels may take longer than a short limit, the assignment itself does not."""
    costs = np.random.default_rng(1).random((400, 400))
    np.fill_diagonal(costs, np.inf)
    answer = best_partners(costs, Budget(time.monotonic()))
    assert answer is not None
    partners = answer[0]
    assert sorted(partners.tolist()) == list(range(400))


def test_a_cut_off_assignment_leaves_the_start() -> None:
    """The method goes on as it does without an assignment: a start, nothing proven of it."""
    problem = Problem(larger_microdata(5, 60), 2, Freeform())
    solution = freeform_mip(problem, budget=interrupted_in("assignment of pairs"))
    assert "the assignment of pairs was cut off" in solution.trace
    assert solution.status.stopped is Stopped.INTERRUPT
    assert solution.options["formulation"] != "assignment"


def test_losses_of_pairs_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair once, whatever the size of a batch."""
    microdata = larger_microdata(3, 37)
    case = Case((Column((0, 1)),), 2, LOSSES["gcp"])
    problem = case.problem().replace(microdata=microdata, recoding=Freeform())
    whole = pair_losses_within_limits(problem, Budget())
    monkeypatch.setattr("anonymip.exact.freeform.freeform_mip._BATCH", 80)
    parts = pair_losses_within_limits(problem, Budget())
    assert whole is not None
    assert parts is not None
    np.testing.assert_array_equal(whole, parts)
    pairs = np.array([[i, other] for i in range(37) for other in range(37) if i != other])
    losses = problem.compiled.class_losses(pairs) / 2
    np.testing.assert_array_equal(whole[pairs[:, 0], pairs[:, 1]], losses)
    assert np.isinf(np.diagonal(whole)).all()


def test_what_is_no_assignment_is_refused() -> None:
    """The message says why; `auto` takes the MIP instead."""
    columns = (Column((0, 4, 9, 1, 7), integer=True),)
    problem = Case(columns, 2, LOSSES["gcp"]).problem().replace(recoding=Freeform())
    assert pair_obstacle(problem) is None
    for other, why in (
        (problem.replace(k=3), "more than two"),
        (problem.replace(recoding=KK()), "not freeform"),
        (problem.replace(recoding=Freeform(reciprocal=True)), "reciprocal"),
        (problem.replace(recoding=Freeform(degrees=(2, 2, 2, 3, 3))), "more than two"),
        (replace(Case(columns, 2, LOSSES["gcp"]), worst=True).problem(), "freeform"),
    ):
        with pytest.raises(InputError, match=why):
            freeform_mip(other, formulation="assignment")
        if other.recoding.name != "classes":
            assert freeform_mip(other).options["formulation"] in ("freeform", "set-cover")
