"""Optimality at all scales: never claimed where exact fractions find a better release."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Attribute,
    Bottleneck,
    Bound,
    Classes,
    EquivalenceClasses,
    Freeform,
    Mask,
    Microdata,
    Problem,
    Solution,
    objective,
    solve,
)
from anonymip.objectives.kernels.class_loss import kernel_rows, pair_loss
from anonymip.solution import proves_optimal
from tests.by_hand import by_patterns, table_of
from tests.random_patterns import PatternCase

VALUES = (137, 582, 867, 821, 782, 64, 261, 120)
SENTINEL = 9e15

#: The exact loss of one record of a class of some rows.
RecordLoss = Callable[[Sequence[int]], Fraction]


def table(*columns: Sequence[float], domain: tuple[float, float] | None = None) -> Microdata:
    """Return numeric columns a, b, ..., all with the same domain if one is given."""
    frame = pd.DataFrame(dict(zip("abc", columns, strict=False)))
    return Microdata(frame, tuple(Attribute(name, domain=domain) for name in frame.columns))


def width(column: Sequence[float], span: Fraction, weight: float = 1.0) -> RecordLoss:
    """Return the weighted width of a range over its domain, in fractions."""

    def loss(rows: Sequence[int]) -> Fraction:
        held = [Fraction(column[i]) for i in rows]
        return Fraction(weight) * (max(held) - min(held)) / span if span else Fraction()

    return loss


def optimum(n: int, k: int, loss: RecordLoss) -> Fraction:
    """Return the least loss, by trying all classes of the first record that has none."""

    @cache
    def best(left: tuple[int, ...]) -> Fraction | None:
        found = [] if left else [Fraction()]
        for size in range(k, len(left) + 1):
            for others in combinations(left[1:], size - 1):
                rows = (left[0], *others)
                rest = best(tuple(i for i in left if i not in rows))
                if rest is not None:
                    found.append(len(rows) * loss(rows) + rest)
        return min(found, default=None)

    least = best(tuple(range(n)))
    assert least is not None
    return least


def exact_loss(found: Solution, loss: RecordLoss) -> Fraction:
    """Return the loss of the classes of a solution in fractions."""
    assert isinstance(found.assignment, Classes)
    groups = [group.tolist() for group in found.assignment.groups()]
    return sum((len(rows) * loss(rows) for rows in groups), Fraction())


def assert_honest(
    found: Solution, loss: RecordLoss, least: Fraction, constant: float = 0.0
) -> None:
    """Assert that what is said of a solution is true in exact fractions."""
    lost = exact_loss(found, loss)
    assert abs(Fraction(found.objective) - lost) <= Fraction(1e-9) * abs(lost)
    if found.bound is not None:
        assert Fraction(found.bound.value) <= least * (1 + Fraction(1e-9))
    if found.is_optimal:
        assert found.gap is not None
        assert found.gap <= 1e-6
        changeable = lost - found.problem.n * Fraction(constant)
        assert lost - least <= Fraction(1e-6) * changeable


@pytest.mark.parametrize("method", ["greedy-search", "ordered-cut", "equivalence-mip"])
def test_a_wide_domain_makes_nothing_optimal(method: str) -> None:
    """Losses of 1e-13 are distinguished as strictly as those of 1."""
    loss = width(VALUES, Fraction(SENTINEL))
    found = solve(Problem(table(VALUES, domain=(0, SENTINEL)), 3), method)
    assert_honest(found, loss, optimum(8, 3, loss))
    # The cut is the optimum, which the linear program over all sets proves.
    assert found.is_optimal == (method != "greedy-search")


def test_a_constant_hides_no_difference() -> None:
    """A loss of 1e9 + spread is not optimal for a relative gap that the constant makes small."""
    problem = Problem(table(VALUES), 3, objective=objective(lambda r: 1e9 + r.spread["a"]))
    spread = width(VALUES, Fraction(867 - 64))

    def loss(rows: Sequence[int]) -> Fraction:
        return Fraction(1e9) + spread(rows)

    least = optimum(8, 3, loss)
    for method in ("initial", "greedy-search", "ordered-cut", "equivalence-mip", "split-carry"):
        assert_honest(solve(problem, method), loss, least, 1e9)
    one = Classes(np.zeros(8, np.int32))
    bound = Bound(float(least), "prover", "solver")
    assert not Solution.of(problem, one, method="poor", bound=bound).is_optimal


def test_suppression_of_records_that_are_all_alike_is_not_free() -> None:
    """No cell has an effect there, and yet suppressing all costs 1 a record more than showing all.

    Beside the constant the two losses differ by less than 1e-8 of themselves.
    """
    wide = objective(lambda record: 1e9 + record.spread["a"])
    problem = Problem(table([0.0] * 7), 2, EquivalenceClasses(suppression=True), objective=wide)
    suppressed = Classes(np.full(7, -1))
    for bound in (problem.unavoidable - 7.0, problem.unavoidable):
        told = Bound(bound, method="below all", proof="argument")
        found = Solution.of(problem, suppressed, method="all suppressed", bound=told)
        assert found.objective == problem.unavoidable + 7.0
        assert not found.is_optimal
    shown = Classes(np.zeros(7, np.int64))
    assert Solution.of(problem, shown, method="all shown", bound=told).is_optimal


#: The least loss of these with k = 3 is 3 + 2e-9, and 3 + 5e-9 lies within all tolerances.
NEAR = (0.0, 1e-9, 0.0, -0.0, 1.0, 1e-9, -0.0, 1e-9)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("auto", {}),
        ("column-generation", {}),
        ("split-carry", {}),
        *(("equivalence-mip", {"formulation": f}) for f in ("bigm", "hull", "set-partition")),
    ],
)
def test_losses_nearer_than_tolerances_are_compared(method: str, options: dict[str, str]) -> None:
    """Few records are compared by exact sums where a proof does not tell their losses apart."""
    span = Fraction(1)
    least = optimum(len(NEAR), 3, width(NEAR, span))
    found = solve(Problem(table(NEAR), 3), method, options=options)
    assert found.is_optimal
    assert found.classes is not None
    groups = [np.flatnonzero(found.classes.labels == c).tolist() for c in range(2)]
    assert sum(len(rows) * width(NEAR, span)(rows) for rows in groups) == least


@given(
    st.lists(st.sampled_from([0.0, 1e-9, 2e-9, 3e-9, 1.0, 1.0 + 1e-9]), min_size=6, max_size=8),
    st.sampled_from(["column-generation", "local-search", "equivalence-mip"]),
)
@settings(max_examples=60)
def test_nothing_is_optimal_that_exact_sums_undercut(values: list[float], method: str) -> None:
    """Whatever is called optimal is so in fractions, up to the rounding of the sum."""
    problem = Problem(table(values), 3)
    found = solve(problem, method)
    span = Fraction(max(values)) - Fraction(min(values))
    least = optimum(len(values), 3, width(values, span))
    assert found.bound is not None
    if found.is_optimal:
        assert found.objective - least <= 1e-11 * max(found.objective, 1e-300)


@pytest.mark.parametrize("method", ["auto", "freeform-mip", "reassign"])
def test_covers_nearer_than_tolerances_are_not_proven(method: str) -> None:
    """Where nothing compares them exactly, the gap is told: 3 - 3e-9 is the least loss here."""
    found = solve(Problem(table(NEAR), 3, Freeform()), method)
    assert found.objective == pytest.approx(3 - 3e-9, abs=1e-12)
    assert not found.is_optimal
    assert found.gap is not None
    assert 0 < found.gap < 1e-8


def test_a_constant_alone_is_optimal() -> None:
    """Whoever publishes every record exactly loses no more than the constant: that is proven."""
    data = table([1, 1, 1, 5, 5, 5])
    constant = objective(lambda r: 1e9 + r.spread["a"])
    found = solve(Problem(data, 3, objective=constant), "ordered-cut")
    assert found.objective == 6e9
    assert found.is_optimal


def test_bounds_within_rounding_are_not_told_as_reached() -> None:
    """Where rounding may hide a difference, the bound stays below the loss by as much."""
    problem = Problem(table(VALUES), 3, objective=objective(lambda r: 1e9 + r.spread["a"]))
    loose = Solution.of(problem, Classes(np.repeat([0, 1], 4)), method="some")
    found = loose.with_bound(Bound(loose.objective, "prover", "argument"))
    assert not found.is_optimal
    assert found.bound is not None
    assert found.bound.value < found.objective


def test_close_losses_are_compared_exactly_after_the_solve() -> None:
    """Beside 1e9 the values 1 and 5 look alike to a solver; a search tells their sums apart."""
    names = "ywyzyzw"
    values = [5.0, 1e-9, 1e9, 5.0, 5.0, 1e-9, 1e9]
    data = table_of({"a": list(names), "b": values})
    range_loss = width(values, Fraction(1e9) - Fraction(1e-9))

    def loss(rows: Sequence[int]) -> Fraction:
        return range_loss(rows) + Fraction(len({names[i] for i in rows}) - 1, 2)

    found = solve(Problem(data, 2), "equivalence-mip")
    assert exact_loss(found, loss) == optimum(7, 2, loss)
    assert found.is_optimal


def test_widths_of_close_values_are_exact_in_kernels() -> None:
    """Of two values beside a sentinel the difference is taken before it is scaled."""
    data = table([SENTINEL - 5, SENTINEL - 2, 0.0])
    rows = kernel_rows(data, Problem(data, 2).compiled.tables, np.arange(3))
    lost = pair_loss(rows, 0, 1)
    assert lost == pytest.approx(3 / (SENTINEL - 2), rel=1e-12)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e-13, 1e9])
def test_gaps_are_relative(strict: bool, scale: float) -> None:
    """A bound that is reached proves, one that is not does not, whatever the unit of the loss."""
    problem = Problem(table(VALUES), 2)
    assert proves_optimal(problem, 3.0 * scale, 3.0 * scale, strict=strict)
    assert not proves_optimal(problem, 3.0 * scale, 2.9999 * scale, strict=strict)


@st.composite
def columns(draw: st.DrawFn, n: int) -> list[float]:
    """Draw a column: whole numbers of any size, near ties, or a cluster beside sentinels."""
    kind = draw(st.sampled_from(["plain", "ties", "sentinel", "high"]))
    base = draw(st.lists(st.integers(0, 999), min_size=n, max_size=n))
    scale = 10.0 ** draw(st.integers(-12, 12))
    if kind == "plain":
        return [value * scale for value in base]
    if kind == "ties":
        return [value % 4 + min(scale, 1e-3) * (value % 3) for value in base]
    if kind == "high":
        return [SENTINEL - value for value in base]
    held = draw(st.integers(1, n - 1))
    return [SENTINEL if i < held else float(value) for i, value in enumerate(base)]


@settings(max_examples=40)
@given(st.data())
def test_optimal_is_true_at_every_scale(data: st.DataObject) -> None:
    """Brute force in exact fractions finds nothing better than what is called optimal."""
    n, k = 6, data.draw(st.sampled_from([2, 3]))
    drawn = [data.draw(columns(n)) for _ in range(2)]
    domain = data.draw(st.sampled_from([None, (-1e16, 1e16)]))
    weights = [data.draw(st.sampled_from([1.0, 1e-9, 1e9, 3.7])) for _ in range(2)]
    constant = data.draw(st.sampled_from([0.0, 0.0, 1.0, 1e6, 1e9, 1e15]))
    weighted = objective(lambda r: constant + weights[0] * r.width["a"] + weights[1] * r.width["b"])
    problem = Problem(table(*drawn, domain=domain), k, objective=weighted)
    terms = []
    for column, weight in zip(drawn, weights, strict=True):
        low, high = domain or (min(column), max(column))
        terms.append(width(column, Fraction(high) - Fraction(low), weight))

    def loss(rows: Sequence[int]) -> Fraction:
        return Fraction(constant) + terms[0](rows) + terms[1](rows)

    least = optimum(n, k, loss)
    for method in ("greedy-search", "split-carry", "equivalence-mip", "forest"):
        assert_honest(solve(problem, method), loss, least, constant)


def test_ordinary_losses_stay_proven() -> None:
    """What is neither tiny beside another nor hidden by a constant is proven in any unit."""
    rng = random.Random(0)
    for _ in range(10):
        first, second = ([rng.randrange(1000) for _ in range(7)] for _ in range(2))
        scale = 10.0 ** rng.randrange(3, 15)
        problem = Problem(table(first, second, domain=(0, scale)), 2)
        terms = [width(column, Fraction(scale)) for column in (first, second)]

        def loss(rows: Sequence[int], terms: list[RecordLoss] = terms) -> Fraction:
            return terms[0](rows) + terms[1](rows)

        for method in ("equivalence-mip", "split-carry"):
            found = solve(problem, method)
            assert found.is_optimal
            assert_honest(found, loss, optimum(7, 2, loss))


def test_patterns_without_costs_of_their_own_are_compared_by_their_losses() -> None:
    """The largest loss of a record is no sum of stars, and a bound within rounding proves it."""
    case = PatternCase(
        (("x", "x"), ("x", "y"), ("y", "y"), ("y", "x")), ("p",) * 4, 2, Mask(), (1, 1)
    )
    problem = case.problem().replace(objective=Bottleneck(GCP()))
    hidden = by_patterns(problem, np.full(4, 3))
    assert hidden.with_bound(Bound(2.0 * (1 - 1e-9), "by hand", "argument")).is_optimal
    assert not hidden.with_bound(Bound(1.9, "by hand", "argument")).is_optimal
