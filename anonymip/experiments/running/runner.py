"""The runner of experiments: in worker processes, row by row, from where it stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from anonymip.errors import AnonymipError, InputError
from anonymip.experiments.running.performing import FAILED, KILLED, Row, blank_row, perform
from anonymip.experiments.running.results import Results, RunStore
from anonymip.experiments.running.runs import Run, plan
from anonymip.experiments.running.specification import Experiment
from anonymip.methods import find_method
from anonymip.methods.registry import is_installed
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.worker_pool import Killed, can_isolate, run_isolated
from anonymip.status import Stopped

_POLL = 0.05
#: A run that has not ended after this many times its time limit, and seconds more, is killed.
_TIMES, _MORE = 2.0, 60.0


class _ProcessEnded(AnonymipError):
    """The worker process of a run died."""


def run_experiment(
    experiment: Experiment,
    folder: str | Path | None = None,
    *,
    jobs: int = 1,
    isolate: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Run what has not been run of an experiment; Ctrl-C ends it with the rows so far.

    `folder`: keeps each row as soon as its run has ended. Runs whose rows are there already are not
    done again, unless they failed: an experiment goes on where it was stopped, and after a change
    of it only what that changes is run. None keeps nothing. `jobs`: worker processes at a time; one
    by default, so that runs do not slow each other down. `isolate`: whether runs are done in worker
    processes. Methods that are registered in this process are known to it alone. `progress`:
    receives which run is being done and what it reports. Raises InputError if a table or a file
    cannot be read, or `jobs` does not fit.

    >>> from anonymip.experiments import Experiment, MethodChoice, TableSource, run_experiment
    >>> experiment = Experiment(
    ...     name="small",
    ...     tables=(TableSource("health-records"),),
    ...     k=(2, 3),
    ...     methods=(MethodChoice("initial"), MethodChoice("mondrian")),
    ...     bound=False,
    ... )
    >>> table = run_experiment(experiment, isolate=False).frame
    >>> table[["k", "label", "classes", "smallest"]].values.tolist()
    [[2, 'initial', 3, 2], [2, 'mondrian', 3, 2], [3, 'initial', 2, 3], [3, 'mondrian', 2, 3]]
    """
    if jobs < 1 or (jobs > 1 and not isolate):
        raise InputError(
            f"jobs is {jobs}",
            remedy="Give at least 1" if jobs < 1 else "Runs in this process are done one by one",
        )
    experiment.find_objective()
    if isolate:
        for choice in experiment.methods:
            if not is_installed(find_method(choice.method)):
                raise InputError(
                    f"the method {choice.method} is registered in this process, and worker "
                    "processes do not know it",
                    remedy="Give isolate=False, or register it by an entry point of a package",
                )
    runs = plan(experiment)
    store = RunStore(None if folder is None else Path(folder))
    store.write_plan(experiment, runs)
    whole = Budget(progress=progress)
    runner = _Runner(store, runs, whole, in_processes=isolate and can_isolate())
    with whole.catching_interrupts():
        try:
            runner.work(jobs)
        finally:
            found = store.results(experiment, runs)
    return found


class _Runner:
    """Does the runs of one experiment that are left."""

    def __init__(
        self, store: RunStore, runs: Sequence[Run], whole: Budget, *, in_processes: bool
    ) -> None:
        self._store, self._whole, self._in_processes = store, whole, in_processes
        self._total = len(runs)
        self._waiting = [run for run in runs if not store.has(run)]
        self._active: dict[Future[Row | None], Run] = {}
        # The bound of each problem, which its methods are measured against.
        self._bounds = {run.problem_key: run for run in runs if run.choice is None}

    def work(self, jobs: int) -> None:
        """Do all runs, so many at a time, until they are done or the user stops."""
        with ThreadPoolExecutor(jobs) as threads:
            try:
                while self._waiting or self._active:
                    while len(self._active) < jobs and (run := self._next()) is not None:
                        self._active[threads.submit(self._do, run)] = run
                    if not self._active:
                        return
                    self._take_in(wait(self._active, _POLL, FIRST_COMPLETED).done)
            finally:
                if self._active:
                    self._whole.interrupt()

    def _next(self) -> Run | None:
        """Return a run that can begin, and take it off the list; None if none can."""
        if self._whole.is_interrupted:
            return None
        searched = {
            run.problem_key
            for run in (*self._waiting, *self._active.values())
            if run.choice is None
        }
        for place, run in enumerate(self._waiting):
            if run.choice is None or run.problem_key not in searched:
                return self._waiting.pop(place)
        return None

    def _take_in(self, ended: set[Future[Row | None]]) -> None:
        for future in ended:
            run = self._active.pop(future)
            row = future.result()
            if row is not None:
                self._store.put(run, row)
        if ended:
            self._whole.report("next run", done=self._done(), total=self._total)

    def _done(self) -> int:
        return self._total - len(self._waiting) - len(self._active)

    def _do(self, run: Run) -> Row | None:
        """Return the row of a run; None if the user stopped it."""
        own = self._whole.renewed(None)
        own.progress = None if self._whole.progress is None else partial(self._report, run)
        own.report("")
        search = None if run.choice is None else self._bounds.get(run.problem_key)
        task = partial(perform, run, None if search is None else self._store.bound(search))
        if not self._in_processes:
            return task(own)
        limit = None if run.time_limit is None else _TIMES * run.time_limit + _MORE
        try:
            outcome: Row | Killed | None = run_isolated(task, limit, own, _ProcessEnded)
        except _ProcessEnded as death:
            reason = f"the process of the run {death.message.partition(' and printed')[0]}"
            return {**blank_row(run), "status": FAILED, "reason": reason}
        if not isinstance(outcome, Killed):
            return outcome
        if outcome.reason is Stopped.INTERRUPT:
            return None
        return {**blank_row(run), "status": KILLED, "reason": f"no end within {limit:g} seconds"}

    def _report(self, run: Run, message: Progress) -> None:
        listener = self._whole.progress
        assert listener is not None
        phase = f"{run.title}: {message.phase}" if message.phase else run.title
        listener(dataclasses.replace(message, phase=phase, done=self._done(), total=self._total))
