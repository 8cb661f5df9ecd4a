"""Run many cases in worker processes, or one again; print faults and a summary."""

from __future__ import annotations

import argparse
import itertools
import json
import queue
import random
import subprocess
import sys
import threading
import time
from collections import Counter

from tests.fuzzing.cases import run_case
from tests.fuzzing.files.formats import FORMATS
from tests.fuzzing.files.judging import run_file_case
from tests.fuzzing.problems import AREAS, draw_area, draw_problem
from tests.fuzzing.processor_time import processor_time

#: Seconds of processor time after which a case counts as one that does not end, seconds on the
#: clock between two looks at it, and looks after which it is one that waits for ever.
_LONGEST, _LOOKING, _LOOKS = 180.0, 20.0, 90


class _Worker:
    """A process that runs one case after the other."""

    def __init__(self, seed: int, only: str | None, *, files: bool) -> None:
        self._hung = False
        self._command = [sys.executable, "-m", "tests.fuzzing.worker", str(seed), only or ""]
        self._command += ["--files"] * files
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, index: int) -> list[object]:
        """Return what a case brought; a process that dies or hangs is a fault of the case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answered, self._hung = threading.Event(), False
        watching = threading.Thread(target=self._watch, args=(answered,))
        watching.start()
        try:
            self._process.stdin.write(f"{index}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        hung = self._hung
        answered.set()
        watching.join()
        if line:
            answer: list[object] = json.loads(line)
            return answer
        code = self._process.wait()
        self._start()
        what = f"does not end within {_LONGEST:.0f} s" if hung else f"ends the process ({code})"
        return ["process", 0, [f"case {what}"], {}]

    def _watch(self, answered: threading.Event) -> None:
        """Kill the process if it computes for too long before it answers, or waits for ever."""
        begun = self._computed()
        for look in range(_LOOKS):
            if answered.wait(_LOOKING):
                return
            spent = self._computed() - begun
            # Where processor time is unknown, the clock has to do.
            if spent >= _LONGEST or (not spent and (look + 1) * _LOOKING >= _LONGEST):
                break
        self._hung = True
        self._process.kill()

    def _computed(self) -> float:
        return processor_time(self._process.pid) or 0.0

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _run_one(case: str, only: str | None, *, files: bool) -> int:
    seed, index = map(int, case.split(":"))
    if files:
        found = run_file_case(seed, index, only, show=print)
    else:
        rng = random.Random(f"{seed}:{index}")
        print(draw_problem(rng, draw_area(rng, only)))
        found = run_case(seed, index, only)
    for fault in found.faults:
        print(f"{found.area}: {fault}")
    print(f"{found.solves} {_counted(files)}, {len(found.faults)} faults")
    return int(bool(found.faults))


def _counted(files: bool) -> str:
    return "files" if files else "solves"


def _run_many(arguments: argparse.Namespace) -> int:
    files = arguments.files is not None
    enough_of = arguments.files if files else arguments.solves
    started = time.monotonic()
    indices = itertools.count(arguments.first)
    answers: queue.SimpleQueue[tuple[int, list[object]]] = queue.SimpleQueue()
    enough, lock = threading.Event(), threading.Lock()

    def serve() -> None:
        worker = _Worker(arguments.seed, arguments.only, files=files)
        while not enough.is_set():
            with lock:
                index = next(indices)
            answers.put((index, worker.run(index)))
        worker.end()
        answers.put((-1, []))

    threads = [threading.Thread(target=serve) for _ in range(arguments.jobs)]
    for thread in threads:
        thread.start()
    solves: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    running = arguments.jobs
    try:
        while running:
            index, answer = answers.get()
            if index < 0:
                running -= 1
                continue
            area, count, wrong, refused = answer
            cases[area] += 1  # type: ignore[index]
            solves[area] += count  # type: ignore[index, operator]
            refusals.update(refused)  # type: ignore[arg-type]
            for one in wrong:  # type: ignore[attr-defined]
                faults[area] += 1  # type: ignore[index]
                again = f"--case {arguments.seed}:{index}" + " --files" * files
                again += f" --only {arguments.only}" if arguments.only else ""
                print(f"FAULT {again}: {area}: {one}", flush=True)
            if sum(solves.values()) >= enough_of:
                enough.set()
    finally:
        enough.set()
    seconds = time.monotonic() - started
    for area in sorted(cases):
        print(
            f"{area}: {cases[area]} cases, {solves[area]} {_counted(files)}, {faults[area]} faults"
        )
    if arguments.refusals:
        for text, count in refusals.most_common(arguments.refusals):
            print(f"refused {count} times: {text}")
    total = sum(faults.values())
    print(f"{sum(solves.values())} {_counted(files)} in {seconds:.0f} s, {total} faults")
    return int(bool(total))


def main() -> int:
    """Read the arguments, run, return the exit code: 1 if there is a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--solves", type=int, default=20_000, help="solves to reach")
    parser.add_argument(
        "--files",
        type=int,
        nargs="?",
        const=2_000,
        help="damaged files to reach (default 2000), in place of solves",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--only", choices=sorted({*AREAS, *FORMATS}), help="one area, or one format of files, alone"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", metavar="SEED:INDEX", help="run one case again")
    parser.add_argument("--refusals", type=int, default=0, help="print so many refusals")
    arguments = parser.parse_args()
    files = arguments.files is not None
    if arguments.only is not None and arguments.only not in (FORMATS if files else AREAS):
        parser.error(f"{arguments.only} is {'no format of files' if files else 'for --files'}")
    if arguments.case:
        return _run_one(arguments.case, arguments.only, files=files)
    return _run_many(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
