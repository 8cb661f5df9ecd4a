"""The command that compiles beforehand: warm-up."""

from __future__ import annotations

from typing import Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli import completion
from anonymip.cli.console import human, say, showing_progress, write_json


def warm_up(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METHOD]...",
            autocompletion=completion.method,
            help="Methods, bound, dual-ascent; default: what the usual commands need.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes that compile.")] = 2,
    json: given.JsonTarget = None,
) -> None:
    """Compile what commands need, once, so that the first of them does not wait for it."""
    from anonymip import warm_up as compiling
    from anonymip.runtime.kernel_cache import folder

    with showing_progress() as progress:
        done = compiling.warm_up(runs or (), jobs=jobs, progress=progress)
    place = str(folder())
    write_json([{**done._asdict(), "folder": place}], json)
    of = f"for {done.purpose}" if runs else f"what {done.purpose} need where no method is named"
    ready = f"{done.kernels} of {done.total} kernels ready, with those they call"
    say(human(json), f"{ready}, {done.seconds:.0f} s: {of}; kept in {place}")
