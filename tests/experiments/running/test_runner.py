"""Tests of running experiments: rows, refusals, resuming, interrupts, and worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from anonymip import InputError, Problem, Progress, lower_bound, register_method, solve
from anonymip.experiments import (
    Experiment,
    MethodChoice,
    Results,
    TableSource,
    read_results,
    run_experiment,
)
from anonymip.experiments.running import runner
from anonymip.experiments.running.runs import COLUMNS
from anonymip.methods import registry

#: What two runs of the same experiment may differ in.
CLOCKS = ["seconds", "cpu_seconds"]


def same(first: Results, second: Results) -> None:
    """Assert that two tables are the same but for the seconds."""
    pd.testing.assert_frame_equal(
        first.frame.drop(columns=CLOCKS), second.frame.drop(columns=CLOCKS)
    )


def count_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the title of each run that is done."""
    done: list[str] = []
    perform = runner.perform
    monkeypatch.setattr(
        runner, "perform", lambda run, *more: done.append(run.title) or perform(run, *more)
    )
    return done


def test_a_row_says_what_was_asked_and_found(small: Experiment) -> None:
    """Every run has one row, with the loss that solving the problem by hand has."""
    found = run_experiment(small, isolate=False)
    frame = found.frame
    assert found.complete
    assert list(frame.columns) == list(COLUMNS)
    asked = [
        (sample, k, label, seed)
        for sample in (1, 2)
        for k in (2, 3)
        for label in ("mondrian", "d")
        for seed in (0, 1)
    ]
    assert list(frame[["sample", "k", "label", "seed"]].itertuples(index=False, name=None)) == asked
    source = small.tables[0]
    whole = source.load(Path())
    for _, row in frame.iterrows():
        problem = Problem(source.sample(whole, row["sample"]), row["k"])
        strict = row["label"] == "mondrian"
        solution = solve(problem, "mondrian", options={"strict": strict}, bound=False)
        assert row["loss"] == solution.objective
        assert (row["n"], row["m"], row["recoding"]) == (8, 3, "classes")
        assert (row["classes"], row["smallest"]) == (len(solution.sizes), solution.sizes.min())
        assert row["options"] == f'{{"strict": {str(strict).lower()}}}'
        assert row["status"] == "heuristic"
    assert frame["cpu_seconds"].notna().all()
    assert frame["bound"].isna().all()
    assert frame["table_sha256"].nunique() == 2


def test_two_runs_have_the_same_losses(small: Experiment) -> None:
    """The same specification gives the same table, but for the seconds."""
    same(run_experiment(small, isolate=False), run_experiment(small, isolate=False))


def test_the_bound_of_a_problem_serves_all_its_methods() -> None:
    """A lower bound is computed once a problem, and gaps are to the best that anything proved."""
    experiment = Experiment(
        "bounded",
        (TableSource("health-records"),),
        (3,),
        (MethodChoice("initial"), MethodChoice("anatomy"), MethodChoice("pattern-greedy")),
    )
    frame = run_experiment(experiment, isolate=False).frame.set_index("label")
    problem = experiment.problem(experiment.tables[0].load(Path()), 3, "classes")
    bound = lower_bound(problem)
    assert bound is not None
    row = frame.loc["initial"]
    assert row["bound"] == pytest.approx(bound.value)
    assert row["gap"] == pytest.approx((row["loss"] - row["bound"]) / row["loss"])
    # What refuses has its reason, and no loss.
    refused = frame.loc["anatomy"]
    assert refused["status"] == "refused"
    assert "needs a diversity" in refused["reason"]
    assert pd.isna(refused["loss"])
    assert frame.loc["pattern-greedy", "recoding"] == "pattern"


def test_a_proof_of_one_method_is_one_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heuristic that loses what is proven optimal is optimal; others have their gap to it."""
    experiment = Experiment(
        "proven",
        (TableSource("health-records"),),
        (2,),
        (MethodChoice("initial"), MethodChoice("mondrian"), MethodChoice("column-generation")),
        bound=False,
    )
    frame = run_experiment(experiment, isolate=False).frame.set_index("label")
    best = frame.loc["column-generation"]
    assert best["status"] == frame.loc["mondrian", "status"] == "optimal"
    assert frame.loc["mondrian", "loss"] == best["loss"]
    assert frame.loc["initial", "status"] == "heuristic"
    assert frame.loc["initial", "bound"] == best["bound"]


def test_only_what_changed_is_run(
    small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is gone on with: nothing twice, a new k or option alone, and names cost nothing."""
    done = count_runs(monkeypatch)
    run_experiment(small, tmp_path, isolate=False)
    assert len(done) == 16
    again = run_experiment(small, tmp_path, isolate=False)
    assert len(done) == 16
    same(again, read_results(tmp_path))
    more = run_experiment(replace(small, k=(2, 3, 4)), tmp_path, isolate=False)
    assert len(done) == 16 + 8
    assert len(more.frame) == 24
    (first, second) = small.methods
    renamed = replace(small, methods=(first, replace(second, label="other")))
    table = run_experiment(renamed, tmp_path, isolate=False).frame
    assert len(done) == 16 + 8
    assert set(table["label"]) == {"mondrian", "other"}
    run_experiment(replace(small, seed=7), tmp_path, isolate=False)
    assert len(done) == 16 + 8 + 16


def test_a_changed_file_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of a table's file counts, not its name."""
    done = count_runs(monkeypatch)
    table = tmp_path / "people.csv"
    experiment = Experiment(
        "file",
        (TableSource("people.csv", quasi_identifiers=("age",)),),
        (2,),
        (MethodChoice("initial"),),
        bound=False,
        folder=tmp_path,
    )
    losses = []
    for last in (9, 9, 4):
        table.write_text(f"age\n1\n2\n3\n{last}\n", encoding="utf-8")
        losses += run_experiment(experiment, tmp_path / "out", isolate=False).frame["loss"].tolist()
    assert len(done) == 2
    assert losses[0] == losses[1] == pytest.approx((2 * 1 + 2 * 6) / 8)
    assert losses[2] == pytest.approx((2 * 1 + 2 * 1) / 3)


KILLED = """
import os, signal, sys
from anonymip.experiments import Experiment, run_experiment

def heard(message):
    if message.done == 5:
        os.kill(os.getpid(), signal.SIGKILL)

run_experiment(Experiment.from_toml(sys.argv[1]), sys.argv[2], isolate=False, progress=heard)
"""
KILLED_SPEC = """
name = "small"
k = [2, 3]
repetitions = 2
bound = false
tables = [{instance = "census:30,3,1", samples = {count = 2, size = 8, seed = 5}}]
methods = [{method = "mondrian"}, {method = "mondrian", options = {strict = false}, label = "d"}]
"""


@pytest.mark.thorough
def test_a_killed_experiment_goes_on(
    small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed process left is read, gone on with, and ends as the same table."""
    specification = tmp_path / "small.toml"
    specification.write_text(KILLED_SPEC, encoding="utf-8")
    assert Experiment.from_toml(specification) == small
    folder = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(specification), str(folder)]
    process = subprocess.run(command, check=False)
    assert process.returncode == -signal.SIGKILL
    left = read_results(folder)
    assert (len(left.frame), left.runs, left.complete) == (5, 16, False)
    done = count_runs(monkeypatch)
    ended = run_experiment(small, folder, isolate=False)
    assert len(done) == 11
    same(ended, run_experiment(small, isolate=False))
    written = pd.read_parquet(folder / "results.parquet")
    assert written["loss"].tolist() == ended.frame["loss"].tolist()


def test_ctrl_c_keeps_what_is_done(small: Experiment, tmp_path: Path) -> None:
    """An interrupt ends it with the rows so far, and the run that it hit is not among them."""

    def heard(message: Progress) -> None:
        if message.done == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    stopped = run_experiment(small, tmp_path, isolate=False, progress=heard)
    assert not stopped.complete
    assert 3 <= len(stopped.frame) < 16
    assert set(stopped.frame["status"]) == {"heuristic"}
    same(run_experiment(small, tmp_path, isolate=False), run_experiment(small, isolate=False))


def test_a_fault_of_a_method_is_a_row(tmp_path: Path) -> None:
    """A method that breaks down has a row that quotes no value, and is tried again."""
    calls: list[int] = []

    @register_method("faulty", source="test")
    def faulty(problem: Problem, *, budget: object, seed: int) -> object:
        calls.append(seed)
        raise KeyError("a value of the table")

    experiment = Experiment(
        "faulty",
        (TableSource("health-records"),),
        (2,),
        (MethodChoice("faulty"), MethodChoice("initial")),
        bound=False,
    )
    try:
        with pytest.raises(InputError, match="registered in this process"):
            run_experiment(experiment)
        for _ in range(2):
            frame = run_experiment(experiment, tmp_path, isolate=False).frame
            assert calls
            calls.clear()
    finally:
        registry._methods.pop("faulty")
    assert frame["status"].tolist() == ["failed", "heuristic"]
    assert "KeyError" in frame["reason"][0]
    assert "value of the table" not in frame["reason"][0]


LETHAL = """
import os
from anonymip import objective

@objective
def lethal(record):
    os._exit(3)
"""


@pytest.mark.thorough
def test_runs_are_isolated(tmp_path: Path) -> None:
    """A run whose process dies is a failed row, and this process lives on."""
    (tmp_path / "loss.py").write_text(LETHAL, encoding="utf-8")
    experiment = Experiment(
        "lethal",
        (TableSource("health-records"),),
        (3,),
        (MethodChoice("initial"),),
        bound=False,
        objective="loss.py:lethal",
        folder=tmp_path,
    )
    heard: list[Progress] = []
    row = run_experiment(experiment, progress=heard.append).frame.iloc[0]
    assert row["status"] == "failed"
    assert "exit code 3" in row["reason"]
    assert any("health-records, k = 3, initial" in message.phase for message in heard)


@pytest.mark.parametrize("arguments", [{"jobs": 0}, {"jobs": 2, "isolate": False}])
def test_jobs_that_do_not_fit(small: Experiment, arguments: dict[str, int]) -> None:
    """There is at least one worker, and one only in this process."""
    run: Callable[..., Results] = run_experiment
    with pytest.raises(InputError, match="jobs is"):
        run(small, **arguments)
