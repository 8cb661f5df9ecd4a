"""The workers of a release by parts: this machine or a Dask cluster, with equal results."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anonymip.errors import (
    InputError,
    Interrupted,
    MemoryShort,
    argument,
    missing_extra,
    unknown_name,
)
from anonymip.runtime.budget import Budget
from anonymip.runtime.memory import Memory, in_words, memory_at_hand
from anonymip.runtime.side_by_side import run_side_by_side, workers_of
from anonymip.runtime.worker_pool import end_idle_workers

_KINDS = ("local", "dask", "auto")
#: Times that a part may take a worker with it before the run is given up.
_DEATHS = 3
_POLL = 0.05
#: Seconds between two looks at the memory.
_LOOK = 0.1
#: Seconds in which a scheduler has to answer.
_ANSWER = 10


@dataclass(frozen=True)
class Engine:
    """How a table that is solved by parts is worked on.

    Parameters
    ----------
    kind
        ``"local"``: processes of this machine; ``"dask"``: a cluster of Dask; ``"auto"``: local,
        and all in one part if memory is enough for that.
    scheduler
        Address of a scheduler of Dask, ``"tcp://host:8786"``; None starts a cluster here.
    workers
        Processes here; None for two, or one on one core.
    memory_per_worker
        What a worker of a cluster started here may hold, such as ``"2GiB"``; Dask restarts one that
        holds more. None for its share of the machine.
    part_rows
        Rows of a part at most, about.
    scratch
        Folder of the rows by part while the run lasts; every worker must see it. None for a hidden
        one beside the output.

    Raises
    ------
    InputError
        If they contradict each other.
    """

    kind: str = "local"
    scheduler: str | None = None
    workers: int | None = None
    memory_per_worker: str | None = None
    part_rows: int = 250_000
    scratch: str | Path | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise unknown_name("engine", self.kind, _KINDS)
        if self.part_rows < 1:
            raise InputError(
                f"{argument('part_rows')} is {self.part_rows}", remedy="Give at least 1"
            )
        if self.workers is not None:
            workers_of(self.workers)
        for name in ("scheduler", "memory_per_worker"):
            if getattr(self, name) is not None and self.kind != "dask":
                raise InputError(
                    f"{argument(name)} is of Dask", remedy=f"Add {argument('engine', 'dask')}"
                )
        if self.scratch is not None and address_of(self.scratch) is not None:
            raise InputError(
                f"{self.scratch} is an address, and the scratch folder lies on a file system",
                remedy="Name a folder that every worker sees",
            )
        if self.memory_per_worker is not None:
            _bytes_of(self.memory_per_worker)
        for name in ("workers", "memory_per_worker"):
            if self.scheduler is not None and getattr(self, name) is not None:
                raise InputError(
                    f"{argument(name)} is of a cluster that is started here, and "
                    f"{argument('scheduler')} names one that runs",
                    remedy=f"Leave out {argument(name)}",
                )


@dataclass(frozen=True)
class WorkerMemory:
    """What a worker holds, in bytes; measured by ``python -m benchmarks parts``.

    `started`: the interpreter with its libraries and kernels. `cell`: of a cell of its part that is
    solved, published and verified. `least`: what must be left of the memory while parts are solved
    here; the system ends processes where nothing is.
    """

    started: float = 300e6
    cell: float = 400.0
    least: float = 200e6

    def needed(self, rows: int, columns: int) -> float:
        """Return about how many bytes a part of so many rows takes."""
        return self.started + self.cell * rows * columns


MEMORY = WorkerMemory()


def for_memory(engine: Engine, rows: int | None, columns: int) -> Engine:
    """Return an engine that is to choose by itself with the parts that memory allows.

    `rows`: of the table; None where only reading tells. `columns`: that are published.
    """
    if engine.kind != "auto" or rows is None:
        return engine
    left = memory_at_hand()
    fits = left is None or MEMORY.needed(rows, columns) <= left.bytes
    return replace(engine, part_rows=max(rows, engine.part_rows)) if fits else engine


def refuse_short_memory(engine: Engine, rows: int, columns: int) -> None:
    """Refuse parts that workers have no memory for, before anything is read.

    `rows`: of the largest part. `columns`: that are published. A cluster that runs already watches
    the memory of its workers itself. Raises MemoryShort.
    """
    if engine.scheduler is not None:
        return
    workers = workers_of(engine.workers or 0)
    at_hand = memory_at_hand()
    left = None if at_hand is None else at_hand.bytes / workers
    if engine.memory_per_worker is not None:
        left = _bytes_of(engine.memory_per_worker)
    needed = MEMORY.needed(rows, columns)
    if left is not None and needed > left:
        fit = int((left - MEMORY.started) / (MEMORY.cell * columns))
        remedy = "Use fewer workers, or more memory"
        if fit > 0:
            remedy = f"Use {argument('part_rows', max(1, fit))}, or fewer workers"
        raise MemoryShort(
            f"a part of {rows:,} rows needs about {in_words(needed)}, and each of {workers} "
            f"workers has {in_words(left)}",
            remedy=remedy,
        )


def _bytes_of(text: str) -> float:
    """Return the bytes of a text such as 2GiB. Raises InputError if it is none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?", text.strip())
    if found is None or not float(found[1]):
        raise InputError(
            f"{argument('memory_per_worker')} is {text!r}", remedy="Give an amount, such as 2GiB"
        )
    unit = 1024.0 if found[3] else 1000.0
    return float(float(found[1]) * unit ** "_kMGT".index(found[2] or "_"))


def address_of(place: str | Path) -> str | None:
    """Return an address as it was typed; None of what is a path.

    `Path` makes one slash of the two that follow a scheme.
    """
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.:-]+):(/+)(.*)", str(place), re.DOTALL)
    if found is None:
        return None
    scheme, slashes, rest = found.groups()
    if len(slashes) == 1:
        slashes = "///" if scheme in ("file", "local") else "//"
    return f"{scheme}:{slashes}{rest}"


def is_dask(table: object) -> bool:
    """Return whether a table is a Dask DataFrame."""
    kind = type(table)
    return kind.__module__.partition(".")[0] == "dask" and kind.__name__ == "DataFrame"


@contextmanager
def started(engine: Engine, scratch: Path, budget: Budget) -> Iterator[LocalRunner | DaskRunner]:
    """Give what runs the tasks of an engine; end what was started for it.

    Raises InputError if Dask is not installed, or no scheduler answers.
    """
    if engine.kind != "dask":
        yield LocalRunner(workers_of(engine.workers or 0), budget)
        return
    try:
        import distributed
    except ImportError:
        raise missing_extra("dask", "clusters are worked on by dask.distributed") from None
    import dask

    quiet = {
        "distributed.worker.daemon": False,
        "distributed.scheduler.allowed-failures": _DEATHS,
        "distributed.admin.tick.limit": "1h",
    }
    with dask.config.set(quiet):
        cluster = None
        try:
            if engine.scheduler is None:
                cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=workers_of(engine.workers or 0),
                    threads_per_worker=1,
                    memory_limit=engine.memory_per_worker or "auto",
                    local_directory=str(scratch),
                    dashboard_address="127.0.0.1:0",
                    silence_logs=50,
                )
            where = cluster or engine.scheduler
            client = distributed.Client(where, timeout=_ANSWER)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(
                f"no scheduler of Dask answers at {engine.scheduler or 'this machine'} "
                f"({type(error).__name__})",
                remedy=f"Check {argument('scheduler')}, and that its workers run",
            ) from None
        try:
            yield DaskRunner(client, budget)
        finally:
            with suppress(Exception):
                client.close()  # type: ignore[no-untyped-call]
            if cluster is not None:
                with suppress(Exception):
                    cluster.close()


def refuse_stopped(budget: Budget) -> None:
    """End a run that the user has stopped."""
    if budget.is_interrupted:
        raise Interrupted("the run was stopped; nothing was written", remedy="Start it again")


@contextmanager
def _watching(budget: Budget) -> Iterator[tuple[Budget, list[Memory]]]:
    """Give a budget that ends with another or when memory is short; what was left then is listed.

    Read ten times a second by a thread: work in this process cannot look at it itself.
    """
    own, short, over = Budget(budget.deadline, budget.progress), list[Memory](), threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK):
            left = None if short else memory_at_hand()
            if left is not None and left.bytes < MEMORY.least:
                short.append(left)
            if short or budget.is_interrupted:
                own.interrupt()

    thread = threading.Thread(target=watch, name="anonymip-memory", daemon=True)
    thread.start()
    try:
        yield own, short
    finally:
        over.set()
        thread.join()


@dataclass
class LocalRunner:
    """Tasks one after the other in this process, or in several processes.

    Tasks are pure functions, so that it does not matter where or how often they are run. Where
    memory is short while heavy ones run, those that have not ended are done once more, one after
    the other; where it is short even then the run ends.
    """

    jobs: int
    budget: Budget
    link: str | None = None  # where to watch it; None for nowhere

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        common: Any,
        phase: str,
        *,
        heavy: bool = False,
        said_of: Callable[[Any], Mapping[str, Any]] = lambda _: {},
    ) -> list[Any]:
        """Return `function` of each task and what is common to all, in their order.

        `heavy`: whether a task is worth a process of its own. `said_of`: what the listener hears
        beside of each result as it comes, as :meth:`Budget.report` takes it.
        """
        found: dict[int, Any] = {}
        self.budget.report(phase, done=0, total=len(tasks))

        def said(numbered: tuple[int, Any]) -> Mapping[str, Any]:
            number, result = numbered
            found[number] = result
            return {**said_of(result), "done": len(found), "total": len(tasks)}

        for jobs in dict.fromkeys((self.jobs, 1)):
            calls = [
                partial(_called, function, number, (*task, common))
                for number, task in enumerate(tasks)
                if number not in found
            ]
            unwatched = nullcontext((self.budget, list[Memory]()))
            with _watching(self.budget) if heavy else unwatched as (budget, short):
                try:
                    if jobs > 1 and len(calls) > 1:
                        run_side_by_side(
                            calls,
                            budget,
                            jobs=jobs,
                            in_processes=heavy,
                            phase=phase,
                            by_task=True,
                            said_of=said,
                        )
                        refuse_stopped(budget)
                    else:
                        for call in calls:
                            refuse_stopped(budget)
                            budget.report(phase, **said(call(budget)))
                except (Interrupted, MemoryShort) as error:
                    refuse_stopped(self.budget)
                    if not short and not isinstance(error, MemoryShort):
                        raise
                    if jobs == 1:
                        what = f"memory ended: {short[0]} are left" if short else error.message
                        raise MemoryShort(
                            f"{phase}: {what}",
                            remedy=f"Use a smaller {argument('part_rows', ...)}, or more memory",
                        ) from None
                    end_idle_workers()
                    continue
            break
        return [found[number] for number in range(len(tasks))]


def _called(
    function: Callable[..., Any], number: int, arguments: tuple[Any, ...], budget: Budget
) -> tuple[int, Any]:
    return number, function(*arguments, budget=budget)


def _same(value: Any) -> Any:
    return value


def _remotely(function: Callable[..., Any], task: tuple[Any, ...], common: Any) -> Any:
    return function(*task, common, budget=Budget())


class DaskRunner:
    """Tasks as futures of a cluster, which tries again what a worker took with it."""

    def __init__(self, client: Any, budget: Budget) -> None:
        self._client, self._budget = client, budget
        self.link = client.dashboard_link if find_spec("bokeh") is not None else None

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        common: Any,
        phase: str,
        *,
        heavy: bool = False,
        said_of: Callable[[Any], Mapping[str, Any]] = lambda _: {},
    ) -> list[Any]:
        """Return `function` of each task, as :meth:`LocalRunner.map` does."""
        from distributed.scheduler import KilledWorker

        # Computed and not scattered: what a dead worker held of it is made again.
        shared = self._client.submit(_same, common, pure=False)
        futures = [
            self._client.submit(_remotely, function, task, shared, pure=False) for task in tasks
        ]
        pending = set(futures)
        try:
            while pending:
                refuse_stopped(self._budget)
                ended = {one for one in pending if one.done()}
                for one in ended:
                    said = said_of(one.result())
                    pending.remove(one)
                    done = len(tasks) - len(pending)
                    self._budget.report(phase, done=done, total=len(tasks), **said)
                if not ended:
                    time.sleep(_POLL)
            return [one.result() for one in futures]
        except KilledWorker:
            raise MemoryShort(
                f"{phase}: a task has ended its worker {_DEATHS + 1} times, most likely since it "
                "needs more memory than the worker has",
                remedy=f"Give workers more memory, or use a smaller {argument('part_rows', ...)}",
            ) from None
        finally:
            with suppress(Exception):
                self._client.cancel([*pending, shared], force=True)
