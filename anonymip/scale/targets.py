"""The target of a release by parts: a folder that appears at once, or an address.

An object store has no folders and renames nothing at once. There the parts are written first, each
read back, and the manifest last: what has no manifest is no release.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from anonymip.errors import AnonymipError, InputError, argument
from anonymip.files import put_folder, scratch_folder
from anonymip.runtime.budget import Budget
from anonymip.scale.engines import Engine, LocalRunner, address_of, refuse_stopped
from anonymip.scale.sources import file_system

#: The manifest of a folder; readers of Parquet folders pass over names that begin like this.
MANIFEST = "_manifest.json"
#: Tried where it is seen whether an address can be written to; nothing is left of it.
_PROBE = "_probe"
#: Parts that are written to an address at a time.
_AT_A_TIME = 4
T = TypeVar("T")


def part_name(number: int) -> str:
    """Return the name of the file of a part."""
    return f"part-{number:05}.parquet"


def target_of(output: str | Path) -> Folder | Address:
    """Return where a release goes."""
    address = address_of(output)
    return Folder(Path(output)) if address is None else Address(address)


@dataclass(frozen=True)
class Folder:
    """A folder of this machine, or one that all workers share."""

    place: Path

    def refuse(self) -> None:
        """Refuse a file, or a folder of something else than a release by parts."""
        target = self.place
        if target.suffix.lower() in (".csv", ".tsv", ".txt", ".data", ".xlsx", ".parquet", ".pq"):
            raise InputError(
                f"{target}: a release by parts is a folder of Parquet files",
                remedy="Name a folder, such as release/",
            )
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise InputError(f"{target} is no folder", remedy="Name a folder")
        if target.is_dir() and any(target.iterdir()) and not (target / MANIFEST).is_file():
            raise InputError(
                f"{target} is a folder that holds something else than a release by parts",
                remedy="Name another folder, which is made",
            )

    def beside(self, engine: Engine) -> Path:
        """Return the place beside which the scratch folder lies."""
        return self.place if engine.scratch is None else Path(engine.scratch) / self.place.name

    @contextmanager
    def begun(self, engine: Engine) -> Iterator[tuple[Path, Path]]:
        """Give the scratch folder, and one whose files can be renamed to their place at once."""
        with ExitStack() as stack:
            scratch = stack.enter_context(scratch_folder(self.beside(engine)))
            ready = scratch
            if engine.scratch is not None:
                ready = stack.enter_context(scratch_folder(self.place))
            yield scratch, ready

    def put(self, ready: Path, files: Sequence[Path], manifest: str, budget: Budget) -> None:
        """Put the files of the parts in place at once, with their manifest."""
        folder = ready / "release"
        folder.mkdir()
        for number, file in enumerate(files):
            _move(file, folder / part_name(number))
        (folder / MANIFEST).write_bytes(manifest.encode())
        put_folder(folder, self.place)


def _move(file: Path, place: Path) -> None:
    try:
        os.replace(file, place)
    except OSError:
        # The scratch folder lies on another file system.
        shutil.copyfile(file, place)


@dataclass(frozen=True)
class Address:
    """An address that fsspec writes, such as one of an object store.

    Its file system takes credentials from wherever it is configured to.
    """

    place: str

    def refuse(self) -> None:
        """Refuse an address at which something lies, or that cannot be written to."""
        if "::" in self.place:
            raise InputError(
                f"{self.place} is a chain of addresses", remedy="Name the address of a folder"
            )
        self._refuse_taken()
        made: list[str] = []
        try:
            self._tried("write to", lambda: self._write(_PROBE, b"", made))
        finally:
            self._remove([_PROBE], made)

    def _refuse_taken(self) -> None:
        there = self._tried("read", self._names)
        if MANIFEST in there:
            raise InputError(
                f"a release by parts lies at {self.place}, and cannot be replaced at once there",
                remedy="Name another address, or remove that release first",
            )
        if there:
            raise InputError(
                f"{self.place} holds files and no manifest: something else than a release by "
                "parts, or what is left of a run that was killed",
                remedy="Name another address, or remove them first",
            )

    def beside(self, engine: Engine) -> Path:
        """Return the place beside which the scratch folder lies: none of it is at the address."""
        if engine.scratch is None and engine.scheduler is not None:
            raise InputError(
                f"{self.place} is an address, and the scratch folder must lie on a file system",
                remedy=f"Name a folder that every worker sees, {argument('scratch', ...)}",
            )
        name = PurePosixPath(self.place).name or "release"
        return Path(engine.scratch or tempfile.gettempdir()) / name

    @contextmanager
    def begun(self, engine: Engine) -> Iterator[tuple[Path, Path]]:
        """Give the scratch folder, twice: nothing is renamed to its place."""
        with scratch_folder(self.beside(engine)) as scratch:
            yield scratch, scratch

    def put(self, ready: Path, files: Sequence[Path], manifest: str, budget: Budget) -> None:
        """Write the parts, read each back, and write the manifest last; all of it or nothing."""
        sums = [one["sha256"] for one in json.loads(manifest)["parts"]["files"]]
        names = [part_name(number) for number in range(len(files))]
        made: list[str] = []
        self._refuse_taken()  # by another run, meanwhile
        try:
            # From here alone, by threads that end before anything is removed again: a worker of a
            # cluster may still write when nobody waits for it any more.
            self._tried("write to", lambda: self._make(made))
            LocalRunner(_AT_A_TIME, budget).map(
                self._put_part, [*zip(files, names, sums, strict=True)], None, "writing parts"
            )
            refuse_stopped(budget)
            self._tried("write to", lambda: self._write(MANIFEST, manifest.encode(), made))
        except BaseException:
            self._remove([MANIFEST, *names], made)
            raise

    def _put_part(self, file: Path, name: str, digest: str, _: None, *, budget: Budget) -> None:
        """Write a part and read it back."""
        system, path = self._system()
        place = f"{path}/{name}"
        self._tried("write to", lambda: system.put_file(str(file), place))
        if self._tried("read", lambda: _digest(system, place)) != digest:
            raise InputError(
                f"{self.place}/{name} reads otherwise than it was written",
                remedy="Write elsewhere, and see to that file system",
            )

    def _system(self) -> tuple[Any, str]:
        system, path = file_system(self.place)
        return system, str(path).rstrip("/")

    def _names(self) -> list[str]:
        """Return the names of what lies at the address."""
        system, path = self._system()
        # Another process may have written since it was looked at last.
        system.invalidate_cache()
        try:
            found = [str(one).rstrip("/") for one in system.ls(path, detail=False)]
        except FileNotFoundError:
            return []
        return [PurePosixPath(one).name for one in found if one.strip("/") != path.strip("/")]

    def _make(self, made: list[str]) -> None:
        """Make the folders that are missing, and name them, the deepest first.

        Where paths have no root they begin with a bucket, which is not made, and folders are names.
        """
        system, path = self._system()
        if not path.startswith("/"):
            return
        folder = PurePosixPath(path)
        while folder.parent != folder and not system.exists(str(folder)):
            made.append(str(folder))
            folder = folder.parent
        system.makedirs(path, exist_ok=True)

    def _write(self, name: str, content: bytes, made: list[str]) -> None:
        system, path = self._system()
        self._make(made)
        system.pipe_file(f"{path}/{name}", content)

    def _remove(self, names: Sequence[str], made: Sequence[str]) -> None:
        """Remove what was written, and the folders that were made for it."""
        system, path = self._system()
        for name in names:
            with suppress(Exception):
                system.rm_file(f"{path}/{name}")
        for folder in made:
            with suppress(Exception):
                system.rmdir(folder)

    def _tried(self, what: str, act: Callable[[], T]) -> T:
        """Return what an act returns; whatever goes wrong is said with the address.

        Packages of file systems raise errors of many kinds, whose texts may hold what is secret.
        """
        try:
            return act()
        except AnonymipError:
            raise
        except Exception as error:  # noqa: BLE001
            why = (isinstance(error, OSError) and error.strerror) or type(error).__name__
            raise InputError(
                f"cannot {what} {self.place}: {why}",
                remedy="Check the address, and the credentials that its file system finds",
            ) from None


def _digest(system: Any, place: str) -> str:
    with system.open(place, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
