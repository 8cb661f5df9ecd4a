"""The work of the page, done in processes of its own: each can be stopped, and none blocks a page.

What tasks return is plain data, ready for JSON: the server itself loads no library of tables.
"""

from __future__ import annotations

import logging
import threading
import time
import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from anonymip.app.question import Asked
from anonymip.app.texts import capital, say
from anonymip.errors import AnonymipError, InputError
from anonymip.runtime.budget import GRACE, Budget, Progress
from anonymip.runtime.worker_pool import Killed, run_isolated

Data = dict[str, Any]
Task = Callable[[Budget], Any]

_LOG = logging.getLogger("anonymip")
#: Seconds in which a stopped run publishes, writes and verifies the best that it found.
_ENDING = 300.0
#: Rows of a preview, and values of a column that a page lists.
_ROWS, _VALUES = 6, 500


class Job:
    """Tasks in a row, done beside the page; what each returns is handed on when it is there.

    `what`: what is done, for people. `tasks`: by a label. `done`: called in the job's own thread
    with label and result. `ended`: called there at last, however it went. `keeps`: whether what a
    task found until it is stopped is worth waiting for.
    """

    def __init__(
        self,
        what: str,
        tasks: Mapping[Any, Task],
        done: Callable[[Any, Any], None],
        ended: Callable[[], None] = lambda: None,
        *,
        keeps: bool = False,
    ) -> None:
        self.what, self._tasks, self._done, self._ended = what, tasks, done, ended
        self.keeps = keeps
        self.progress, self.error, self.share = Progress(""), "", 0.0
        self.running, self._began = True, time.monotonic()
        self._budget = Budget(progress=self._hear)
        self._thread = threading.Thread(target=self._run, name="anonymip-job", daemon=True)

    def start(self) -> Job:
        """Begin."""
        self._thread.start()
        return self

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._budget.is_interrupted

    def stop(self) -> None:
        """Have it end as soon as it can, with what there is."""
        self._budget.interrupt()

    def wait(self, seconds: float | None = None) -> None:
        """Wait for its end."""
        self._thread.join(seconds)

    def _hear(self, progress: Progress) -> None:
        self.progress = progress

    def _run(self) -> None:
        try:
            for number, (label, task) in enumerate(self._tasks.items()):
                self.share = number / len(self._tasks)
                if self.stopping:
                    break
                grace = _ENDING if self.keeps else GRACE
                found = run_isolated(task, None, self._budget, grace=grace)
                if isinstance(found, Killed):
                    self.error = say("job.nothing")
                    break
                self._done(label, found)
        except AnonymipError as error:
            # The page is for the owner of the table: she may see the value that is wrong.
            self.error = f"{capital(error.render(show_values=True))}."
        except Exception as error:  # noqa: BLE001 - told, and the page goes on
            _LOG.exception("a task of the page failed")
            self.error = say("job.failed", error=type(error).__name__)
        finally:
            self._ended()
            self.running = False


def look_at(folder: Path, table: str, schema: str | None, budget: Budget) -> Data:
    """Look at a table; a schema says what its columns are."""
    from anonymip.instances import inspect, read_schema, read_table
    from anonymip.instances.columns import missing_rows

    budget.report(say("job.reading"))
    given: Data = {}
    declared = None if schema is None else read_schema(folder / schema)
    if declared is not None:
        if declared.pseudonyms or declared.mask:
            raise InputError(say("table.unknown"))
        keys = ("separator", "encoding", "decimal", "missing", "sheet")
        given = {key: getattr(declared.table, key) for key in keys}
    found = inspect(folder / table, **given)
    text = found.to_toml() if schema is None else (folder / schema).read_text("utf-8")
    frame = read_table(folder / table, found.table)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if declared is not None:
        declared.apply(frame)
    columns = []
    for one in found.columns:
        values = frame[one.name][~missing_rows(frame[one.name], found.table.missing)]
        seen = _ends(values, found.table) if one.kind == "numeric" else None
        listed = sorted(values.astype(str).unique()) if one.distinct <= _VALUES else None
        columns.append({**asdict(one), "seen": seen, "values": listed})
    head = frame.head(_ROWS).astype(object).map(_shown).to_numpy().tolist()
    return {
        "rows": found.rows,
        "format": str(found).partition("\n")[0],
        "columns": columns,
        "head": head,
        "schema": tomllib.loads(text),
    }


def _shown(value: object) -> str:
    return "" if value is None or value != value else str(value)


def _ends(values: Any, form: Any) -> list[str]:
    import pandas as pd

    numbers = pd.to_numeric(form.pointed(values), errors="coerce").dropna()
    return [f"{numbers.min():.10g}", f"{numbers.max():.10g}"] if len(numbers) else []


def bring(folder: Path, instance: str, budget: Budget) -> Data:
    """Write a built-in table into a folder, and look at it."""
    from anonymip.instances import load_instance
    from anonymip.instances.readers import as_pandas

    budget.report(say("job.reading"))
    table = builtin_file(instance)
    as_pandas(load_instance(instance).original).to_csv(folder / table, index=False)
    return {**look_at(folder, table, None, budget), "table": table}


def builtin_file(instance: str) -> str:
    """Return the name of the file that a built-in table is written to."""
    return "".join(sign if sign.isalnum() else "-" for sign in instance) + ".csv"


def write_hierarchy(
    folder: Path, table: str, schema: str, column: str, path: Path, budget: Budget
) -> str:
    """Write the hierarchy of a column into a file."""
    import csv

    from anonymip.files import writing
    from anonymip.instances import read_schema

    budget.report(say("job.reading"))
    with writing() as outputs:
        (folder / "schema.toml").write_bytes(schema.encode())
        data = read_schema(folder / "schema.toml").read(folder / table)
        hierarchies = {one.name: one.hierarchy for one in data.attributes}
        paths = () if (made := hierarchies[column]) is None else made.paths
        with outputs.stage(path).open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter=";", lineterminator="\n").writerows(paths)
    return path.name


def weigh(folder: Path, table: str, schema: str, asked: Asked, k: int, budget: Budget) -> Data:
    """Find the loss at one k, and what no release can be below."""
    from anonymip.solving import solve

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        question = asked.question(folder / schema)
        problem = question.problem(str(folder / table), k, "auto")
        solution = solve(problem, budget=budget, effort="quick")
    # Losses are sums over cells, or of weights that add up to 1 in each record.
    as_share = problem.n * (1 if asked.weighted else problem.m)
    bound = None if solution.bound is None else solution.bound.value
    return {
        "loss": solution.objective / as_share,
        "bound": None if bound is None else bound / as_share,
        "optimal": solution.is_optimal,
        "suppressed": solution.assignment.suppressed,
    }


def make_release(
    folder: Path, table: str, schema: str, asked: Asked, name: str, budget: Budget
) -> Data:
    """Make a release, its manifest and its report under a name."""
    from anonymip.cli.tasks import stage_release
    from anonymip.experiments.report import html_report
    from anonymip.files import writing
    from anonymip.publishing.release import what_is_gone
    from anonymip.solution import gap_in_words

    release_file, report = folder / f"{name}{asked.ending}", folder / f"{name}.html"
    with writing() as outputs, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = stage_release(
            str(folder / table),
            asked.k,
            asked.question(folder / schema),
            release_file,
            outputs,
            budget,
            effort=asked.effort,
        )
        budget.report(say("job.reporting"))
        command = asked.command(table, schema, name)
        outputs.write_text(html_report(release, table, command=command), report, public=True)
    solution = release.solution
    cautions = [str(one.message) for one in caught if "anonymip" in type(one.message).__module__]
    return {
        "sentence": solution.sentence(),
        "gap": gap_in_words(solution),
        "found": solution.summary().split("\n")[1:],
        "attention": solution.many_suppressed,
        "cautions": list(dict.fromkeys([*cautions, *what_is_gone(release, show_names=True)])),
        "few": release.few_rows(),
        "figures": _figures(release),
        "verified": judge(folder, table, schema, release_file.name, budget),
        "asked": asdict(asked),
    }


def _figures(release: Any) -> list[tuple[str, str]]:
    """Return the figures by which two releases are compared."""
    from anonymip.experiments.measures import attribute_losses
    from anonymip.solution import gap_in_words

    solution = release.solution
    figures = [
        ("k", str(solution.problem.k)),
        (say("figures.recoding"), solution.problem.recoding.name),
        (say("figures.rows"), f"{len(release.table):,}"),
        (say("figures.suppressed"), f"{solution.assignment.suppressed:,}"),
        (say("figures.loss"), f"{100 * solution.gcp:.2f} %"),
        (say("figures.gap"), gap_in_words(solution)),
    ]
    try:
        risk = release.risk(draws=0)
    except InputError as error:
        figures.append((say("figures.risk"), error.message))
    else:
        figures += [] if risk.after is None else list(risk.after.lines(risk.k).items())
    losses = attribute_losses(solution)
    return figures + [
        (say("figures.column", name=name), f"{100 * loss:.2f} %") for name, loss in losses.items()
    ]


def judge(folder: Path, table: str, schema: str, release: str, budget: Budget) -> Data:
    """Have the verifier judge files."""
    from anonymip.privacy import verify

    budget.report(say("job.verifying"))
    found = verify(folder / table, folder / release, schema=folder / schema)
    return {"ok": found.ok, "told": found.summary()}


def loading(budget: Budget) -> None:
    """Load what all tasks need, before the first one asks for it."""
    import anonymip.cli.tasks
    import anonymip.experiments.report
    import anonymip.solving  # noqa: F401
