"""Orders are permutations with the properties they promise; partitions along them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise, product

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from anonymip import GCP, Problem, census
from anonymip.heuristics.classes.hp import hp
from anonymip.orders.lexicographic_parts import lexicographic_parts
from anonymip.orders.orders import (
    ORDERS,
    cardinality_ranks,
    find_order,
    hilbert_keys,
    stable_order,
    two_opt,
    variance_ranks,
    with_surrogate_loss,
)
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, record_loss
from tests.hard_losses import PRODUCT
from tests.random_problems import LOSSES, Case, cases, groups_of, larger_problems, microdata, tables


@settings(max_examples=40)
@given(cases(largest=9))
def test_every_order_is_a_permutation(case: Case) -> None:
    """Each record occurs once, with and without 2-opt, and twice the same."""
    problem = case.problem()
    for name in [*ORDERS, *(f"{name}+2opt" for name in ORDERS)]:
        note(name)
        order = find_order(problem, name, Budget())
        assert sorted(order.tolist()) == list(range(case.n))
        assert order.tolist() == find_order(problem, name, Budget()).tolist()


def test_variance_is_raw_and_divided_by_the_squared_weight() -> None:
    """Eq. (36) of Liang & Samavi: raw variances 0.25, 4, 100 with weights 0.1, 2, 1."""
    columns = (
        Column((0.0, 1.0, 0.0, 1.0), weight=0.1),  # 0.25 / 0.01 = 25
        Column((0.0, 4.0, 0.0, 4.0), weight=2.0),  # 4 / 4 = 1
        Column((0.0, 20.0, 0.0, 20.0)),  # 100
        Column(("p", "p", "q", "q"), False, as_set=True),  # codes 0, 1: 0.25
        Column((0.0, 0.0, 0.0, 1.0), weight=0.0),  # read by no loss: last
    )
    assert variance_ranks(Problem(microdata(columns), 2)).tolist() == [3, 1, 0, 2, 4]


def test_cardinality_counts_observed_values() -> None:
    """Attributes with 3, 1 and 2 values; a declared domain does not matter."""
    columns = (
        Column((0.0, 1.0, 2.0, 2.0)),
        Column((5.0,) * 4, domain=(0.0, 9.0)),
        Column(("q", "p", "p", "q"), False, tuple("pqrst"), as_set=True),
    )
    assert cardinality_ranks(Problem(microdata(columns), 2)).tolist() == [1, 2, 0]


@settings(max_examples=30)
@given(larger_problems(5, 80))
def test_variance_and_cardinality_sort_rows(problem: Problem) -> None:
    """Rows ascend lexicographically in the ranked attributes; equal rows keep their order."""
    for name, ranks in (("variance", variance_ranks), ("cardinality", cardinality_ranks)):
        order = find_order(problem, name, Budget())
        rows = problem.microdata.codes[:, ranks(problem)].tolist()
        assert order.tolist() == sorted(range(problem.n), key=rows.__getitem__)


def test_snake_turns_at_each_change() -> None:
    """Two attributes of 3 values: up, down, up, each step changes one attribute by one."""
    first = np.repeat([0.0, 1.0, 2.0], 3)
    second = np.tile([0.0, 10.0, 20.0], 3)
    columns = (Column(tuple(first.tolist())), Column(tuple(second.tolist())))
    order = find_order(Problem(microdata(columns), 2), "snake", Budget())
    assert second[order].tolist() == [0, 10, 20, 20, 10, 0, 0, 10, 20]
    assert first[order].tolist() == sorted(first.tolist())


@settings(max_examples=60)
@given(cases(largest=12))
def test_neighbour_chain_takes_the_cheapest_record_left(case: Case) -> None:
    """Each record of the chain is as near to the one before as any that is left."""
    problem = case.problem()
    chain = find_order(problem, "neighbour", Budget()).tolist()
    assert chain[0] == find_order(problem, "variance", Budget())[0]
    for at in range(1, case.n):
        losses = [
            record_loss(case.columns, case.loss.naive, (chain[at - 1], later))
            for later in chain[at:]
        ]
        assert losses[0] <= min(losses) + case.slack(losses[0])


@settings(max_examples=40)
@given(cases(largest=12))
def test_two_opt_never_lengthens_the_path(case: Case) -> None:
    """The losses between neighbours sum to no more than before."""
    problem = case.problem()

    def length(order: list[int]) -> float:
        return sum(record_loss(case.columns, case.loss.naive, pair) for pair in pairwise(order))

    for name in ORDERS:
        note(name)
        before = length(find_order(problem, name, Budget()).tolist())
        after = length(find_order(problem, f"{name}+2opt", Budget()).tolist())
        assert after <= before + case.slack(before)


def test_two_opt_untangles_a_path() -> None:
    """Whichever way it first runs, a crossed path on a line ends sorted."""
    column = Column((0.0, 1.0, 2.0, 3.0, 4.0, 5.0))
    problem = Problem(microdata([column]), 2)
    crossed = np.array([0, 3, 2, 1, 4, 5], np.int64)
    assert two_opt(problem, crossed, Budget()).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["neighbour", "variance+2opt"])
def test_spent_budget_leaves_a_permutation(name: str) -> None:
    """What the budget does not reach keeps the variance order."""
    problem = Problem(census(50, 4, seed=1, mixed=True), 2)
    order = find_order(problem, name, Budget(deadline=0.0))
    assert order.tolist() == find_order(problem, "variance", Budget()).tolist()


def test_losses_with_tables_stay() -> None:
    """Nothing is replaced that has tables."""
    problem = Problem(census(20, 3, seed=0), 2, objective=LOSSES["curved"].objective)
    assert with_surrogate_loss(problem) is problem


@pytest.mark.parametrize("name", ["neighbour", "variance+2opt"])
def test_orders_of_losses_without_tables_are_those_of_gcp(name: str) -> None:
    """The chain of neighbours and 2-opt look at GCP instead."""
    data = census(60, 4, seed=1)
    general = Problem(data, 3, objective=PRODUCT.objective)
    assert not general.compiled.has_tables
    assert with_surrogate_loss(general).compiled.has_tables
    plain = Problem(data, 3, objective=GCP())
    order = find_order(general, name, Budget())
    assert order.tolist() == find_order(plain, name, Budget()).tolist()


def test_equal_keys_keep_their_order() -> None:
    """Any number of keys, with ties: the order is that of NumPy's stable sort."""
    random = np.random.default_rng(3)
    for n in (*range(20), 63, 64, 65, 500):
        keys = random.integers(-5, 5, n) / 2
        assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


@pytest.mark.parametrize(("dimensions", "side"), [(1, 32), (2, 16), (3, 8), (4, 4)])
def test_neighbours_on_the_curve_touch(dimensions: int, side: int) -> None:
    """On a full grid of 2**b cells a side each step changes one coordinate by one."""
    cells = np.array(list(product(range(side), repeat=dimensions)))
    keys = hilbert_keys((cells + 0.5) / side)
    order = np.lexsort(keys.T[::-1])
    steps = np.abs(np.diff(cells[order], axis=0)).sum(axis=1)
    assert steps.tolist() == [1] * (side**dimensions - 1)


def test_more_dimensions_than_bits_of_a_word() -> None:
    """70 dimensions take two words a bit; equal points have equal keys, others do not."""
    points = np.random.default_rng(0).random((40, 70))
    keys = hilbert_keys(np.vstack([points, points]))
    assert keys.shape == (80, 24)
    np.testing.assert_array_equal(keys[:40], keys[40:])
    assert len(np.unique(keys, axis=0)) == 40
    assert keys.min() >= 0


Row = tuple[int, ...]


def parted(rows: Sequence[tuple[Row, int]], k: int, attribute: int) -> list[list[int]]:
    """Return the parts of sorted (row, record) pairs by plain lists, by the rules of the paper."""
    if attribute == len(rows[0][0]) or len(rows) < 2 * k:
        return [[record for _, record in rows]]
    runs = [list(run) for _, run in groupby(rows, key=lambda pair: pair[0][attribute])]
    done: list[list[tuple[Row, int]]] = []
    while runs:
        part = runs.pop(0)
        while len(part) < k:
            lacking = k - len(part)
            left = len(done[-1]) if done else 0
            right = len(runs[0]) if runs else 0
            spare_left, spare_right = left - lacking >= k, right - lacking >= k
            if spare_left and (not spare_right or left >= right):
                part = done[-1][-lacking:] + part
                del done[-1][-lacking:]
            elif spare_right:
                part = part + runs[0][:lacking]
                del runs[0][:lacking]
            elif left and (not right or left <= right):
                part = done.pop() + part
            else:
                part = part + runs.pop(0)
        done.append(part)
    found: list[list[int]] = []
    for part in done:
        if len({row[attribute] for row, _ in part}) > 1:
            found.append([record for _, record in part])
        else:
            found += parted(part, k, attribute + 1)
    return found


@settings(max_examples=200)
@given(tables(smallest=4, largest=30), st.integers(2, 5))
def test_equals_the_plain_recursion(columns: tuple[Column, ...], k: int) -> None:
    """Part by part, record by record."""
    k = min(k, len(columns[0].values))
    problem = Case(columns, k, LOSSES["gcp"]).problem()
    parts = lexicographic_parts(problem, k)
    codes = problem.microdata.codes[:, cardinality_ranks(problem)].tolist()
    rows = sorted((tuple(row), record) for record, row in enumerate(codes))
    wanted = parted(rows, k, 0)
    ends = [*parts.starts[1:].tolist(), problem.n]
    found = [parts.order[b:e].tolist() for b, e in zip(parts.starts, ends, strict=True)]
    assert found == wanted
    assert parts.sizes.tolist() == [len(part) for part in wanted]
    assert min(parts.sizes) >= k


@given(tables(smallest=6, largest=30), st.integers(2, 4))
def test_parts_of_2k_or_more_hold_equal_rows(columns: tuple[Column, ...], k: int) -> None:
    """Whatever could be parted was: large parts agree in every attribute."""
    problem = Case(columns, k, LOSSES["gcp"]).problem()
    parts = lexicographic_parts(problem, k)
    codes = problem.microdata.codes[parts.order]
    for begin, size in zip(parts.starts, parts.sizes, strict=True):
        if size >= 2 * k:
            assert (codes[begin : begin + size] == codes[begin]).all()


@pytest.mark.parametrize(
    ("values", "k", "sizes"),
    [
        # One a and five b: 2k together, so b gives two and both parts have k.
        ("abbbbb", 3, [3, 3]),
        # One fewer: they are merged.
        ("abbbb", 3, [5]),
        # In the middle: the larger neighbour gives.
        ("aaaabccccccc", 3, [4, 3, 5]),
        ("aaaaaaabcccc", 3, [5, 3, 4]),
        # Neither neighbour can spare any: the smaller is merged with.
        ("aaabcccc", 3, [4, 4]),
        # Small parts gather until they are large enough.
        ("abcdef", 3, [3, 3]),
    ],
)
def test_moves_and_merges_by_hand(values: str, k: int, sizes: list[int]) -> None:
    """One attribute, values in order."""
    column = Column(tuple(values), numeric=False, as_set=True)
    parts = lexicographic_parts(Case((column,), k, LOSSES["gcp"]).problem(), k)
    assert parts.sizes.tolist() == sizes


@settings(max_examples=60)
@given(cases())
def test_hp_is_one_class_a_part(case: Case) -> None:
    """The classes are the parts, unless a star is cheaper; never below the optimum."""
    problem, best = case.problem(), case.optimum()
    solution = hp(problem)
    assert solution.method == "hp"
    assert solution.objective >= best - case.slack(best)
    if not case.suppression:
        labels = lexicographic_parts(problem, case.k).labels
        together = {frozenset((labels == label).nonzero()[0].tolist()) for label in labels}
        assert {frozenset(group) for group in groups_of(solution.assignment)} == together
