"""Kernels that a run needs, and those of them that it will have to compile.

The table beside this file names, by run, the kernels that Python calls in it; what these call is
compiled with them. ``python -m benchmarks.needed_kernels`` measures it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

from anonymip.runtime.kernel_cache import opened_folder
from anonymip.runtime.kernels import KEEPS_KERNELS, Left

TABLE = Path(__file__).with_name("needed_kernels.json")


@cache
def needed_kernels() -> dict[str, dict[str, int]]:
    """Return by run how many signatures of which kernels it needs."""
    found: dict[str, dict[str, int]] = json.loads(TABLE.read_text(encoding="utf-8"))["runs"]
    return found


@cache
def kernel_seconds() -> dict[str, float]:
    """Return about how long the compilation of each kernel takes, of one signature."""
    found: dict[str, float] = json.loads(TABLE.read_text(encoding="utf-8"))["seconds"]
    return found


def kernels_left(runs: Iterable[str]) -> Left | None:
    """Return what of the kernels of some runs is not on disk; None if that is not known.

    Kernels are looked for by their code: what a new version has changed is left.
    """
    if not KEEPS_KERNELS:
        return None
    table = needed_kernels()
    needed: dict[str, int] = {}
    for run in runs:
        if run not in table:
            return None
        for kernel, signatures in table[run].items():
            needed[kernel] = max(signatures, needed.get(kernel, 0))
    with opened_folder() as place:
        names = [] if place is None else os.listdir(place)
    kept = Counter(name.rpartition("-")[0] for name in names)
    count, seconds = 0, 0.0
    for kernel, signatures in needed.items():
        # This version may have no such kernel any more.
        with suppress(ImportError, AttributeError):
            code = resolve_name(kernel)._cache.code_name()
            missing = max(0, signatures - kept[code.rstrip("-")])
            count += missing
            seconds += missing * kernel_seconds().get(kernel, 1.0)
    return Left(count, seconds)
