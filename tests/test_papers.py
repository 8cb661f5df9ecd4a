"""The worked examples of the papers, with the place in the paper, and values known for tables.

Sources: Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security 93,
2020. Optima of the 20 records are found here by full enumeration of the classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from anonymip import Classes, LiangGCP, Microdata, Problem, WeightedLoss, load_instance, solve
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.objectives import cells_of
from anonymip.orders.orders import variance_order
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from tests import profiles
from tests.brute_force import Column, NaiveLoss, gcp, record_loss, weighted_loss
from tests.random_problems import groups_of, microdata

SOLVERS = ["highs", "cbc"]
WEIGHTS = (0.8, 0.05, 0.1, 0.05)


@pytest.mark.parametrize("solver", SOLVERS)
def test_liang_table_1_health_records(solver: str) -> None:
    """Table 1a becomes Table 1b for k = 3, proven optimal: {1, 2, 3} and {4, 5, 6, 7}."""
    problem = Problem(load_instance("health-records"), 3)
    solution = solve(problem, "equivalence-mip", solver=solver)
    assert solution.is_optimal
    assert groups_of(solution.assignment) == ((0, 1, 2), (3, 4, 5, 6))
    cells = solution.description
    assert cells.lower[:, [0, 2]].tolist() == [[35, 22071]] * 3 + [[61, 55099]] * 4
    assert cells.upper[:, [0, 2]].tolist() == [[37, 23061]] * 3 + [[66, 55324]] * 4
    sexes = problem.microdata.levels[1]
    published_sexes = [sexes[cells.members.of(i, 1)].tolist() for i in range(7)]
    assert published_sexes == [["F"]] * 3 + [["M"]] * 4
    by_hand = 3 * (2 / 31 + 990 / 33253) + 4 * (5 / 31 + 225 / 33253)
    assert solution.objective == pytest.approx(by_hand)


@pytest.fixture(scope="module")
def person20() -> Microdata:
    """Return the 20 records of Table 4a."""
    return load_instance("person20")


def columns_of(microdata: Microdata) -> list[Column]:
    """Return whole-numbered attributes with declared domains as brute force reads them."""
    return [
        Column(
            tuple(microdata.frame[attribute.name].astype(int).tolist()),
            domain=microdata.domain_bounds(a),
            integer=True,
            weight=attribute.weight,
        )
        for a, attribute in enumerate(microdata.attributes)
    ]


def weighted(microdata: Microdata) -> Microdata:
    """Return the table with the weights of Table 4c."""
    attributes = zip(microdata.attributes, WEIGHTS, strict=True)
    return replace(microdata, attributes=tuple(replace(a, weight=w) for a, w in attributes))


class Enumeration(NamedTuple):
    """All classes of 3 to 5 of 20 records, by first record, with their losses."""

    masks: NDArray[np.int64]
    begin: NDArray[np.int64]
    losses: NDArray[np.float64]

    @classmethod
    def of(cls, columns: Sequence[Column], loss: NaiveLoss) -> Enumeration:
        """Enumerate the 21,489 classes; larger ones can be split without loss."""
        masks, losses, begin = [], [], [0]
        for first in range(20):
            for size in (3, 4, 5):
                for others in combinations(range(first + 1, 20), size - 1):
                    group = (first, *others)
                    masks.append(sum(1 << record for record in group))
                    losses.append(size * record_loss(columns, loss, group))
            begin.append(len(masks))
        return cls(np.array(masks), np.array(begin), np.array(losses))

    def optimum(self) -> tuple[float, set[tuple[int, ...]]]:
        """Return the least loss of a partition, and its classes."""
        best, chosen = cheapest_covers(self.masks, self.begin, self.losses)
        covered, groups = (1 << 20) - 1, set()
        while covered:
            mask = int(self.masks[chosen[covered]])
            groups.add(tuple(record for record in range(20) if mask >> record & 1))
            covered ^= mask
        return float(best[-1]), groups


@kernel
def cheapest_covers(
    masks: NDArray[np.int64], begin: NDArray[np.int64], losses: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return for each set of records its least loss and last class, first records ascending."""
    best = np.full(1 << (len(begin) - 1), np.inf)
    chosen = np.full(len(best), -1, np.int64)
    best[0] = 0.0
    for covered in range(len(best)):
        if best[covered] == np.inf:
            continue
        first = 0
        while first < len(begin) - 1 and covered >> first & 1:
            first += 1
        if first == len(begin) - 1:
            continue
        for at in range(begin[first], begin[first + 1]):
            if masks[at] & covered == 0:
                union = covered | masks[at]
                loss = best[covered] + losses[at]
                if loss < best[union]:
                    best[union] = loss
                    chosen[union] = at
    return best, chosen


OPTIMAL = {(0, 2, 15, 17), (1, 11, 12), (3, 4, 18), (5, 6, 8, 9), (7, 10, 16), (13, 14, 19)}
OPTIMAL_WEIGHTED = {
    (1, 12, 14),
    (4, 7, 11),
    (5, 6, 9),
    (15, 17, 19),
    (0, 8, 10, 16),
    (2, 3, 13, 18),
}


def test_liang_table_4b_optimum_of_the_20_records(person20: Microdata) -> None:
    """Equal weights, k = 3: ncp 13.5, by enumeration of all classes."""
    if profiles.NAME == "thorough":  # nothing of the package is in it
        best, groups = Enumeration.of(columns_of(person20), gcp).optimum()
        assert best == pytest.approx(13.5, abs=1e-9)
        assert groups == OPTIMAL
    assert total_loss(person20, OPTIMAL, Problem(person20, 3)) == pytest.approx(13.5, abs=1e-9)


def test_liang_table_4c_optimum_with_weights(person20: Microdata) -> None:
    """Weights 0.8, 0.05, 0.1, 0.05: other classes, weighted loss 3.012121, by enumeration."""
    table = weighted(person20)
    problem = Problem(table, 3, objective=WeightedLoss())
    loss = total_loss(table, OPTIMAL_WEIGHTED, problem)
    assert loss == pytest.approx(3.012121, abs=1e-6)
    if profiles.NAME == "thorough":  # nothing of the package is in it
        best, groups = Enumeration.of(columns_of(table), weighted_loss).optimum()
        assert groups == OPTIMAL_WEIGHTED
        assert loss == pytest.approx(best, abs=1e-9)


def total_loss(table: Microdata, groups: set[tuple[int, ...]], problem: Problem) -> float:
    """Return the loss that the package computes for the groups."""
    classes = Classes.from_groups(sorted(groups), table.n)
    problem.recoding.check(problem, classes)
    return problem.compiled.total(problem.recoding.describe(problem, classes))


@pytest.mark.parametrize("method", ["initial", "ordered-cut", "greedy-search", "k-member"])
def test_heuristics_on_the_20_records(person20: Microdata, method: str) -> None:
    """No heuristic beats the enumerated optimum, nor does the bound."""
    solution = solve(Problem(person20, 3), method)
    assert solution.objective >= 13.5 - 1e-9
    assert solution.bound is not None
    assert solution.bound.value == pytest.approx(13.297980, abs=1e-6)
    assert not solution.is_optimal


def test_liang_appendix_c_initial_solution(person20: Microdata) -> None:
    """The sorted records are cut into sets of 3, the tail of 5 in one."""
    problem = Problem(person20, 3)
    order = variance_order(problem, Budget()).tolist()
    sets = [[12, 1, 11], [14, 7, 10], [16, 19, 13], [6, 9, 5], [8, 2, 15], [17, 0, 4, 18, 3]]
    assert order == [record for group in sets for record in group]
    assert set(groups_of(solve(problem, "initial").assignment)) == sorted_groups(sets)


def sorted_groups(sets: Sequence[Sequence[int]]) -> set[tuple[int, ...]]:
    """Return the sets without an order."""
    return {tuple(sorted(group)) for group in sets}


def greedy_steps(
    columns: Sequence[Column], k: int, order: Sequence[int]
) -> Iterator[list[list[int]]]:
    """Yield the sets after each step of Algorithm 2, replayed in plain Python."""
    rest, sets = list(order), []
    while len(rest) >= k:
        group = [rest.pop(0)]
        while len(group) < k:
            best = min(rest, key=lambda record: record_loss(columns, gcp, [*group, record]))
            rest.remove(best)
            group.append(best)
        sets.append(group)
        yield [list(group) for group in sets]
    for record in rest:
        grown = [[*group, record] for group in sets]
        losses = [len(group) * record_loss(columns, gcp, group) for group in grown]
        sets[losses.index(min(losses))].append(record)
        yield [list(group) for group in sets]


def test_liang_table_7_steps_of_greedy_search(person20: Microdata) -> None:
    """Six sets grow from 12, 14, 16, 19, 8, 2; then 4 and 18 join where the loss is least."""
    problem = Problem(person20, 3)
    order = variance_order(problem, Budget()).tolist()
    steps = list(greedy_steps(columns_of(person20), 3, order))
    sets = [[12, 1, 11], [14, 7, 10], [16, 5, 9], [19, 13, 6], [8, 0, 17], [2, 15, 3]]
    assert steps[:6] == [sets[: made + 1] for made in range(6)]
    sets[1] = [14, 7, 10, 4]
    assert steps[6] == sets
    sets[3] = [19, 13, 6, 18]
    assert steps[7:] == [sets]
    for search in ("tree", "scan"):
        solution = solve(problem, "greedy-search", options={"search": search})
        assert set(groups_of(solution.assignment)) == sorted_groups(sets)
        assert solution.objective == pytest.approx(23.277778, abs=1e-6)


@pytest.mark.thorough
def test_cbc_keeps_the_optimal_classes_as_start(person20: Microdata) -> None:
    """CBC accepts the optimum, cannot prove it in seconds, and so it is not called optimal."""
    start = Classes.from_groups(sorted(OPTIMAL), 20)
    problem = Problem(person20, 3)
    budget = Budget.of(5.0)
    solution = equivalence_mip(
        problem, formulation="bigm", start=start, solver="cbc", budget=budget
    )
    assert set(groups_of(solution.assignment)) == OPTIMAL
    assert solution.objective == pytest.approx(13.5, abs=1e-9)
    assert solution.trace[0] == "warm start accepted"
    assert not solution.is_optimal
    assert "optimal" not in str(solution.status)
    if solution.bound is not None:
        assert solution.bound.value <= 13.5 * (1 - 1e-3)


@pytest.mark.thorough("4-19.8989899")
@pytest.mark.parametrize(("k", "optimum"), [(2, 8.04040404), (3, 13.5), (4, 19.8989899)])
def test_set_partitioning_proves_the_sample(person20: Microdata, k: int, optimum: float) -> None:
    """Table 2, 20 records: every k is proven from the heuristics' start."""
    solution = solve(Problem(person20, k), "equivalence-mip")
    assert solution.is_optimal
    assert solution.options["formulation"] == "set-partition"
    assert solution.objective == pytest.approx(optimum, rel=1e-8)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("k", "gcp", "bound", "gap"),
    [
        (5, 0.017872702, 2821.026329, 0.3458659),
        pytest.param(10, 0.034374384, 3079.291945, 0.6287505, marks=pytest.mark.thorough),
    ],
)
def test_greedy_search_on_adult(k: int, gcp: float, bound: float, gap: float) -> None:
    """Adult, 30,162 x 8: loss, bound and gap are pinned; full-domain tools lose 0.33 and more."""
    solution = solve(Problem(load_instance("adult"), k), "greedy-search", effort="quick")
    assert solution.gcp == pytest.approx(gcp, rel=1e-7)
    assert solution.bound is not None
    assert solution.bound.value == pytest.approx(bound, rel=1e-8)
    assert solution.gap == pytest.approx(gap, abs=1e-6)
    assert not solution.is_optimal
    if k == 5:
        assert solution.gcp <= 0.018


def test_liang_section_2_5_binary_split_is_no_equality() -> None:
    """Of 4 categories 1, 2, 3, 4 published: 0, 1/4, 2/4, 3/4 by Def. 9, split 0, 2/4, 3/4, 1."""
    table = microdata([Column(("p", "q", "r", "s"), False, as_set=True)])
    losses: dict[str, list[float]] = {}
    for objective in (LiangGCP(), WeightedLoss("binary")):
        problem = Problem(table, 2, objective=objective)
        for count in (1, 2, 3, 4):
            groups = [list(range(count)), list(range(count, 4))]
            cells = problem.recoding.describe(problem, Classes.from_groups(groups, 4))
            loss = float(problem.compiled.record_losses(cells_of(cells))[0])
            losses.setdefault(objective.name, []).append(loss)
    assert losses["liang-gcp"] == pytest.approx([0, 1 / 4, 2 / 4, 3 / 4])
    assert losses["weighted-loss-binary"] == pytest.approx([0, 2 / 4, 3 / 4, 1])
