"""The results of an experiment, on disk as they come, and as one table.

A folder holds ``runs/KEY.parquet``, one file of one row for each run that has ended, and
``experiment.json``, the specification with the keys of its runs in their order. Files appear whole
or not at all, so that whatever ends a process leaves a folder that can be read and gone on with.
``results.parquet`` and ``results.csv`` are the table of all that is there, written at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anonymip.errors import AnonymipError, InputError
from anonymip.experiments.running.performing import FAILED, Row
from anonymip.experiments.running.runs import BOUND, COLUMNS, JSON_COLUMNS, Run
from anonymip.experiments.running.specification import Experiment
from anonymip.files import refuse_outputs, writing
from anonymip.solution import Bound, relative_gap
from anonymip.status import Stopped
from anonymip.tolerances import contradicts, same_loss

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
_SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in COLUMNS.items()])
_FRAME_TYPES = {str: "str", int: "Int64", float: "float64"}


@dataclass(frozen=True)
class Results:
    """The table of an experiment.

    `frame`: one row for each run of a method that has ended, in the order of tables, samples,
    values of k, methods and repetitions. The columns are those of
    :data:`anonymip.experiments.running.runs.COLUMNS`; what is unknown is missing. Bound and gap are
    the best that any run proved for the problem of the row. `runs`: how many rows there are to be.
    """

    experiment: Experiment
    frame: pd.DataFrame
    runs: int

    @property
    def complete(self) -> bool:
        """Whether all runs have ended."""
        return len(self.frame) == self.runs


class RunStore:
    """The rows of runs by key, in a folder, or in memory alone.

    `folder`: is made if it is not there; None for none. Raises InputError if the folder cannot be
    made, or holds something else than an experiment.
    """

    def __init__(self, folder: Path | None) -> None:
        self._rows: dict[str, Row] = {}
        self._folder = folder
        if folder is not None:
            plan = folder / "experiment.json"
            # Among other files those of an experiment would be lost.
            if folder.is_dir() and any(folder.iterdir()) and not plan.is_file():
                raise InputError(
                    f"the folder {folder} holds other files", remedy="Name another, or an empty one"
                )
            refuse_outputs([plan, self._file("")], [])

    def has(self, run: Run) -> bool:
        """Return whether a run has ended; one that failed is to be tried again."""
        row = self.get(run.key)
        return row is not None and row["status"] != FAILED

    def get(self, key: str) -> Row | None:
        """Return the row of a key; None if there is none."""
        if key not in self._rows and self._folder is not None:
            row = _read_row(self._file(key))
            if row is not None:
                self._rows[key] = row
        return self._rows.get(key)

    def put(self, run: Run, row: Row) -> None:
        """Keep the row of a run, on disk before this returns."""
        self._rows[run.key] = row
        if self._folder is not None:
            with writing() as outputs:
                place = outputs.stage(self._file(run.key), public=True)
                pq.write_table(pa.Table.from_pylist([row], _SCHEMA), place)

    def bound(self, run: Run) -> Bound | None:
        """Return the bound that a run has found; None if it found none."""
        row = self.get(run.key)
        if row is None or row["bound"] is None:
            return None
        return Bound(row["bound"], row["bound_by"], row["proof"])

    def _file(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / "runs" / f"{key}.parquet"

    def write_plan(self, experiment: Experiment, runs: Sequence[Run]) -> None:
        """Write the specification with the keys and names of its runs."""
        if self._folder is None:
            return
        listed = list(map(_names, runs))
        text = json.dumps({"experiment": experiment.to_dict(), "runs": listed}, indent=1)
        with writing() as outputs:
            # Private: limits name values of the table.
            outputs.write_text(text + "\n", self._folder / "experiment.json")

    def results(self, experiment: Experiment, runs: Sequence[Run]) -> Results:
        """Return the table of the runs that have ended; write it, if there is a folder."""
        found = self._table(experiment, map(_names, runs))
        if self._folder is not None:
            with writing() as outputs:
                place = outputs.stage(self._folder / "results.parquet", public=True)
                table = pa.Table.from_pandas(found.frame, _SCHEMA, preserve_index=False)
                pq.write_table(table.replace_schema_metadata(None), place)
                text = found.frame.to_csv(index=False)
                outputs.write_text(text, self._folder / "results.csv", public=True)
        return found

    def _table(self, experiment: Experiment, listed: Iterable[Mapping[str, Any]]) -> Results:
        rows: list[Row] = []
        count = 0
        for names in listed:
            count += names["label"] is not None
            row = self.get(str(names["key"]))
            if row is not None:
                rows.append({**row, **names})
        return Results(experiment, frame_of(share_bounds(rows)), count)


def _names(run: Run) -> Row:
    """Return the key of a run and what is no part of it: a change of names changes that alone."""
    return {
        "key": run.key,
        "experiment": run.experiment.name,
        "instance": run.table.title,
        "label": None if run.choice is None else run.choice.title,
        "repetition": run.repetition,
    }


def read_results(folder: str | Path) -> Results:
    """Return the table of a folder, of an experiment that has ended or is going on.

    Raises InputError if the folder holds no experiment.
    """
    file = Path(folder) / "experiment.json"
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        experiment = Experiment.from_dict(written["experiment"], file=file)
        listed = list(written["runs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{folder} holds no experiment ({type(error).__name__})",
            remedy="Name the folder that 'anonymip experiment -o' wrote",
        ) from None
    return RunStore(Path(folder))._table(experiment, listed)


def _read_row(file: Path) -> Row | None:
    if not file.is_file():
        return None
    try:
        (row,) = pq.read_table(file, schema=_SCHEMA).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"{file} is no row of an experiment ({type(error).__name__})",
            remedy="Remove it: the run is then done again",
        ) from None
    return dict(row)


def share_bounds(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of methods, each with the best bound that any row proves for its problem.

    A release that loses no more than one which is proven optimal is optimal too.
    """
    everything = list(rows)
    best: dict[str, Row] = {}
    optimum: dict[str, float] = {}
    for row in everything:
        problem = row["problem"]
        if row["bound"] is not None:
            known = best.setdefault(problem, row)
            best[problem] = row if row["bound"] > known["bound"] else known
        if row["status"] == Stopped.OPTIMAL.value:
            optimum[problem] = min(row["loss"], optimum.get(problem, np.inf))
    shared = []
    for row in everything:
        if row["method"] == BOUND:
            continue
        row = dict(row)
        proven = best.get(row["problem"])
        if row["loss"] is not None and proven is not None:
            _set_bound(row, proven, optimum.get(row["problem"]))
        shared.append(row)
    return shared


def _set_bound(row: Row, proven: Row, optimum: float | None) -> None:
    loss = row["loss"]
    if contradicts(loss, proven["bound"]):
        raise AnonymipError(
            f"the bound {proven['bound']!r} ({proven['bound_by']}) exceeds the "
            f"loss {loss!r} of {row['label']} on {row['instance']}, k = {row['k']}",
            remedy="This is an error of the program; please report it",
        )
    if optimum is not None and (loss <= optimum or same_loss(loss, optimum)):
        row["status"] = Stopped.OPTIMAL.value
    value = min(proven["bound"], loss)
    row.update(bound=value, bound_by=proven["bound_by"], proof=proven["proof"])
    row["gap"] = relative_gap(loss, Bound(value, proven["bound_by"], proven["proof"]))


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as a table with the columns of an experiment; what a row lacks is missing."""
    columns = {
        name: pd.Series([row.get(name) for row in rows], dtype=_FRAME_TYPES[kind])
        for name, kind in COLUMNS.items()
    }
    return pd.DataFrame(columns)


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as records for JSON; what is missing is null."""
    plain = frame.astype(object).where(frame.notna(), None)
    records: list[dict[str, Any]] = []
    for row in plain.to_dict("records"):
        record = {str(name): value for name, value in row.items()}
        for name in JSON_COLUMNS:
            if record.get(name) is not None:
                record[name] = json.loads(record[name])
        records.append(record)
    return records
