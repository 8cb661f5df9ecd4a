"""The checkpoint from which an interrupted computation goes on, and what it belongs to.

That is told in three short texts: its table, its rules, its options.
"""

from __future__ import annotations

import glob
import hashlib
import json
import struct
import time
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.errors import InputError, argument
from anonymip.exact.split_carry import state
from anonymip.exact.split_carry.state import Chain, new_chain
from anonymip.files import refuse_outputs, replacing
from anonymip.problem import Problem
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget

#: Sets of records whose losses identify an objective without tables.
_SAMPLES = 200
#: Digits of a loss that count: libraries of mathematics differ in the last ones.
_DIGITS = 9

_Part: TypeAlias = bytes | NDArray[Any]


class Fingerprint(NamedTuple):
    """Digests of what a result depends on.

    `table`: values, domains, hierarchies and weights of the quasi-identifiers; the sensitive values
    where the problem asks for a diversity. `rules`: k, recoding, objective, diversity, limits.
    """

    table: str
    rules: str
    options: str

    @classmethod
    def of(cls, problem: Problem, options: Mapping[str, object]) -> Fingerprint:
        """Return the fingerprint of a computation.

        Of an objective that is called and not tabulated, the name and the losses of some sets
        of records count: two functions of one name that differ on none of them are taken for one.

        Complexity: O(n m).
        """
        return cls(_table(problem), _rules(problem), _digest(_text(sorted(options.items()))))


def _table(problem: Problem) -> str:
    data = problem.microdata
    parts: list[_Part] = [_text([data.n, data.names]), data.codes, data.values]
    for attribute, levels in zip(data.attributes, data.levels, strict=True):
        parts += [
            _text([attribute.kind, attribute.domain, attribute.weight, attribute.is_whole]),
            _text([attribute.publish, attribute.hierarchy]),
            _text(levels.tolist()),
        ]
    if problem.diversity is not None:
        parts.append(data.counted_codes)
    return _digest(*parts)


def _rules(problem: Problem) -> str:
    compiled = problem.compiled
    parts: list[_Part] = [
        _text([problem.k, problem.recoding, problem.diversity, problem.limits]),
        _text([compiled.name, compiled.aggregate, f"{compiled.suppression_price:.{_DIGITS}g}"]),
    ]
    if compiled.has_tables:
        parts += [np.asarray(table) for table in compiled.tables]
    else:
        # Sets of neighbouring and of distant records.
        n, k = problem.n, problem.k
        start = np.unique(np.linspace(0, n - 1, _SAMPLES).astype(np.int64))[:, None]
        steps = np.arange(k) * np.array([[1], [n // k]])
        losses = compiled.class_losses(np.concatenate([start + steps[0], start + steps[1]]) % n)
        parts.append(_text([f"{loss:.{_DIGITS}g}" for loss in losses]))
    return _digest(*parts)


def _text(value: object) -> bytes:
    return repr(value).encode()


def _digest(*parts: _Part) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(_text([part.shape, part.dtype.str]))
            digest.update(np.ascontiguousarray(part).data.cast("B"))
        else:
            digest.update(_text(len(part)))
            digest.update(part)
    return digest.hexdigest()


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
#: What reading a damaged file raises; methods of compression that nobody used among them, headers
#: that are no Python, and sizes that no memory holds.
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, tokenize.TokenError, MemoryError),
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

    `path`: the file. `fingerprint`: what the computation belongs to. `resume`: whether to go on
    from the file if it is there; without it a file in this place is somebody's work, and nothing is
    done. Raises InputError if the file cannot be written, or is there although it is not to be
    resumed.

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
                remedy=f"Resume it ({argument('resume', True)}), remove it, or name another file",
            )
        if not resume:
            remove_parts(self.path)

    @property
    def is_due(self) -> bool:
        """Whether it is time to write the file again."""
        return time.monotonic() - self._written >= self._pause

    def write(self, arrays: Arrays) -> None:
        """Write the file; the one before stays until the new one is whole.

        Raises InputError if the disk is full.
        """
        start = time.monotonic()
        header = {"program": _PROGRAM, "format": FORMAT, **self._fingerprint._asdict()}
        with (
            replacing(self.path) as (temporary,),
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

        Raises InputError if the file is none of ours, damaged, of a newer program, or of another
        computation; it stays as it is.
        """
        if not self.path.exists():
            return None
        try:
            with zipfile.ZipFile(self.path) as archive:
                header = json.loads(archive.read(_HEADER))
                if not isinstance(header, dict) or header.get("program") != _PROGRAM:
                    raise self.damaged()
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
            remedy=f"Start again: leave out {argument('resume')} and name another file",
        )

    def part(self, number: int) -> Checkpoint:
        """Return the checkpoint of one of several parts of the computation, a file beside it.

        It is resumed if it is there.
        """
        options = f"{self._fingerprint.options}, part {number}"
        return Checkpoint(
            part_path(self.path, number), self._fingerprint._replace(options=options), resume=True
        )

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


def is_table(table: NDArray[Any]) -> bool:
    """Return whether an array is a table of links."""
    if table.dtype != np.float64 or table.shape[1:] != (state.LINK_COLUMNS,):
        return False
    starts = (state.NO_START, state.START_REFUSED, state.START_ACCEPTED)
    return bool(
        np.isin(table[:, state.START], starts).all()
        and np.isin(table[:, state.REASON], np.arange(len(state.REASONS))).all()
    )


def arrays_of(chain: Chain) -> dict[str, NDArray[Any]]:
    """Return the arrays of a chain, without the room that it does not use yet."""
    carried, links = int(chain.cursor[state.CARRIED]), int(chain.cursor[state.LINKS])
    used = {
        "carried": chain.carried[:carried],
        "started": chain.started[:carried],
        "table": chain.table[:links],
        "room": np.array(len(chain.table)),
    }
    return {**chain._asdict(), **used}


def chain_of(arrays: Mapping[str, NDArray[Any]]) -> Chain:
    """Return the chain of its arrays, with the room that it had."""
    chain = new_chain(arrays["records"], int(arrays["room"]))
    for name, array in chain._asdict().items():
        array[: len(arrays[name])] = arrays[name]
    return chain


class Keeper:
    """Keeps a chain in a checkpoint while it grows; nothing without one.

    A link that is cut short, by Ctrl-C or the end of the time, is good enough for a release that is
    made now. A run that goes on later is to solve it in full, so it is not kept.
    """

    def __init__(self, checkpoint: Checkpoint | None, chain: Chain, budget: Budget) -> None:
        self._checkpoint, self._chain, self._budget = checkpoint, chain, budget
        self._mark = self._marked()

    def notice(self) -> None:
        """Take notice of the links since the last call; write the file if it is time to."""
        if self._checkpoint is None:
            return
        first, links = int(self._mark["cursor"][state.LINKS]), int(self._chain.cursor[state.LINKS])
        ended = self._budget.stop_reason() is not None
        if ended and not self._chain.table[first:links, state.PROVEN].all():
            return
        self._mark = self._marked()
        if self._checkpoint.is_due:
            self.keep()

    def keep(self) -> None:
        """Write the file, without links that were cut short; called when a run stops."""
        if self._checkpoint is None:
            return
        cursor, chain = self._mark["cursor"], self._chain
        labels = chain.labels.copy()
        # What was fixed since then had been carried over, or was not read.
        labels[self._mark["carried"]] = state.OPEN
        labels[cursor[state.READ] :] = state.OPEN
        then = {"labels": labels, "table": chain.table[: cursor[state.LINKS]]}
        self._checkpoint.write({**arrays_of(chain), **self._mark, **then})

    def _marked(self) -> dict[str, NDArray[Any]]:
        """Return a copy of what further links change of the chain, but for labels and table."""
        arrays = arrays_of(self._chain)
        return {name: arrays[name].copy() for name in ("carried", "started", "cursor", "sums")}


def _is_whole(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether arrays are those of a chain: kernels check no bounds."""
    if set(arrays) != {*Chain._fields, "room"} or arrays["room"].shape != ():
        return False
    records = arrays["records"]
    if records.ndim != 1:
        return False
    n, room = len(records), int(arrays["room"])
    form = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    for name, array in new_chain(np.arange(n), 1)._asdict().items():
        shape = form[name][1]
        free = name in ("carried", "started", "table")
        if form[name][0] != array.dtype or (not free and shape != array.shape):
            return False
    read, carried, label, links = arrays["cursor"].tolist()
    return (
        0 <= carried <= read <= n
        and 0 <= label <= n
        and 0 <= links <= room <= n
        and form["carried"][1] == form["started"][1] == (carried,)
        and is_table(arrays["table"])
        and len(arrays["table"]) == links
        and len(np.unique(records)) == n
        and bool(((arrays["carried"] >= 0) & (arrays["carried"] < read)).all())
        and bool((np.diff(arrays["carried"]) > 0).all())
        and bool(((arrays["started"] >= SUPPRESSED) & (arrays["started"] < n)).all())
        and bool((arrays["labels"] >= state.OPEN).all())
        and _is_consistent(arrays["labels"], arrays["carried"], read, label)
    )


def _is_consistent(labels: Ints, carried: Ints, read: int, label: int) -> bool:
    """Return whether those places are open that were carried over or not read, and no others.

    New classes are numbered from `label` on, which must be none of a class that is fixed.
    """
    is_open = np.arange(len(labels)) >= read
    is_open[carried] = True
    done = not is_open.any()
    return bool(((labels == state.OPEN) == is_open).all()) and (done or int(labels.max()) < label)


def resumed(checkpoint: Checkpoint | None) -> Chain | None:
    """Return the chain that a file keeps, None if it is not there."""
    arrays = None if checkpoint is None else checkpoint.read()
    if checkpoint is None or arrays is None:
        return None
    if not _is_whole(arrays):
        raise checkpoint.damaged()
    chain = chain_of(arrays)
    # Files of earlier versions hold the time that was left, which is given again.
    chain.sums[state.UNUSED] = 0.0
    return chain
