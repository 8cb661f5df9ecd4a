"""Tests of the kernels: one loss with NumPy and plain Python; the tree finds what a scan finds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Attribute, Classes, Microdata, objective
from anonymip.objectives import cells_of
from anonymip.objectives.kernels.box_tree import (
    build_tree,
    cheapest_row,
    delete_row,
    new_tree,
)
from anonymip.objectives.kernels.class_loss import (
    join_class,
    joined_loss,
    kernel_rows,
    new_state,
    open_class,
    pair_loss,
    record_loss,
)
from tests import brute_force
from tests.random_problems import Case, cases


@objective
def mixed(record: object) -> object:
    """Charge a range linearly, a range by its square, and a set by its values: every table."""
    widths, counts = record.width, record.distinct  # type: ignore[attr-defined]
    return widths["a"] + widths["b"] ** 2 + counts["c"] + np.sqrt(counts["d"])


def table(seed: int, spread: int) -> Microdata:
    """Return 90 records, full of ties if `spread` is small: enough for several levels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, spread, 90) for name in "abcd"})
    kinds = {"a": "numeric", "b": "numeric", "c": "categorical", "d": "categorical"}
    return Microdata(frame, tuple(Attribute(name, kinds[name]) for name in kinds))  # type: ignore[arg-type]


@given(
    st.integers(0, 2**16),
    st.sampled_from([1, 2, 4, 10, 30]),
    st.lists(st.integers(0, 89), min_size=1, max_size=60),
    st.sampled_from([1, 3]),
)
def test_trees_find_the_row_that_costs_least(
    seed: int, spread: int, joining: list[int], capacity: int
) -> None:
    """While a class grows and rows disappear, ties go to the first row, split or in one leaf."""
    data = table(seed, spread)
    tables = mixed.compile(data).tables
    rows, state = kernel_rows(data, tables, np.arange(data.n)), new_state(tables, capacity)
    trees = new_tree(tables, data.n), new_tree(tables, data.n, split=False)
    alive = np.ones(data.n, np.int64)
    for tree in trees:
        build_tree(tree, rows, alive)
    first, *others = dict.fromkeys(joining)
    open_class(rows, state, first)
    for place, row in enumerate(others):
        left = np.flatnonzero(alive).tolist()
        found = min(left, key=lambda other: (joined_loss(rows, state, other), other))
        for tree in trees:
            assert cheapest_row(tree, rows, state, alive) == found
        # Some classes grow as a heuristic would have it, others take in whatever comes.
        join_class(rows, state, found if place % 3 == 0 else row)
        for gone in {found, row}:
            if alive[gone]:
                alive[gone] = 0
                for tree in trees:
                    delete_row(tree, gone)
        if not alive.any():
            break


def test_an_exhausted_tree_finds_nothing() -> None:
    """When all rows are gone both searches say so."""
    data = table(1, 4)
    tables = mixed.compile(data).tables
    rows, state = kernel_rows(data, tables, np.arange(data.n)), new_state(tables, 3)
    alive = np.zeros(data.n, np.int64)
    open_class(rows, state, 0)
    for split in (False, True):
        tree = new_tree(tables, data.n, split=split)
        build_tree(tree, rows, alive)
        assert cheapest_row(tree, rows, state, alive) == -1


@given(cases(), st.data())
def test_kernels_numpy_and_plain_python_agree_on_every_class(
    case: Case, data: st.DataObject
) -> None:
    """For random partitions the record losses agree, class by class, whatever joins in between."""
    problem = case.problem()
    compiled, tables = problem.compiled, problem.compiled.tables
    labels = data.draw(st.lists(st.integers(0, 2), min_size=case.n, max_size=case.n))
    classes = Classes(np.array(labels))
    losses = compiled.record_losses(cells_of(problem.recoding.describe(problem, classes)))
    rows = kernel_rows(problem.microdata, tables, np.arange(case.n))
    # Less room than values: sets are counted in full all the same.
    state = new_state(tables, 2)
    for group in classes.groups():
        first, *others = group.tolist()
        open_class(rows, state, first)
        for row in others:
            announced = joined_loss(rows, state, row)
            join_class(rows, state, row)
            assert record_loss(tables, state) == announced
        naive = brute_force.record_loss(case.columns, case.loss.naive, group.tolist())
        assert abs(record_loss(tables, state) - naive) <= case.slack(naive)
        assert all(abs(losses[row] - naive) <= case.slack(naive) for row in group)


@given(cases(smallest=2, largest=5))
def test_pairs_lose_what_classes_of_two_lose(case: Case) -> None:
    """Any two records, the same one twice included, lose the same by the short cut."""
    problem = case.problem()
    tables = problem.compiled.tables
    rows = kernel_rows(problem.microdata, tables, np.arange(case.n))
    for one in range(case.n):
        for other in range(case.n):
            naive = brute_force.record_loss(case.columns, case.loss.naive, (one, other))
            assert abs(pair_loss(rows, one, other) - naive) <= case.slack(naive)


@given(cases(), st.data())
def test_totals_agree_with_plain_python(case: Case, data: st.DataObject) -> None:
    """The loss of a release, suppressed records included, is the naive sum over its records."""
    problem = case.problem()
    groups = data.draw(st.sampled_from(case.releases()))
    classes = Classes.from_groups(groups, case.n)
    total = problem.compiled.total(problem.recoding.describe(problem, classes))
    naive = case.release_loss(groups)
    assert abs(total - naive) <= case.slack(naive)


@given(cases(suppression=True))
def test_the_price_of_a_suppressed_record(case: Case) -> None:
    """A record of stars costs what the objective charges for the whole domain and for stars."""
    naive = case.loss.naive([brute_force.starred(column) for column in case.columns])
    price = case.problem().compiled.suppression_price
    assert abs(price - naive) <= case.slack(naive)
