"""Commands that answer questions about a table: solve, bound."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli.arguments import spread
from anonymip.cli.console import human, say, showing_progress, write_json
from anonymip.cli.tables import refuse_targets

if TYPE_CHECKING:
    from anonymip.problem import Problem


@spread
def solve(
    instance: given.Instance,
    k: given.K = None,
    *,
    question: given.Question,
    warm_start: Annotated[
        str | None,
        typer.Option(help="Heuristic that an exact method starts from.", rich_help_panel="Method"),
    ] = None,
    settings: given.SolverOptions,
    chosen: given.ChosenMethod,
    log: Annotated[Path | None, typer.Option(help="File for the solver's log.")] = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Solve one problem and say how far from optimal the solution is."""
    from anonymip.anonymization import LEAST_SHARE
    from anonymip.experiments.records import solution_record
    from anonymip.solving import solve as solve_problem

    whole = settings.budget(given.command_clock())
    keeping = chosen.keeping(None)
    sources = question.sources(instance)
    refuse_targets(sources, json, log, *keeping.files)
    problem = question.problem(instance, k, chosen.method)
    options = chosen.options()
    if warm_start is not None:
        options = {**options, "warm_start": warm_start}
    with showing_progress() as progress:
        whole.progress = progress
        solution = solve_problem(
            problem,
            chosen.method,
            **asdict(settings),
            log=log,
            options=options,
            # What took longer than the limit to read is solved all the same, if in haste.
            budget=whole.leaving(0.0, least=LEAST_SHARE * (settings.time_limit or 0.0)),
            **keeping.settings,
        )
    write_json([solution_record(solution, instance)], json)
    remark = keeping.finish(solution)
    say(human(json), solution.summary())
    if remark is not None:
        say(human(json), remark)


@spread
def bound(
    instance: given.Instance,
    k: given.K = None,
    *,
    method: Annotated[
        str | None,
        typer.Option(
            help="column-generation: by its linear program; default: what the effort suggests."
        ),
    ] = None,
    question: given.Question,
    settings: given.SolverOptions,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Print a proven lower bound on the loss of any release.

    No solver is chosen for it: --gap, --solver, --threads and --seed change nothing.
    """
    from anonymip.experiments.records import bound_record
    from anonymip.solution import bound_text, says_nothing
    from anonymip.solving import lower_bound

    whole = settings.budget(given.command_clock())
    refuse_targets(question.sources(instance), json)
    problem = question.problem(instance, k, *([] if method is None else [method]))
    with showing_progress() as progress:
        whole.progress = progress
        proven = lower_bound(problem, method=method, effort=settings.effort, budget=whole)
    write_json([bound_record(problem, proven, instance)], json)
    if proven is None:
        say(human(json), f"no lower bound: {_why_no_bound(problem)}")
        return
    if says_nothing(problem, proven):
        below = f"{_sum_name(problem)} = {bound_text(proven.value, 7)}"
        say(human(json), f"no lower bound above {below} is known")
        return
    name, cells = _sum_name(problem), problem.n * problem.m
    as_gcp = f" (gcp {bound_text(proven.value / cells, 7)})" if name == "ncp" else ""
    say(
        human(json),
        f"no {problem.release_name} can lose less than "
        f"{name} = {bound_text(proven.value, 7)}{as_gcp}\n"
        f"by {proven.method} (proof: {proven.proof}), {proven.seconds:.2f} s",
    )


def _sum_name(problem: Problem) -> str:
    """Return what the loss that is summed is called: gcp is the mean of the ncp."""
    return "ncp" if problem.objective.name == "gcp" else problem.objective.name


def _why_no_bound(problem: Problem) -> str:
    if problem.compiled.obstacle is not None:
        return f"of the loss {problem.objective.name!r}, {problem.compiled.obstacle}"
    if not problem.compiled.has_tables:
        return f"the loss {problem.objective.name!r} is no sum of terms of one attribute each"
    return f"recoding {problem.recoding.name} does not say as what its releases are verified"
