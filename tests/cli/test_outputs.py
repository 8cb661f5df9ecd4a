"""Tests of what commands write: together or not at all, over files only, reported if cut off."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

OLD = ("release.csv", "release.csv.manifest.json", "report.html", "result.json")


def anonymize(shell: Any, k: int, *more: str) -> Any:
    """Publish the people."""
    return shell("anonymize", "people.csv", *shell.roles, "-k", k, "-o", "release.csv", *more)


EVERYTHING = ("--report", "report.html", "--json", "result.json")


@pytest.mark.parametrize("option", ["-o", "--json", "--report"])
def test_pipes_are_not_replaced(shell: Any, option: str) -> None:
    """An output in the place of a pipe is bad input, and the pipe stays one."""
    os.mkfifo(shell.folder / "pipe")
    result = shell(
        *("anonymize", "people.csv", *shell.roles, "-k", 3),
        *(("-o", "pipe") if option == "-o" else ("-o", "release.csv", option, "pipe")),
    )
    assert result.code == 2
    assert "pipe is a device, a pipe or a socket" in result.err
    assert stat.S_ISFIFO((shell.folder / "pipe").stat().st_mode)
    assert not (shell.folder / "release.csv").exists()


def test_a_link_is_written_through(shell: Any) -> None:
    """The table goes where the link points to, and the manifest lies beside the name given."""
    (shell.folder / "far").mkdir()
    (shell.folder / "release.csv").symlink_to(Path("far", "table.csv"))
    assert anonymize(shell, 3).code == 0
    assert (shell.folder / "release.csv").is_symlink()
    assert [path.name for path in (shell.folder / "far").iterdir()] == ["table.csv"]
    assert (shell.folder / "release.csv.manifest.json").is_file()
    assert shell("verify", "people.csv", "release.csv").code == 0


@pytest.mark.parametrize(
    ("length", "method"), [(256, "mondrian"), (250, "mondrian"), (240, "split-carry")]
)
def test_names_that_are_too_long_are_bad_input(shell: Any, length: int, method: str) -> None:
    """So is a release whose manifest or checkpoint would have too long a name."""
    before = shell.files()
    name = "a" * (length - 4) + ".csv"
    result = shell(
        *("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", name, "--method", method)
    )
    assert result.code == 2
    assert "File name too long" in result.err
    assert "Shorten it" in result.err
    assert shell.files() == before


def test_the_longest_name_of_a_release(shell: Any) -> None:
    """A name that leaves room for the manifest's is written and verified."""
    name = "a" * (255 - len(".csv.manifest.json")) + ".csv"
    result = shell(
        *("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", name, "--method", "mondrian")
    )
    assert result.code == 0, result
    assert shell("verify", "people.csv", name).code == 0


@pytest.mark.parametrize("failing", ["report", "json"])
def test_nothing_is_written_where_one_output_fails(
    shell: Any, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full when the last output comes leaves all old ones, as the message says."""
    assert anonymize(shell, 3, *EVERYTHING).code == 0
    before = shell.files()

    def fill(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    name = "report.html_report" if failing == "report" else "records.solution_record"
    monkeypatch.setattr(f"anonymip.experiments.{name}", fill)
    result = anonymize(shell, 2, *EVERYTHING)
    assert result.code == 2
    assert "release.csv" in result.err
    assert "No space left on device" in result.err
    assert "none of it was put in place" in result.err
    assert shell.files() == before


def test_a_comparison_is_written_as_a_whole(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Table, page and picture of a comparison are written together or not at all."""
    for name in ("table.csv", "table.md", "gap.png"):
        shell.write(name, "old")
    before = shell.files()

    def fill(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("anonymip.cli.experiments.write_json", fill)
    result = shell(
        *("compare", "people.csv", *shell.roles, "-k", 3, "--methods", "mondrian"),
        *("--csv", "table.csv", "--markdown", "table.md", "--plot", "gap.png"),
        *("--json", "result.json"),
    )
    assert result.code == 2
    assert shell.files() == before


def test_a_model_and_its_record_are_written_as_a_whole(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose record fails is not put in place."""

    def fill(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = shell.files()
    monkeypatch.setattr("anonymip.cli.answers.write_json", fill)
    result = shell(
        "export", "people.csv", *shell.roles, "-k", 3, "-o", "model.nl", "--json", "m.json"
    )
    assert result.code == 2
    assert shell.files() == before


def test_a_table_beside_anothers_manifest_is_told(shell: Any) -> None:
    """After a run that was cut off between its renames, `verify` and the next run say so."""
    assert anonymize(shell, 3).code == 0
    table = shell.read("release.csv")
    assert anonymize(shell, 2).code == 0
    assert "not the table" not in shell("verify", "people.csv", "release.csv").out
    shell.write("release.csv", table)  # k = 3 beside a manifest of k = 2
    result = shell("verify", "people.csv", "release.csv")
    assert result.code == 1
    assert "PROBLEM: The table is not the one that the manifest was written for" in result.out
    result = anonymize(shell, 2)
    assert result.code == 0
    assert "warning: release.csv is not the table that release.csv.manifest.json" in result.err
    assert "is not the table" not in anonymize(shell, 2).err
    assert shell("verify", "people.csv", "release.csv").code == 0


def test_a_manifest_without_its_table_is_told(shell: Any) -> None:
    """A first run that was cut off leaves a manifest alone, and the next one says so."""
    assert anonymize(shell, 3).code == 0
    (shell.folder / "release.csv").unlink()
    result = anonymize(shell, 3)
    assert result.code == 0
    assert "release.csv.manifest.json lies there without its table" in result.err


def test_older_manifests_are_verified(shell: Any) -> None:
    """A manifest of version 0.6 has no digest: that is reported, and the release still verifies."""
    assert anonymize(shell, 3).code == 0
    manifest = json.loads(shell.read("release.csv.manifest.json"))
    del manifest["table"]["sha256"]
    shell.write("release.csv.manifest.json", json.dumps(manifest))
    result = shell("verify", "people.csv", "release.csv")
    assert result.code == 0
    assert "Not checked: that the table is the one that the manifest was written for" in result.out
    assert "is not the table" not in anonymize(shell, 3).err


def test_the_report_and_json_stand_beside_the_release(shell: Any) -> None:
    """Nothing but the outputs is left in the folder."""
    before = set(shell.files())
    assert anonymize(shell, 3, *EVERYTHING).code == 0
    assert set(shell.files()) - before == set(OLD)
