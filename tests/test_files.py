"""Tests of outputs: they appear whole or not at all."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from anonymip import InputError
from anonymip.files import refuse_outputs, replacing, start_growing, writing


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


def mode_of(path: Path) -> int:
    """Return the mode of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("umask", "usual"), [(0o027, 0o640), (0o002, 0o664), (0o077, 0o600)])
def test_files_are_private_unless_they_are_published(
    tmp_path: Path, umask: int, usual: int
) -> None:
    """Published ones are as readable as any new file; while they are written none is."""
    (tmp_path / "old").touch(0o666)
    before = os.umask(umask)
    try:
        with writing() as outputs:
            staged = [
                outputs.stage(tmp_path / "secret"),
                outputs.stage(tmp_path / "old"),
                outputs.stage(tmp_path / "release", public=True),
            ]
            outputs.write_text("", tmp_path / "page", public=True)
            assert [mode_of(path) for path in staged] == [0o600] * 3
    finally:
        os.umask(before)
    modes = {path.name: mode_of(path) for path in tmp_path.iterdir()}
    assert modes == {"secret": 0o600, "old": 0o600, "release": usual, "page": usual}


def test_the_umask_is_asked_for_without_being_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that other threads make in the meantime would be open to all."""
    monkeypatch.setattr(os, "umask", None)
    with replacing(tmp_path / "a.csv", public=True):
        pass


def test_a_growing_file_is_private_from_the_start(tmp_path: Path) -> None:
    """A log, also where an open one lies; its folder is made. A device keeps its mode."""
    log, old = tmp_path / "new" / "solver.log", tmp_path / "old.log"
    old.write_text("old", encoding="utf-8")
    old.chmod(0o644)
    for path in (log, old):
        start_growing(path)
        assert (mode_of(path), path.stat().st_size) == (0o600, 0)
    mode = mode_of(Path(os.devnull))
    start_growing(Path(os.devnull))
    assert mode_of(Path(os.devnull)) == mode
    with pytest.raises(InputError, match="cannot write"):
        start_growing(old / "below")


def test_missing_folders_are_made(tmp_path: Path) -> None:
    """Those above them too; with the file comes nothing else."""
    with replacing(tmp_path / "new" / "folder" / "a.csv", tmp_path / "new" / "b.csv") as staged:
        for path in staged:
            path.write_text("new", encoding="utf-8")
    assert names(tmp_path / "new") == ["b.csv", "folder"]
    assert names(tmp_path / "new" / "folder") == ["a.csv"]


def test_folders_that_were_made_in_vain_are_removed(tmp_path: Path) -> None:
    """Those of a block that fails; what others have put there meanwhile stays, and its folder."""
    targets = (tmp_path / "new" / "folder" / "a.csv",)
    with pytest.raises(KeyboardInterrupt):
        write_and_fail(targets, KeyboardInterrupt)
    assert names(tmp_path) == []
    with suppress(ValueError), replacing(*targets):
        (tmp_path / "new" / "other").touch()
        raise ValueError
    assert names(tmp_path) == ["new"]
    assert names(tmp_path / "new") == ["other"]


def test_folders_that_cannot_be_made_are_refused_before_the_work(tmp_path: Path) -> None:
    """The block is not entered, the message names the target, and no other target is touched."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*file/below/a\.csv") as caught:
        write_and_fail((tmp_path / "new" / "b", tmp_path / "file" / "below" / "a.csv"), OSError)
    assert "existing folder" in (caught.value.remedy or "")
    assert names(tmp_path) == ["file"]


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
    """Folders that cannot be made are found before the work; those that can be are not made yet."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        refuse_outputs([tmp_path / "file" / "a.csv"], [])
    refuse_outputs([tmp_path / "new" / "folder" / "a.csv"], [])
    assert names(tmp_path) == ["file"]


def test_a_full_disk_is_the_users_to_mend(tmp_path: Path) -> None:
    """Without room the old file stays, and the message says what to do."""
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(InputError, match="Free some space"), replacing(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@contextmanager
def special_file(folder: Path, kind: str) -> Iterator[Path]:
    """Make something in a folder that is neither a file nor a folder."""
    if kind == "device":
        yield Path(os.devnull)
        return
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path)
        yield path
        return
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        yield path


@pytest.mark.parametrize("kind", ["device", "pipe", "socket"])
def test_what_is_no_file_is_no_target(tmp_path: Path, kind: str) -> None:
    """A rename would put a file in the place of a device, a pipe or a socket, also by a link."""
    with special_file(tmp_path, kind) as path:
        before = path.lstat()
        link = tmp_path / "link"
        link.symlink_to(path)
        for target in (path, link):
            with pytest.raises(InputError, match="is a device, a pipe or a socket") as caught:
                refuse_outputs([target], [])
            assert "regular file" in (caught.value.remedy or "")
        after = path.lstat()
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
        if kind != "device":
            with pytest.raises(InputError, match="a pipe or a socket"), replacing(link):
                pass
            assert path.lstat().st_ino == before.st_ino


@pytest.mark.parametrize("is_there", [True, False])
def test_links_are_written_through(tmp_path: Path, is_there: bool) -> None:
    """What a link points to is replaced or made, in its folder; the link stays."""
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.mkdir()
    if is_there:
        (far / "a.csv").write_text("old", encoding="utf-8")
    link = near / "b.txt"
    link.symlink_to(Path("..", "far", "a.csv"))
    with replacing(link) as (new,):
        new.write_text("new", encoding="utf-8")
        assert new.suffix == ".txt"
        assert names(near) == ["b.txt"]
    assert link.is_symlink()
    assert (far / "a.csv").read_text(encoding="utf-8") == "new"
    assert (names(far), names(near)) == (["a.csv"], ["b.txt"])


def test_circles_of_links_are_refused(tmp_path: Path) -> None:
    """A link that leads to itself is bad input."""
    link = tmp_path / "a"
    link.symlink_to(link)
    with pytest.raises(InputError, match="symbolic links"):
        refuse_outputs([link], [])


@pytest.mark.parametrize("name", ["a" * 256 + ".csv", "a\0b"])
def test_names_that_no_file_can_have_are_refused(tmp_path: Path, name: str) -> None:
    """A name longer than the system takes is bad input, found before the work."""
    with pytest.raises(InputError, match="cannot write"):
        refuse_outputs([tmp_path / name], [])
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["a" * 255, "a" * 251 + ".csv", "a." + "b" * 253])
def test_the_longest_names_are_written(tmp_path: Path, name: str) -> None:
    """The temporary file's name is no longer than a file's name may be."""
    refuse_outputs([tmp_path / name], [])
    with replacing(tmp_path / name) as (new,):
        new.write_text("new", encoding="utf-8")
    assert names(tmp_path) == [name]


def test_files_of_one_block_are_put_in_place_together(tmp_path: Path) -> None:
    """Until the block ends no file of it changes, and those of a block inside belong to it."""
    with writing() as outputs:
        outputs.write_text("one", tmp_path / "a")
        with writing(outputs) as others:
            others.write_text("two", tmp_path / "b")
        assert not (tmp_path / "b").exists()
        outputs.then(lambda: (tmp_path / "c").write_text(" ".join(names(tmp_path))))
    assert names(tmp_path) == ["a", "b", "c"]
    assert (tmp_path / "c").read_text() == "a b"


def test_what_is_last_comes_last_and_disks_know_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All contents are on disk before the first rename, and each rename before the next."""
    done: list[str] = []
    replace, sync = os.replace, os.fsync

    def note_replace(source: Path, target: Path) -> None:
        done.append(f"replace {target.name}")
        replace(source, target)

    def note_sync(handle: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        done.append("sync folder" if is_folder else "sync file")
        sync(handle)

    monkeypatch.setattr("anonymip.files.os.replace", note_replace)
    monkeypatch.setattr("anonymip.files.os.fsync", note_sync)
    with writing() as outputs:
        outputs.stage(tmp_path / "table", last=True)
        outputs.stage(tmp_path / "manifest")
        outputs.stage(tmp_path / "report")
    renames = [
        part
        for name in ("manifest", "report", "table")
        for part in (f"replace {name}", "sync folder")
    ]
    assert done == ["sync file"] * 3 + renames


def test_a_rename_that_fails_tells_what_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file cannot be replaced, the message does not claim that nothing was."""
    replace = os.replace

    def fail_at_b(source: Path, target: Path) -> None:
        if target.name == "b":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        replace(source, target)

    monkeypatch.setattr("anonymip.files.os.replace", fail_at_b)
    with (
        pytest.raises(InputError, match=r"cannot put .*b in place.*a had been replaced"),
        replacing(tmp_path / "a", tmp_path / "b", tmp_path / "c"),
    ):
        pass
    assert names(tmp_path) == ["a"]


#: Writes half of a file, says so, and waits.
_WRITER = """
import sys
from pathlib import Path
from anonymip.files import replacing
with replacing(Path(sys.argv[1])) as (new,):
    new.write_text("half", encoding="utf-8")
    print("written", flush=True)
    sys.stdin.read()
"""


def test_temporary_files_of_killed_runs_are_removed(tmp_path: Path) -> None:
    """What a kill left goes with the next output in that folder; runs that live keep theirs."""
    foreign = (".a.csv.abcd1234.csv", ".anonymip-tmp-x", ".anonymip-tmp-folder12")
    for name in foreign[:-1]:
        (tmp_path / name).write_text("mine", encoding="utf-8")
    (tmp_path / foreign[-1]).mkdir()
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "a.csv")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    killed, alive = runs
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "written\n"
    assert len(names(tmp_path)) == len(foreign) + 2
    killed.kill()
    killed.communicate()
    refuse_outputs([tmp_path / "other.csv"], [])
    assert len(names(tmp_path)) == len(foreign) + 1
    assert alive.communicate("")[0] == ""
    assert names(tmp_path) == sorted([*foreign, "a.csv"])
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "half"
