"""Compile beforehand what the usual commands need, by running them on small tables."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from anonymip.bounds.ladder import ladder_bound
from anonymip.errors import AnonymipError, InputError, Interrupted
from anonymip.instances import census
from anonymip.methods import METHODS, find_method, is_built_in
from anonymip.methods.best_bound import ASCENT, BOUND
from anonymip.problem import Problem
from anonymip.publishing.release import publish
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.kernel_cache import folder, opened_folder, shared_compilation
from anonymip.runtime.kernels import KEEPS_KERNELS, compiled_kernels
from anonymip.runtime.needed_kernels import kernel_seconds, kernels_left, needed_kernels
from anonymip.runtime.side_by_side import run_side_by_side, workers_of
from anonymip.solving import lower_bound, solve

_LOG = logging.getLogger("anonymip")
#: Seconds of compilation from which on a second process saves more than it takes to start.
_LONG = 12.0
#: The commands that need the usual runs, where nobody names a method.
USUAL = "demo, anonymize, solve, compare (exact too) and bound"
#: What `auto` picks for other recodings than classes.
_PICKED = ("reassign", "freeform-mip", "pattern-search", "pattern-ilp", "full-domain")
#: Records of the small tables, which k does not divide; models stay small with the fewer ones, and
#: of the fewest ones all releases are searched.
_RECORDS, _FEW_RECORDS, _FEWEST_RECORDS = 121, 25, 10


class WarmUp(NamedTuple):
    """What came of it."""

    kernels: int  # kernels that are ready, compiled before or now
    compiled: int  # those that were compiled now
    seconds: float  # seconds that it took
    #: Kernels of the package; those that others call are compiled with them and not counted among
    #: the first two.
    total: int
    purpose: str  # what needs the ones that are ready


def usual_runs() -> tuple[str, ...]:
    """Return what commands run where nobody names a method: bounds, comparisons, `auto`."""
    compared = (
        spec.name
        for spec in METHODS.values()
        if is_built_in(spec)
        and spec.recoding == "classes"
        and spec.role in ("heuristic", "exact")
        and "diversity" not in spec.needs
    )
    return (BOUND, ASCENT, *compared, *_PICKED)


def run_for_kernels(name: str, budget: Budget) -> None:
    """Do once on small tables what needs the kernels of a run."""
    if name == BOUND:
        lower_bound(Problem(census(_RECORDS, 4, seed=1), 3), progress=budget.progress)
        return
    if name == ASCENT:
        # Of so small a table the bound is another one: what those of some thousand records climb.
        ladder_bound(
            Problem(census(_RECORDS, 4, seed=1), 3), effort="normal", budget=budget.renewed(None)
        )
        return
    spec = find_method(name)
    k = 2 if "k=2" in spec.needs else 3
    sizes = (_FEW_RECORDS, _FEWEST_RECORDS) if spec.role == "exact" else (_RECORDS,)
    # With two columns rows repeat, which some methods make use of.
    tables = [census(n, m, seed=1) for n in sizes for m in (4, 2)]
    # Which starts a local search has depends on the table: they are runs of their own.
    own = {"from_method": "greedy-search"} if name == "local-search" else None
    if "numeric" in spec.needs:
        numbers = [tuple(a for a in one.attributes if a.kind == "numeric") for one in tables]
        tables = [replace(a, attributes=b) for a, b in zip(tables, numbers, strict=True)]
    for table in tables:
        problem = Problem(table, k, spec.recoding)
        publish(solve(problem, name, effort="quick", options=own, budget=budget.renewed(None)))


def warm_up(
    runs: Sequence[str] = (), *, jobs: int = 2, progress: Callable[[Progress], None] | None = None
) -> WarmUp:
    """Compile the kernels of some runs, in processes that compile different ones.

    `runs`: names of methods, ``"bound"``, and ``"dual-ascent"`` for the bounds of large tables;
    none means the usual ones. `jobs`: processes. Raises InputError if there is no such method, the
    number of processes is not positive, or there is no place to keep kernels. Interrupted if the
    user stopped it; what is compiled stays.
    """
    names = tuple(runs) or usual_runs()
    purpose = " and ".join(runs) if runs else USUAL
    for name in names:
        if name not in (BOUND, ASCENT):
            find_method(name)
    if jobs < 1:
        raise InputError(f"jobs is {jobs}", remedy="Give at least 1")
    _refuse_no_place()
    started, watch = time.monotonic(), Budget.of(None, progress)
    left = kernels_left(names)
    compiled = 0
    if left is None or left.kernels:
        parts = _parts(names, jobs)
        # Who is done first helps the others, from their last run on.
        tasks = [
            partial(_run_all, own, [name for part in parts if part != own for name in part[::-1]])
            for own in parts
        ]
        few = purpose if len(runs) < 4 else f"{len(runs)} runs"
        phase = f"compiling for {few if runs else 'the usual commands'}"
        with watch.catching_interrupts():
            compiled = sum(
                run_side_by_side(tasks, watch, jobs=jobs, in_processes=True, phase=phase)
            )
        if watch.is_interrupted:
            raise Interrupted("interrupted: what was compiled is kept")
    needed = Counter[str]()
    for name in names:
        needed |= Counter(needed_kernels().get(name, {}))
    ready, seconds = max(compiled, needed.total()), time.monotonic() - started
    return WarmUp(ready, compiled, seconds, kernels_in_all(), purpose)


def prepare(
    runs: Iterable[str],
    progress: Callable[[Progress], None] | None = None,
    *,
    limited: bool = False,
) -> None:
    """Compile in two processes what runs would compile in this one, where that takes long.

    `limited`: whether a time limit holds, which the processes would not hear of: then it is left to
    the runs.
    """
    names = sorted(set(runs))
    # One run has no part that a second process could do.
    left = None if limited or min(len(names), workers_of(0)) < 2 else kernels_left(names)
    if left is None or left.seconds < _LONG:
        return
    with suppress(InputError):
        _refuse_no_place()
        text = "compiling about %d kernels, once; about %.0f s"
        _LOG.warning(text, left.kernels, left.seconds / 2)
        warm_up(names, progress=progress)


def kernels_in_all() -> int:
    """Return how many kernels the package has, by its sources."""
    sources = Path(__file__).parent.rglob("*.py")
    return sum(file.read_text(encoding="utf-8").count("\n@kernel\n") for file in sources)


def _run_all(names: Sequence[str], others: Sequence[str], budget: Budget) -> int:
    """Do some runs, and others for which kernels are missing then; return how many it compiled."""
    left, before = kernels_left(names), compiled_kernels()
    total = None if left is None else left.kernels

    def tell(message: Progress) -> None:
        done = compiled_kernels() - before
        budget.report("compiling", done=done, total=max(done, total or 0))

    own = budget.renewed(None)
    own.progress = tell
    with shared_compilation():
        for name in (*names, *others):
            if budget.stop_reason() is not None:
                break
            missing = kernels_left((name,))
            if missing is not None and not missing.kernels:
                continue
            # What a small table or this installation does not let run is no fault of the warm-up.
            with suppress(AnonymipError):
                run_for_kernels(name, own)
    return compiled_kernels() - before


def _parts(names: Sequence[str], jobs: int) -> list[tuple[str, ...]]:
    """Divide runs among processes, so that these end at the same time and share few kernels."""
    table, seconds = needed_kernels(), kernel_seconds()

    def cost(kernels: set[str]) -> float:
        return sum(seconds.get(kernel, 1.0) for kernel in kernels)

    needed = {name: set(table.get(name, {})) for name in names}
    parts: list[list[str]] = [[] for _ in range(min(jobs, len(names)))]
    held: list[set[str]] = [set() for _ in parts]
    for name in sorted(names, key=lambda name: -cost(needed[name])):
        loads = [cost(kernels) for kernels in held]
        after = [cost(kernels | needed[name]) for kernels in held]
        longest = [max([*loads[:at], after[at], *loads[at + 1 :]]) for at in range(len(parts))]
        at = min(range(len(parts)), key=lambda at: (longest[at], after[at] - loads[at]))
        parts[at].append(name)
        held[at] |= needed[name]
    for part, own in zip(parts, held, strict=True):
        # What others compile too comes last: by then they may have done it.
        shared = own & set().union(*(other for other in held if other is not own))
        part.sort(key={name: cost(needed[name] & shared) for name in part}.__getitem__)
    return [tuple(part) for part in parts]


def _refuse_no_place() -> None:
    if not KEEPS_KERNELS:
        raise InputError(
            "kernels are compiled anew in each process with this version of numba",
            remedy="Install one that was tested, and unset ANONYMIP_PLAIN_NUMBA",
        )
    place = folder()
    with opened_folder(make=True) as opened:
        if opened is not None and os.access(".", os.W_OK, dir_fd=opened, effective_ids=True):
            return
    where = "" if place is None else f" in {place}"
    raise InputError(
        f"kernels cannot be kept{where}",
        remedy="Set NUMBA_CACHE_DIR to a folder that is yours alone and can be written to",
    )
