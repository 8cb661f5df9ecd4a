"""Exported models: what another reader of the file finds is the model that was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highspy
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunct

from anonymip import (
    EquivalenceClasses,
    InputError,
    Mask,
    PatternGuided,
    Problem,
    build,
    load_instance,
    solve,
)
from anonymip.exact.patterns.pattern_ilp import pattern_ilp
from anonymip.models.export import ExportedModel, export_files, export_model

OPTIMUM = 0.955090
#: Pyomo writes a constant of the objective as a column of its own.
CONSTANT = "ONE_VAR_CONSTANT"


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "suppression"])
def problem(request: pytest.FixtureRequest) -> Problem:
    """Return the health records, k = 3, with and without suppression."""
    return Problem(load_instance("health-records"), 3, EquivalenceClasses(request.param))


@pytest.fixture(scope="module")
def model(problem: Problem) -> Any:
    """Return the big-M model, which tests that change it take back."""
    return build(problem)


def read_by_highs(path: Path) -> highspy.Highs:
    """Return HiGHS with the model of a file."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    return solver


@pytest.mark.parametrize("ending", [".lp", ".mps"])
def test_highs_reads_the_same_model(
    problem: Problem, model: Any, tmp_path: Path, ending: str
) -> None:
    """Size, integrality, names and optimum are those of the model."""
    path = tmp_path / f"model{ending}"
    written = export_model(model, path)
    solver = read_by_highs(path)
    names = list(solver.getLp().col_names_)
    constants = names.count(CONSTANT)
    assert written.files == (path,)
    assert solver.getNumCol() == written.columns + constants
    # The MPS writer fixes the constant's column by a row of one entry.
    extra = constants if ending == ".mps" else 0
    assert solver.getNumRow() == written.rows + extra
    assert solver.getNumNz() == written.nonzeros + extra
    whole = [kind == highspy.HighsVarType.kInteger for kind in solver.getLp().integrality_]
    assert sum(whole) == written.integer_columns
    assert {"equivalent(0_1)", "scaled_lower(6_0)", "included(3_1_0)"} <= set(names)
    solver.run()
    found = solver.getInfo().objective_function_value
    assert found == pytest.approx(solve(problem, "equivalence-mip").objective, abs=1e-6)


def header_of(path: Path) -> list[list[int]]:
    """Return the numbers of the ten lines of an NL file's header, without the first."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("g3 ")
    return [[int(number) for number in line.partition("#")[0].split()] for line in lines[1:10]]


def test_nl_files_have_the_size_and_the_names(model: Any, tmp_path: Path) -> None:
    """The header of the NL file says the model's size; names lie beside it, one a line."""
    written = export_model(model, tmp_path / "model.nl")
    header = header_of(written.files[0])
    columns, rows, objectives = header[0][:3]
    assert (columns, rows, objectives) == (written.columns, written.rows, 1)
    binaries, integers = header[5][:2]
    assert binaries + integers == written.integer_columns
    assert header[6][0] == written.nonzeros
    assert [path.name for path in written.files] == ["model.nl", "model.row", "model.col"]
    row_names, column_names = (path.read_text().split() for path in written.files[1:])
    # The objective stands behind the rows.
    assert len(row_names) == rows + 1
    assert len(column_names) == columns
    assert {"companions[0]", "loss"} <= set(row_names)
    assert "equivalent[0,1]" in column_names


def test_own_constraints_are_written(problem: Problem, tmp_path: Path) -> None:
    """A constraint of the caller's is a row more, and raises the optimum of the file."""
    own = build(problem)
    before = export_model(own, tmp_path / "plain.lp")
    own.together = pyo.Constraint(expr=own.equivalent[0, 6] == 1, doc="first with last")
    after = export_model(own, tmp_path / "own.lp")
    assert after.rows == before.rows + 1
    assert after.nonzeros == before.nonzeros + 1
    assert ("together", 1, "first with last") in after.components
    solver = read_by_highs(tmp_path / "own.lp")
    solver.run()
    assert solver.getInfo().objective_function_value > OPTIMUM + 0.1


def test_rows_with_two_sides_count_once(tmp_path: Path) -> None:
    """A range is one row of every format, and a maximum stays one."""
    model: Any = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(bounds=(0, 9)), pyo.Var(domain=pyo.Binary)
    model.between = pyo.Constraint(expr=pyo.inequality(1, model.x + model.y, 3))
    model.most = pyo.Objective(expr=model.x + 3 * model.y, sense=pyo.maximize)
    for ending in (".lp", ".mps"):
        path = tmp_path / f"range{ending}"
        written = export_model(model, path)
        assert (written.rows, written.columns, written.integer_columns) == (1, 2, 1)
        assert written.nonzeros == 2
        solver = read_by_highs(path)
        solver.run()
        assert abs(solver.getInfo().objective_function_value) == pytest.approx(5)
        values = dict(zip(solver.getLp().col_names_, solver.getSolution().col_value, strict=True))
        assert (values["x"], values["y"]) == pytest.approx((2, 1))


def test_nothing_is_left_of_a_failure(tmp_path: Path, model: Any) -> None:
    """An old file stays as it was when the new model cannot be written."""
    path = tmp_path / "model.lp"
    path.write_text("old")
    curved: Any = pyo.ConcreteModel()
    curved.x = pyo.Var(bounds=(0, 1))
    curved.bent = pyo.Constraint(expr=curved.x**3 <= 0.5)
    curved.loss = pyo.Objective(expr=curved.x)
    with pytest.raises(InputError, match="cannot be written as a linear one"):
        export_model(curved, path)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["model.lp"]


@pytest.mark.parametrize("ending", [".lp", ".mps", ".nl"])
def test_disjunctions_are_refused(tmp_path: Path, ending: str) -> None:
    """No format holds them, and none is written without them; reformulated they are written."""
    model: Any = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 9))
    model.left, model.right = Disjunct(), Disjunct()
    model.left.end = pyo.Constraint(expr=model.x <= 2)
    model.right.end = pyo.Constraint(expr=model.x >= 7)
    from pyomo.gdp import Disjunction

    model.either = Disjunction(expr=[model.left, model.right])
    model.loss = pyo.Objective(expr=-model.x)
    path = tmp_path / f"model{ending}"
    with pytest.raises(InputError, match="Disjunct, Disjunction") as caught:
        export_model(model, path)
    assert "gdp.bigm" in (caught.value.remedy or "")
    assert not list(tmp_path.iterdir())
    pyo.TransformationFactory("gdp.bigm").apply_to(model)
    assert isinstance(export_model(model, path), ExportedModel)


@pytest.mark.parametrize("name", ["model", "model.txt", "model.lp.gz", ".lp"])
def test_other_endings_are_refused(name: str) -> None:
    """The message names the three."""
    with pytest.raises(InputError, match="no ending of a model format") as caught:
        export_files(Path(name))
    assert "Name a file that ends in .lp, .mps, .nl" in str(caught.value)


@pytest.mark.parametrize("formulation", ["pattern", "pattern-strong"])
def test_pattern_models_are_written(tmp_path: Path, formulation: str) -> None:
    """What HiGHS reads has the optimum of the method, and names that say what they are."""
    stars = Problem(load_instance("health-records"), 2, PatternGuided(Mask(suppress_at_most=2)))
    path = tmp_path / "patterns.mps"
    written = export_model(build(stars, formulation), path)
    solver = read_by_highs(path)
    assert solver.getNumRow() == written.rows
    assert any(name.startswith("assigned(") for name in solver.getLp().col_names_)
    solver.run()
    best = pattern_ilp(stars).objective
    assert solver.getInfo().objective_function_value == pytest.approx(best)
