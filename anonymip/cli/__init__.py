"""The command line: parse, call, print."""

from __future__ import annotations

import gc
import signal
import sys
from typing import NoReturn


def _end(number: int, _: object) -> NoReturn:
    """End by a signal in the orderly way: solvers are stopped and scratch files removed."""
    raise SystemExit(128 + number)


def main() -> None:
    """Run the command line and exit with its code."""
    for name in ("SIGTERM", "SIGHUP"):
        known = getattr(signal, name, None)
        # Whoever starts us with a signal ignored, as nohup does, wants it ignored.
        if known is not None and signal.getsignal(known) is signal.SIG_DFL:
            signal.signal(known, _end)
    # Imports make objects by the million, none of which is garbage: looking at them after every few
    # hundred, as Python does, takes a tenth of the time of a small command.
    gc.set_threshold(200_000)
    try:
        from anonymip.runtime.budget import MachineClock
        from anonymip.runtime.memory import address_space_short, save_address_space

        clock = MachineClock()
        save_address_space()
        short = None if {"--help", "--version"} & set(sys.argv) else address_space_short()
        if short is not None:
            sys.stderr.write(f"error: {short}\n")
            raise SystemExit(short.exit_code)
        from anonymip.cli.app import run

        code = run(clock=clock)
    except KeyboardInterrupt:
        # While the application itself is imported nothing else listens.
        sys.stderr.write("interrupted\n")
        code = 130
    # Otherwise Python looks for garbage among all that was loaded before it ends, for a second.
    gc.freeze()
    raise SystemExit(code)
