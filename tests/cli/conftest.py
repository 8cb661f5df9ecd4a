"""Run commands in a folder of their own, in this process."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Commands import these when they run: what a test puts in the place of a part of them must not be
# what the others import from then on.
import anonymip.experiments.pages
import anonymip.experiments.thermometer  # noqa: F401
from anonymip.cli.app import run

PEOPLE = """\
name,age,sex,zip,disease,visit
Ann,37,F,02138,flu,01
Bea,35,F,02139,gout,02
Cyd,36,F,02138,mumps,03
Dan,61,M,55107,flu,04
Eli,63,M,55099,gout,05
Fay,66,M,55324,gout,06
Gus,63,M,55229,gout,07
"""

SCHEMA = """\
[attributes.age]
kind = "numeric"
domain = [0, 100]
integer = true
[attributes.sex]
[table]
sensitive = ["disease"]
keep = ["visit"]
drop = ["name", "zip"]
"""

OBJECTIVE = '''\
"""Protect the age."""

from anonymip import objective


@objective
def protect_age(record):
    """Four times the age, and the sex."""
    return 4 * record.spread["age"] + record.spread["sex"]
'''

#: What standard error gets only where the kernels of a command are not on disk yet.
COMPILING = re.compile(r"^compiling .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def records(self) -> list[dict[str, Any]]:
        """Return the JSON that standard output consists of."""
        records: list[dict[str, Any]] = json.loads(self.out)
        return records


class Shell:
    """A folder, and commands that run in it."""

    #: Roles of all columns of ``people.csv``.
    roles = (
        *("-q", "age", "-q", "sex", "-q", "zip"),
        *("--sensitive", "disease", "--keep", "visit", "--drop", "name"),
    )

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        """Return the text of a file in the folder."""
        return (self.folder / name).read_text(encoding="utf-8")

    def files(self) -> dict[str, bytes]:
        """Return the content of all files of the folder, hidden ones too."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}

    def __call__(self, *arguments: str | int) -> Outcome:
        """Run ``anonymip`` with these arguments."""
        self.capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        written = self.capsys.readouterr()
        return Outcome(code, written.out, COMPILING.sub("", written.err))

    def refused(self, *arguments: str | int) -> Outcome:
        """Run what must be refused as bad input: with a message, no answer and no file changed."""
        before = self.files()
        outcome = self(*arguments)
        assert outcome.code == 2
        assert outcome.err.startswith("error: ")
        assert outcome.out == ""
        assert self.files() == before
        return outcome


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Return a shell in a folder that holds ``people.csv``, a schema and an objective."""
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path, capsys)
    shell.write("people.csv", PEOPLE)
    shell.write("roles.toml", SCHEMA)
    shell.write("mine.py", OBJECTIVE)
    return shell
