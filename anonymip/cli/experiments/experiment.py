"""The command that runs an experiment, and how results are printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli.console import (
    err,
    human,
    print_table,
    say,
    say_run,
    showing_progress,
    write_json,
)
from anonymip.cli.tables import refuse_targets
from anonymip.errors import Interrupted, NoSolution
from anonymip.files import writing

if TYPE_CHECKING:
    from anonymip.experiments import Results


def experiment(
    specification: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC.toml",
            help="What to run; see docs/experiments.md. If its objective is FILE.py:NAME, the file "
            "is run.",
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder of the results; default: the name of SPEC."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Worker processes at a time.")] = 1,
    report: given.RunsReport = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Run an experiment, from where it stopped; every run is kept as soon as it has ended."""
    from anonymip.experiments import Experiment, run_experiment
    from anonymip.experiments.running.results import records_of

    refuse_targets([specification], report, json)
    asked = Experiment.from_toml(specification)
    folder = Path(specification.stem) if output is None else output
    if asked.objective_file is not None:
        say_run(asked.objective_file)
    with showing_progress() as progress:
        results = run_experiment(asked, folder, jobs=jobs, progress=progress)
    with writing() as outputs:
        if report is not None and len(results.frame):
            from anonymip.experiments.pages import runs_page

            outputs.write_text(runs_page(results.frame, asked.name), report, public=True)
        write_json(records_of(results.frame), json, outputs)
    print_results(results, json)
    say(human(json), f"\n{len(results.frame)} of {results.runs} runs are in {folder}")


def print_results(results: Results, json: str | None) -> None:
    """Print the overview of what was found, and why nothing was found where that is so.

    Raises
    ------
    NoSolution
        If no run found anything.
    Interrupted
        If no run has ended.
    """
    from anonymip.experiments.overview import COLUMNS, overview_texts, reasons

    if not len(results.frame):
        raise Interrupted("no run has ended")
    texts = overview_texts(results.frame)
    skipped = len({row[0] for row in texts}) == 1
    if skipped:
        say(human(json), f"{texts[0][0]}\n")
    print_table(human(json), COLUMNS[skipped:], [row[skipped:] for row in texts])
    for reason in reasons(results.frame):
        say(err, reason)
    if not results.complete:
        say(err, f"interrupted: {results.runs - len(results.frame)} runs are missing")
    if results.complete and results.frame["loss"].isna().all():
        raise NoSolution("no method found a solution", remedy="The lines above say why, run by run")
