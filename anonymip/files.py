"""Outputs appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from anonymip.errors import InputError

#: What the system says when a disk or a quota is full.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(*targets: Path, private: bool = False) -> Iterator[tuple[Path, ...]]:
    """Give temporary files beside the targets; put them in place when the block succeeds.

    Each rename is atomic, so that a crash leaves the old file or the new one, never half. If the
    block fails, nothing is changed.

    Parameters
    ----------
    *targets
        The files.
    private
        Whether nobody but their owner may ever open them.

    Raises
    ------
    InputError
        If a folder is missing or may not be written to, or the disk is full.
    """
    with ExitStack() as stack:
        temporary = tuple(_temporary(target, stack, private) for target in targets)
        try:
            yield temporary
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise InputError(
                f"cannot write {targets[0]}: {error.strerror}",
                remedy="Free some space, or write elsewhere; nothing was changed",
            ) from error
        for source, target in zip(temporary, targets, strict=True):
            os.replace(source, target)


def refuse_outputs(targets: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse, before any work is done, outputs that could not be written or would do damage.

    Parameters
    ----------
    targets
        Files to be written later.
    inputs
        Files that are read; those that do not exist do not matter.

    Raises
    ------
    InputError
        If a folder is missing or may not be written to, or if an output would overwrite an input
        or another output.
    """
    with ExitStack() as stack:
        for place, target in enumerate(targets):
            _temporary(target, stack)
            if any(other.exists() and _same_file(target, other) for other in inputs):
                raise InputError(
                    f"the output {target} would overwrite an input", remedy="Name another file"
                )
            if any(_same_file(target, other) for other in targets[:place]):
                raise InputError(
                    f"two outputs go to {target}", remedy="Name a file of its own for each"
                )


def _same_file(first: Path, second: Path) -> bool:
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


def _temporary(target: Path, stack: ExitStack, private: bool = False) -> Path:
    if target.is_dir():
        raise InputError(f"{target} is a folder", remedy="Name a file")
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent
        )
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror}",
            remedy="Name a file in an existing folder that you may write to",
        ) from None
    os.close(handle)
    path = Path(name)
    stack.callback(path.unlink, missing_ok=True)
    if not private:
        mask = os.umask(0)
        os.umask(mask)
        path.chmod(0o666 & ~mask)
    return path
