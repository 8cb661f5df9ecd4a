"""A worker process of the worker pool beside this file: solves one part after the other.

Tasks come in by standard input, answers go out by what was standard output at the start. A request
to terminate ends the part at hand with what it has. The process ends when its input closes.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from types import FrameType

from anonymip.errors import AnonymipError
from anonymip.heuristics.freeform.parts.worker_pool import PartResult, PartTask
from anonymip.runtime.budget import Budget


def main() -> None:
    """Serve until the parent closes the pipe."""
    # Renewed for each part: an interrupt holds for all parts to come.
    everything = Budget()

    def interrupt(number: int, frame: FrameType | None) -> None:
        everything.interrupt()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, interrupt)
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    # What is printed on the way must not reach the pipe.
    os.dup2(2, 1)
    try:
        pickle.dump("ready", sink)
        sink.flush()
        sys.path[:] = pickle.load(source)
        while True:
            left, task = pickle.load(source)
            budget = everything.renewed(None if left is None else max(left, 1e-6))
            pickle.dump(_answer(task, budget), sink)
            sink.flush()
    except (EOFError, BrokenPipeError):
        return


def _answer(task: bytes, budget: Budget) -> PartResult | AnonymipError:
    """Return the result of a part, or what it raised, in a form that can be sent."""
    try:
        request: PartTask = pickle.loads(task)
        return request.run(budget)
    except AnonymipError as error:
        return error
    except Exception as error:  # noqa: BLE001 - handed to the parent, which raises it
        return AnonymipError(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
