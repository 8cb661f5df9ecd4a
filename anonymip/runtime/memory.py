"""The memory at hand, and the errors that say that it has run out.

Memory ends at the least of what the machine has free, what the control group of the process may
still take (a container, a job of a cluster), and the limits of the process itself (``ulimit``). A
limit of the address space also counts what libraries reserve and never touch.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anonymip.errors import MemoryShort

#: Address space that a process leaves to what cannot be refused: the compiler of kernels ends the
#: process where it gets none.
SPARE = 64 * 2**20
#: Of malloc.h: arenas at most, and the size from which on an array has a mapping of its own, which
#: goes back to the system when the array does; otherwise glibc raises it to 32 MB.
_ARENA_MAX, _MMAP_THRESHOLD, _LARGE = -8, -3, 2**20
#: Address space below which the libraries of a command cannot be loaded. Some of them end or hang
#: the process where they get less than they ask for, so nobody should try.
_LIBRARIES = 600_000_000
_ENDLESS = 2**60  # what a control group without a limit, or a machine, is not: more than any
#: What the loader, Python and the system say where they get no memory or no thread.
_SHORTAGES = (
    "can't start new thread",
    "failed to map segment",
    "cannot allocate memory",
    "Cannot allocate memory",
)


@dataclass(frozen=True)
class Memory:
    """Memory that can still be had. `bytes`: how much. `source`: what ends it, for people."""

    bytes: int
    source: str

    def __str__(self) -> str:
        return f"{in_words(self.bytes)} ({self.source})"


def in_words(amount: float) -> str:
    """Return an amount of bytes for people."""
    return f"{max(0.0, amount) / 1e6:.0f} MB" if amount < 1e9 else f"{amount / 1e9:.1f} GB"


def memory_at_hand(root: Path = Path("/")) -> Memory | None:
    """Return the memory that this process can still have; None where no file of `root` says."""
    known = [*_of_machine(root), *_of_group(root), *_of_limits(root)]
    if not known:
        return None
    least = min(known, key=lambda memory: memory.bytes)
    return Memory(max(0, least.bytes), least.source)


def _of_machine(root: Path) -> Iterator[Memory]:
    available = _fields(root / "proc/meminfo").get("MemAvailable")
    if available is not None:
        yield Memory(available * 1024, "free memory of this machine")


def _of_group(root: Path) -> Iterator[Memory]:
    """Yield what control groups leave, of version 1 and 2, each with the groups around it."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            top, most, now, cache = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, most, now = (
                "sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
            cache = "total_inactive_file"
        else:
            continue
        folder = Path(path.lstrip("/"))
        # In a container the path may be that of the host: its own group is the top then.
        for group in dict.fromkeys((folder, *folder.parents, Path())):
            place = root / top / group
            limit, used = _number(place / most), _number(place / now)
            if limit is None or used is None or limit >= _ENDLESS:
                continue
            # What was read from files once is given up where memory is short.
            given_up = _fields(place / "memory.stat", " ").get(cache, 0)
            yield Memory(limit - used + given_up, "limit of the control group or container")


def _of_limits(root: Path) -> Iterator[Memory]:
    status = _fields(root / "proc/self/status")
    for kind, used, source in (
        (resource.RLIMIT_AS, "VmSize", "limit of the address space, ulimit -v"),
        (resource.RLIMIT_DATA, "VmData", "limit of the data segment, ulimit -d"),
    ):
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY and used in status:
            yield Memory(limit - status[used] * 1024 - SPARE, source)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _fields(path: Path, separator: str = ":") -> dict[str, int]:
    """Return the numbers of a file of lines ``name: number unit``."""
    found = {}
    for line in _text(path).splitlines():
        name, _, rest = line.partition(separator)
        first = rest.split()[:1]
        if first and first[0].isdecimal():
            found[name] = int(first[0])
    return found


def ran_out(error: BaseException) -> bool:
    """Return whether an error, or one that it follows from, says that there was no memory.

    A thread or a process that the system refuses counts, since it refuses them for that.
    """
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        if isinstance(following, (MemoryError, MemoryShort)):
            return True
        if isinstance(following, OSError) and following.errno in (errno.ENOMEM, errno.EAGAIN):
            return True
        if isinstance(following, (RuntimeError, ImportError, OSError)) and any(
            sign in str(following) for sign in _SHORTAGES
        ):
            return True
        following = following.__cause__ or following.__context__
    return False


def memory_ended(when: str) -> MemoryShort:
    """Return the exception for a user whose work has no more memory."""
    left = memory_at_hand()
    there = "" if left is None else f"; {left} are left"
    return MemoryShort(
        f"memory ended {when}{there}",
        remedy="Use fewer records or columns, a method that needs less, or more memory (ulimit -v, "
        "the limit of the container)",
    )


def address_space_short() -> MemoryShort | None:
    """Return the error for an address space too small for the libraries; None where it is not."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= _LIBRARIES:
        return None
    return MemoryShort(
        f"memory ended before the libraries were loaded: they need {in_words(_LIBRARIES)}, and the "
        f"address space is limited to {in_words(limit)}",
        remedy="Raise the limit (ulimit -v)",
    )


def is_scarce() -> bool:
    """Return whether so little memory is left that libraries cannot be loaded."""
    left = memory_at_hand()
    return left is not None and left.bytes < SPARE


def save_address_space() -> None:
    """Have libraries that are not loaded yet reserve little, where the address space is limited.

    Arrow's allocator reserves a gigabyte that it seldom touches, and linear algebra a buffer for
    each thread. Processes that are started get the same. What the user has set stays.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Every thread else reserves an arena of 64 MB. glibc reads this of processes that are started;
    # this one is told by its own function.
    os.environ.setdefault("MALLOC_ARENA_MAX", "1")
    with suppress(Exception):
        import ctypes

        allocator = ctypes.CDLL(None)
        allocator.mallopt(_ARENA_MAX, int(os.environ["MALLOC_ARENA_MAX"]))
        allocator.mallopt(_MMAP_THRESHOLD, _LARGE)
