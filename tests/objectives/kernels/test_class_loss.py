"""Tests of the kernels: they see the same loss as NumPy and as plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Classes
from anonymip.objectives import cells_of
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
            announced = joined_loss(tables, rows, state, row)
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
            assert abs(pair_loss(tables, rows, one, other) - naive) <= case.slack(naive)


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
