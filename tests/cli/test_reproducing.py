"""Tests of the command that repeats the papers' tables and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anonymip.experiments.reproductions import performing
from anonymip.experiments.reproductions.catalogue import reproductions

STORED = Path(__file__).parents[2] / "docs" / "results" / "reproductions"


def test_the_list_names_papers_data_and_results(shell: Any) -> None:
    """--list has a line for each, and --json the same as records."""
    outcome = shell("reproduce", "--list", "--json", "list.json")
    assert outcome.code == 0
    known = reproductions()
    assert len(outcome.out.splitlines()) == 1 + len(known)
    records = json.loads((shell.folder / "list.json").read_text())
    assert [record["name"] for record in records] == list(known)
    assert {"paper", "place", "title", "data", "minutes", "stored"} <= set(records[0])


def test_a_name_is_needed_and_known(shell: Any) -> None:
    """Without a name, or with one that is not there, the remedy says what can be asked for."""
    assert shell("reproduce").code == 2
    outcome = shell("reproduce", "liang-fig99")
    assert outcome.code == 2
    assert "Did you mean 'liang-fig9'" in outcome.err


def test_findings_are_printed_and_written(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints which statements hold, where the files are, and --json has it all."""
    import pandas as pd

    def perform(asked: Any, folder: Any, **options: Any) -> performing.Reproduced:
        assert options["quick"]
        rows = pd.DataFrame({"label": ["optimum"], "status": ["optimal"], "cpu_seconds": [1.0]})
        assert len(asked.statements) > 1
        few = asked.__class__(**{**vars(asked), "statements": asked.statements[:1], "panels": ()})
        return performing.Reproduced(few, True, rows)

    monkeypatch.setattr(performing, "reproduce", perform)
    outcome = shell("reproduce", "liang:fig2", "--quick", "-o", "out", "--json", "found.json")
    assert outcome.code == 0
    assert "1 of 1 optima are proven" in outcome.out
    assert "out/liang-fig2-quick.csv" in outcome.out
    (record,) = json.loads((shell.folder / "found.json").read_text())
    assert record["statements"][0]["holds"] is True


def test_pictures_are_drawn_again_without_runs(shell: Any) -> None:
    """--redraw needs the stored rows alone, and says which rows are not there."""
    shell.folder.joinpath("kept").mkdir()
    rows = shell.folder / "kept" / "liang-tables1-7.csv"
    rows.write_bytes((STORED / rows.name).read_bytes())
    outcome = shell(
        "reproduce", "liang-tables1-7", "--redraw", "-o", "kept", "--json", "drawn.json"
    )
    assert outcome.code == 0
    picture = rows.with_suffix(".png")
    assert picture.read_bytes()[1:4] == b"PNG"
    assert sorted(path.name for path in rows.parent.iterdir()) == [rows.name, picture.name]
    (record,) = json.loads((shell.folder / "drawn.json").read_text())
    assert record == {"name": "liang-tables1-7", "picture": f"kept/{picture.name}"}
    missing = shell("reproduce", "liang-fig2", "--redraw", "-o", "kept")
    assert missing.code == 2
    assert "has no rows of liang-fig2" in missing.err
