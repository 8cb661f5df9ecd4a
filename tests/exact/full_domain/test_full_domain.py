"""The search of the lattice of levels against full enumeration."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings

from anonymip import (
    GCP,
    Attribute,
    Bottleneck,
    Budget,
    Diversity,
    EquivalenceClasses,
    FullDomain,
    Hierarchy,
    HierarchyLoss,
    InputError,
    Levels,
    Microdata,
    NoSolution,
    Problem,
    Status,
    Stopped,
    load_instance,
)
from anonymip.exact.full_domain.full_domain import LevelLattice, full_domain
from tests.brute_force import Column
from tests.full_domain_brute_force import FullDomainCase, full_domain_cases
from tests.hard_losses import SWINGING
from tests.random_problems import Case

#: All records alike, or all suppressed, lose the same, and less than all published exactly.
LIKING_NO_EXACT_ROWS = FullDomainCase(
    Case(
        (Column((0, 0, 0, 1, 0, 0, 0)), Column((-7.5, -7.5, -7.5, -0.1, -7.5, -7.5, -7.5))),
        k=2,
        loss=SWINGING,
        worst=True,
    ),
    FullDomain(suppression=True),
    most=7,
)


@example(LIKING_NO_EXACT_ROWS)
@settings(max_examples=40)
@given(full_domain_cases())
def test_the_best_levels_are_those_of_full_enumeration(drawn: FullDomainCase) -> None:
    """The best levels are those of full enumeration, and are proven to be."""
    expected = drawn.optimum()
    if math.isinf(expected):
        with pytest.raises(NoSolution, match="no levels leave at most"):
            full_domain(drawn.problem())
        return
    found = full_domain(drawn.problem())
    assert found.objective == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.is_optimal
    assert found.bound is not None
    assert found.bound.proof == "argument"


@settings(max_examples=40)
@given(full_domain_cases())
def test_every_bound_is_below_the_loss_of_its_levels(drawn: FullDomainCase) -> None:
    """Whatever is judged, no bound of other levels exceeds their loss."""
    lattice = LevelLattice(drawn.problem())
    losses = {
        place: drawn.loss(lattice.levels(place).tolist()) for place in np.ndindex(lattice.shape)
    }
    for place in [lattice.top, *losses]:
        judged = lattice.judge(place)
        assert judged == pytest.approx(losses[place], rel=1e-9, abs=1e-9)
        for other, loss in losses.items():
            assert lattice.bounds[other] <= loss + drawn.case.slack(loss if loss < 1e300 else 0.0)


@settings(max_examples=40)
@given(full_domain_cases())
def test_levels_left_out_publish_what_others_do(drawn: FullDomainCase) -> None:
    """Each combination of levels shows what one of the lattice does."""
    lattice = LevelLattice(drawn.problem())
    kept = {
        tuple(drawn.labels(lattice.levels(place).tolist())) for place in np.ndindex(lattice.shape)
    }
    assert {tuple(drawn.labels(levels)) for levels in drawn.everything()} == kept


@settings(max_examples=40)
@given(full_domain_cases())
def test_an_interrupted_search_holds_what_it_found(drawn: FullDomainCase) -> None:
    """Only the highest levels are judged; the bound stays below the optimum."""
    budget = Budget()
    budget.interrupt()
    expected = drawn.optimum()
    try:
        found = full_domain(drawn.problem(), budget=budget)
    except NoSolution:
        assert math.isinf(drawn.loss(drawn.heights()))
        return
    slack = drawn.case.slack(expected)
    assert found.objective >= expected - slack
    if found.bound is not None:
        assert found.bound.value <= expected + slack
    assert found.is_optimal or found.status == Status(
        Stopped.INTERRUPT, solution=True, bound=found.bound is not None
    )


def grid(sizes: int, values: int) -> Microdata:
    """Return all rows over some attributes with a hierarchy of pairs of values."""
    paths = [(f"v{i}", f"g{i // 2}", "*") for i in range(values)]
    rows = np.array(list(np.ndindex((values,) * sizes)))
    names = [f"a{i}" for i in range(sizes)]
    frame = pd.DataFrame({name: [f"v{i}" for i in rows[:, a]] for a, name in enumerate(names)})
    given_paths = Hierarchy(paths)
    return Microdata(
        frame, tuple(Attribute(name, "hierarchical", hierarchy=given_paths) for name in names)
    )


def test_a_complete_grid_needs_as_many_levels_as_k_says() -> None:
    """Each level of pairs doubles the classes' size: k = 4 needs two of them, in any attributes."""
    found = full_domain(Problem(grid(3, 4), 4, FullDomain()))
    assert isinstance(found.assignment, Levels)
    assert sorted(found.assignment.levels.tolist()) == [0, 1, 1]
    assert found.objective == pytest.approx(64 * 2 / 3)
    assert found.suppressed == 0


def test_the_search_judges_few_of_many_levels() -> None:
    """On five attributes of three levels most places are excluded by others."""
    found = full_domain(Problem(grid(5, 4), 4, FullDomain()))
    assert found.is_optimal
    judged, size = (int(word) for word in found.trace[0].split() if word.isdigit())
    assert size == 3**5
    assert judged < size / 2


def test_clinic_levels_by_hand() -> None:
    """Age is a star or exact; three towns and jobs of the clinic share what they need."""
    data = load_instance("clinic-12")
    found = full_domain(Problem(data, 3, FullDomain(), HierarchyLoss()))
    assert isinstance(found.assignment, Levels)
    # North and South, services and crafts: six records each, services in the North only.
    assert found.assignment.levels.tolist() == [1, 2, 2]
    assert found.objective == pytest.approx(12 * (1 + 2 / 3 + 2 / 3))


def test_what_cannot_be_searched_is_refused() -> None:
    """Another recoding and too many combinations of levels are errors with a remedy."""
    data = load_instance("clinic-12")
    with pytest.raises(InputError, match="asks for classes, not for levels"):
        full_domain(Problem(data, 3, EquivalenceClasses()))
    many = pd.DataFrame({f"a{i}": ["x", "y"] for i in range(23)})
    wide = Microdata(many, tuple(Attribute(str(name), "categorical") for name in many))
    with pytest.raises(InputError, match="8,388,608 combinations of levels") as caught:
        full_domain(Problem(wide, 2, FullDomain()))
    assert caught.value.remedy


def test_the_worst_record_can_be_what_counts() -> None:
    """A bottleneck has no bounds, and every place that the rules leave is judged."""
    problem = Problem(load_instance("clinic-12"), 3, FullDomain(), Bottleneck(GCP()))
    assert full_domain(problem).is_optimal


def test_diversity_costs() -> None:
    """A pair of records per row, equal in what is sensitive: a group of two pairs is diverse."""
    data = grid(2, 4)
    frame = pd.concat([data.frame] * 2, ignore_index=True)
    frame["illness"] = ["flu" if row == "v0" or row == "v2" else "gout" for row in frame["a0"]]
    ill = Microdata(frame, data.attributes, sensitive=("illness",))
    plain = Problem(ill, 2, FullDomain())
    assert full_domain(plain).objective == 0
    for asked in (Diversity(distinct=2), Diversity(l=2), Diversity(t=0)):
        found = full_domain(plain.replace(diversity=asked))
        assert isinstance(found.assignment, Levels)
        assert found.assignment.levels.tolist() == [1, 0]
        assert found.is_optimal


@pytest.mark.thorough
@pytest.mark.shared_data
def test_adult_without_suppression() -> None:
    """The optimum of Adult with its hierarchies, which enumeration of all 6,480 levels gave."""
    data = load_instance("adult-hierarchies")
    found = full_domain(Problem(data, 5, FullDomain()))
    assert found.is_optimal
    assert found.gcp == pytest.approx(0.6608417, abs=1e-6)
