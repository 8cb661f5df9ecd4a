"""Kill `anonymip anonymize` at every step of its writing, and see what it leaves.

The tests kill at some steps. ``python -m tests.cli.kills FOLDER 2 20`` kills at every second step,
over old releases with and without digest and over none, and 20 processes at random moments.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from anonymip.cli.app import run

TABLE = "age,sex,disease\n" + "".join(
    f"{20 + 7 * row % 50},{'FM'[row % 2]},{('flu', 'gout', 'mumps')[row % 3]}\n"
    for row in range(24)
)
OUTPUTS = ("release.csv", "release.csv.manifest.json", "report.html", "result.json")


class Steps:
    """Counts the steps by which files are made, written, synced, renamed and removed.

    A write is three steps: nothing of it, the first half, all of it. At one of the steps the
    process kills itself.
    """

    def __init__(self, fatal: int | None = None) -> None:
        self.fatal = fatal
        self.names: list[str] = []

    def step(self, name: str) -> None:
        """Count a step, and die if it is the one."""
        self.names.append(name)
        if len(self.names) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, where: Any, name: str) -> None:
        """Make steps of the moments before and after a function is called."""
        function = getattr(where, name)

        def watched(*given: Any, **named: Any) -> Any:
            self.step(f"before {name}")
            result = function(*given, **named)
            self.step(f"after {name}")
            return result

        setattr(where, name, watched)

    def install(self) -> None:
        """Watch this process for the rest of its life."""
        for name in ("replace", "fsync", "fchmod", "unlink"):
            self.around(os, name)
        self.around(tempfile, "mkstemp")
        self.around(fcntl, "flock")
        plain = io.open
        steps = self

        def opened(file: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
            found = plain(file, mode, *given, **named)
            is_ours = ".anonymip-tmp-" in str(file)
            return Halved(found, steps) if is_ours and set(mode) & set("wax+") else found

        io.open = opened  # type: ignore[assignment]
        builtins.open = opened  # type: ignore[assignment]


class Halved:
    """A file whose writes reach the system in two halves."""

    def __init__(self, file: Any, steps: Steps) -> None:
        self.file = file
        self.steps = steps

    def write(self, content: Any) -> int:
        """Write both halves."""
        half = len(content) // 2
        self.steps.step("before write")
        written = self.file.write(content[:half])
        self.file.flush()
        self.steps.step("within write")
        written += self.file.write(content[half:])
        self.file.flush()
        self.steps.step("after write")
        return int(written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> Halved:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


class Place:
    """A folder with a table, in which releases are made over older ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.older: dict[str, dict[str, bytes]] = {}
        (folder / "people.csv").write_text(TABLE, encoding="utf-8")

    def arguments(self, k: int) -> list[str]:
        """Return those of a run that writes all outputs."""
        table, release, report, result = (
            str(self.folder / name)
            for name in ("people.csv", "release.csv", "report.html", "result.json")
        )
        return [
            *("anonymize", table, "-q", "age", "-q", "sex", "--sensitive", "disease"),
            *("-k", str(k), "-o", release, "--report", report, "--json", result),
            *("--method", "mondrian"),
        ]

    def command(self, arguments: list[str]) -> tuple[int, str]:
        """Run a command here; return its exit code and what it said."""
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            code = run(arguments)
        return code, said.getvalue()

    def begin(self, old: str) -> dict[str, bytes]:
        """Make an old release, of k = 5: with digest, without ("0.6") or none; return its files."""
        for path in self.folder.iterdir():
            if path.name != "people.csv":
                path.unlink()
        if old not in self.older:
            if old != "none":
                assert self.command(self.arguments(5))[0] == 0
            if old == "0.6":
                beside = self.folder / OUTPUTS[1]
                manifest = json.loads(beside.read_text(encoding="utf-8"))
                del manifest["table"]["sha256"]
                beside.write_text(json.dumps(manifest), encoding="utf-8")
            self.older[old] = self.files()
        for name, content in self.older[old].items():
            (self.folder / name).write_bytes(content)
        return self.older[old]

    def files(self) -> dict[str, bytes]:
        """Return the content of all outputs that are there."""
        paths = [self.folder / name for name in OUTPUTS]
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def steps(self) -> list[str]:
        """Return the steps of a run that is not killed."""
        outcome, telling = os.pipe()

        def count() -> None:
            steps = Steps()
            steps.install()
            code = self.command(self.arguments(3))[0]
            os.write(telling, json.dumps([code, steps.names]).encode())

        in_child(count)
        os.close(telling)
        with os.fdopen(outcome, "rb") as stream:
            code, names = json.loads(stream.read())
        assert code == 0
        return list(names)

    def kill_at(self, step: int) -> None:
        """Run over what is there with k = 3, and kill the run at a step."""

        def die() -> None:
            Steps(step).install()
            self.command(self.arguments(3))

        assert in_child(die) == -signal.SIGKILL, f"step {step} was not reached"

    def judge(self, before: dict[str, bytes]) -> str:
        """Return what was left, and raise an error if it is worse than it may be.

        Whose the files are is known without their digests: the old release is kept here.
        """
        after = self.files()
        changed = {name for name in OUTPUTS if after.get(name) != before.get(name)}
        table, manifest = OUTPUTS[0] in changed, OUTPUTS[1] in changed
        left = len(self.temporary())
        code, said = self.command(
            ["verify", str(self.folder / "people.csv"), str(self.folder / "release.csv")]
        )
        if not changed:
            state = "old"
            assert code == (0 if before else 2), said
        elif changed == set(OUTPUTS):
            state = "new"
            assert code == 0, said
        else:
            state = "between"
            # The manifest was the first and the table is the last.
            assert manifest, changed
            assert not table, changed
            assert code == (1 if before else 2), said
            if before:
                assert "is not the one that the manifest was written for" in said
        code, said = self.command(self.arguments(4))
        assert code == 0, said
        warned = "is not the table that" in said or "without its table" in said
        assert warned == (state == "between"), said
        assert self.temporary() == []
        assert set(self.files()) == set(OUTPUTS)
        code, said = self.command(
            ["verify", str(self.folder / "people.csv"), str(self.folder / "release.csv")]
        )
        assert code == 0, said
        return f"{state}, {'with' if left else 'without'} temporary files"

    def temporary(self) -> list[str]:
        """Return the hidden files."""
        return sorted(path.name for path in self.folder.iterdir() if path.name.startswith("."))


def in_child(action: Callable[[], None]) -> int:
    """Do something in a copy of this process; return its exit code, minus the signal if killed."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at_steps(
    folder: Path, old: str, chosen: Callable[[list[str]], Iterable[int]]
) -> Counter[str]:
    """Kill a run at each of the chosen steps (from 1); return how often what was left."""
    place = Place(folder)
    before = place.begin(old)
    names = place.steps()
    found: Counter[str] = Counter()
    for step in chosen(names):
        before = place.begin(old)
        place.kill_at(step)
        found[place.judge(before)] += 1
    return found


def kill_processes(folder: Path, runs: int) -> Counter[str]:
    """Kill processes of their own at random moments of their writing."""
    place = Place(folder)
    rng = random.Random(1)
    found: Counter[str] = Counter()
    lasts = 0.0
    for number in range(runs + 1):
        before = place.begin("with digest" if number % 2 else "0.6")
        process = subprocess.Popen(
            [sys.executable, "-m", "anonymip", *place.arguments(3)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # The first files are those by which the command sees whether it may write.
        for is_there in (True, False, True):
            while bool(place.temporary()) != is_there and process.poll() is None:
                time.sleep(0.0002)
        start = time.monotonic()
        if number == 0:
            while place.temporary():
                time.sleep(0.0002)
            lasts = time.monotonic() - start
            process.wait()
            continue
        time.sleep(rng.uniform(0, 1.2 * lasts))
        process.kill()
        process.wait()
        found[place.judge(before)] += 1
    return found


def main_of_tests() -> None:
    """Kill within the write of every output, and before and after the renames; print the states."""

    def chosen(names: list[str]) -> list[int]:
        writes = [step for step, name in enumerate(names, 1) if name == "within write"]
        renames = [step for step, name in enumerate(names, 1) if name == "after replace"]
        return [2, writes[0], *writes[-3:], renames[0] - 1, *renames]

    folder = Path(sys.argv[1])
    folder.mkdir()
    for state, times in kill_at_steps(folder, "0.6", chosen).items():
        print(*[state.partition(",")[0]] * times)


def main() -> None:
    """Kill at every so many steps over each old release, then processes at random moments."""
    folder, every, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir()
    for first, old in enumerate(("with digest", "0.6", "none"), start=1):
        found = kill_at_steps(folder, old, lambda names: range(first, len(names) + 1, every))  # noqa: B023
        print(f"old release {old}: {found.total()} kills: {dict(found)}", flush=True)
    found = kill_processes(folder, runs)
    print(f"processes of their own: {found.total()} kills: {dict(found)}", flush=True)


if __name__ == "__main__":
    main()
