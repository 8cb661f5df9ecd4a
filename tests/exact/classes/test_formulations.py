"""Every formulation on every solver present equals brute force, whatever the rules."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from anonymip import SSE, Classes, InputError, NoSolution, Problem, UnsupportedObjective
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.trust import largest_effect
from anonymip.models import formulations_of
from anonymip.solvers import availability, solver_names
from anonymip.tolerances import FINE_LOSS
from tests import brute_force
from tests.brute_force import Column, Rules
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.random_problems import LOSSES, TREES, Case, Loss, groups_of, microdata, ruled_cases

FORMULATIONS = formulations_of("classes")
PAIRS = [name for name in FORMULATIONS if name not in ("set-partition", "indicator")]
#: Licences of the others limit their models; they are tried where they are installed.
BIG = ("highs", "cbc", "scip")


def combinations_present() -> list[tuple[str, str]]:
    """Return the formulations and the solvers here that take them."""
    present = [name for name in solver_names() if availability(name).installed]
    return [
        (formulation, solver)
        for formulation in FORMULATIONS
        for solver in present
        if formulation != "indicator" or solver not in ("highs", "cbc")
    ]


def slow_if(slow: bool) -> tuple[pytest.MarkDecorator, ...]:
    """Return the mark of what only a thorough run does, if it is slow."""
    return (pytest.mark.thorough,) if slow else ()


def assert_proves_the_optimum(case: Case, problem: Problem | None = None, **choices: Any) -> None:
    """Assert that the method finds the optimum of brute force and proves it."""
    problem = case.problem() if problem is None else problem
    solution = equivalence_mip(problem, **choices)
    best = case.optimum()
    resolved = best == 0 or abs(best) >= FINE_LOSS * largest_effect(problem)
    assert solution.is_optimal or not resolved
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert case.release_loss(groups_of(solution.assignment)) == pytest.approx(solution.objective)
    assert solution.bound is not None
    assert solution.bound.value <= best + 1e-6 * max(1.0, abs(best))


def assert_proves_or_is_refused(case: Case, formulation: str, solver: str) -> None:
    """Assert the same; models larger than a licence allows are refused with both numbers."""
    try:
        assert_proves_the_optimum(case, formulation=formulation, solver=solver)
    except InputError as refusal:
        if solver in BIG or not re.search(r"limit.*\d.*\d", str(refusal)):
            raise


def mixed(loss: str = "gcp", k: int = 2, **given_values: Any) -> Case:
    """Return a table of six records with an attribute of every kind."""
    columns = (
        Column((-3, 9, 4, 4, 0, -3), domain=(-5, 10), integer=True, weight=0.3),
        Column(("p", "q", "p", "p", "r", "q"), False, ("p", "q", "r", "s"), as_set=True),
        Column(("p", "s", "q", "q", "r", "p"), False, as_set=True, paths=TREES["balanced"]),
    )
    return Case(columns, k, LOSSES[loss], **given_values)


#: HiGHS 1.15.1 loses the optima of these, if presolve substitutes by rows of tiny coefficients.
FINE = {
    "declared": Case(
        (
            Column((2, 0, 1, 2, 1), integer=True),
            Column((229, 86, 189, 29, 243), integer=True, domain=(0, 10**7)),
        ),
        2,
        LOSSES["weighted"],
    ),
    "weights": Case(
        (
            Column((0, 1, 2, 0, 3), integer=True),
            Column((-0.557, -1.102, 0.302, 0.957, -0.114), weight=1e-5),
            Column((674, 555, 24, 643, 163), integer=True, weight=1e-5),
        ),
        2,
        LOSSES["weighted"],
    ),
    "largest": Case(
        (
            Column((2, 2, 2, 3, 3, 0), integer=True),
            Column((14792, 54507, 81962, 6901, 68328, 75949), integer=True, weight=0.01),
        ),
        3,
        LOSSES["weighted"],
        worst=True,
    ),
    "huge": Case(
        (
            Column(tuple("srsps"), False, as_set=True, paths=TREES["padded"]),
            Column((0.0, 0.0, 5e8, -4e9, 5e8)),
            Column((-4e9, 0.0, -1e3, -1e3, 0.0)),
        ),
        2,
        LOSSES["gcp"],
        suppression=True,
        worst=True,
    ),
    "scip": Case(
        (
            Column((1, 2, 2, 0, 2, 3), integer=True),
            Column((559, 666, 802, 489, 69, 654), integer=True, weight=1e-5),
            Column((3, 1, 2, 1, 0, 2), integer=True, weight=1e-5),
        ),
        3,
        LOSSES["weighted"],
        suppression=True,
    ),
}


@pytest.mark.crossed
@pytest.mark.parametrize(
    ("formulation", "solver", "start"),
    [
        pytest.param(
            *combination,
            start,
            marks=slow_if(
                combination == ("hull", "cbc") or (combination[1] == "cbc" and start != "none")
            ),
        )
        for combination in combinations_present()
        for start in ("none", "initial")
    ],
)
@pytest.mark.parametrize("name", FINE)
def test_fine_attributes_beside_coarse_ones(
    formulation: str, solver: str, name: str, start: str
) -> None:
    """No bound exceeds the optimum, and what is called optimal is."""
    case = FINE[name]
    best = case.optimum()
    try:
        solution = equivalence_mip(
            case.problem(), formulation=formulation, solver=solver, warm_start=start
        )
    except InputError:
        if solver in BIG:
            raise
        return  # larger than its licence allows
    assert solution.bound is None or solution.bound.value <= best * (1 + 1e-6)
    assert solution.objective == pytest.approx(best, rel=1e-4)
    if solution.is_optimal:
        assert solution.objective == pytest.approx(best, rel=1e-6)
    else:
        assert formulation != "set-partition"


RULES = {
    "none": None,
    "l-diversity": Rules((tuple("xyxyxx"),), l=brute_force.Fraction(3, 2)),
    "distinct": Rules((tuple("xxyxyx"), tuple("xyxyxy")), distinct=2),
    "cap on a range": Rules(caps=((0, 8.0),)),
    "cap on a set": Rules(caps=((1, 2),)),
    "cap on a node": Rules(caps=((2, 1),)),
    "apart": Rules(apart=((2, "p", "s"), (1, "p", "r"))),
    "all": Rules((tuple("xyxyxy"),), distinct=2, caps=((0, 12.0),), apart=((1, "p", "r"),)),
}


# A rule is written by the formulation; a solver needs to see them all together.
@pytest.mark.crossed
@pytest.mark.parametrize(
    ("formulation", "solver", "rules"),
    [
        pytest.param(*combination, rules, marks=slow_if(combination[1] == "cbc" and rules != "all"))
        for combination in combinations_present()
        for rules in RULES
    ],
)
def test_every_formulation_on_every_solver(formulation: str, solver: str, rules: str) -> None:
    """Numeric, categorical and hierarchical attributes, with weights, under every rule."""
    assert_proves_or_is_refused(mixed("weighted", rules=RULES[rules]), formulation, solver)


@pytest.mark.crossed
@pytest.mark.parametrize(
    ("formulation", "solver"),
    [
        pytest.param(*combination, marks=slow_if(combination == ("hull", "cbc")))
        for combination in combinations_present()
    ],
)
@pytest.mark.parametrize("loss", ["curved", "hierarchy", "leaning"])
@pytest.mark.parametrize("worst", [False, True])
def test_every_objective_on_every_formulation(
    formulation: str, solver: str, loss: str, worst: bool
) -> None:
    """Curved losses, levels, offsets; summed, and the largest of them; with suppression."""
    case = mixed(loss, suppression=True, worst=worst)
    assert_proves_or_is_refused(case, formulation, solver)


@pytest.mark.parametrize("formulation", [*PAIRS, "set-partition"])
@settings(max_examples=30)
@given(case=ruled_cases(largest=7))
def test_equals_brute_force(formulation: str, case: Case) -> None:
    """Random tables under random rules: what is allowed is found, and nothing else."""
    assert_proves_the_optimum(case, formulation=formulation)


@pytest.mark.thorough("bigm-9-4-2", "strengthened-9-4-2", "strengthened-8-3-0")
@pytest.mark.parametrize(
    ("formulation", "n", "k", "seed"),
    [
        pytest.param(name, *asked, marks=slow_if(name == "hull"))
        for name in [*PAIRS, "set-partition"]
        for asked in [(8, 3, 0), (9, 2, 1), (9, 4, 2)]
    ],
)
def test_equals_brute_force_on_nine_records(formulation: str, n: int, k: int, seed: int) -> None:
    """Up to nine records, with a hierarchy."""
    rng = np.random.default_rng(seed)
    columns = (
        Column(tuple(rng.integers(0, 30, n).tolist()), integer=True),
        Column(tuple(rng.choice(list("pqrs"), n)), False, as_set=True, paths=TREES["uneven"]),
    )
    assert_proves_the_optimum(Case(columns, k, LOSSES["gcp"]), formulation=formulation)


@pytest.mark.crossed
@pytest.mark.parametrize("loss", [FALLING, PRODUCT, SWINGING], ids=["falling", "product", "swing"])
@pytest.mark.parametrize("rules", ["none", "distinct", "apart"])
@pytest.mark.parametrize("worst", [False, True])
def test_set_partitioning_takes_every_loss_of_records(loss: Loss, rules: str, worst: bool) -> None:
    """Losses that fall, and losses of several attributes together, are proven too."""
    case = mixed(k=2, rules=RULES[rules], worst=worst)
    case = Case(case.columns, 2, loss, False, case.rules, worst)
    assert_proves_the_optimum(case, formulation="set-partition")
    assert_proves_the_optimum(case)


@pytest.mark.parametrize("formulation", PAIRS)
@pytest.mark.parametrize("loss", [FALLING, PRODUCT], ids=["falling", "product"])
def test_pairs_of_records_refuse_what_they_cannot_express(formulation: str, loss: Loss) -> None:
    """The refusal names the formulation that can."""
    problem = Case(mixed().columns, 2, loss).problem()
    with pytest.raises(UnsupportedObjective) as caught:
        equivalence_mip(problem, formulation=formulation)
    assert "set-partition" in (caught.value.remedy or "")


@pytest.mark.parametrize("rules", ["none", "distinct"])
def test_squared_errors_are_proven(rules: str) -> None:
    """Sums of squared errors, of the members tier, against enumeration in plain Python."""
    columns = (Column((1.0, 2.5, 7.0, 7.5, 9.0, 30.0)), Column((4.0, 0.0, 1.0, 8.0, 8.0, 3.0)))
    obeyed = RULES[rules] or Rules()
    case = Case(columns, 2, LOSSES["gcp"], rules=RULES[rules])
    problem = case.problem().replace(objective=SSE("none"))

    def cost(group: tuple[int, ...]) -> float:
        values = np.array([[column.values[i] for column in columns] for i in group])
        return float(((values - values.mean(axis=0)) ** 2).sum())

    best = brute_force.least_cost_of_classes(6, 2, cost, obeyed, columns)
    solution = equivalence_mip(problem)
    assert solution.is_optimal
    assert solution.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("formulation", [*PAIRS, "set-partition"])
def test_limits_that_no_release_obeys_are_proven_infeasible(formulation: str) -> None:
    """Three records that must stay apart in pairs cannot be hidden."""
    columns = (Column((0, 10, 20), integer=True),)
    case = Case(columns, 2, LOSSES["gcp"], rules=Rules(caps=((0, 5.0),)))
    assert case.optimum() == math.inf
    with pytest.raises(NoSolution, match="no release obeys the limits") as caught:
        equivalence_mip(case.problem(), formulation=formulation)
    assert caught.value.remedy
    suppressing = Case(columns, 2, LOSSES["gcp"], True, case.rules)
    assert equivalence_mip(suppressing.problem(), formulation=formulation).objective == 3.0


def test_auto_says_which_formulation_it_picked() -> None:
    """Few possible classes: set partitioning."""
    small = equivalence_mip(mixed().problem())
    assert small.options["formulation"] == "set-partition"
    assert re.fullmatch(
        r"auto picked the formulation set-partition: \d+ possible classes", small.trace[0]
    )
    assert re.fullmatch(r"\d+ of \d+ possible classes are left", small.trace[1])


def test_the_start_survives_in_every_formulation() -> None:
    """A start given as classes is accepted, whatever the variables."""
    problem = mixed(k=3).problem()
    start = Classes(np.array([0, 1, 0, 0, 1, 1]))
    for formulation in [*PAIRS, "set-partition"]:
        solution = equivalence_mip(problem, formulation=formulation, start=start)
        assert solution.is_optimal
        assert "warm start not used" not in solution.trace


def test_tables_of_the_cases_are_what_they_claim() -> None:
    """The mixed table has a kind of every attribute, and every rule binds or is met."""
    kinds = {attribute.kind for attribute in microdata(mixed().columns).attributes}
    assert kinds == {"numeric", "categorical", "hierarchical"}
    free = mixed("weighted").optimum()
    binding = [
        name for name, rules in RULES.items() if mixed("weighted", rules=rules).optimum() > free
    ]
    assert len(binding) >= 3
