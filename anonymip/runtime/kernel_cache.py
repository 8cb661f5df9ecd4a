"""Compiled kernels on disk, each found by all that its code depends on.

numba's own cache looks at the time stamp of a kernel's file: a change anywhere in the file throws
its kernels away, and a change in the file of a helper that they call goes unnoticed. Here the name
of an entry is a digest of the kernel's byte code and constants, of all kernels that it calls, of
the classes of what it takes, and of the versions that compile it. So an edit costs only what
depends on it, a stale entry cannot be met, and all checkouts and environments of a user share one
folder.

An entry is code: whoever can write one has it run by whoever loads it. So a folder that anyone else
can open, or could ever have put a file into, is not used.
"""

from __future__ import annotations

import dis
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
import types
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numba.extending import is_jitted

from anonymip.errors import InputWarning
from anonymip.files import user_cache

#: Days after which an entry that nobody has loaded is removed.
_KEPT_DAYS = 60
_DAY = 86400.0
#: Names of entries, and of what becomes one when it is written.
_ENTRY = re.compile(r"\w+-[0-9a-f]{32}-[0-9a-f]{32}", re.ASCII)
_ASIDE = re.compile(r"\.new-[0-9a-f]{16}|tmp[a-z0-9_]{8}", re.ASCII)

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic)


def folder() -> Path | None:
    """Return where kernels are kept: NUMBA_CACHE_DIR, else the user's cache; None for nowhere."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    cache = user_cache()
    return None if cache is None else cache / "kernels"


@contextmanager
def opened_folder(*, make: bool = False) -> Iterator[int | None]:
    """Open the folder of kernels, if it is the user's alone; else give None, and say so once.

    `make`: whether to make it where it is not there. Yields: a descriptor of the folder.

    What is asked of the folder is asked of the one that is open, and files are named relative to
    it: who may rename the folders above it can exchange it before, not in between, and only for
    another one that nobody but the user has ever been able to write to.
    """
    place, handle = folder(), None
    if place is not None:
        with suppress(OSError, ValueError):
            if make:
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = _own_folder(place)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _own_folder(place: Path) -> int | None:
    """Return a descriptor of a folder that is the user's alone; None, said once, of another's."""
    try:
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        handle = None
    found = os.stat(place) if handle is None else os.fstat(handle)
    if found.st_uid != os.geteuid():
        reason = "belongs to another user"
    elif found.st_mode & 0o077:
        reason = f"is open to other users (mode {stat.S_IMODE(found.st_mode):03o})"
    else:
        return handle
    if handle is not None:
        os.close(handle)
    _say_unused(place, reason)
    return None


@cache
def _say_unused(place: Path, reason: str) -> None:
    warnings.warn(
        f"compiled kernels are neither read from {place} nor kept there: it {reason}. Remove it, "
        "or set NUMBA_CACHE_DIR to a folder that is yours alone (mode 700) or not there yet",
        InputWarning,
        stacklevel=2,
    )


def content_of(place: int, name: str) -> bytes | None:
    """Return what a whole entry of an open folder holds, of the user's own; None without one."""
    try:
        handle = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place
        )
        with open(handle, "rb") as stream:
            found = os.fstat(handle)
            is_own = found.st_uid == os.geteuid() and not found.st_mode & 0o022
            if not (stat.S_ISREG(found.st_mode) and is_own):
                return None
            content = stream.read()
            if time.time() - found.st_mtime > _DAY:
                os.utime(handle)
    except OSError:
        return None
    seal, content = content[:32], content[32:]
    return content if seal == hashlib.sha256(content).digest() else None


def put(place: int, name: str, content: bytes) -> bool:
    """Write an entry aside and rename it; return whether that was possible."""
    aside = f".new-{secrets.token_hex(8)}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(aside, flags, 0o600, dir_fd=place), "wb") as stream:
            stream.write(hashlib.sha256(content).digest() + content)
        os.replace(aside, name, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        with suppress(OSError):
            os.unlink(aside, dir_fd=place)
        return False
    return True


#: What the claims of this process are locks of, one byte for a kernel; None if it shares nothing.
_claims: int | None = None


@contextmanager
def shared_compilation() -> Iterator[None]:
    """Have every kernel compiled by one of the processes in here, while the others wait for it.

    None waits in a circle, since a kernel never calls its callers. Claims end with the process.
    """
    global _claims
    with opened_folder(make=True) as place:
        if place is not None:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with suppress(OSError):
                _claims = os.open("claims", flags, 0o600, dir_fd=place)
    try:
        yield
    finally:
        if _claims is not None:
            os.close(_claims)
        _claims = None


def claim(name: str, *, ended: bool = False) -> bool:
    """Wait until no other process compiles an entry; return whether claims are made at all.

    `ended`: ends the claim instead: it is compiled.
    """
    if _claims is None:
        return False
    with suppress(OSError):
        how = fcntl.LOCK_UN if ended else fcntl.LOCK_EX
        fcntl.lockf(_claims, how, 1, int(hash_of([name])[:15], 16))
    return True


def hash_of(parts: Iterable[str]) -> str:
    """Return a digest of some texts."""
    digest = hashlib.sha256()
    for part in parts:
        text = part.encode()
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()[:32]


def class_parts(named: type) -> Iterator[str]:
    """Yield what tells one class of named fields from another."""
    yield f"{named.__module__}.{named.__qualname__}"
    yield from getattr(named, "_fields", ())


@cache
def digest_of(function: types.FunctionType) -> str:
    """Return the digest of a kernel's code and of all that the code refers to."""
    return hash_of(_function_parts(function))


def _function_parts(function: types.FunctionType) -> Iterator[str]:
    yield f"{function.__module__}.{function.__qualname__}"
    yield from _code_parts(function.__code__)
    for value in (function.__defaults__, sorted((function.__kwdefaults__ or {}).items())):
        yield from _value_parts(value)
    for cell in function.__closure__ or ():
        yield from _value_parts(cell.cell_contents)
    known = function.__globals__
    for name in sorted(set(_names(function.__code__))):
        if name in known:
            yield name
            yield from _value_parts(known[name])


def _code_parts(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        yield ",".join(names)
    for at, constant in enumerate(code.co_consts):
        if isinstance(constant, types.CodeType):
            yield from _code_parts(constant)
        elif at or _reads_first_constant(code):
            yield f"{type(constant).__name__} {constant!r}"


def _reads_first_constant(code: types.CodeType) -> bool:
    """Return whether the first constant is more than a docstring, which nothing depends on."""
    steps = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    return any(operation in dis.hasconst and not argument for operation, argument in steps)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _value_parts(value: Any) -> Iterator[str]:
    """Yield what tells one value that a kernel refers to from another.

    Raises TypeError if the kind of the value is not known here: its changes would go unnoticed.
    """
    if is_jitted(value):
        # No kernel calls itself, so that none is looked for within itself.
        yield digest_of(cast(Any, value).py_func)
    elif isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, tuple | list):
        yield f"{type(value).__name__} {len(value)}"
        if hasattr(value, "_fields"):
            yield from class_parts(type(value))
        for part in value:
            yield from _value_parts(part)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape}"
        yield value.tobytes().hex()
    elif isinstance(value, type):
        yield from class_parts(value)
    elif isinstance(value, types.ModuleType) and not value.__name__.startswith("anonymip"):
        yield value.__name__
    elif callable(value) and getattr(value, "__module__", None) in _FOREIGN:
        yield f"{value.__module__}.{getattr(value, '__name__', value)}"
    else:
        raise TypeError(
            f"a kernel refers to {value!r}, of which the cache of kernels knows nothing"
        )


#: Modules whose functions change with a version that the name of every entry holds.
_FOREIGN = frozenset({"builtins", "math", "numba", "numba.misc.special", "numpy", None})


@cache
def remove_forgotten(_: Path | None) -> None:
    """Remove, once a process, entries that nobody has loaded for long, and what a kill left.

    Other files may lie in a folder that the user has named: they stay.
    """
    oldest = time.time() - _KEPT_DAYS * _DAY
    with opened_folder() as place, suppress(OSError):
        for name in [] if place is None else os.listdir(place):
            is_ours = _ENTRY.fullmatch(name) or _ASIDE.fullmatch(name)
            if is_ours and os.lstat(name, dir_fd=place).st_mtime < oldest:
                os.unlink(name, dir_fd=place)
