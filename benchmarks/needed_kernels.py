"""The table of the kernels that each usual run needs, and of how long each takes to compile.

``python -m benchmarks.needed_kernels`` measures in processes of their own with an empty cache, and
writes :data:`anonymip.runtime.needed_kernels.TABLE`; it takes some minutes. With names
of runs it measures those and keeps the others, and the seconds of kernels that are known.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from anonymip.errors import AnonymipError
from anonymip.runtime.budget import Budget
from anonymip.runtime.needed_kernels import TABLE, kernel_seconds, needed_kernels
from anonymip.runtime.numba_internals import asked
from anonymip.warm_up import run_for_kernels, usual_runs


def measured(name: str) -> dict[str, Any]:
    """Return the kernels of a run of this process, and the seconds of those compiled."""
    from numba.core import event

    seconds: dict[str, list[float]] = {}

    class Clock(event.Listener):
        def __init__(self) -> None:
            self.began: list[float] = []

        def on_start(self, event: Any) -> None:
            self.began.append(time.process_time())

        def on_end(self, event: Any) -> None:
            spent = time.process_time() - self.began.pop()
            if not self.began:
                function = event.data["dispatcher"].py_func
                kernel = f"{function.__module__}:{function.__qualname__}"
                seconds.setdefault(kernel, []).append(spent)

    event.register("numba:compile", Clock())  # type: ignore[no-untyped-call]
    try:
        run_for_kernels(name, Budget())
    except AnonymipError as error:
        print(f"{name}: {error}", file=sys.stderr)
    kernels = dict(sorted(Counter(asked).items()))
    each = {kernel: sum(seconds[kernel]) / len(seconds[kernel]) for kernel in seconds}
    return {
        "kernels": kernels,
        "seconds": {kernel: each[kernel] for kernel in each if kernel in kernels},
    }


def write_table(names: Sequence[str] = ()) -> None:
    """Measure usual runs, all or those named, and write the table."""
    runs: dict[str, Any] = dict(needed_kernels()) if names else {}
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in names or usual_runs():
            done = subprocess.run(
                [sys.executable, "-m", __spec__.name, "--measure", name],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            found = json.loads(done.stdout)
            runs[name] = found["kernels"]
            for kernel, spent in found["seconds"].items():
                seconds.setdefault(kernel, round(spent, 1))
            print(f"{name}: {sum(runs[name].values())} kernels", flush=True)
    # Other runs stay as they are, in their order.
    seconds = {**seconds, **kernel_seconds()} if names else seconds
    runs = {name: runs[name] for name in usual_runs() if name in runs}
    listed = {kernel for run in runs.values() for kernel in run}
    table = {"runs": runs, "seconds": {kernel: seconds[kernel] for kernel in sorted(listed)}}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2])))
    else:
        write_table(sys.argv[1:])
