"""A file from which an interrupted computation goes on."""

from __future__ import annotations

import glob
import json
import struct
import time
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.exact.split_carry.fingerprint import Fingerprint
from anonymip.files import refuse_outputs, replacing

#: Number of the file's format; counted up whenever a file means something else than before.
FORMAT = 2
_PROGRAM = "anonymip checkpoint"
_HEADER = "header"
#: Between the name of a checkpoint and the number of a part of it.
_PART = ".part-"
#: Seconds before the first file.
_FIRST = 0.25
#: Writing takes at most one part in so many of the time.
_SHARE = 20
#: Longest time between two files, in seconds, however slow the disk is.
_LONGEST = 30.0
#: What reading a damaged file raises; methods of compression that nobody used among them.
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(ValueError, KeyError, TypeError, NotImplementedError, RuntimeError),
)
#: What each part of a fingerprint is called for people.
_PARTS = {
    "table": "another table",
    "rules": "another k, recoding, objective, diversity or limit",
    "options": "other options of the method",
}

#: What a computation is made of, by name.
Arrays = Mapping[str, NDArray[Any]]


class Checkpoint:
    """A file that holds the state of a computation: whole, and readable by its owner alone.

    It says which records belong together, and so it is as private as the table.

    Parameters
    ----------
    path
        The file.
    fingerprint
        What the computation belongs to.
    resume
        Whether to go on from the file if it is there; without it a file in this place is
        somebody's work, and nothing is done.

    Raises
    ------
    InputError
        If the file cannot be written, or is there although it is not to be resumed.

    Notes
    -----
    Files are written whenever writing the last one took less than a twentieth of the time since:
    each file is new as a whole. A killed run loses what it did since the last one: one link of a
    chain whose links take longer, else a fraction of a second, or seconds at millions of records.
    """

    def __init__(self, path: str | Path, fingerprint: Fingerprint, *, resume: bool = False) -> None:
        self.path = Path(path)
        self._fingerprint = fingerprint
        # A run of less than a moment needs no file.
        self._pause = _FIRST
        self._written = time.monotonic()
        refuse_outputs([self.path], [])
        if self.path.exists() and not resume:
            raise InputError(
                f"the checkpoint {self.path} is there already",
                remedy="Resume it (--resume, or the option resume), remove it, or name another "
                "file",
            )
        if not resume:
            self.remove_parts()

    @property
    def is_due(self) -> bool:
        """Whether it is time to write the file again."""
        return time.monotonic() - self._written >= self._pause

    def write(self, arrays: Arrays) -> None:
        """Write the file; the one before stays until the new one is whole.

        Raises
        ------
        InputError
            If the disk is full.
        """
        start = time.monotonic()
        header = {"program": _PROGRAM, "format": FORMAT, **self._fingerprint._asdict()}
        with (
            replacing(self.path, private=True) as (temporary,),
            # One after the other: savez would keep the names of its own arguments from us.
            zipfile.ZipFile(temporary, "w") as archive,
        ):
            archive.writestr(_HEADER, json.dumps(header))
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
        self._written = time.monotonic()
        self._pause = min(_LONGEST, _SHARE * (self._written - start))

    def read(self) -> dict[str, NDArray[Any]] | None:
        """Return what was written, None if there is no file.

        Raises
        ------
        InputError
            If the file is none of ours, damaged, of a newer program, or of another computation;
            it stays as it is.
        """
        if not self.path.exists():
            return None
        try:
            with zipfile.ZipFile(self.path) as archive:
                header = _header(archive.read(_HEADER))
                self._refuse_foreign(header)
                arrays = {}
                for name in archive.namelist():
                    if name != _HEADER:
                        # Read to its end, where the checksum is, before it is believed.
                        entry = BytesIO(archive.read(name))
                        array = np.lib.format.read_array(entry, allow_pickle=False)
                        arrays[name.removesuffix(".npy")] = array
                return arrays
        except InputError:
            raise
        except OSError as error:
            raise InputError(
                f"cannot read the checkpoint {self.path}: {error.strerror}",
                remedy="Make it readable, or start again with another file",
            ) from error
        except _DAMAGES as error:
            raise self.damaged() from error

    def damaged(self) -> InputError:
        """Return the error of a file that holds something else than what was written."""
        return InputError(
            f"{self.path} is no checkpoint, or is damaged",
            remedy="Start again: leave out --resume and name another file",
        )

    def part(self, number: int) -> Checkpoint:
        """Return the checkpoint of one of several parts of the computation, a file beside it.

        It is resumed if it is there.
        """
        options = f"{self._fingerprint.options}, part {number}"
        return Checkpoint(
            part_path(self.path, number),
            self._fingerprint._replace(options=options),
            resume=True,
        )

    def remove_parts(self) -> None:
        """Remove the files of all parts."""
        remove_parts(self.path)

    def _refuse_foreign(self, header: dict[str, Any]) -> None:
        if header["format"] != FORMAT:
            age = "a newer" if header["format"] > FORMAT else "an older"
            raise InputError(
                f"the checkpoint {self.path} was written by {age} version of this program",
                remedy="Resume it with that version, or start again with another file",
            )
        ours = self._fingerprint._asdict()
        differing = [said for part, said in _PARTS.items() if header[part] != ours[part]]
        if differing:
            raise InputError(
                f"the checkpoint {self.path} belongs to {' and '.join(differing)}",
                remedy="Give what the interrupted run was given, or name another file",
            )


def part_path(path: Path, number: int) -> Path:
    """Return the file of a part of the computation that a checkpoint belongs to."""
    return path.with_name(f"{path.name}{_PART}{number}")


def remove_parts(path: Path) -> None:
    """Remove the files of the parts of the computation that a checkpoint belongs to."""
    for part in path.parent.glob(f"{glob.escape(path.name)}{_PART}*"):
        if part.name.removeprefix(f"{path.name}{_PART}").isdecimal():
            part.unlink(missing_ok=True)


def _header(content: bytes) -> dict[str, Any]:
    """Return what a file says of itself.

    Raises
    ------
    ValueError
        If it is none of ours.
    """
    header = json.loads(content)
    if not isinstance(header, dict) or header.get("program") != _PROGRAM:
        raise ValueError("no checkpoint")
    return header
