"""Tests of objectives bound to a table: tiers, class losses, declarations and their checks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Attribute,
    Bottleneck,
    Classes,
    EquivalenceClasses,
    InputError,
    Microdata,
    Problem,
    Solution,
    UnsupportedObjective,
    class_objective,
    objective,
    solve,
)
from anonymip.methods.acceptance import examine
from anonymip.objectives import OBJECTIVES
from tests import brute_force
from tests.by_hand import by_classes, table_of
from tests.hard_losses import PRODUCT, SWINGING
from tests.random_problems import LOSSES, Case, Loss, cases, microdata, numeric_columns, tables

DATA = table_of({"age": [20, 25, 40, 50, 70], "pay": [1.0, 5.0, 2.0, 9.0, 4.0]})


@given(case=cases(largest=6), data=st.data(), name=st.sampled_from(["given", "general"]))
def test_class_losses_equal_the_definition(case: Case, data: st.DataObject, name: str) -> None:
    """Whatever the tier, the loss of sets of records is what plain Python says."""
    loss: Loss = case.loss if name == "given" else PRODUCT
    compiled = loss.objective.compile(microdata(case.columns))
    size = data.draw(st.integers(1, case.n))
    rows = list(combinations(range(case.n), size))
    expected = [size * brute_force.record_loss(case.columns, loss.naive, row) for row in rows]
    found = compiled.class_losses(np.array(rows))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "tier"),
    [
        (LOSSES["gcp"], "affine"),
        (LOSSES["curved"], "separable"),
        (PRODUCT, "general"),
        (SWINGING, "general"),
    ],
)
def test_the_four_tiers(loss: Loss, tier: str) -> None:
    """A product of attributes has no tables; what is declared monotone is said to be assumed."""
    compiled = loss.objective.compile(DATA)
    assert compiled.tier == tier
    assert compiled.has_tables == (tier in ("affine", "separable"))
    assert compiled.monotone == (loss is not SWINGING)
    assert compiled.superadditive == compiled.monotone
    assert compiled.assumed == (("the objective is monotone",) if loss is PRODUCT else ())


@given(case=cases(largest=6, suppression=True), data=st.data())
def test_bottlenecks_take_the_largest_loss(case: Case, data: st.DataObject) -> None:
    """Suppressed records count with their price."""
    worst = Case(case.columns, case.k, case.loss, True, None, worst=True)
    groups = data.draw(st.sampled_from(worst.releases()))
    problem = worst.problem()
    solution = Solution.of(
        problem, Classes.from_groups([np.array(g) for g in groups], case.n), method="test"
    )
    assert solution.objective == pytest.approx(worst.release_loss(groups), rel=1e-9, abs=1e-9)
    assert problem.compiled.aggregate == "max"
    assert problem.objective.name == f"bottleneck-{case.loss.objective.name}"


@given(data=st.data(), scale=st.sampled_from(["deviation", "domain", "none"]))
def test_squared_errors_equal_the_definition_and_are_superadditive(
    data: st.DataObject, scale: str
) -> None:
    """Distances to the mean, and no class costs less than the two of a cut of it."""
    n = 5
    columns = [data.draw(numeric_columns(n)) for _ in range(2)]
    table = microdata(columns)
    compiled = SSE(scale).compile(table)

    def naive(rows: tuple[int, ...]) -> float:
        total = 0.0
        for column in columns:
            low, high = column.domain or (min(column.values), max(column.values))
            values = np.array(column.values, float) - min(column.values)
            unit = {"deviation": values.std(), "domain": float(high - low), "none": 1.0}[scale]
            held = values[list(rows)] / (unit or 1.0)
            total += float(((held - held.mean()) ** 2).sum())
        return total

    for size in range(1, n + 1):
        rows = list(combinations(range(n), size))
        found = compiled.class_losses(np.array(rows))
        np.testing.assert_allclose(found, [naive(row) for row in rows], rtol=1e-7, atol=1e-12)
        for row in rows:
            for cut in range(1, size):
                parts = naive(row[:cut]) + naive(row[cut:])
                assert naive(row) >= parts - 1e-9 * max(1.0, parts)
    assert compiled.superadditive
    assert not compiled.monotone
    assert compiled.assumed == ()


def test_squared_errors_of_a_release_are_summed_over_its_classes() -> None:
    """By hand: ages 20, 25 and 40, 50, 70, in years."""
    problem = Problem(Microdata(DATA.frame[["age"]], (Attribute("age"),)), 2, objective=SSE("none"))
    classes = Classes(np.array([0, 0, 1, 1, 1]))
    solution = Solution.of(problem, classes, method="by hand")
    mean = 160 / 3
    assert solution.objective == pytest.approx(
        2 * 2.5**2 + (40 - mean) ** 2 + (50 - mean) ** 2 + (70 - mean) ** 2
    )
    assert problem.recoding.max_size(problem).size == 3
    with pytest.raises(UnsupportedObjective, match="loss of classes, not of published records"):
        problem.compiled.record_losses(None)  # type: ignore[arg-type]


def test_a_loss_of_members_has_a_price_of_suppression_or_none() -> None:
    """Nothing says what a suppressed record loses, unless its author does."""
    with pytest.raises(UnsupportedObjective, match="no loss of a suppressed record"):
        Problem(DATA, 2, EquivalenceClasses(suppression=True), SSE())

    class Priced(SSE):
        suppression_price = 2.5

    problem = Problem(DATA, 2, EquivalenceClasses(suppression=True), Priced("none"))
    classes = Classes(np.array([0, 0, -1, -1, -1]))
    cost = problem.compiled.class_losses(np.array([[0, 1]]))[0]
    assert Solution.of(problem, classes, method="x").objective == pytest.approx(cost + 7.5)


def test_a_proof_is_of_the_cost_that_it_is_stated_with() -> None:
    """A subclass that charges something else has no proof of it, unless it states one."""

    class Priced(SSE):
        suppression_price = 2.5

    class Forgiving(SSE):
        def class_cost(self, members: Any) -> Any:
            # Too large a class for the samples that are tried.
            return super().class_cost(members) * (members.rows.shape[1] < 12)

    class Twice(SSE):
        proof = "twice what is superadditive is so"

        def class_cost(self, members: Any) -> Any:
            return 2.0 * super().class_cost(members)

    class Later(Forgiving, Twice):
        """The first of its bases says what it costs, the second what is proven."""

    data = table_of({"a": range(12)})
    assumed = ("the objective is superadditive",)
    for own, told in ((SSE, ()), (Priced, ()), (Twice, ()), (Forgiving, assumed), (Later, assumed)):
        compiled = own("none").compile(data)
        assert compiled.superadditive
        assert compiled.assumed == told
    # All 12 records together lose nothing.
    assert "proven" not in solve(Problem(data, 6, objective=Forgiving("none"))).sentence()
    assert examine(Twice("none"), data).superadditive == "proven"
    assert examine(Forgiving("none"), data).superadditive == "assumed"


def test_functions_of_members_are_objectives() -> None:
    """A range of pay, times the members, by a decorated function."""

    @class_objective(superadditive=True)
    def pay_gap(members: Any) -> Any:
        pay = members.value["pay"]
        return pay.shape[1] * (pay.max(axis=1) - pay.min(axis=1))

    compiled = pay_gap.compile(DATA)
    assert compiled.name == "pay_gap"
    assert compiled.class_losses(np.array([[0, 1], [2, 3]])).tolist() == [8.0, 14.0]
    assert compiled.assumed == ("the objective is superadditive",)
    assert compiled.obstacle is not None


def test_class_objective_needs_no_arguments() -> None:
    """Bare, as `objective`, it declares nothing."""

    @class_objective
    def spread(members: Any) -> Any:
        return members.value["pay"].max(axis=1) - members.value["pay"].min(axis=1)

    compiled = spread.compile(DATA)
    assert not compiled.superadditive
    assert compiled.class_losses(np.array([[0, 1]])).tolist() == [4.0]


def test_imaginary_parts_are_not_dropped() -> None:
    """A loss is a real number."""
    with pytest.raises(UnsupportedObjective, match="complex numbers"):
        class_objective(lambda m: m.value["pay"].sum(axis=1) * 1j).compile(DATA)


@pytest.mark.parametrize("error", [ValueError, KeyError, SystemExit])
def test_errors_of_a_function_do_not_quote_values(error: type[BaseException]) -> None:
    """Type and line are told; the text, which may hold values of the table, on request only."""

    def leak(members: Any) -> Any:
        raise error("pay is 4711")

    with pytest.raises(UnsupportedObjective, match=rf"{error.__name__} in line \d+") as caught:
        class_objective(leak).compile(DATA)
    assert "4711" not in str(caught.value)
    assert "4711" in caught.value.render(show_values=True)


def test_state_is_noticed_in_the_end() -> None:
    """A loss that drifts with the number of calls is no loss."""
    calls = [0]

    def drifting(members: Any) -> Any:
        calls[0] += 1
        return members.value["pay"].sum(axis=1) + 1e-7 * calls[0]

    drift = class_objective(drifting)
    with pytest.raises(UnsupportedObjective, match="state"):
        by_classes(Problem(DATA, 2, objective=drift), [0] * 5)


def test_state_is_noticed_in_losses_with_tables() -> None:
    """A drift beyond what the sample shows is noticed in the traced loss or in the release."""
    calls = [0]

    @objective
    def drifting(record: Any) -> Any:
        calls[0] += 1
        return record.spread["age"] + 1e-8 * calls[0]

    with pytest.raises(UnsupportedObjective, match="asked again"):
        Problem(DATA, 2, objective=drifting)

    @objective
    def turning(record: Any) -> Any:
        calls[0] += 1
        return record.spread["age"] * (1.0 if calls[0] < 100 else 1.001)

    calls[0] = 0
    problem = Problem(DATA, 2, objective=turning)
    calls[0] = 100
    with pytest.raises(UnsupportedObjective, match="than it was traced with"):
        by_classes(problem, [0] * 5)


def test_chance_and_order_are_noticed_in_losses_with_tables() -> None:
    """Tiny random parts, and losses that depend on the place in a batch, are no losses."""
    rng = np.random.default_rng(0)
    noise = objective(lambda r: r.spread["age"] + 1e-9 * rng.random())
    with pytest.raises(UnsupportedObjective, match="asked again"):
        Problem(DATA, 2, objective=noise)

    @objective
    def placed(record: Any) -> Any:
        loss = record.spread["age"]
        return loss + 1e-8 * np.arange(len(loss)) if isinstance(loss, np.ndarray) else loss

    with pytest.raises(UnsupportedObjective, match="asked again"):
        Problem(DATA, 2, objective=placed)


FALSE_DECLARATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "falling tables": (
        lambda: objective(monotone=True)(lambda r: -r.width["age"]),
        "can fall in 'age'",
    ),
    "falling batch": (
        lambda: objective(monotone=True)(lambda r: r.width["age"] * (1 - r.width["pay"])),
        "falls from",
    ),
    "subadditive": (
        lambda: class_objective(superadditive=True)(lambda m: np.ones(len(m.rows))),
        "less than the",
    ),
}


@pytest.mark.parametrize("name", FALSE_DECLARATIONS)
def test_declarations_that_samples_refute_are_refused(name: str) -> None:
    """An author's word is checked before anything is built on it."""
    make, message = FALSE_DECLARATIONS[name]
    with pytest.raises(UnsupportedObjective, match=message) as caught:
        make().compile(DATA)
    assert caught.value.remedy


BAD_MEMBERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "sum over the batch": (lambda m: m.value["age"].sum(), "gives different losses"),
    "order of the members": (lambda m: m.value["age"][:, 0], "another order of the members"),
    "wrong shape": (lambda m: m.value["age"], "returns an array of shape"),
    "infinite": (lambda m: np.log(m.value["age"].min(axis=1) * 0), "infinite or undefined"),
    "exception": (lambda m: 1 / 0, "fails with ZeroDivisionError"),
}


@pytest.mark.parametrize("name", BAD_MEMBERS)
def test_functions_of_members_that_cannot_be_used_are_refused(name: str) -> None:
    """One finite number a class, whatever the batch and the order of the members."""
    function, message = BAD_MEMBERS[name]
    with pytest.raises(UnsupportedObjective, match=message) as caught:
        class_objective()(function).compile(DATA)
    assert caught.value.remedy


def test_unknown_attributes_and_scales_are_refused() -> None:
    """The message names what there is."""
    with pytest.raises(InputError, match="'wage'"):
        class_objective()(lambda m: m.value["wage"].sum(axis=1)).compile(DATA)
    with pytest.raises(InputError, match="unknown scale"):
        SSE("log")
    with pytest.raises(UnsupportedObjective, match="loss of published records"):
        Bottleneck(SSE())  # type: ignore[arg-type]
    with pytest.raises(UnsupportedObjective, match="has no mean of 'job'"):
        SSE().compile(table_of({"job": list("aabb")}))


@given(columns=tables(largest=5))
def test_levels_and_leaves_of_nodes(columns: tuple[brute_force.Column, ...]) -> None:
    """The losses of hierarchies see nodes as the paths define them, suppressed cells as roots."""
    table = microdata(columns)
    for name, naive in (
        ("hierarchy-loss", brute_force.hierarchy_loss),
        ("leaf-loss", brute_force.gcp),
    ):
        compiled = OBJECTIVES[name].compile(table)
        stars = [brute_force.starred(column) for column in columns]
        assert compiled.suppression_price == pytest.approx(naive(stars))
        assert compiled.monotone
