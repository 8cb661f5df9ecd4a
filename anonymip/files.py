"""Outputs appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from anonymip.errors import InputError


@contextmanager
def replacing(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Give temporary files beside the targets; put them in place when the block succeeds.

    Each rename is atomic, so that a crash leaves the old file or the new one, never half. If the
    block fails, nothing is changed.

    Raises
    ------
    InputError
        If a folder is missing or may not be written to.
    """
    with ExitStack() as stack:
        temporary = tuple(_temporary(target, stack) for target in targets)
        yield temporary
        for source, target in zip(temporary, targets, strict=True):
            os.replace(source, target)


def _temporary(target: Path, stack: ExitStack) -> Path:
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
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)
    return path
