"""Growing sets lose what classes of the same rows lose."""

from __future__ import annotations

import numpy as np
import pytest

from anonymip import Problem
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.objectives.kernels.growing_sets import (
    add_row,
    choose_row,
    empty_set,
    losses_with,
    new_chosen_rows,
    new_growing_sets,
    term_rows,
)
from tests.brute_force import Column
from tests.random_problems import microdata


@pytest.mark.parametrize("levels", [3, 63, 64, 150])
@pytest.mark.parametrize("lines", [1, 6])
def test_losses_with_each_row_more(levels: int, lines: int) -> None:
    """Ranges and sets, of values whose bits fill more than one word; in one line or in several."""
    rng = np.random.default_rng(levels)
    n = 2 * levels
    # Every level occurs, so that the bits do fill the words.
    codes = rng.permutation(np.arange(n) % levels)
    columns = [
        Column(tuple(rng.integers(0, 40, n).tolist())),
        Column(tuple(f"v{code}" for code in codes), numeric=False),
        Column(tuple(f"w{code}" for code in rng.integers(0, 4, n)), numeric=False),
    ]
    problem = Problem(microdata(columns), 2)
    tables = problem.compiled.tables
    rows = term_rows(kernel_rows(problem.microdata, tables, np.arange(n)))
    words = int(rows.set_words.max()) + 1
    assert words == -(-levels // 63) + 1
    sets = new_growing_sets(tables, lines, words)
    empty_set(sets, 0)
    everyone, losses = np.arange(n), np.empty(n)
    members: list[int] = []
    for step in range(6):
        line = step if lines > 1 else 0
        losses_with(rows, sets, line, everyone, 0, n, losses)
        classes = np.array([[*members, row] for row in range(n)])
        expected = problem.compiled.class_losses(classes) / (len(members) + 1)
        assert losses == pytest.approx(expected, rel=1e-12, abs=1e-12)
        members.append(int(rng.integers(n)))
        if step < 5:
            add_row(rows, sets, line, line + 1 if lines > 1 else 0, members[-1])


def test_rows_chosen_from_a_table_lose_what_they_lose_there() -> None:
    """A few rows, chosen twice, have the losses of their classes, whatever was chosen before."""
    rng = np.random.default_rng(5)
    columns = [
        Column(tuple(rng.integers(0, 40, 90).tolist())),
        Column(tuple(f"v{code}" for code in rng.permutation(90)), numeric=False),
        Column(tuple(f"w{code}" for code in rng.integers(0, 4, 90)), numeric=False),
    ]
    problem = Problem(microdata(columns), 2)
    tables = problem.compiled.tables
    rows = kernel_rows(problem.microdata, tables, np.arange(90))
    chosen, sets = new_chosen_rows(tables, 8), new_growing_sets(tables, 1, len(tables.set_columns))
    for _ in range(2):
        taken, losses = rng.integers(0, 90, 8), np.empty(8)
        for at, row in enumerate(taken):
            choose_row(rows, chosen, at, row)
        empty_set(sets, 0)
        for held in range(8):
            losses_with(chosen.terms, sets, 0, np.arange(8), held, 8, losses)
            classes = np.array([[*taken[:held], row] for row in taken[held:]])
            expected = problem.compiled.class_losses(classes) / (held + 1)
            assert losses[held:] == pytest.approx(expected, rel=1e-12, abs=1e-12)
            add_row(chosen.terms, sets, 0, 0, held)
