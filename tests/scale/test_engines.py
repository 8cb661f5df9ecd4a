"""Runs on a cluster of Dask: a scheduler on the loopback address, workers in processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import anonymip
from anonymip import Engine, InputError
from anonymip.errors import MemoryShort
from anonymip.privacy.parts import verify_parts
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.memory import Memory
from anonymip.scale.engines import LocalRunner, WorkerMemory, started
from tests.scale.test_running import people, released

__all__ = ["people"]
distributed = pytest.importorskip("distributed")


@contextmanager
def two_workers() -> Iterator[object]:
    """Give a cluster of two workers in processes of their own."""
    import dask

    with dask.config.set({"distributed.worker.daemon": False}):
        made = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=50,
        )
        with made:
            yield made


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Give one cluster to all tests."""
    with two_workers() as made:
        yield made


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what a folder holds."""
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def test_dask_makes_the_release_of_this_machine(
    cluster: object, people: Path, tmp_path: Path
) -> None:
    """Whoever does which part, the files are the same, and Dask verifies them as well."""
    at = cluster.scheduler_address  # type: ignore[attr-defined]
    released(people, tmp_path / "local")
    engine = Engine("dask", scheduler=at, part_rows=60)
    told: list[Progress] = []
    found = released(people, tmp_path / "dask", engine=engine, progress=told.append)
    assert (told[-1].done, told[-1].incumbent) == (found.parts, pytest.approx(found.objective))
    assert "rows a second" in told[-1].note
    assert files_of(tmp_path / "local") == files_of(tmp_path / "dask")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with started(engine, scratch, Budget()) as runner:
        assert verify_parts(people, tmp_path / "dask", run=runner.map, scratch=scratch).ok


def _killed(
    cluster: object, people: Path, tmp_path: Path, seconds: float, method: str = "local-search"
) -> None:
    expected = tmp_path / "expected"
    if not expected.exists():
        released(people, expected, method=method)
    workers = [one.process.pid for one in cluster.workers.values()]  # type: ignore[attr-defined]
    done = threading.Event()

    def kill() -> None:
        if not done.wait(seconds):
            os.kill(workers[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        engine = Engine(
            "dask",
            scheduler=cluster.scheduler_address,  # type: ignore[attr-defined]
            part_rows=60,
        )
        released(people, tmp_path / "killed", method=method, engine=engine)
    finally:
        done.set()
        thread.join()
    assert files_of(tmp_path / "killed") == files_of(expected)


@pytest.mark.thorough
def test_a_killed_worker_costs_time_and_no_rows(
    cluster: object, people: Path, tmp_path: Path
) -> None:
    """What it had in hand is done again, and the release is the same."""
    _killed(cluster, people, tmp_path, 0.05, "ordered-cut")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10))
def test_workers_killed_at_any_moment(people: Path, tmp_path: Path, seed: int) -> None:
    """Ten moments of a run, from its first task on, each on a cluster of its own."""
    with two_workers() as cluster:
        _killed(cluster, people, tmp_path, 0.02 + 0.15 * seed)


def test_errors_come_back_from_workers(cluster: object, people: Path, tmp_path: Path) -> None:
    """What is wrong in a part is told as it is here, by message and remedy."""
    engine = Engine("dask", scheduler=cluster.scheduler_address, part_rows=60)  # type: ignore[attr-defined]
    with pytest.raises(anonymip.AnonymipError, match=r"part \d+ of \d+ rows") as told:
        released(people, tmp_path / "release", engine=engine, diversity=anonymip.Diversity(l=2.9))
    assert told.value.remedy
    assert not (tmp_path / "release").exists()


def test_a_scheduler_that_is_not_there(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names its address, and nothing is written."""
    monkeypatch.setattr("anonymip.scale.engines._ANSWER", 0.5)
    engine = Engine("dask", scheduler="tcp://127.0.0.1:9", part_rows=60)
    with pytest.raises(InputError, match=r"tcp://127\.0\.0\.1:9"):
        released(people, tmp_path / "release", engine=engine)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


def test_dask_that_is_not_installed(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says how to install it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'anonymip\[dask\]'"):
        released(people, tmp_path / "release", engine="dask")


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "local", "scheduler": "tcp://127.0.0.1:1"},
        {"kind": "local", "memory_per_worker": "1GiB"},
        {"kind": "dask", "scheduler": "tcp://127.0.0.1:1", "workers": 2},
        {"kind": "dask", "memory_per_worker": "much"},
        {"part_rows": 0},
        {"workers": -1},
    ],
)
def test_engines_that_contradict_themselves(given: dict[str, object]) -> None:
    """Options of a cluster that is started here and of one that runs do not mix."""
    with pytest.raises(InputError):
        Engine(**given)  # type: ignore[arg-type]


def test_parts_that_memory_is_short_of(people: Path, tmp_path: Path) -> None:
    """They are refused before anything is read, with the size that fits."""
    engine = Engine("dask", workers=1, memory_per_worker="300.1MB", part_rows=10_000)
    with pytest.raises(anonymip.AnonymipError, match="needs about 300 MB") as told:
        released(people, tmp_path / "release", engine=engine)
    assert told.value.remedy == "Use part_rows=62, or fewer workers"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


def test_auto_takes_one_part_where_memory_allows(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it cuts the table as the local engine does."""
    engine = Engine("auto", workers=1, part_rows=60)
    assert released(people, tmp_path / "whole", engine=engine).parts == 1
    monkeypatch.setattr("anonymip.scale.engines.MEMORY", WorkerMemory(cell=1e15))
    monkeypatch.setattr("anonymip.scale.running.refuse_short_memory", lambda *_: None)
    assert released(people, tmp_path / "parts", engine=engine).parts > 2


def _memory_after(monkeypatch: pytest.MonkeyPatch, answers: list[int]) -> None:
    """Have the memory that is left be so many bytes at each look, the last one at all others."""
    left = iter(answers)
    now = [answers[0]]

    def at_hand() -> Memory:
        now[0] = next(left, now[0])
        return Memory(now[0], "limit of a test")

    monkeypatch.setattr("anonymip.scale.engines.memory_at_hand", at_hand)
    monkeypatch.setattr("anonymip.scale.engines._LOOK", 0.001)
    monkeypatch.setattr("anonymip.scale.running.refuse_short_memory", lambda *_: None)


@pytest.mark.parametrize("workers", [1, 2])
def test_memory_is_watched_while_parts_are_solved(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Where it is short even for one part after the other the run ends; nothing is left of it."""
    _memory_after(monkeypatch, [50_000_000])
    engine = Engine("local", workers=workers, part_rows=60)
    with pytest.raises(MemoryShort, match=r"solving parts: memory ended: 50 MB \(limit") as told:
        released(people, tmp_path / "release", engine=engine, method="local-search")
    assert told.value.remedy == "Use a smaller part_rows=..., or more memory"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


@pytest.mark.thorough
def test_parts_that_have_no_memory_side_by_side_go_one_after_the_other(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release is the same, and progress goes on to its end."""
    released(people, tmp_path / "expected", method="local-search")
    _memory_after(monkeypatch, [50_000_000, 10**12])
    told: list[Progress] = []
    engine = Engine("local", workers=2, part_rows=60)
    found = released(
        people, tmp_path / "release", engine=engine, method="local-search", progress=told.append
    )
    assert files_of(tmp_path / "release") == files_of(tmp_path / "expected")
    solved = [one.done for one in told if one.phase == "solving parts"]
    assert solved == [*range(found.parts + 1)]
    assert told[-1].incumbent == pytest.approx(found.objective)


def _ended(number: int, parent: int, _: object, *, budget: Budget) -> int:
    """End the process, unless it is the one that asks."""
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.thorough
def test_workers_that_the_system_ends_are_done_without() -> None:
    """What it kills for want of memory is done once more, one task after the other."""
    tasks = [(number, os.getpid()) for number in range(3)]
    assert LocalRunner(2, Budget()).map(_ended, tasks, None, "working", heavy=True) == [0, 1, 2]
