"""Commands about losses, bounds and proofs: solve, bound, export, certify, check-certificate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli import completion
from anonymip.cli.console import human, out, print_table, say, showing_progress, write_json
from anonymip.cli.options import METHOD, an_option, spread
from anonymip.cli.tables import refuse_targets
from anonymip.files import writing

if TYPE_CHECKING:
    from anonymip.problem import Problem


@spread
def solve(
    instance: given.Instance,
    k: given.K = None,
    *,
    question: given.Question,
    warm_start: str | None = an_option(
        None, "Heuristic that an exact method starts from.", rich_help_panel=METHOD
    ),
    settings: given.SolverOptions,
    chosen: given.ChosenMethod,
    log: Path | None = an_option(None, "File for the solver's log."),
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Solve one problem and say how far from optimal the solution is."""
    from anonymip.anonymization import LEAST_SHARE
    from anonymip.experiments.records import solution_record
    from anonymip.runtime.kernels import preparing_kernels
    from anonymip.solving import solve as solve_problem
    from anonymip.warm_up import prepare

    whole = settings.budget(given.command_clock())
    keeping = chosen.keeping(None)
    sources = question.sources(instance)
    refuse_targets(sources, json, log, *keeping.files)
    problem = question.problem(instance, k, chosen.method)
    options = chosen.options()
    if warm_start is not None:
        options = {**options, "warm_start": warm_start}
    with showing_progress() as progress, preparing_kernels(prepare):
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
    method: str | None = an_option(
        None, "column-generation: by its linear program; default: what the effort suggests."
    ),
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
    # What is summed is called ncp, gcp its mean.
    name = "ncp" if problem.objective.name == "gcp" else problem.objective.name
    least = f"{name} = {bound_text(proven.value, 7)}"
    if says_nothing(problem, proven):
        say(human(json), f"no lower bound above {least} is known")
        return
    gcp = bound_text(proven.value / (problem.n * problem.m), 7)
    as_gcp = f" (gcp {gcp})" if name == "ncp" else ""
    say(
        human(json),
        f"no {problem.release_name} can lose less than {least}{as_gcp}\n"
        f"by {proven.method} (proof: {proven.proof}), {proven.seconds:.2f} s",
    )


def _why_no_bound(problem: Problem) -> str:
    if problem.compiled.obstacle is not None:
        return f"of the loss {problem.objective.name!r}, {problem.compiled.obstacle}"
    if not problem.compiled.has_tables:
        return f"the loss {problem.objective.name!r} is no sum of terms of one attribute each"
    return f"recoding {problem.recoding.name} does not say as what its releases are verified"


@spread
def export(
    instance: given.Instance,
    k: given.K = None,
    *,
    output: Path = an_option(..., "The model: an .lp, .mps or .nl file.", "-o", "--output"),
    method: str = an_option(
        "equivalence-mip", "The method whose model is meant.", autocompletion=completion.method
    ),
    question: given.Question,
    option: given.MethodOptions = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Write the model that a method would solve, for solvers and tools of your own."""
    from anonymip.experiments.records import model_record
    from anonymip.methods.acceptance import model_of
    from anonymip.models.export import export_files, export_model

    files = export_files(output)
    refuse_targets(question.sources(instance), *files, json)
    problem = question.problem(instance, k, method)
    options = given.options_of(method, given.parse_options(option))
    model = model_of(problem, method, options)
    with writing() as outputs:
        written = export_model(model, output, outputs)
        record = model_record(problem, instance, method, model.formulation, written)
        write_json([record], json, outputs)
    console = human(json)
    say(
        console,
        f"{written.rows:,} rows, {written.columns:,} columns ({written.integer_columns:,} "
        f"integer), {written.nonzeros:,} non-zeros",
    )
    print_table(
        console,
        ("name", "entries", "meaning"),
        [(name, f"{count:,}", doc) for name, count, doc in written.components],
    )
    say(console, _legend(problem))
    say(console, "The file holds values of the table: it is as private as the table.")
    say(console, f"written: {', '.join(map(str, written.files))}")


def _legend(problem: Problem) -> str:
    """Say what the numbers in the names of rows and columns mean."""
    data = problem.microdata
    attributes = ", ".join(f"{number} {name}" for number, name in enumerate(data.names))
    counted = "the rows of the table"
    if data.n < len(data.original):
        counted += " that have no missing values"
    return (
        f"Numbers in names count from 0: records are {counted} in their order, attributes are "
        f"{attributes}; values are the ranks of those observed."
    )


@spread
def certify(
    instance: given.Instance,
    k: given.K = None,
    *,
    output: Path = an_option(..., "The certificate; check.py goes beside it.", "-o", "--output"),
    method: given.MethodName = "column-generation",
    question: given.Question,
    settings: given.SolverOptions,
    option: given.MethodOptions = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Solve one problem and write a proof of the bound that needs no trust in solvers.

    A time limit holds for the solution, and again for the proof.
    """
    from anonymip.certificates.exact_loss import exact_problem, rules_of, without_rules
    from anonymip.exact.certifying import certify as certify_solution
    from anonymip.exact.certifying.certificate import checker_beside
    from anonymip.experiments.records import solution_record
    from anonymip.solving import solve

    checker = checker_beside(output)
    refuse_targets(question.sources(instance), output, checker, json)
    problem = question.problem(instance, k, method)
    exact_problem(without_rules(problem))  # refuses, before any work, what cannot be certified
    with writing() as outputs:
        with showing_progress() as progress:
            solution = solve(
                problem,
                method,
                **asdict(settings),
                options=given.options_of(method, given.parse_options(option)),
                progress=progress,
            )
            certificate = certify_solution(
                solution, time_limit=settings.time_limit, progress=progress
            )
            solution = certificate.solution or solution
        certificate.stage(output, outputs)
        write_json([solution_record(solution, instance)], json, outputs)
    console = human(json)
    say(console, solution.summary())
    say(console, f"certified: {certificate.sentence()}")
    for rule in rules_of(problem):
        say(console, f"not part of the proof, which holds with and without it: {rule}")
    say(console, f"written: {output}, {checker}")
    say(console, "The certificate holds values of the table: it is as private as the table.")


def check_certificate(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="The file that certify wrote.")
    ],
) -> None:
    """Prove again what a certificate says, as the check.py beside it does."""
    from anonymip.exact.certifying import check_certificate as check

    say(out, check(certificate).sentence())
