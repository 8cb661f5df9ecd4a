"""The command that exports a model."""

from __future__ import annotations

from typing import Any

import highspy
import pytest


def test_export_says_what_it_wrote(shell: Any) -> None:
    """Size, meaning of the names, privacy and place are reported; the file is read elsewhere."""
    result = shell("export", "people.csv", *shell.roles, "-k", 3, "-o", "model.lp")
    assert result.code == 0
    assert result.err == ""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(shell.folder / "model.lp")) == highspy.HighsStatus.kOk
    assert result.out.startswith(f"{solver.getNumRow()} rows, ")
    for words in ("equivalent", "whether two records are published alike", "0 age, 1 sex, 2 zip"):
        assert words in result.out
    assert "as private as the table" in result.out
    assert result.out.endswith("written: model.lp\n")


def test_the_exported_optimum_is_ours(shell: Any) -> None:
    """HiGHS finds in the file what solve proves, with the options of the problem and the model."""
    asked = ("people.csv", *shell.roles, "-k", 3, "--suppression", "--objective", "weighted-loss")
    exported = shell(
        *("export", *asked, "-o", "model.mps", "--option", "equivalence-mip.integer_ends=no"),
        *("--method", "equivalence-mip", "--json", "-"),
    )
    (record,) = exported.records()
    (solved,) = shell("solve", *asked, "--method", "equivalence-mip", "--json", "-").records()
    assert solved["status"] == "optimal"
    assert record["files"] == ["model.mps"]
    assert record["formulation"] == "bigm"
    assert record["objective_name"] == solved["objective_name"] == "weighted-loss"
    assert record["integer_columns"] < record["columns"] < record["rows"] < record["nonzeros"]
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel("model.mps")
    solver.run()
    found = solver.getInfo().objective_function_value
    assert found == pytest.approx(solved["objective"], abs=1e-6)


def test_left_out_records_are_spoken_of(shell: Any) -> None:
    """Where records are left out, the names count those that remain."""
    shell.write("holes.csv", "age,sex\n1,F\n,F\n2,F\n3,M\n4,M\n")
    roles = ("-q", "age", "-q", "sex", "--missing", "drop")
    result = shell("export", "holes.csv", *roles, "-k", 2, "-o", "m.nl")
    assert result.code == 0
    assert "no missing values" in result.out
    assert "written: m.nl, m.row, m.col" in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "model.txt"), (".lp, .mps, .nl",)),
        (("-o", "model.lp", "--method", "mondrian"), ("solves no model", "equivalence-mip")),
        (("-o", "model.lp", "--option", "mondrian.strict=no"), ("--method mondrian",)),
        (("-o", "people.csv/model.lp"), ("existing folder",)),
        (("-o", "model.lp", "-k", "8"), ("7 records",)),
    ],
)
def test_bad_input(shell: Any, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    """The message says what is wrong, and nothing is written."""
    before = shell.files()
    result = shell("export", "people.csv", *shell.roles, "-k", 3, *arguments)
    assert result.code == 2
    for word in words:
        assert word in result.err
    assert shell.files() == before


def test_inputs_are_not_overwritten(shell: Any) -> None:
    """The names beside an NL file are outputs too."""
    shell.write("model.col", shell.read("people.csv"))
    result = shell("export", "model.col", *shell.roles, "-k", 3, "-o", "model.nl")
    assert result.code == 2
    assert shell.read("model.col") == shell.read("people.csv")
