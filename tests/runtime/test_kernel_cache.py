"""Tests of the kernels on disk: found again, by other processes and checkouts too, never stale."""

from __future__ import annotations

import hashlib
import os
import pickle
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import InputWarning
from anonymip.runtime.budget import compilation_seconds
from anonymip.runtime.kernel_cache import claim, folder, opened_folder, shared_compilation
from anonymip.runtime.kernels import kernel
from tests import profiles

HELPER = """
from anonymip.runtime.kernels import kernel

{before}
FACTOR = {factor}

@kernel
def scaled(x):
{docstring}
    return FACTOR * x
"""
CALLER = """
from helper import scaled
from anonymip.runtime.kernels import kernel

@kernel
def total(values):
    total = 0.0
    for value in values:
        total += scaled(value)
    return total

if __name__ == "__main__":
    import numpy as np
    from caller import total
    print(total(np.ones(3)), sum(total.stats.cache_misses.values()))
"""


def write(place: Path, factor: float = 2.0, before: str = "", docstring: str = "") -> None:
    """Write a kernel that calls one of another file."""
    place.mkdir(exist_ok=True)
    (place / "helper.py").write_text(
        HELPER.format(factor=factor, before=before, docstring=docstring)
    )
    (place / "caller.py").write_text(CALLER)


def run(place: Path, cache: Path) -> list[str]:
    """Return the kernel's answer in a process of its own, and how often it was compiled."""
    done = subprocess.run(
        [sys.executable, "caller.py"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        cwd=place,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()


@pytest.mark.thorough
def test_kernels_are_found_again_and_never_stale(tmp_path: Path) -> None:
    """Another process and another checkout load them; a change in a helper's file is seen.

    Another docstring, comment or line number is none.
    """
    write(tmp_path / "one", docstring='    """Return a multiple."""')
    write(tmp_path / "other", before="# words", docstring='    """Return FACTOR times x."""')
    assert run(tmp_path / "one", tmp_path / "cache") == ["6.0", "1"]
    assert run(tmp_path / "other", tmp_path / "cache") == ["6.0", "0"]
    write(tmp_path / "one", factor=3.0)
    assert run(tmp_path / "one", tmp_path / "cache") == ["9.0", "1"]
    assert run(tmp_path / "other", tmp_path / "cache") == ["6.0", "0"]


def test_a_constant_in_the_place_of_a_docstring_counts(own_cache: Path) -> None:
    """What the code reads is more than a docstring, also where both are one constant."""

    def first() -> str:
        """a"""  # noqa: D400, D401, D403
        return "a"

    def second() -> str:
        """b"""  # noqa: D400, D403
        return "b"

    for function, answer in ((first, "a"), (second, "b")):
        function.__name__ = function.__qualname__ = "one_name"
        assert compiled(function) == (answer, True)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that kernels of this test go to."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compiled(function: Any, *arguments: Any) -> tuple[Any, bool]:
    """Return a new kernel's answer and whether it had to be compiled for it."""
    made: Any = kernel(function)
    answer = made(*arguments)
    return answer, sum(made.stats.cache_misses.values()) == 1


def test_values_that_a_kernel_encloses_count(own_cache: Path) -> None:
    """Two kernels of the same code around other values are two entries."""

    def shifting(shift: float) -> Any:
        def shifted(x: float) -> float:
            return x + shift

        return shifted

    assert compiled(shifting(1.0), 1.0) == (2.0, True)
    assert compiled(shifting(2.0), 1.0) == (3.0, True)
    before = compilation_seconds()
    assert compiled(shifting(1.0), 1.0) == (2.0, False)
    assert compilation_seconds() > before  # Loading counts as well.


def test_what_a_kernel_calls_counts(own_cache: Path) -> None:
    """Around another helper the same code is another entry."""

    def calling(factor: float) -> Any:
        @kernel
        def scaled(x: float) -> float:
            return factor * x

        def called(x: float) -> float:
            return scaled(x)

        return called

    assert compiled(calling(2.0), 1.0) == (2.0, True)
    assert compiled(calling(3.0), 1.0) == (3.0, True)
    assert compiled(calling(2.0), 1.0) == (2.0, False)


def test_the_fields_of_named_tuples_count(own_cache: Path) -> None:
    """Fields of one type in another order are another signature, though they print alike."""

    def first(pair: Any) -> Any:
        return pair.low

    one = namedtuple("Pair", "low high")
    other = namedtuple("Pair", "high low")
    assert compiled(first, one(1.0, 2.0)) == (1.0, True)
    assert compiled(first, other(1.0, 2.0)) == (2.0, True)


def test_what_kernels_call_is_compiled_for_them_alone(own_cache: Path) -> None:
    """Only a call of Python's compiles an entry for Python, and both give the same answer."""

    @kernel
    def third(values: Any) -> Any:
        return values[0] / 3.0

    @kernel
    def doubled(values: Any) -> Any:
        return 2.0 * third(values)

    values = np.array([0.1])
    assert doubled(values) == 2.0 * (0.1 / 3.0)
    assert third.overloads == {}  # type: ignore[attr-defined]
    assert third(values) == 0.1 / 3.0
    assert len(third.overloads) == 1  # type: ignore[attr-defined]
    assert len(list(own_cache.iterdir())) == 3


def test_what_a_kernel_may_not_refer_to(own_cache: Path) -> None:
    """A value whose changes would go unnoticed is an error for whoever writes the kernel."""
    place = {"here": own_cache}

    def refers(x: float) -> float:
        return x if place else -x

    with pytest.raises(TypeError, match="knows nothing"):
        compiled(refers, 1.0)


def test_a_damaged_or_unwritable_folder_is_done_without(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be read or written, kernels are compiled in memory."""

    def doubles(values: Any) -> Any:
        return 2 * values.sum()

    values = np.ones(2)
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert compiled(doubles, values) == (4.0, True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(own_cache))
    assert compiled(doubles, values) == (4.0, True)
    (entry,) = own_cache.iterdir()
    entry.write_bytes(entry.read_bytes()[:100])
    assert compiled(doubles, values) == (4.0, True)
    assert compiled(doubles, values) == (4.0, False)


def test_where_kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The named folder, else the user's cache, else nowhere."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/somewhere")
    assert folder() == Path("/somewhere")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert folder() == Path("/caches/anonymip/kernels")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/people/somebody")
    assert folder() == Path("/people/somebody/.cache/anonymip/kernels")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert folder() is None


def test_entries_nobody_loads_are_removed(own_cache: Path) -> None:
    """What was last loaded months ago goes when a process adds its first entry.

    So does what a kill left; what is none of ours stays.
    """
    own_cache.mkdir(mode=0o700)
    entry = f"doubles-{'0' * 32}-"
    gone = [own_cache / name for name in (entry + "1" * 32, ".new-0123456789abcdef")]
    kept = [own_cache / name for name in (entry + "2" * 32, "thesis.tex", "abc-def")]
    for file in (*gone, *kept):
        file.touch()
        os.utime(file, (0, 0))
    os.utime(kept[0])

    def triples(x: float) -> float:
        return 3 * x

    assert compiled(triples, 2.0) == (6.0, True)
    assert not any(file.exists() for file in gone)
    assert all(file.exists() for file in kept)


class LeavesTrace:
    """What makes a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> Any:
        return os.system, (f"touch {shlex.quote(str(self._trace))}",)


def sealed(content: bytes) -> bytes:
    """Return an entry as the cache writes it."""
    return hashlib.sha256(content).digest() + content


def doubled_third() -> Any:
    """Return what calls another kernel: two entries."""

    @kernel
    def third(x: float) -> float:
        return x / 3.0

    def doubled(x: float) -> float:
        return 2.0 * third(x)

    return doubled


@pytest.fixture
def filled(own_cache: Path) -> Path:
    """Return a folder of kernels that a run has filled and somebody has replaced."""
    assert looked_into(own_cache) == (True, [], False)
    hostile = sealed(pickle.dumps(LeavesTrace(own_cache.parent / "trace")))
    for entry in own_cache.iterdir():
        entry.write_bytes(hostile)
    return own_cache


def looked_into(cache: Path) -> tuple[bool, list[str], bool]:
    """Return whether a kernel was compiled, what was said, and whether anything unpickled ran."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", InputWarning)
        answer, anew = compiled(doubled_third(), 1.0)
    assert answer == 2.0 * (1.0 / 3.0)
    return anew, [str(warning.message) for warning in said], (cache.parent / "trace").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o1777, 0o701])
def test_a_folder_that_is_open_to_others_is_not_used(filled: Path, mode: int) -> None:
    """Nothing of it runs, nothing is put there, and one line says why and what to do."""
    filled.chmod(mode)
    before = {entry.name: entry.read_bytes() for entry in filled.iterdir()}
    anew, (said,), ran = looked_into(filled)
    assert (anew, ran) == (True, False)
    assert f"is open to other users (mode {mode & 0o7777:03o})" in said
    assert "Remove it, or set NUMBA_CACHE_DIR" in said
    assert {entry.name: entry.read_bytes() for entry in filled.iterdir()} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_a_folder_of_another_user_is_not_used(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even by root, who may open it; and not by way of a link that is one's own."""
    os.chown(filled, 65534, 65534)
    link = filled.with_name("link")
    link.symlink_to(filled)
    for place in (filled, link):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(place))
        anew, (said,), ran = looked_into(filled)
        assert (anew, ran) == (True, False)
        assert "belongs to another user" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_folder_of_root_is_not_used_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may not even open it hears the same."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o711)
        (Path(name) / "cache").mkdir(mode=0o700)
        monkeypatch.setenv("NUMBA_CACHE_DIR", f"{name}/cache")
        os.seteuid(65534)
        try:
            with (
                pytest.warns(InputWarning, match="belongs to another user"),
                opened_folder(make=True) as opened,
            ):
                assert opened is None
        finally:
            os.seteuid(0)
        with opened_folder() as opened:
            assert opened is not None


@pytest.mark.parametrize("how", ["mode", "owner", "link", "pipe", "folder"])
def test_entries_that_others_could_have_written_are_compiled_again(filled: Path, how: str) -> None:
    """In a folder of one's own an entry is a file of one's own that nobody else may write to."""
    for entry in list(filled.iterdir()):
        if how == "mode":
            entry.chmod(0o666)
        elif how == "owner":
            if os.geteuid() != 0:
                pytest.skip("only root gives files to others")
            os.chown(entry, 65534, 65534)
        else:
            aside = filled.parent / entry.name
            entry.rename(aside)
            if how == "link":
                entry.symlink_to(aside)
            elif how == "pipe":
                os.mkfifo(entry)
            else:
                entry.mkdir()
    assert looked_into(filled) == (True, [], False)
    assert looked_into(filled) == (how == "folder", [], False)


def test_a_folder_behind_a_link_of_ones_own_is_used(tmp_path: Path, own_cache: Path) -> None:
    """What counts is the folder that is opened: caches are often moved to larger disks."""
    (tmp_path / "disk").mkdir(mode=0o700)
    own_cache.symlink_to(tmp_path / "disk")
    assert looked_into(own_cache) == (True, [], False)
    assert looked_into(own_cache) == (False, [], False)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps(None),
        pickle.dumps((1, 2)),
        pickle.dumps((1,) * 9),
        pickle.dumps(Exception)[:-3],
        b"cno_such_module\nname\n.",
        b"cos\nno_such_name\n.",
        # A call that raises, an index out of its memory, and a tuple of no mark.
        b"cbuiltins\nint\n(Vx\ntR.",
        b"j\xff\xff\xff\xff.",
        b"t.",
    ],
)
def test_an_entry_that_does_not_load_is_compiled_again(own_cache: Path, content: bytes) -> None:
    """Whatever stands behind a right seal: the kernel is compiled, and kept in its place."""
    assert looked_into(own_cache) == (True, [], False)
    entries = list(own_cache.iterdir())
    assert len(entries) == 2
    for entry in entries:
        entry.write_bytes(sealed(content))
    assert looked_into(own_cache) == (True, [], False)
    assert looked_into(own_cache) == (False, [], False)


def test_new_folders_and_entries_are_the_users_alone(own_cache: Path) -> None:
    """Whatever the umask is."""
    before = os.umask(0)
    try:
        assert looked_into(own_cache) == (True, [], False)
    finally:
        os.umask(before)
    assert stat.S_IMODE(own_cache.stat().st_mode) == 0o700
    assert [stat.S_IMODE(entry.stat().st_mode) for entry in own_cache.iterdir()] == [0o600] * 2


SHARING = """
import sys
from pathlib import Path
import numpy as np
from anonymip.runtime.kernel_cache import claim, shared_compilation
from anonymip.runtime.kernels import kernel

@kernel
def total(values):
    return values.sum()

with shared_compilation():
    if "claim" in sys.argv:
        claim("entry")
    print("ready", flush=True)
    sys.stdin.readline()
    print(total(np.ones(3)), sum(total.stats.cache_misses.values()))
"""


def sharing(cache: Path, *what: str) -> subprocess.Popen[str]:
    """Return a process that is ready to compile a kernel, when it is told to go on."""
    process = subprocess.Popen(
        [sys.executable, cache.parent / "sharing.py", *what],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_processes_that_share_compilation_compile_a_kernel_once(own_cache: Path) -> None:
    """The other one waits for it, and loads it."""
    (own_cache.parent / "sharing.py").write_text(SHARING)
    processes = [sharing(own_cache) for _ in range(2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = sorted(process.communicate()[0] for process in processes)
    assert said == ["3.0 0\n", "3.0 1\n"]


def test_a_claim_ends_with_its_process(own_cache: Path) -> None:
    """Nobody waits for a process that was killed; outside of sharing nobody waits at all."""
    (own_cache.parent / "sharing.py").write_text(SHARING)
    assert not claim("entry")
    with shared_compilation():
        process = sharing(own_cache, "claim")
        threading.Timer(0.3, process.kill).start()
        assert claim("entry")
        assert process.wait() == -signal.SIGKILL
        process.communicate()
    assert not claim("entry")


SOLVING = """
import sys
import anonymip
from anonymip.runtime.kernels import compiled_kernels
problem = anonymip.Problem(anonymip.census(90, 3, seed=0), 3)
for effort in ("quick", "thorough"):
    bound = sys.argv[2] == "bound"
    solution = anonymip.solve(problem, sys.argv[1], seed=5, effort=effort, bound=bound)
    print(solution.assignment.labels.tolist(), solution.objective.hex(), solution.trace)
    print(solution.bound.value.hex() if bound else None)
print(compiled_kernels())
"""


def solved(cache: Path, *what: str) -> tuple[list[str], int]:
    """Return what a process with a cache of its own finds, and how many kernels it compiled."""
    done = subprocess.run(
        [sys.executable, "-c", SOLVING, *what],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    )
    *found, compiled = done.stdout.splitlines()
    return found, int(compiled)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "bound"),
    [
        ("ordered-cut", "none"),
        *(
            pytest.param(method, "bound", marks=pytest.mark.thorough)
            for method in ("ordered-cut", "greedy-search")
        ),
    ],
)
def test_the_answer_does_not_depend_on_the_cache(method: str, bound: str, tmp_path: Path) -> None:
    """Same seed, same classes, loss and bound; damaged entries are compiled again."""
    cold, compiled = solved(tmp_path, method, bound)
    assert compiled > 0
    assert solved(tmp_path, method, bound) == (cold, 0)
    if profiles.NAME != "thorough":
        return  # What becomes of a damaged entry smaller kernels show, above.
    entries = sorted(tmp_path.iterdir())
    for number, entry in enumerate(entries):
        content = entry.read_bytes()
        middle = len(content) // 2
        damaged = (b"", content[:middle], content[:middle] + b"?" + content[middle + 1 :])
        entry.write_bytes(damaged[number % 3])
    assert solved(tmp_path, method, bound) == (cold, compiled)
