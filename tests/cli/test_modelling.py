"""The commands that export a model, and write and check certificates."""

from __future__ import annotations

import json
import subprocess
import sys
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


def test_a_certificate_is_checked_by_what_lies_beside_it(shell: Any) -> None:
    """The two files are all that a stranger needs, and the result says that it is certified."""
    asked = ("people.csv", *shell.roles, "-k", 3)
    made = shell("certify", *asked, "-o", "proof.json", "--json", "result.json")
    assert made.code == 0
    (said,) = (line for line in made.out.splitlines() if line.startswith("certified: "))
    sentence = said.removeprefix("certified: ")
    assert "as private as the table" in made.out
    assert "written: proof.json, check.py" in made.out
    (record,) = json.loads(shell.read("result.json"))
    assert (record["proof"], record["status"]) == ("certified", "optimal")
    command = [sys.executable, "-I", "-S", "check.py", "proof.json"]
    run = subprocess.run(command, cwd=shell.folder, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["classes, k = 3, 7 records:", sentence]
    assert shell("check-certificate", "proof.json").out == f"{sentence}\n"
    assert (shell.folder / "proof.json").stat().st_mode & 0o077 == 0


def test_a_false_certificate_ends_with_exit_code_1(shell: Any) -> None:
    """What proves nothing is said to, with a reason and without a traceback."""
    shell("certify", "people.csv", *shell.roles, "-k", 3, "-o", "proof.json")
    content = json.loads(shell.read("proof.json"))
    content["loss"] = "1/1000"
    shell.write("proof.json", json.dumps(content))
    checked = shell("check-certificate", "proof.json")
    assert checked.code == 1
    assert "proof.json proves nothing: the release does not lose what is said" in checked.err
    assert shell("check-certificate", "missing.json").code == 2


def test_what_cannot_be_certified_is_refused_before_any_work(shell: Any) -> None:
    """Nothing is written, nothing of the user's is replaced."""
    asked = ("certify", "people.csv", *shell.roles, "-k", 3)
    before = shell.files()
    suppressed = shell(*asked, "--suppression", "-o", "proof.json")
    assert suppressed.code == 2
    assert (
        "no certificate: certificates are for classes and plain freeform covers, without"
        in suppressed.err
    )
    assert shell.files() == before
    shell.write("check.py", "print('mine')\n")
    refused = shell(*asked, "-o", "proof.json")
    assert refused.code == 2
    assert "check.py is there" in refused.err
    assert shell.read("check.py") == "print('mine')\n"
    assert shell(*asked, "-o", "people.csv").code == 2


def test_rules_that_cost_nothing_leave_the_optimum_certified(shell: Any) -> None:
    """A cap that the best release keeps anyway: loss and bound are one fraction; it is said."""
    asked = ("certify", "health-records", "-k", 3, "--cap", "Age=60", "-o", "proof.json")
    result = shell(*asked, "--json", "-")
    assert result.code == 0, result.err
    (record,) = result.records()
    assert (record["proof"], record["status"]) == ("certified", "optimal")
    assert "not part of the proof, which holds with and without it: " in result.err
    content = json.loads(shell.read("proof.json"))
    assert content["loss"] == content["bound"]
    assert len(content["rules"]) == 1
