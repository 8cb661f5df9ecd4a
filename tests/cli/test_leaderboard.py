"""Tests of the command leaderboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anonymip.instances.library import catalogue


@pytest.fixture
def own_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the papers' tables that the command reads and writes, one figure worse."""
    folder = tmp_path / "library"
    folder.mkdir()
    file = folder / "papers.toml"
    entries = [
        replace(entry, loss=15.0, loss_by="luck") if entry.name == "person20-k3" else entry
        for entry in catalogue.read_family(catalogue.FOLDER / "papers.toml")
    ]
    file.write_text("# Tables.\n", encoding="utf-8")
    file.write_text(catalogue.family_text(file, entries), encoding="utf-8")
    monkeypatch.setattr(catalogue, "FOLDER", folder)
    catalogue.library.cache_clear()
    yield file
    catalogue.library.cache_clear()


def test_what_is_known_is_printed_without_a_run(shell: Any) -> None:
    """Every entry has a line."""
    result = shell("leaderboard", "--known")
    assert result.code == 0
    assert len(result.out.splitlines()) == 1 + len(catalogue.library())
    lines = {line.split()[0]: line.split()[1:8] for line in result.out.splitlines()}
    assert lines["person20-k3"] == ["20", "3", "classes", "gcp", "13.5", "13.49999", "proven"]


def test_methods_are_run_and_written(shell: Any) -> None:
    """The table of methods, the page, the records."""
    asked = ("--instance", "person20-k3", "--method", "mondrian", "--method", "hp")
    result = shell("leaderboard", *asked, "-o", "board.md", "--json", "-")
    assert result.code == 0, result.err
    one, two = result.records()
    assert {one["method"], two["method"]} == {"mondrian", "hp"}
    for record in (one, two):
        assert record["optimum"] == pytest.approx(13.5)
        assert record["distance"] == pytest.approx(record["objective"] / 13.5 - 1)
    assert "| classes | mondrian | 1 |" in shell.read("board.md")
    assert "mondrian" in result.err


def test_a_release_is_handed_in_and_kept(shell: Any, own_library: Path) -> None:
    """`solve` writes it, the library takes it if it is better, and says so once."""
    name = "library:person20-k3"
    solved = shell("solve", name, "-k", 3, "--method", "local-search", "--json", "mine.json")
    assert solved.code == 0, solved.err
    result = shell("leaderboard", "--check", "mine.json", "--json", "-")
    assert result.code == 0, result.err
    assert result.records()[0]["better"] is True
    assert "the best known was 15 " in result.err
    before = catalogue.read_family(own_library)
    assert shell("leaderboard", "--check", "mine.json", "--update").code == 0
    changed = [
        (old, new)
        for old, new in zip(before, catalogue.read_family(own_library), strict=True)
        if old != new
    ]
    assert [(old.loss, new.name, new.loss) for old, new in changed] == [
        (15.0, "person20-k3", pytest.approx(13.5))
    ]
    catalogue.library.cache_clear()
    again = shell("leaderboard", "--check", "mine.json")
    assert "no better than the best known, 13.5" in again.out
    kept = catalogue.release_file("person20-k3")
    assert kept.parent.parent == own_library.parent
    again = shell("leaderboard", "--check", str(kept))
    assert "no better than the best known, 13.5" in again.out


def test_what_a_run_finds_is_kept(shell: Any, own_library: Path) -> None:
    """The release lies beside the figure, and is of who found it; others are not written."""
    asked = ("--instance", "person20-k3", "--instance", "person20-k4", "--method", "local-search")
    assert shell("leaderboard", *asked, "--update").code == 0
    catalogue.library.cache_clear()
    assert [path.name for path in (own_library.parent / "releases").iterdir()] == [
        "person20-k3.json"
    ]
    (record,) = json.loads(catalogue.release_file("person20-k3").read_text(encoding="utf-8"))
    entry = catalogue.find_entry("person20-k3")
    assert entry.loss_by == f"{record['method']}, AnonyMIP {record['versions']['anonymip']}"
    assert entry.loss_by.startswith("local-search, ")


def test_a_release_that_is_not_allowed_fails_its_check(shell: Any, own_library: Path) -> None:
    """Exit code 1, as of any verification: the file, the entry's rule, and what to hand in."""
    name = "library:person20-k3"
    assert shell("solve", name, "-k", 3, "--method", "mondrian", "--json", "mine.json").code == 0
    (record,) = json.loads(shell.read("mine.json"))
    before = own_library.read_bytes()
    for groups in (list(range(20)), [0] * 19, [-5] * 20):
        shell.write("mine.json", json.dumps([{**record, "groups": groups}]))
        result = shell("leaderboard", "--check", "mine.json", "--update")
        assert result.code == 1, result
        assert "mine.json holds no release that its entry allows" in result.err
        assert "anonymip solve --json" in result.err
    shell.write("mine.json", json.dumps([{**record, "groups": [2**40] * 20}]))
    assert shell("leaderboard", "--check", "mine.json").code == 2
    assert own_library.read_bytes() == before


def test_what_cannot_be_checked_is_bad_input(shell: Any) -> None:
    """No file, no JSON, several releases; nothing is written."""
    shell.write("text.json", "hello")
    shell.write("two.json", json.dumps([{}, {}]))
    for file, words in (
        ("nowhere.json", "no JSON"),
        ("text.json", "no JSON"),
        ("two.json", "does not hold one record"),
    ):
        result = shell("leaderboard", "--check", file, "--update")
        assert result.code == 2
        assert words in result.err
    result = shell("leaderboard", "--instance", "nothing")
    assert result.code == 2
    assert "no entry 'nothing'" in result.err
