"""Tests of compiling beforehand: what runs, who compiles what, and what cannot be."""

from __future__ import annotations

import ast
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from anonymip import Budget, InputError, Problem, census, solve, warm_up
from anonymip.cli.app import run
from anonymip.errors import Interrupted
from anonymip.methods import METHODS
from anonymip.runtime.kernels import Left, preparing_kernels
from tests.test_project import SOURCES


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return what is run, where nothing is compiled."""
    done: list[str] = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(warm_up, "run_for_kernels", lambda name, budget: done.append(name))
    return done


def test_all_usual_runs_are_made_once(runs: list[str]) -> None:
    """Bounds, the methods of a comparison, and what `auto` picks elsewhere."""
    warm_up.warm_up(jobs=1)
    assert sorted(runs) == sorted(warm_up.usual_runs())
    assert {"bound", "local-search", "equivalence-mip", "full-domain"} <= set(runs)
    assert set(runs) - {"bound", "dual-ascent"} <= set(METHODS)


def test_what_is_ready_is_not_run_again(runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing left there is nothing to do; the kernels are counted all the same."""
    monkeypatch.setattr(warm_up, "kernels_left", lambda names: Left(0, 0.0))
    done = warm_up.warm_up()
    assert runs == []
    assert done.compiled == 0
    assert 10 <= done.kernels < done.total
    assert done.purpose == warm_up.USUAL


def test_all_kernels_of_the_package_are_counted() -> None:
    """Each decorated function is one."""
    texts = (file.read_text(encoding="utf-8") for file in SOURCES)
    decorated = [
        node
        for text in texts
        if "@kernel" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        if any(getattr(one, "id", "") == "kernel" for one in node.decorator_list)
    ]
    assert warm_up.kernels_in_all() == len(decorated) > 300


def test_the_progress_says_what_is_compiled_for(
    runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named methods by their names, else the usual commands."""
    phases: list[str] = []

    def side_by_side(tasks: list[Any], budget: Budget, *, phase: str, **_: Any) -> list[int]:
        phases.append(phase)
        return [0 for _ in tasks]

    monkeypatch.setattr(warm_up, "run_side_by_side", side_by_side)
    monkeypatch.setattr(warm_up, "kernels_left", lambda names: None)
    assert warm_up.warm_up(["mondrian", "bound"]).purpose == "mondrian and bound"
    warm_up.warm_up()
    warm_up.warm_up(["mondrian", "initial", "hp", "forest"])
    assert phases == [
        *("compiling for mondrian and bound", "compiling for the usual commands"),
        "compiling for 4 runs",
    ]


def test_processes_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The costliest kernels go to different processes, what shares kernels to the same one."""
    needed = {"a": {"x": 1}, "b": {"x": 1, "y": 1}, "c": {"z": 1}, "d": {"z": 1, "w": 1}}
    monkeypatch.setattr(warm_up, "needed_kernels", lambda: needed)
    monkeypatch.setattr(warm_up, "kernel_seconds", lambda: {"x": 9.0, "y": 0.5, "z": 8.0, "w": 0.5})
    assert warm_up._parts("abcd", 2) == [("b", "a"), ("d", "c")]
    assert warm_up._parts("a", 2) == [("a",)]
    assert sorted(sum(warm_up._parts("abcd", 3), ())) == list("abcd")
    # What both need comes last.
    needed.update(a={"x": 1, "y": 1}, c={"z": 1, "y": 1}, d={"w": 1})
    assert warm_up._parts("acd", 2) == [("a",), ("d", "c")]


def test_who_is_done_first_does_what_others_have_left(runs: list[str]) -> None:
    """From their last run on, as long as kernels are missing."""
    warm_up._run_all("ab", "dc", Budget())
    assert runs == list("abdc")


def test_what_takes_long_to_compile_is_prepared_by_two_processes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """It is said once; not where little is left or unknown, nor with a time limit or one core.

    Nor where kernels cannot be kept: the processes would compile in vain.
    """
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    left: list[Left | None] = [Left(24, 30.0), Left(3, 7.0), None]
    made: list[Any] = []
    monkeypatch.setattr(warm_up, "kernels_left", lambda names: left[0])
    monkeypatch.setattr(warm_up, "workers_of", lambda jobs: 2)
    monkeypatch.setattr(warm_up, "warm_up", lambda names, progress: made.append(names))
    warm_up.prepare(["mondrian", "initial", "mondrian"])
    assert made == [["initial", "mondrian"]]
    assert [record.getMessage() for record in caplog.records] == [
        "compiling about 24 kernels, once; about 15 s"
    ]
    warm_up.prepare(["mondrian", "initial"], limited=True)
    monkeypatch.setattr(warm_up, "workers_of", lambda jobs: 1)
    warm_up.prepare(["mondrian", "initial"])
    monkeypatch.setattr(warm_up, "workers_of", lambda jobs: 2)
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    warm_up.prepare(["mondrian", "initial"])
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for little in left[1:]:
        left[0] = little
        warm_up.prepare(["mondrian", "initial"])
    assert len(made) == len(caplog.records) == 1


def test_method_and_bound_of_a_large_table_are_prepared_together() -> None:
    """Once, for the first run: not for small tables, with a time limit, or beside the block."""
    asked: list[list[str]] = []
    large, small = (Problem(census(n, 8, seed=1), 5) for n in (1000, 20))
    runs: list[tuple[Problem, dict[str, Any]]] = [
        (small, {"method": "mondrian"}),
        (large, {"method": "mondrian", "effort": "quick", "time_limit": 60}),
        (large, {"method": "mondrian", "bound": False}),
        (large, {"method": "mondrian", "effort": "quick"}),
        (large, {"method": "initial", "effort": "quick"}),
    ]
    with preparing_kernels(lambda names, progress: asked.append(sorted(names))):
        for problem, way in runs:
            solve(problem, **way)
    assert asked == [["dual-ascent", "mondrian"]]
    solve(large, "mondrian", effort="quick")
    assert len(asked) == 1


@pytest.mark.parametrize("command", [["solve"], ["anonymize", "-o", "release.csv"]])
def test_commands_on_a_large_table_prepare_its_kernels(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What `auto` picked, its starts and the bound."""
    asked: list[set[str]] = []
    monkeypatch.setattr(warm_up, "prepare", lambda names, progress: asked.append(set(names)))
    monkeypatch.chdir(tmp_path)
    assert run([*command, "census:1000,8,1", "-k", "5", "--effort", "quick"]) == 0
    assert [names >= {"local-search", "dual-ascent"} for names in asked] == [True]


def test_one_run_is_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process has nothing to compile."""
    monkeypatch.setattr(warm_up, "kernels_left", lambda names: Left(24, 30.0))
    monkeypatch.setattr(warm_up, "workers_of", lambda jobs: 2)
    monkeypatch.setattr(warm_up, "warm_up", lambda *_, **__: pytest.fail("was called"))
    warm_up.prepare(["mondrian"])


def test_a_run_that_small_tables_do_not_allow_is_passed_over(
    runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solver that is not installed, say, keeps nobody from the other kernels."""

    def refuse(name: str, budget: Budget) -> None:
        runs.append(name)
        raise InputError("not here")

    monkeypatch.setattr(warm_up, "run_for_kernels", refuse)
    warm_up.warm_up(["bound", "mondrian"], jobs=1)
    assert sorted(runs) == ["bound", "mondrian"]


def test_methods_of_every_recoding_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small table is asked for in the recoding of the method, whichever that is."""
    asked: list[str] = []
    monkeypatch.setattr(warm_up, "publish", lambda _: None)
    monkeypatch.setattr(warm_up, "solve", lambda it, *_, **__: asked.append(it.recoding.name))
    for name in METHODS:
        warm_up.run_for_kernels(name, Budget())
    assert set(asked) >= {"classes", "freeform", "k-one", "k-concealment", "full-domain"}


def test_an_interrupt_ends_it(runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The run under way is the last one."""

    def interrupt(name: str, budget: Budget) -> None:
        runs.append(name)
        os.kill(os.getpid(), signal.SIGINT)
        while budget.stop_reason() is None:
            time.sleep(0.01)

    monkeypatch.setattr(warm_up, "run_for_kernels", interrupt)
    monkeypatch.setattr(warm_up, "kernels_left", lambda names: None)
    with pytest.raises(Interrupted, match="what was compiled is kept"):
        warm_up.warm_up(["bound", "mondrian", "forest"], jobs=1)
    assert len(runs) == 1


def test_what_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown methods, no processes, and no place for kernels are refused with a remedy."""
    with pytest.raises(InputError, match="unknown method"):
        warm_up.warm_up(["mondrain"])
    with pytest.raises(InputError, match="jobs is 0"):
        warm_up.warm_up(jobs=0)
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(InputError, match="Set NUMBA_CACHE_DIR"):
        warm_up.warm_up()
