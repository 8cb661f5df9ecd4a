"""Tests of experiments on the command line: the command, and comparisons that are experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonymip.cli.experiments import print_results
from anonymip.errors import Interrupted
from anonymip.experiments import (
    Experiment,
    MethodChoice,
    Results,
    TableSource,
    read_results,
    run_experiment,
)
from anonymip.experiments.running.runs import COLUMNS

SPEC = """
name = "small"
k = [2, 3]
bound = false
tables = [{instance = "people.csv", samples = {count = 2, size = 5, seed = 1}}]

[[methods]]
method = "initial"

[[methods]]
method = "anatomy"

[[methods]]
method = "initial"
options = {order = "cardinality"}
label = "by size"
"""
TABLE = "age,sex\n20,F\n30,M\n40,F\n50,M\n60,F\n70,M\n"
SCHEMA = '[attributes.age]\nkind = "numeric"\n[attributes.sex]\nkind = "categorical"\n'


@pytest.fixture
def table(shell: Any) -> Path:
    """Return the folder with a table, its schema and a specification."""
    shell.write("people.csv", TABLE)
    shell.write("people.toml", SCHEMA)
    shell.write("small.toml", SPEC)
    return Path(shell.folder)


def test_an_experiment_is_run_and_gone_on_with(shell: Any, table: Path) -> None:
    """The command prints an overview, keeps all rows, and has nothing left to do the next time."""
    outcome = shell("experiment", "small.toml", "--json", "rows.json")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "people.csv (5 x 2)"
    assert [line.split("  ")[:2] for line in lines[3:9]] == [
        [k, label] for k in "23" for label in ("initial", "anatomy", "by size")
    ]
    assert "k = 2, anatomy: refused: method anatomy needs a diversity (2 runs)" in outcome.err
    assert lines[-1] == "12 of 12 runs are in small"
    results = read_results(table / "small")
    assert results.complete
    # Worker processes find what this one does.
    here = run_experiment(Experiment.from_toml("small.toml"), isolate=False).frame
    pd.testing.assert_series_equal(results.frame["loss"], here["loss"])
    written = pd.read_parquet(table / "small" / "results.parquet")
    assert list(written.columns) == list(COLUMNS)
    assert len(pd.read_csv(table / "small" / "results.csv")) == 12
    rows = json.loads(shell.read("rows.json"))
    assert [row["label"] for row in rows[:3]] == ["initial", "anatomy", "by size"]
    assert rows[2]["options"] == {"order": "cardinality"}
    assert rows[1]["loss"] is None
    files = {file: file.stat().st_mtime_ns for file in (table / "small" / "runs").iterdir()}
    assert len(files) == 12
    assert shell("experiment", "small.toml").code == 0
    assert {file: file.stat().st_mtime_ns for file in files} == files


def test_a_mistake_in_a_specification(shell: Any, table: Path) -> None:
    """What is wrong in the file is bad input, and nothing is written."""
    shell.write("small.toml", SPEC.replace("count", "number"))
    outcome = shell("experiment", "small.toml")
    assert outcome.code == 2
    assert "small.toml: unknown key tables[1].samples.number" in outcome.err
    assert not (table / "small").exists()
    assert shell("experiment", "nowhere.toml").code == 2
    shell.write("small.toml", SPEC)
    foreign = shell("experiment", "small.toml", "-o", ".")
    assert foreign.code == 2
    assert "holds other files" in foreign.err
    assert not (table / "runs").exists()


def test_an_interrupt_with_nothing_to_show() -> None:
    """Ctrl-C before the first run has ended is no success."""
    experiment = Experiment("none", (TableSource("health-records"),), (2,), (MethodChoice("hp"),))
    nothing = pd.DataFrame(columns=list(COLUMNS))
    with pytest.raises(Interrupted) as raised:
        print_results(Results(experiment, nothing, 1), None)
    assert raised.value.exit_code == 130


def test_samples_are_compared(shell: Any, table: Path) -> None:
    """A row for each k and method over all samples, those of the seed; one record a run."""
    call = ("compare", "people.csv", "-k", "2-3", "--samples", 3, "--sample-size", 4)
    result = shell(
        *(*call, "--seed", 5, "--methods", "initial,mondrian"),
        *("--json", "t.json", "--csv", "t.csv", "--markdown", "t.md"),
    )
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "people.csv (4 x 2)"
    assert lines[2].split()[:4] == ["k", "method", "recoding", "promise"]
    assert [line.split()[:2] for line in lines[3:]] == [
        [k, method] for k in "23" for method in ("initial", "mondrian")
    ]
    records = json.loads(shell.read("t.json"))
    assert [(r["sample"], r["k"], r["method"]) for r in records] == [
        (sample, k, method)
        for sample in (1, 2, 3)
        for k in (2, 3)
        for method in ("initial", "mondrian")
    ]
    assert all(record["objective"] == record["loss"] for record in records)
    assert {record["n"] for record in records} == {4}
    frame = pd.read_csv(shell.folder / "t.csv")
    assert list(frame.columns) == list(COLUMNS)
    assert frame["loss"].tolist() == [record["loss"] for record in records]
    assert len(shell.read("t.md").splitlines()) == 2 + 4
    others = shell(*call, "--seed", 6, "--methods", "initial", "--json", "-").records()
    assert {r["table_sha256"] for r in others} != {r["table_sha256"] for r in records}


def test_recodings_are_compared_side_by_side(shell: Any, table: Path) -> None:
    """Losses of several recodings stand beside what their releases promise."""
    result = shell(
        *("compare", "people.csv", "-k", 2, "--methods", "initial,hungarian,pattern-greedy"),
        *("--suppress-at-most", 1, "--option", "initial.order=cardinality", "--json", "t.json"),
    )
    assert result.code == 0
    rows = {line.split()[1]: line for line in result.out.splitlines()[3:]}
    assert "k rows look alike" in rows["initial"]
    assert "k equally likely matches" in rows["hungarian"]
    records = {record["method"]: record for record in json.loads(shell.read("t.json"))}
    assert [record["recoding"] for record in records.values()] == ["classes", "freeform", "pattern"]
    assert records["initial"]["options"] == {"order": "cardinality"}
    assert records["pattern-greedy"]["suppressed_cells"] <= 6
    assert records["hungarian"]["loss"] < records["initial"]["loss"]


def test_prices_of_stars_beside_other_recodings(shell: Any, table: Path) -> None:
    """Prices would make other losses of one objective: that is refused."""
    outcome = shell(
        *("compare", "people.csv", "-k", 2, "--methods", "initial,pattern-greedy"),
        *("--suppression-cost", "age=2"),
    )
    assert outcome.code == 2
    assert "--suppression-cost is for patterns" in outcome.err
