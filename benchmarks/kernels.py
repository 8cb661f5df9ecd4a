"""``python -m benchmarks.kernels COMMAND ...``: the kernels that a command compiles.

Runs an ``anonymip`` command with an empty cache and prints, for each kernel, how many signatures of
it were compiled and in how many seconds, those of the kernels that it calls left out. Worker
processes compile on their own account and are not seen here.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from typing import Any

from numba.core import event


class _Seconds(event.Listener):
    """Adds up what is compiled, each kernel by itself."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.signatures: dict[str, int] = defaultdict(int)
        self._running: list[list[Any]] = []

    def on_start(self, event: Any) -> None:
        self._running.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        began, within = self._running.pop()
        whole = time.process_time() - began
        if self._running:
            self._running[-1][1] += whole
        name = f"{function.__module__}.{function.__name__}"
        self.seconds[name] += whole - within
        self.signatures[name] += 1


def main() -> None:
    """Run the command and print what it compiled."""
    from anonymip.cli.app import run

    found = _Seconds()
    event.register("numba:compile", found)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        code = run(sys.argv[1:])
    for name, seconds in sorted(found.seconds.items(), key=lambda item: -item[1]):
        print(f"{seconds:8.2f} s {found.signatures[name]:4}  {name}")
    total, kernels = sum(found.seconds.values()), sum(found.signatures.values())
    print(f"{total:8.2f} s {kernels:4}  in all, {len(found.seconds)} kernels")
    sys.exit(code)


if __name__ == "__main__":
    main()
