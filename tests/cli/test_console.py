"""Tests of output, and of the line of progress: its clock goes on, its time left only falls."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress_bar import ProgressBar

from anonymip.cli import console
from anonymip.cli.console import ProgressLine
from anonymip.errors import InputError, InputWarning
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
        (Progress("solving", incumbent=2.0, note="3 rows a second"), ("loss 2, 3 rows a second",)),
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


#: Signs that a terminal obeys, and what is shown in their place.
COMMANDS = {
    "\x1b[31m": r"\x1b[31m",
    "\x1b]0;title\x07": r"\x1b]0;title\x07",
    "\x9b2J": r"\x9b2J",
    "\r": r"\r",
    "\x7f": r"\x7f",
    "\u202e": r"\u202e",
    "\u2066": r"\u2066",
    "\u200f": r"\u200f",
    "\u2028": r"\u2028",
    "\ud83d": r"\ud83d",
}


@pytest.mark.parametrize("sign", COMMANDS)
def test_signs_that_a_terminal_obeys_are_shown(
    sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escapes, controls, directions: in lines, tables, warnings; words of any script stay."""
    words = "Größe 年齢 עמודה می\u200cشود"
    text = f"{words}{sign}end"
    shown = f"{words}{COMMANDS[sign]}end"
    console.say(console.out, text)
    console.print_table(console.out, (text,), [(text,)])
    printed = capsys.readouterr().out
    assert printed.count(shown) == 3
    assert sign not in printed
    with console.showing_warnings():
        warnings.warn(text, InputWarning, stacklevel=1)
    assert shown in capsys.readouterr().err


def test_lines_stay_and_cells_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    """A text for people has lines; a name in a table that holds an end of line shows it."""
    console.say(console.out, "one\n\ttwo")
    assert capsys.readouterr().out.startswith("one\n")
    console.print_table(console.out, ("a\nb",), [("c\td",)])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [r"a\nb", r"c\td"]


@pytest.mark.parametrize("command", ["anonymize", "export", "verify", "refusal"])
def test_headers_with_escapes_are_shown(shell: Any, command: str) -> None:
    """Headers are anybody's, and no command hands them to the terminal as they are."""
    header = "a\x1b[2Jge\u202e"
    shell.write("hostile.csv", f"{header},sex\n" + "1,F\n2,F\n3,M\n4,M\n")
    roles = ("hostile.csv", "-q", header, "-q", "sex")
    result = {
        "anonymize": lambda: shell("anonymize", *roles, "-k", 2, "-o", "r.csv"),
        "export": lambda: shell("export", *roles, "-k", 2, "-o", "m.lp"),
        "verify": lambda: (
            shell("anonymize", *roles, "-k", 2, "-o", "r.csv"),
            shell("verify", "hostile.csv", "r.csv", "-k", 3),
        )[1],
        "refusal": lambda: shell("solve", "hostile.csv", "-q", header, "-q", "sex", "-k", 9),
    }[command]()
    assert result.code == {"verify": 1, "refusal": 2}.get(command, 0)
    assert not {"\x1b", "\u202e"} & set(result.out + result.err)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


def drawn(line: ProgressLine, width: int = 120) -> str:
    """Return the line as a terminal shows it now."""
    terminal = io.StringIO()
    Console(file=terminal, width=width, force_terminal=True, color_system=None).print(line)
    return terminal.getvalue()


def bar_of(line: ProgressLine) -> ProgressBar:
    """Return the bar of the line."""
    bars = [cell for column in line.__rich__().columns for cell in column.cells]
    return next(cell for cell in bars if isinstance(cell, ProgressBar))


def test_the_clock_goes_on_while_nothing_is_reported(clock: Clock) -> None:
    """A kernel that works for minutes reports nothing, and its minutes are shown all the same."""
    line = ProgressLine(clock)
    line.hear(Progress("making classes again", done=3, total=10))
    clock.now += 584
    assert "0:09:44" in drawn(line)


def test_the_clock_goes_on_when_a_phase_is_done(clock: Clock) -> None:
    """Phases end and begin, with totals or without; the time is that of the command."""
    line = ProgressLine(clock)
    clock.now += 38
    line.hear(Progress("moving records", done=10, total=10))
    clock.now += 32
    line.hear(Progress("improving classes", done=1))
    assert "0:01:10" in drawn(line)
    line.hear(Progress("moving records", done=2, total=10))
    clock.now += 1
    assert "0:01:11" in drawn(line)


def test_a_phase_without_a_total_shows_no_share_of_the_one_before(clock: Clock) -> None:
    """The bar of rounds whose number nobody knows moves to and fro, whatever went before."""
    line = ProgressLine(clock)
    line.hear(Progress("moving records", done=10, total=10))
    assert bar_of(line).total == 10
    line.hear(Progress("improving classes", done=1))
    assert bar_of(line).total is None


def test_without_a_limit_no_time_left_is_claimed(clock: Clock) -> None:
    """Nobody knows what phases are to come."""
    line = ProgressLine(clock)
    line.hear(Progress("cutting", done=1, total=2))
    assert line.left is None
    assert "left" not in drawn(line)


def test_the_time_left_is_that_of_the_limit_and_only_falls(clock: Clock) -> None:
    """It falls between reports too; a report that speaks of more time does not raise it."""
    line, shown = ProgressLine(clock), []
    for seconds, left in ((0.0, 120.0), (1.0, 119.0), (10.0, 112.0), (1.0, 30.0), (40.0, 70.0)):
        clock.now += seconds
        shown.append(line.left)
        line.hear(Progress("cutting", remaining=left))
        shown.append(line.left)
    assert shown == [None, 120.0, 119.0, 119.0, 109.0, 109.0, 108.0, 30.0, 0.0, 0.0]
    assert "0:00:00 left" in drawn(line)


def test_what_is_on_no_limit_has_no_time_left(clock: Clock) -> None:
    """While a release is verified nobody is told that no second is left for it."""
    line = ProgressLine(clock)
    line.hear(Progress("solving", remaining=5.0))
    clock.now += 5
    assert "0:00:05, 0:00:00 left" in drawn(line)
    line.hear(Progress("publishing"))
    clock.now += 2
    assert "0:00:07" in drawn(line)
    assert "left" not in drawn(line)


@pytest.mark.parametrize("width", [70, 120])
def test_a_narrow_terminal_keeps_the_times(clock: Clock, width: int) -> None:
    """One line it is; what was found is cut before the phase and the times are."""
    line = ProgressLine(clock)
    found = Progress("nearest-neighbour bound", 3, 9, 123.4567, 99.1234, 118.0)
    line.hear(found)
    text = drawn(line, width)
    assert text.count("\n") == 1
    assert "nearest-neighbour bound" in text
    assert "0:00:00, 0:01:58 left" in text
    assert ("loss 123.457, bound 99.1234, gap 19.8 %" in text) is (width == 120)
