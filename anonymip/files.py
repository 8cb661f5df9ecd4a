"""Outputs appear whole or not at all, those of one command together, and private unless published.

What holds values of a table, or says which of its rows belong together, is for its owner alone:
mode 600, as every file has here of which nothing else is said. What is made to be given away
(``public``: releases, manifests, and pictures, pages and tables of results, which show no record)
has the mode that the umask gives any new file. While it is written, and where a killed run leaves
it, every file is for its owner alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anonymip.errors import InputError

#: What the system says when a disk or a quota is full.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Temporary files bear names that are nobody else's, and that fit where the file's own fits.
_PREFIX = ".anonymip-tmp-"
_TEMPORARY = re.compile(r"\.anonymip-tmp-[a-z0-9_]{8}(\.\w{1,12})?", re.ASCII)
#: The ending of a file says its format to writers; a longer one says nothing.
_ENDING = re.compile(r"\.\w{1,12}", re.ASCII)


@dataclass(frozen=True)
class _Output:
    """One file: the name that was given, where it goes, and what is written until then."""

    target: Path
    place: Path
    temporary: Path
    handle: int
    mode: int
    last: bool


class Outputs:
    """Files that are written to temporary ones and put in place together; see :func:`writing`."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._outputs: list[_Output] = []
        self._then: list[Callable[[], object]] = []

    def stage(self, target: Path, *, public: bool = False, last: bool = False) -> Path:
        """Return a new file beside the place of an output, to write the output to.

        Folders that are missing are made; of a block that fails they are removed again. A link is
        written through: what it points to is replaced, and the link stays. `public`: whether it is
        made to be given away, and so may be opened by whom the umask lets; otherwise by its owner
        alone. `last`: whether it is put in place after the others, which otherwise keep their
        order. Raises InputError if the folder cannot be made or written to, the name is too long,
        or a folder, a device, a pipe or a socket lies there.
        """
        place = _place_of(target)
        temporary, handle = _temporary(target, place, self._stack)
        mode = _usual_mode(target, place.parent) if public else 0o600
        self._outputs.append(_Output(target, place, temporary, handle, mode, last))
        return temporary

    def write_text(self, text: str, target: Path, *, public: bool = False) -> None:
        """Write a text to be put in place with the other files, in UTF-8; see :meth:`stage`."""
        self.stage(target, public=public).write_text(text, encoding="utf-8")

    def then(self, action: Callable[[], object]) -> None:
        """Do something when all files are in their places."""
        self._then.append(action)

    def sync(self) -> None:
        """Wait until the disk has what was written, so that no rename comes before it."""
        for output in self._outputs:
            os.fsync(output.handle)

    def put_in_place(self) -> None:
        """Rename all files, each rename atomic and on disk before the next; do what is due then.

        Raises InputError if one cannot be replaced; the message names those that were.
        """
        done: list[str] = []
        for output in sorted(self._outputs, key=lambda output: output.last):
            try:
                os.fchmod(output.handle, output.mode)
                os.replace(output.temporary, output.place)
            except OSError as error:
                before = f"; {', '.join(done)} had been replaced before" if done else ""
                raise InputError(
                    f"cannot put {output.target} in place: {error.strerror}{before}",
                    remedy="Write elsewhere",
                ) from error
            done.append(str(output.target))
            _sync_folder(output.place.parent)
        for action in self._then:
            action()

    @property
    def names(self) -> str:
        """The files meant, for people."""
        return ", ".join(str(output.target) for output in self._outputs)


@contextmanager
def _refusing_no_room(names: Callable[[], str]) -> Iterator[None]:
    """Refuse files, by their names, that a disk has no room for."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise InputError(
            f"cannot write {names()}: {error.strerror}",
            remedy="Free some space, or write elsewhere; none of it was put in place",
        ) from error


@contextmanager
def writing(outputs: Outputs | None = None) -> Iterator[Outputs]:
    """Give a place for files to be staged; put all in place when the block succeeds.

    If the block fails, none is. If the program is killed, those that it had not yet put in place
    are what they were; its temporary files are removed by the next one that writes into their
    folders. `outputs`: of a block around this one, which then puts these files in place with its
    own; None for a block that stands alone. Raises InputError if the disk is full, or a file cannot
    be replaced.
    """
    if outputs is not None:
        yield outputs
        return
    with ExitStack() as stack:
        made = Outputs(stack)
        with _refusing_no_room(lambda: made.names):
            yield made
            made.sync()
        made.put_in_place()


@contextmanager
def replacing(*targets: Path, public: bool = False) -> Iterator[tuple[Path, ...]]:
    """Do as :func:`writing`, for files that are known beforehand."""
    with writing() as outputs:
        yield tuple(outputs.stage(target, public=public) for target in targets)


#: Temporary folders, and the file in each that its run keeps locked.
_FOLDER, _LOCK = re.compile(r"\.anonymip-tmp-[a-z0-9_]{8}\.d", re.ASCII), "lock"


@contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """Give a folder for its owner alone beside an output, which is removed with all in it.

    Those that killed runs left there are removed too. Raises InputError if there can be none.
    """
    with ExitStack() as stack:
        place = Path(os.path.realpath(beside))
        _make_folder(beside, place.parent, stack)
        _sweep(place.parent, _FOLDER, _LOCK, partial(shutil.rmtree, ignore_errors=True))
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, suffix=".d", dir=place.parent))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise _unwritable(beside, error) from None
        stack.callback(os.close, handle)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        with _refusing_no_room(lambda: str(beside)):
            yield folder


def put_folder(folder: Path, target: Path) -> None:
    """Put a folder of files that are made to be given away in the place of a target, at once.

    `folder`: on the file system of the target, its files written. What lies at the target goes
    where the folder was. Raises InputError if it cannot be put there.
    """
    mode = _usual_mode(target, folder)
    for file in folder.iterdir():
        with open(file, "rb") as stream:
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
    # Who may read a file may look into its folder.
    os.chmod(folder, mode | (mode & 0o444) >> 2 | 0o300)
    _sync_folder(folder)
    place = Path(os.path.realpath(target))
    before = folder.with_name(f"{folder.name}-before")
    try:
        if place.exists():
            os.replace(place, before)
        os.replace(folder, place)
    except OSError as error:
        if before.exists():
            os.replace(before, place)
        raise InputError(
            f"cannot put {target} in place: {error.strerror}", remedy="Write elsewhere"
        ) from error
    _sync_folder(place.parent)


def private(name: str, flags: int) -> int:
    """Open a file that only its owner may open if it is made, as an `opener` of Python's `open`."""
    return os.open(name, flags, 0o600)


def start_growing(target: Path) -> None:
    """Make an empty file for its owner alone that others write to as they go on: a log."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "wb", opener=private) as stream:
            # A pipe or a device, which may be meant here, is not ours to close to others.
            if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                os.fchmod(stream.fileno(), 0o600)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None


def refuse_outputs(targets: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse, before any work is done, outputs that could not be written or would do damage.

    Nothing is left of the attempt, no folder either. `targets`: files to be written later.
    `inputs`: files that are read; those that do not exist do not matter. Raises InputError if a
    file could not be written, see :meth:`Outputs.stage`, or if an output would overwrite an input
    or another output.
    """
    with ExitStack() as stack:
        for number, target in enumerate(targets):
            _temporary(target, _place_of(target), stack)
            if any(os.path.exists(other) and _same_file(target, other) for other in inputs):
                raise InputError(
                    f"the output {target} would overwrite an input", remedy="Name another file"
                )
            if any(_same_file(target, other) for other in targets[:number]):
                raise InputError(
                    f"two outputs go to {target}", remedy="Name a file of its own for each"
                )


def _same_file(first: Path, second: Path) -> bool:
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


def _place_of(target: Path) -> Path:
    """Return where an output goes, links followed; refuse what a rename would destroy there."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(target))
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{target} is a folder", remedy="Name a file")
    place = Path(os.path.realpath(target))
    # The links of /proc to open files name no place in any folder.
    if not stat.S_ISREG(mode) or not (place.exists() and place.samefile(target)):
        raise InputError(
            f"{target} is a device, a pipe or a socket, and would be replaced by a file",
            remedy="Name a regular file, or one that is not there yet",
        )
    return place


def _make_folder(target: Path, folder: Path, stack: ExitStack) -> None:
    """Make a folder and those above it; what is empty when the stack is left goes again."""
    missing: list[Path] = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        try:
            one.mkdir(exist_ok=True)
        except OSError as error:
            raise _unwritable(target, error) from None
        stack.callback(_remove_empty, one)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _usual_mode(target: Path, folder: Path) -> int:
    """Return the mode that a new file has in a folder, by the umask and the folder's own rules.

    Seen from a file: the umask can be asked for only by setting it, for all threads.
    """
    probe = folder / f"{_PREFIX}{secrets.token_hex(4)}"
    try:
        handle = os.open(probe, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _unwritable(target, error) from None
    try:
        os.unlink(probe)
        return stat.S_IMODE(os.fstat(handle).st_mode)
    finally:
        os.close(handle)


def _temporary(target: Path, place: Path, stack: ExitStack) -> tuple[Path, int]:
    """Return a new file of its owner's beside `place`, open and locked until the stack is left."""
    _make_folder(target, place.parent, stack)
    _sweep(place.parent)
    ending = target.suffix if _ENDING.fullmatch(target.suffix) else ""
    while True:
        try:
            handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=ending, dir=place.parent)
        except OSError as error:
            raise _unwritable(target, error) from None
        stack.callback(os.close, handle)
        path = Path(name)
        stack.callback(path.unlink, missing_ok=True)
        # Where there are no locks nobody sweeps.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            break
        # Another run took it, not yet locked, for one that was left.
    return path, handle


def _sweep(
    folder: Path,
    kind: re.Pattern[str] = _TEMPORARY,
    lock: str = "",
    remove: Callable[[Path], object] = os.unlink,
) -> None:
    """Remove what killed runs of this user left of a kind: who lives keeps it, or a file in it."""
    try:
        names = [name for name in os.listdir(folder) if kind.fullmatch(name)]
    except OSError:
        return
    for name in names:
        # Gone meanwhile, somebody else's, locked: not ours to remove.
        with suppress(OSError), ExitStack() as stack:
            handle = os.open(folder / name / lock, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            stack.callback(os.close, handle)
            found = os.fstat(handle)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder / name)


def _sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of a folder; not all file systems can do so."""
    with suppress(OSError), ExitStack() as stack:
        handle = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, handle)
        os.fsync(handle)


def _unwritable(target: Path, error: Exception) -> InputError:
    remedy = "Name a file in an existing folder that you may write to, or in one that can be made"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        remedy = "Shorten it; a manifest and a checkpoint have the name of the release in theirs"
    reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
    return InputError(f"cannot write {target}: {reason}", remedy=remedy)


def user_cache() -> Path | None:
    """Return the package's folder in the user's cache; None where there is no home."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return home / "anonymip"
