"""The dispatcher picks a bound that holds, or says that there is none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Attribute,
    Bottleneck,
    Cover,
    EquivalenceClasses,
    Microdata,
    Problem,
    Solution,
    UnsupportedObjective,
    census,
    objective,
    solve,
)
from anonymip.bounds import combinatorial
from anonymip.bounds.combinatorial import (
    is_cut,
    lower_bound_of,
    record_terms,
    squared_error_bound,
    squared_error_terms,
    weaker_notion_bound,
)
from anonymip.recodings import KConcealment, OneK
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, Rules, least_cost_of_classes
from tests.by_hand import table_of
from tests.cover_brute_force import concealment_optimum, one_sided_optimum
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.random_problems import LOSSES, Case, cases

COLUMNS = (Column((1.0, 2.0, 4.0, 9.0, 12.0)), Column((5.0, 0.0, 1.0, 1.0, 3.0)))


@pytest.mark.parametrize(
    ("loss", "rung"),
    [(LOSSES["gcp"], "dual ascent"), (LOSSES["curved"], "dual ascent"), (PRODUCT, "k-sets")],
)
def test_monotone_losses_are_bounded_by_duals_of_records(loss: object, rung: str) -> None:
    """Whatever the tier; the bound is no lower than the terms of nearest neighbours together."""
    problem = Case(COLUMNS, 3, loss).problem()  # type: ignore[arg-type]
    bound, terms = lower_bound_of(problem), record_terms(problem)
    assert bound is not None
    assert terms is not None
    assert rung in bound.method
    assert bound.value >= terms.sum() * (1 - 1e-12)


def test_squared_errors_have_their_own() -> None:
    """A loss of members is bounded by nearest squared distances."""
    problem = Case(COLUMNS, 2, LOSSES["gcp"]).problem().replace(objective=SSE())
    bound, terms = lower_bound_of(problem), record_terms(problem)
    assert bound is not None
    assert terms is not None
    assert bound.method == "nearest squared errors"
    assert 0 < bound.value == pytest.approx(terms.sum())


class _OtherErrors(SSE):
    """Squared errors whose subclass may charge something else, for all that anyone knows."""


def test_a_subclass_of_squared_errors_has_none() -> None:
    """Its bound is unknown; its few classes are compared or chosen among all the same."""
    problem = Problem(census(8, 3, 1), 2, objective=_OtherErrors())
    assert lower_bound_of(problem) is None
    assert record_terms(problem) is None
    known = solve(problem.replace(objective=SSE())).objective
    for method in ("auto", "equivalence-mip"):
        found = solve(problem, method)
        assert found.is_optimal
        assert found.objective == pytest.approx(known)


@pytest.mark.parametrize("loss", [FALLING, SWINGING])
def test_others_have_none(loss: object) -> None:
    """Without an argument the bound is unknown."""
    problem = Case(COLUMNS, 2, loss).problem()  # type: ignore[arg-type]
    assert lower_bound_of(problem) is None
    assert record_terms(problem) is None


def test_maximum_is_bounded_by_the_largest_term() -> None:
    """The bound of the largest loss is no lower than the largest of the terms."""
    problem = Problem(census(60, 4, seed=1), 3, objective=Bottleneck())
    bound, terms = lower_bound_of(problem), record_terms(problem)
    assert bound is not None
    assert terms is not None
    assert bound.value >= terms.max()


@settings(max_examples=30)
@given(case=cases(largest=5, suppression=False))
def test_never_above_the_optimum_of_one_k(case: Case) -> None:
    """Summed, and the largest loss of a record."""
    for worst in (False, True):
        problem = replace(case, worst=worst).problem().replace(recoding=OneK())
        best = one_sided_optimum(
            case.n, case.k, case.set_loss, rows=False, columns=True, worst=worst
        )
        bound = lower_bound_of(problem)
        assert bound is not None
        assert bound.value <= best


@settings(max_examples=25)
@given(case=cases(largest=4, suppression=False, attributes=2))
def test_never_above_the_optimum_of_concealment(case: Case) -> None:
    """Every published record covers another one."""
    bound = lower_bound_of(case.problem().replace(recoding=KConcealment()))
    assert bound is not None
    assert bound.value <= concealment_optimum(case.n, case.k, case.set_loss)


def test_by_hand() -> None:
    """Values 0, 1, 5: exact cells lose nothing; the nearest others lie 1, 1 and 4 away.

    With k = 3 both others hide the 5, at 4 and 5.
    """
    problem = Case((Column((0, 1, 5), integer=True),), 2, LOSSES["gcp"]).problem()
    exact = weaker_notion_bound(problem.replace(recoding=OneK()))
    assert exact is not None
    assert exact.value == pytest.approx(4 / 5)
    both = weaker_notion_bound(problem.replace(k=3, recoding=OneK()))
    assert both is not None
    assert both.value == pytest.approx((4 + 5) / 5)
    near = weaker_notion_bound(problem.replace(k=3, recoding=KConcealment()))
    assert near is not None
    assert near.value == pytest.approx((1 + 1 + 4) / 5)
    assert near.method == "nearest-neighbour of one other"
    assert weaker_notion_bound(problem) is None


def test_the_largest_loss_of_a_record_may_be_below_nothing() -> None:
    """Records that lose -5 exactly and -4 together: the bound is no more than a release loses."""
    negative = Bottleneck(objective(lambda record: record.spread["a"] - 5.0))
    hidden = []
    for values in ((0, 0, 1, 1), (0, 0, 0, 1)):
        table = table_of({"a": values})
        problem = Problem(table, 2, OneK(), negative)
        bound = weaker_notion_bound(problem)
        assert bound is not None
        hidden.append((bound.value, bound.method))
        pairs = [np.array([i, i + 1 if i % 2 == 0 else i - 1]) for i in range(4)]
        release = Solution.of(problem, Cover.of(pairs), method="pairs", bound=bound)
        assert release.objective == (-5.0 if values[2] else -4.0)
    assert hidden[0] == (pytest.approx(-5.0), "exact cells")
    assert hidden[1] == (pytest.approx(-4.0), "exact cells and one original to hide")


def test_originals_that_nobody_looked_at_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 0, 1, 5 the last one costs most to hide: without time, or pairs for it, all say less."""
    problem = Case((Column((0, 1, 5), integer=True),), 2, LOSSES["gcp"]).problem()
    problem = problem.replace(recoding=OneK())
    late = weaker_notion_bound(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert late is not None
    assert (late.value, late.method) == (0.0, "exact cells (cut short)")
    monkeypatch.setattr(combinatorial, "_PAIRS", 6)
    two = weaker_notion_bound(problem)
    assert two is not None
    assert two.value == pytest.approx(1 / 5)
    assert two.method == "exact cells and one original to hide (cut short)"
    monkeypatch.setattr(combinatorial, "_PAIRS", 9)
    whole = weaker_notion_bound(problem)
    assert whole is not None
    assert whole.value == pytest.approx(4 / 5)
    assert whole.method == "exact cells and one original to hide"


@pytest.mark.parametrize("recoding", [OneK(), KConcealment()])
def test_what_is_assumed_is_said(recoding: OneK | KConcealment) -> None:
    """A loss that falls has no bound; one that is declared monotone has one with an assumption."""
    columns = (Column((0, 1, 5), integer=True), Column((4, 0, 9), integer=True))
    assert (
        weaker_notion_bound(Case(columns, 2, FALLING).problem().replace(recoding=recoding)) is None
    )
    found = weaker_notion_bound(Case(columns, 2, PRODUCT).problem().replace(recoding=recoding))
    assert found is not None
    assert "assuming that" in found.method


SCALES = st.sampled_from(["deviation", "domain", "none"])


@st.composite
def points(draw: st.DrawFn) -> np.ndarray:
    """Draw a few points: ties, repeated points, distant and close ones."""
    n, m = draw(st.integers(4, 8)), draw(st.integers(1, 3))
    values = st.sampled_from([0.0, 1.0, 1.0 + 1e-7, 2.5, -3.0, 40.0, 1e6])
    return np.array(
        draw(st.lists(st.lists(values, min_size=m, max_size=m), min_size=n, max_size=n))
    )


def problem_of(given_points: np.ndarray, k: int, scale: str) -> Problem:
    """Return the problem of publishing points."""
    names = [chr(ord("a") + at) for at in range(given_points.shape[1])]
    frame = pd.DataFrame(dict(zip(names, given_points.T, strict=True)))
    data = Microdata(frame, tuple(Attribute(name, "numeric") for name in names))
    return Problem(data, k, objective=SSE(scale))


def naive_cost(given_points: np.ndarray, scale: str, group: tuple[int, ...]) -> float:
    """Return the squared errors of a class after their definition."""
    units = {
        "deviation": given_points.std(axis=0),
        "domain": np.ptp(given_points, axis=0),
        "none": np.ones(given_points.shape[1]),
    }[scale]
    scaled = given_points / np.where(units > 0, units, 1.0)
    members = scaled[list(group)]
    return float(((members - members.mean(axis=0)) ** 2).sum())


@settings(max_examples=120)
@given(points(), st.integers(2, 4), SCALES)
def test_never_above_the_optimum(given_points: np.ndarray, k: int, scale: str) -> None:
    """No partition has smaller squared errors than the bound."""
    bound = squared_error_bound(problem_of(given_points, k, scale))
    assert bound is not None
    best = least_cost_of_classes(
        len(given_points), k, lambda group: naive_cost(given_points, scale, group), Rules(), ()
    )
    assert bound.value <= best * (1 + 1e-9) + 1e-12
    assert bound.proof == "argument"


@settings(max_examples=60)
@given(points(), st.integers(2, 3), SCALES)
def test_terms_add_up_to_no_more_than_any_class(
    given_points: np.ndarray, k: int, scale: str
) -> None:
    """Whatever its size, the terms of a class's members do not exceed its squared errors."""
    terms = squared_error_terms(problem_of(given_points, k, scale))[0]
    for size in range(k, len(given_points) + 1):
        for group in combinations(range(len(given_points)), size):
            cost = naive_cost(given_points, scale, group)
            assert terms[list(group)].sum() <= cost * (1 + 1e-9) + 1e-12


def exact_cost(columns: Sequence[Sequence[float]], scale: str, group: tuple[int, ...]) -> Fraction:
    """Return the squared errors of a class after their definition, without rounding."""

    def around_mean(values: list[Fraction]) -> Fraction:
        mean = sum(values, Fraction(0)) / len(values)
        return sum(((value - mean) ** 2 for value in values), Fraction(0))

    total = Fraction(0)
    for column in columns:
        values = [Fraction(value) for value in column]
        unit = {
            "deviation": around_mean(values) / len(values),
            "domain": (max(values) - min(values)) ** 2,
            "none": Fraction(1),
        }[scale]
        total += around_mean([values[i] for i in group]) / (unit or 1)
    return total


#: Neighbouring doubles beside each other, and beside values that are larger or far away.
SMALL = (0.1, 0.10000000000000002, 0.3, 0.30000000000000004, 0.7, 0.7000000000000001, 1.0, -0.7)
NEAR = st.sampled_from((*SMALL, 1e9, 1e9 + 1e-7, 1e15, 1e15 + 0.125, 1e-9))


@settings(max_examples=150)
@given(st.data(), st.integers(1, 2), st.integers(2, 3), SCALES)
def test_exact_for_neighbouring_values(data: st.DataObject, m: int, k: int, scale: str) -> None:
    """Every class costs its exact squared errors but for some ulps, and no bound is above them."""
    given_points = np.array(data.draw(st.lists(st.tuples(*[NEAR] * m), min_size=4, max_size=7)))
    problem = problem_of(given_points, k, scale)
    terms = squared_error_terms(problem)[0]
    columns = given_points.T.tolist()
    for size in range(k, len(given_points) + 1):
        groups = list(combinations(range(len(given_points)), size))
        costs = problem.compiled.class_losses(np.array(groups))
        for group, cost in zip(groups, costs.tolist(), strict=True):
            exact = exact_cost(columns, scale, group)
            assert abs(Fraction(cost) - exact) <= exact * Fraction(1, 10**14)
            assert sum(Fraction(term) for term in terms[list(group)].tolist()) <= exact


def test_a_class_of_two_neighbouring_values() -> None:
    """0.7 beside the next double costs half the square of what lies between, in a wider column."""
    pair = [0.7, 0.7000000000000001]
    problem = problem_of(np.array([[0.1], *([value] for value in pair), [1.0]]), 2, "none")
    apart = Fraction(pair[1]) - Fraction(pair[0])
    cost = problem.compiled.class_losses(np.array([[1, 2]])).item()
    assert cost == float(apart**2 / 2)
    low_apart = problem_of(np.array([[0.1], [1e15], [1e15 + 0.125], [2e15]]), 2, "none")
    assert low_apart.compiled.class_losses(np.array([[1, 2]])).item() == 0.125**2 / 2


def test_tight_for_pairs_of_points() -> None:
    """Points 0, 1, 10, 11 with k = 2: two classes of squared error 1/2, and the bound is 1."""
    bound = squared_error_bound(problem_of(np.array([[0.0], [1.0], [10.0], [11.0]]), 2, "none"))
    assert bound is not None
    assert bound.value == pytest.approx(1.0, rel=1e-7)
    assert bound.value <= 1.0


@settings(max_examples=120)
@given(
    st.lists(st.integers(-20, 20).map(lambda at: at**5 / 8), min_size=5, max_size=10),
    st.integers(2, 4),
    SCALES,
)
def test_the_best_cut_of_one_column_is_the_optimum(column: list[float], k: int, scale: str) -> None:
    """No classes have smaller squared errors than the best that lie next to each other."""
    table = np.array(column)[:, None]
    problem = problem_of(table, k, scale)
    bound = squared_error_bound(problem)
    assert bound is not None
    best = least_cost_of_classes(
        len(table), k, lambda group: naive_cost(table, scale, group), Rules(), ()
    )
    assert bound.method == "best cut of one column"
    assert bound.value == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert bound.value <= best
    found = solve(problem)
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert found.is_optimal


def test_far_values_of_one_column_leave_no_gap() -> None:
    """The linear program over all sets leaves a fifth here, whatever the effort."""
    rng = np.random.default_rng(9)
    column = rng.normal(size=(400, 1)).round(2)
    column[rng.random(400) < 0.1] *= 1e4
    for data in (column, column + 1e6):
        found = solve(problem_of(data, 3, "deviation"))
        assert found.is_optimal
        assert found.method == "ordered-cut"


def test_cuts_are_no_optima_where_records_are_left_out_or_cells_are_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A record between others may be left out, and classes of points lie anywhere."""
    column = np.array([[0.0], [1.0], [10.0], [11.0]])
    data = problem_of(column, 2, "none").microdata
    assert is_cut(Problem(data, 2, objective=SSE("none")))
    monkeypatch.setattr(SSE, "suppression_price", 0.5)
    assert not is_cut(Problem(data, 2, EquivalenceClasses(suppression=True), SSE("none")))
    assert not is_cut(problem_of(np.hstack([column, column]), 2, "none"))
    assert not is_cut(Problem(data, 2))


def test_a_record_costs_no_more_than_its_suppression(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an objective names a price of suppressed records, no term exceeds it."""
    data = problem_of(np.array([[0.0], [1.0], [10.0], [14.0]]), 2, "none").microdata
    monkeypatch.setattr(SSE, "suppression_price", 0.5)
    problem = Problem(data, 2, EquivalenceClasses(suppression=True), SSE("none"))
    assert squared_error_terms(problem)[0].tolist() == pytest.approx([0.25, 0.25, 0.5, 0.5])


def test_cut_short_by_the_budget() -> None:
    """Without time all terms are 0, and the bound says so."""
    problem = problem_of(np.array([[0.0], [1.0], [10.0], [11.0]]), 2, "none")
    bound = squared_error_bound(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert bound is not None
    assert (bound.value, bound.method) == (0.0, "nearest squared errors (cut short)")


def test_other_objectives_are_refused() -> None:
    """Only squared errors have these terms."""
    problem = problem_of(np.array([[0.0], [1.0], [10.0], [11.0]]), 2, "none")
    other = Problem(problem.microdata, 2)
    assert squared_error_bound(other) is None
    with pytest.raises(UnsupportedObjective, match="squared errors"):
        squared_error_terms(other)[0]
