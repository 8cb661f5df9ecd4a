"""Tests of where output goes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from anonymip.cli import console
from anonymip.errors import InputError
from anonymip.runtime.budget import Progress


def test_tables_off_a_terminal_are_as_wide_as_their_cells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a file or pipe no cell is wrapped or cut, so that one row stays one line."""
    long = "word " * 40
    console.print_table(console.out, ("name", "text"), [("a", long), ("b", "short")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert long.strip() in lines[1]


def test_texts_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets of a published range or of an error are printed, not obeyed."""
    console.say(console.out, "[bold]35[/bold] :smile:")
    console.print_table(console.out, ("[b]cell",), [("[red]..37]",)])
    printed = capsys.readouterr().out
    assert "[bold]35[/bold] :smile:" in printed
    assert "[red]..37]" in printed
    assert "[b]cell" in printed


def test_json_goes_to_standard_output_or_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The target `-` means standard output, None nowhere, anything else a file."""
    records = [{"name": "Käthe", "gap": None}]
    console.write_json(records, None)
    assert capsys.readouterr().out == ""
    console.write_json(records, "-")
    assert json.loads(capsys.readouterr().out) == records
    console.write_json(records, str(tmp_path / "result.json"))
    text = (tmp_path / "result.json").read_text(encoding="utf-8")
    assert json.loads(text) == records
    assert "Käthe" in text


def test_json_knows_no_nan(tmp_path: Path) -> None:
    """A number that JSON has no word for is an error, and no file is left."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        console.write_json([{"gap": float("nan")}], str(tmp_path / "result.json"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_for_a_folder_is_bad_input(tmp_path: Path) -> None:
    """A file in what is no folder is refused with a remedy."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="existing folder"):
        console.write_json([], str(tmp_path / "file" / "file.json"))


def test_people_read_standard_error_when_json_takes_the_output() -> None:
    """Texts for people leave standard output alone if it carries JSON."""
    assert console.human("-") is console.err
    assert console.human("result.json") is console.out
    assert console.human(None) is console.out


def test_no_progress_without_a_terminal() -> None:
    """Nothing is drawn into files and pipes."""
    with console.showing_progress() as show:
        assert show is None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Progress("solving", incumbent=2.0, bound=1.5), ("solving", "loss 2, bound 1.5, gap 25.0")),
        (Progress("growing", done=3, total=10), ("growing",)),
        (Progress("solving", incumbent=0.0, bound=0.0), ("loss 0, bound 0",)),
    ],
)
def test_progress_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, message: Progress, words: tuple[str, ...]
) -> None:
    """A terminal shows the phase, the incumbent, the bound and the gap."""
    terminal: Any = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=terminal, force_terminal=True, width=120))
    with console.showing_progress() as show:
        assert show is not None
        show(message)
    for word in words:
        assert word in terminal.getvalue()
