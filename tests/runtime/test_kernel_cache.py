"""Tests of the kernels on disk: found again, by other processes and checkouts too, never stale."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip.runtime.kernel_cache import folder
from anonymip.runtime.kernels import kernel

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


def test_kernels_are_found_again_and_never_stale(tmp_path: Path) -> None:
    """Another process and another checkout load them; a change in a helper's file is seen.

    Another docstring, comment or line number is none.
    """
    write(tmp_path / "one", docstring='    """Return a multiple."""')
    write(tmp_path / "other", before="# words", docstring='    """Return FACTOR times x."""')
    assert run(tmp_path / "one", tmp_path / "cache") == ["6.0", "1"]
    assert run(tmp_path / "one", tmp_path / "cache") == ["6.0", "0"]
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
    assert compiled(shifting(1.0), 1.0) == (2.0, False)


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
    """What was last loaded months ago goes when a process adds its first entry."""
    own_cache.mkdir()
    old, new = own_cache / "old", own_cache / "new"
    for file in (old, new):
        file.touch()
    os.utime(old, (0, 0))

    def triples(x: float) -> float:
        return 3 * x

    assert compiled(triples, 2.0) == (6.0, True)
    assert not old.exists()
    assert new.exists()
