"""Some damaged files of every format, and that the judge sees errors that are planted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import profiles
from tests.fuzzing.command_line import call
from tests.fuzzing.files import judging
from tests.fuzzing.files.formats import FORMATS, Case
from tests.fuzzing.files.judging import run_file_case
from tests.fuzzing.files.mutations import CANARY
from tests.fuzzing.judge.asked import Asked
from tests.fuzzing.judge.table import Column, Table

#: A case is drawn from its number, and these are read in every format.
_CASES = 4 if profiles.NAME == "thorough" else 2

_TABLE = "age,sex\n20,F\n21,F\n22,F\n60,M\n61,M\n62,M\n"
_SCHEMA = (
    '[attributes.age]\nkind = "numeric"\ninteger = true\ndomain = [0, 99]\n'
    '[attributes.sex]\nkind = "categorical"\ndomain = ["F", "M"]\n'
)
_ASKED = Asked(
    Table(
        (
            Column(
                "age", "numeric", (20.0, 21.0, 22.0, 60.0, 61.0, 62.0), (0.0, 99.0), integer=True
            ),
            Column("sex", "categorical", tuple("FFFMMM"), ("F", "M"), "set"),
        )
    ),
    3,
)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_have_no_fault(name: str) -> None:
    """Read by the command line: a release that is verified, or a refusal; nothing else is left."""
    for index in range(_CASES):
        assert run_file_case(12, index, name).faults == []


def test_a_file_is_damaged_again_in_the_same_way() -> None:
    """Seed and number of a case determine what is run."""
    shown: list[list[str]] = []
    for _ in range(2):
        own: list[str] = []
        run_file_case(5, 3, "csv", show=own.append)
        shown.append([text.split("anonymip", 1)[0] for text in own])
    assert shown[0][0] == shown[1][0]


def _judged(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[Case, int, str], tuple[int, str]]
) -> list[str]:
    """Return the faults of a table in which nothing is damaged, where an error is planted."""

    def draw(rng: Any, folder: Path, found: Any) -> Case:
        data, schema, release = (folder / name for name in ("t.csv", "t.toml", "out.csv"))
        data.write_text(_TABLE, encoding="utf-8")
        schema.write_text(_SCHEMA, encoding="utf-8")
        outputs = [release, folder / "out.csv.manifest.json", folder / "answers.json"]
        given = ["anonymize", str(data), "--schema", str(schema), "-k", "3", "-o", str(release)]
        given += ["--json", str(outputs[2])]
        case.append(Case("csv", data, given, _ASKED, outputs, lambda: _ASKED))
        return case[0]

    def planted(found: Any, what: str, arguments: list[str]) -> tuple[int, str]:
        code, said = call(found, what, arguments)
        return plant(case[0], code, said) if arguments[0] == "anonymize" else (code, said)

    case: list[Case] = []
    monkeypatch.setitem(FORMATS, "csv", (draw, 1))
    monkeypatch.setattr(judging, "call", planted)
    return run_file_case(1, 0, "csv").faults


def test_the_judge_accepts_what_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of a table in which nothing is damaged."""
    assert _judged(monkeypatch, lambda case, code, said: (code, said)) == []


def _leave(case: Case, code: int, said: str) -> tuple[int, str]:
    (case.file.parent / ".anonymip-tmp-12345678").write_text("half", encoding="utf-8")
    return code, said


def _touch(case: Case, code: int, said: str) -> tuple[int, str]:
    case.file.write_text(_TABLE + "63,M\n", encoding="utf-8")
    return code, said


def _replace_and_refuse(case: Case, code: int, said: str) -> tuple[int, str]:
    return 2, "error: no"


def _alone(case: Case, code: int, said: str) -> tuple[int, str]:
    release = case.outputs[0]
    with open(release, encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    rows[1][0] = "[0..99]"
    with open(release, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)
    return code, said


def _claim(case: Case, code: int, said: str) -> tuple[int, str]:
    answers = case.outputs[2]
    content = json.loads(answers.read_text(encoding="utf-8"))
    content[0]["bound"] = content[0]["objective"] * 2
    answers.write_text(json.dumps(content), encoding="utf-8")
    return code, said


@pytest.mark.parametrize(
    ("plant", "seen"),
    [
        (_leave, "leaves .anonymip-tmp-12345678"),
        (_touch, "t.csv"),
        (_replace_and_refuse, "exit 2 changes"),
        (_alone, "1 rows look alike"),
        (_claim, "above the optimum"),
        (lambda case, code, said: (code, "Traceback (most recent call last)"), "a traceback"),
        (lambda case, code, said: (code, "column \x1b[31m"), "a terminal obeys"),
        (lambda case, code, said: (1, said), "exit 1"),
        (lambda case, code, said: (3, said), "exit 3"),
        (lambda case, code, said: (2, ""), "without a word"),
    ],
)
def test_planted_errors_are_seen(
    plant: Callable[[Case, int, str], tuple[int, str]], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files left behind, inputs changed, outputs of a refusal, false claims, words for nobody."""
    assert any(seen in fault for fault in _judged(monkeypatch, plant))


def test_a_message_that_tells_a_value_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of the table in what is printed is a fault."""
    faults = _judged(monkeypatch, lambda case, code, said: (code, f"error: {CANARY} is no number"))
    assert any("tells a value" in fault for fault in faults)
