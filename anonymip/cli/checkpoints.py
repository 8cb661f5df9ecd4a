"""The checkpoint of a command: what a long run has done, and when it is thrown away."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.solution import Solution

_LAST_PART = 999_999  # no computation has more parts


@dataclass(frozen=True)
class Keeping:
    """The checkpoint of a command.

    `path`: its file; None for none. `named`: whether the user named it. Otherwise it lies beside
    the output in case that the run is killed. `resume`: whether to go on from it. `before`: when
    the file was last written before the command; None if it was not there.
    """

    path: Path | None
    named: bool
    resume: bool
    before: int | None = None

    @classmethod
    def of(cls, method: str, given: Path | None, resume: bool, output: Path | None) -> Keeping:
        """Return what the arguments mean.

        `method`: what runs; where no checkpoints are kept, none lies beside the output. `given,
        resume`: the arguments. `output`: the file that the command makes; None if it makes none.
        """
        if given is not None or output is None:
            return cls(given, given is not None, resume, _written(given))
        from anonymip.methods import find_method

        keeps = resume or "checkpoint" in find_method(method).takes
        beside = output.parent / f"{output.name}.checkpoint"
        return cls(beside if keeps else None, False, resume, _written(beside))

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that may be written: the checkpoint, and the longest name of a part of it."""
        if self.path is None:
            return ()
        from anonymip.exact.split_carry.checkpoint import part_path

        return self.path, part_path(self.path, _LAST_PART)

    @property
    def settings(self) -> dict[str, Any]:
        """What :func:`anonymip.solve` is given."""
        return {"checkpoint": self.path, "resume": self.resume}

    def finish(self, solution: Solution) -> str | None:
        """Remove the file once all is written; keep it if somebody may want to go on from it.

        Of a run that the user interrupted the file stays, of one whose time ended only if the user
        named it: the same command can then be given again. Returns: what to report to the user.
        """
        from anonymip.methods import find_method

        used = "checkpoint" in find_method(solution.method).takes
        written = _written(self.path)
        # A method that auto picked may keep none; what lies there is then not ours to remove.
        if self.path is None or written is None or not (used or written != self.before):
            return None
        stopped = solution.status.stopped
        if stopped is Stopped.INTERRUPT or (stopped is Stopped.TIME and self.named):
            named = f" --checkpoint {self.path}" if self.named else ""
            return f"stopped early: the same command with{named} --resume goes on"
        # Imported late: listing the methods loads none of them.
        from anonymip.exact.split_carry.checkpoint import remove_parts

        self.path.unlink()
        remove_parts(self.path)
        return None


def _written(path: Path | None) -> int | None:
    return path.stat().st_mtime_ns if path is not None and os.path.exists(path) else None
