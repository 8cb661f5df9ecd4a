"""The commands that write and check certificates."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


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
    assert "no certificate: certificates are for classes without suppression" in suppressed.err
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
