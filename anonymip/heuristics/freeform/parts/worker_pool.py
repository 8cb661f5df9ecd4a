"""Worker processes that solve parts of a table.

Fresh interpreters, no forks and no :mod:`multiprocessing`: scripts need no main guard.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import AnonymipError
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.status import Stopped

_POLL = 0.05
_FOLDER = str(Path(__file__).resolve().parents[4])


@dataclass(frozen=True, eq=False)
class PartResult:
    """What is known of a part that was solved.

    Parameters
    ----------
    start, members
        Its cover, records numbered within the part.
    stopped, method, seed
        As its solution tells them.
    """

    start: NDArray[np.int64]
    members: NDArray[np.int32]
    stopped: Stopped
    method: str
    seed: int | None


@dataclass(frozen=True, eq=False)
class PartTask:
    """A part to solve.

    Parameters
    ----------
    method
        Function with its options.
    problem
        Of the part.
    seed
        For the method.
    """

    method: Callable[..., Solution]
    problem: Problem
    seed: int

    def run(self, budget: Budget) -> PartResult:
        """Solve the part."""
        solution = self.method(self.problem, budget=budget, seed=self.seed)
        cover = cast(Cover, solution.assignment)
        return PartResult(
            cover.start, cover.members, solution.status.stopped, solution.method, solution.seed
        )


class Crew:
    """Processes that take parts from one queue.

    Parameters
    ----------
    workers
        How many.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._failures: list[Exception] = []
        self._ready: list[subprocess.Popen[bytes]] = []
        self._done = 0

    def solve(self, tasks: list[bytes], budget: Budget) -> list[PartResult]:
        """Return the results of pickled tasks, in their order.

        Raises
        ------
        AnonymipError
            What a part raised, or if a process ends before its work is done.
        """
        results: list[PartResult | None] = [None] * len(tasks)
        for number in range(len(tasks)):
            self._waiting.put(number)
        processes = [_start() for _ in range(self._workers)]
        threads = [
            threading.Thread(target=self._serve, args=(process, tasks, results, budget))
            for process in processes
        ]
        try:
            for thread in threads:
                thread.start()
            self._attend(threads, budget, len(tasks))
        finally:
            for process in processes:
                process.kill()
                process.wait()
            for thread in threads:
                thread.join()
            for process in processes:
                for pipe in (process.stdin, process.stdout):
                    with suppress(OSError):
                        cast(BinaryIO, pipe).close()
        if self._failures:
            raise self._failures[0]
        return cast(list[PartResult], results)

    def _attend(self, threads: list[threading.Thread], budget: Budget, total: int) -> None:
        """Wait for the threads; hand an interrupt on, report what is done."""
        told: list[subprocess.Popen[bytes]] = []
        reported = 0
        while any(thread.is_alive() for thread in threads) and not self._failures:
            for thread in threads:
                thread.join(_POLL)
            if budget.is_interrupted:
                # Before it is ready a process would not know what the signal means.
                for process in [ready for ready in self._ready if ready not in told]:
                    told.append(process)
                    process.terminate()
            if self._done > reported:
                reported = self._done
                budget.report("solving parts", done=reported, total=total)

    def _serve(
        self,
        process: subprocess.Popen[bytes],
        tasks: list[bytes],
        results: list[PartResult | None],
        budget: Budget,
    ) -> None:
        """Give a process one part after the other until none is left."""
        source, sink = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        try:
            pickle.dump(tuple(sys.path), source)
            source.flush()
            pickle.load(sink)
            self._ready.append(process)
            while True:
                try:
                    number = self._waiting.get_nowait()
                except queue.Empty:
                    return
                left = budget.remaining()
                if left is not None:
                    # The parts that wait need their time too.
                    left *= min(1.0, self._workers / (self._waiting.qsize() + self._workers))
                pickle.dump((left, tasks[number]), source)
                source.flush()
                answer = pickle.load(sink)
                if isinstance(answer, Exception):
                    raise answer
                results[number] = answer
                self._done += 1
        except AnonymipError as error:
            self._failures.append(error)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            failure = AnonymipError(
                f"a process that solves parts has ended: {error}", remedy="Use jobs = 1"
            )
            failure.__cause__ = error
            self._failures.append(failure)


def _start() -> subprocess.Popen[bytes]:
    """Start a worker; -P: the working directory must not shadow the standard library."""
    known = os.environ.get("PYTHONPATH")
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "anonymip.heuristics.freeform.parts.part_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([_FOLDER, *([known] if known else [])])},
        start_new_session=True,
    )
