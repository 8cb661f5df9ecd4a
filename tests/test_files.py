"""Tests of outputs: they appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from anonymip import InputError
from anonymip.files import refuse_outputs, replacing


def names(folder: Path) -> list[str]:
    """Return what lies in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_when_the_block_succeeds(tmp_path: Path) -> None:
    """Until the end only temporary files are there; then all targets, and nothing else."""
    first, second = tmp_path / "a.csv", tmp_path / "b.json"
    with replacing(first, second) as (new_first, new_second):
        new_first.write_text("one", encoding="utf-8")
        new_second.write_text("two", encoding="utf-8")
        assert new_first.suffix == ".csv"
        assert new_first.parent == tmp_path
        assert not first.exists()
    assert first.read_text(encoding="utf-8") == "one"
    assert second.read_text(encoding="utf-8") == "two"
    assert names(tmp_path) == ["a.csv", "b.json"]


def write_and_fail(targets: tuple[Path, ...], failure: type[BaseException]) -> None:
    """Write all temporary files, then fail."""
    with replacing(*targets) as temporary:
        for path in temporary:
            path.write_text("new", encoding="utf-8")
        raise failure


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_old_files_stay_when_the_block_fails(tmp_path: Path, failure: type[BaseException]) -> None:
    """Whatever ends the block early, the old files are intact and nothing is left behind."""
    old, absent = tmp_path / "a.csv", tmp_path / "b.csv"
    old.write_text("old", encoding="utf-8")
    with pytest.raises(failure):
        write_and_fail((old, absent), failure)
    assert old.read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == ["a.csv"]


def test_old_files_are_replaced(tmp_path: Path) -> None:
    """The new content takes the place of the old."""
    target = tmp_path / "a.csv"
    target.write_text("a long old text", encoding="utf-8")
    with replacing(target) as (new,):
        new.write_text("new", encoding="utf-8")
    assert target.read_text(encoding="utf-8") == "new"


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    """Temporary files are private; results are as readable as any new file."""
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "a.csv"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o640


def test_missing_folders_are_refused_before_the_work(tmp_path: Path) -> None:
    """The block is not entered, the message names the target, and no other target is touched."""
    with pytest.raises(InputError, match=r"cannot write .*absent/a\.csv") as caught:
        write_and_fail((tmp_path / "b.csv", tmp_path / "absent" / "a.csv"), AssertionError)
    assert "existing folder" in (caught.value.remedy or "")
    assert names(tmp_path) == []


def test_folders_are_no_targets(tmp_path: Path) -> None:
    """A folder is not replaced by a file."""
    with pytest.raises(InputError, match="is a folder"), replacing(tmp_path):
        pass


def test_folders_without_permission_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that may not be written to is answered by a message, not by a traceback."""

    def deny(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("anonymip.files.tempfile.mkstemp", deny)
    with pytest.raises(InputError, match="Permission denied") as caught, replacing(tmp_path / "a"):
        pass
    assert "may write to" in (caught.value.remedy or "")


def test_outputs_that_can_be_written_are_accepted(tmp_path: Path) -> None:
    """The check leaves nothing behind and changes no old file."""
    old = tmp_path / "a.csv"
    old.write_text("old", encoding="utf-8")
    refuse_outputs([old, tmp_path / "b.csv"], [tmp_path / "input.csv"])
    assert names(tmp_path) == ["a.csv"]
    assert old.read_text(encoding="utf-8") == "old"


def test_outputs_over_inputs_are_refused(tmp_path: Path) -> None:
    """Not even through another path may a release overwrite its original."""
    table, alias = tmp_path / "people.csv", tmp_path / "alias.csv"
    table.write_text("x\n", encoding="utf-8")
    alias.symlink_to(table)
    for target in (table, tmp_path / "." / "people.csv", alias):
        with pytest.raises(InputError, match="would overwrite an input") as caught:
            refuse_outputs([target], [table])
        assert caught.value.remedy == "Name another file"


def test_two_outputs_in_one_file_are_refused(tmp_path: Path) -> None:
    """Each output needs a file of its own."""
    with pytest.raises(InputError, match="two outputs go to"):
        refuse_outputs([tmp_path / "a.csv", tmp_path / "." / "a.csv"], [])


def test_unwritable_outputs_are_refused(tmp_path: Path) -> None:
    """Missing folders are found before the work, not after it."""
    with pytest.raises(InputError, match="cannot write"):
        refuse_outputs([tmp_path / "absent" / "a.csv"], [])


def test_a_full_disk_is_the_users_to_mend(tmp_path: Path) -> None:
    """Without room the old file stays, and the message says what to do."""
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(InputError, match="Free some space"), replacing(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
