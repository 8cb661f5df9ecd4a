"""Tests of the files that CBC reads and writes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.solvers import compile_standard_form
from anonymip.solvers.adapters.cbc_files import (
    lower_bound,
    progress,
    read_values,
    write_model,
    write_start,
)


def mixed() -> pyo.ConcreteModel:
    """Return a maximisation with an integer, a free variable, an equality and a range."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(-2, None))
    model.y = pyo.Var()
    model.equal = pyo.Constraint(expr=model.x + 0.1 * model.y == 10)
    model.range = pyo.Constraint(expr=(-1, model.y, 2))
    model.value = pyo.Objective(expr=model.x - model.y + 3, sense=pyo.maximize)
    return model


def test_model_is_written_as_a_minimisation(tmp_path: Path) -> None:
    """The file holds turned signs, all digits, free bounds and the constant as a column."""
    path = tmp_path / "model.lp"
    write_model(compile_standard_form(mixed()), path)
    assert " ".join(path.read_text().split()) == (
        "min cost: -1 x0 +1 x1 -3 one s.t. "
        "r0_0: +1 x0 +0.10000000000000001 x1 = 10 r1_1: +1 x1 <= 2 r2_0: +1 x1 >= -1 "
        "bounds -2 <= x0 <= +inf -inf <= x1 <= +inf 1 <= one <= 1 general x0 end"
    )


def test_start_lists_all_integers(tmp_path: Path) -> None:
    """Zeros are written too, continuous variables are not."""
    path = tmp_path / "start.txt"
    write_start(compile_standard_form(mixed()), np.array([0.0, np.nan]), path)
    assert path.read_text().splitlines()[1:] == ["0 x0 0"]


def test_values_come_in_the_order_of_the_form(tmp_path: Path) -> None:
    """Columns are matched by name; one that CBC left out gets the value nearest to 0."""
    form = compile_standard_form(mixed())
    path = tmp_path / "solution.bin"
    numbers = [5.0, 10.0, 2.0, 0.5, 0.0, 1.0, 7.25, 0.0, 0.0]
    path.write_bytes(struct.pack("=ii9d", 2, 2, *numbers))
    values = read_values(form, path, ["r0_0", "r1_1", "one", "x1"])
    assert values is not None
    np.testing.assert_array_equal(values, [0.0, 7.25])
    assert read_values(form, tmp_path / "absent", []) is None


@pytest.mark.parametrize("optimum", [20.9137, 0.0123456, -43402.6449, 1234567.891234, 0.0])
def test_bound_is_lowered_by_what_printing_rounds(optimum: float) -> None:
    """However the digits fall, the bound read back is not above the one that CBC had."""
    summary = f"Lower bound:                    {optimum:.3f}\n"
    partial = f"Cbc0005I Partial search - best objective 9 (best possible {optimum:.8g}), took 1\n"
    coarse = lower_bound(summary, None)
    fine = lower_bound(partial + summary, 9.0)
    assert coarse is not None
    assert fine is not None
    assert optimum - 1.1e-3 <= coarse <= optimum
    assert optimum - 1.1e-3 <= fine <= optimum
    assert optimum - fine <= 2e-7 * abs(optimum) + 2e-8


def test_bound_within_a_gap_is_the_objective_less_the_gap() -> None:
    """Stopped within a gap, the printed gap has more digits than the summary."""
    log = "Cbc0011I Exiting as integer gap of 0.0011111111 less than 1e-09 or 2%\n"
    found = lower_bound(log + "Lower bound:    0.149\n", 0.15)
    assert found is not None
    assert found == pytest.approx(0.1488888889, abs=1e-7)
    assert found <= 0.1488888889


def test_line_of_an_inner_search_is_not_trusted() -> None:
    """A partial search that disagrees with the summary is not the whole search."""
    log = "Cbc0005I Partial search - best objective 9 (best possible 8.5), took 1\n"
    assert lower_bound(log + "Lower bound:   4.000\n", 9.0) == pytest.approx(4.0, abs=1e-3)


def test_no_bound() -> None:
    """Without a summary, or with an infinite one, the bound is unknown."""
    assert lower_bound("Result - Stopped\n", 3.0) is None
    assert lower_bound("Lower bound:   -1e+50\n", None) is None


def test_progress_reads_the_last_lines() -> None:
    """The newest incumbent and bound count, and none is None."""
    log = (
        "Cbc0012I Integer solution of 42 found by rounding after 0 iterations\n"
        "Cbc0012I Integer solution of 41.5 found by DiveCoefficient after 3 iterations\n"
        "Cbc0010I After 100 nodes, 7 on tree, 41.5 best solution, best possible 40.25 (1 seconds)\n"
    )
    assert progress(log) == (41.5, 40.25)
    assert progress("") == (None, None)
