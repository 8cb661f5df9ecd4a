"""Commands that answer questions about a table: solve, compare, bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli import stars
from anonymip.cli.checkpoints import Keeping
from anonymip.cli.console import (
    err,
    human,
    print_table,
    say,
    showing_progress,
    write_json,
)
from anonymip.experiments import bound_record, solution_record
from anonymip.experiments import compare as compare_methods
from anonymip.experiments.comparison import COLUMNS
from anonymip.experiments.thermometer import refuse_format, save_figure, thermometer
from anonymip.files import writing
from anonymip.problem import Problem
from anonymip.solution import bound_text, says_nothing
from anonymip.solving import lower_bound
from anonymip.solving import solve as solve_problem

K = Annotated[int, typer.Option("-k", help="Records that must look alike.")]


def solve(
    instance: given.Instance,
    k: K,
    method: Annotated[str, typer.Option("--method", help="See 'anonymip methods'.")] = "auto",
    recoding: given.RecodingName = None,
    suppression: given.Suppression = False,
    l_diversity: given.LDiversity = None,
    distinct_diversity: given.DistinctDiversity = None,
    t_closeness: given.Closeness = None,
    ordered_closeness: given.OrderedCloseness = False,
    cap: given.Caps = None,
    apart: given.Aparts = None,
    suppress_at_most: stars.SuppressAtMost = None,
    never: stars.Never = None,
    together: stars.Together = None,
    at_most_one: stars.AtMostOne = None,
    allow_all_stars: stars.AllowAllStars = False,
    single_use: stars.SingleUse = False,
    suppression_cost: stars.SuppressionCosts = None,
    most_suppressed: stars.MostSuppressed = None,
    objective: given.ObjectiveName = "gcp",
    warm_start: Annotated[
        str | None, typer.Option("--warm-start", help="Heuristic that an exact method starts from.")
    ] = None,
    time_limit: given.TimeLimit = None,
    gap: given.Gap = 0.0,
    solver: given.SolverName = "highs",
    threads: given.Threads = 1,
    seed: given.Seed = 0,
    option: given.MethodOptions = None,
    checkpoint: given.CheckpointFile = None,
    resume: given.Resume = False,
    log: Annotated[Path | None, typer.Option("--log", help="File for the solver's log.")] = None,
    schema: given.SchemaFile = None,
    quasi_identifier: given.QuasiIdentifiers = None,
    sensitive: given.Sensitive = None,
    keep: given.Keep = None,
    drop: given.Drop = None,
    missing: given.Missing = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Solve one problem and say how far from optimal the solution is."""
    keeping = Keeping.of(method, checkpoint, resume, None)
    sources = given.sources_of(instance, schema, objective)
    given.refuse_targets(sources, json, log, *keeping.files)
    asked = stars.StarRules(
        suppress_at_most,
        never,
        together,
        at_most_one,
        allow_all_stars,
        single_use,
        suppression_cost,
        most_suppressed,
    ).beside(given.mask_section(instance, schema))
    chosen = given.choose_recoding(recoding, suppression, method, stars=asked)
    data = given.load_table(instance, schema, quasi_identifier, sensitive, keep, drop, missing)
    problem = given.make_problem(
        data,
        k,
        chosen,
        objective,
        given.Rules(l_diversity, distinct_diversity, cap, apart, t_closeness, ordered_closeness),
        asked,
    )
    options = given.options_of(method, given.parse_options(option))
    if warm_start is not None:
        options = {**options, "warm_start": warm_start}
    with showing_progress() as progress:
        solution = solve_problem(
            problem,
            method,
            time_limit=time_limit,
            gap=gap,
            solver=solver,
            threads=threads,
            seed=seed,
            log=log,
            options=options,
            progress=progress,
            **keeping.settings,
        )
    write_json([solution_record(solution, instance)], json)
    remark = keeping.finish(solution)
    say(human(json), solution.summary())
    if remark is not None:
        say(human(json), remark)


def compare(
    instance: given.Instance,
    k: Annotated[str, typer.Option("-k", help="Values of k: 5, 2-6 or 2,5,10.")],
    methods: Annotated[
        str, typer.Option("--methods", help="Names with commas; default: all heuristics.")
    ] = "",
    exact: Annotated[bool, typer.Option("--exact", help="Run the exact method too.")] = False,
    recoding: given.RecodingName = None,
    suppression: given.Suppression = False,
    l_diversity: given.LDiversity = None,
    distinct_diversity: given.DistinctDiversity = None,
    t_closeness: given.Closeness = None,
    ordered_closeness: given.OrderedCloseness = False,
    cap: given.Caps = None,
    apart: given.Aparts = None,
    suppress_at_most: stars.SuppressAtMost = None,
    never: stars.Never = None,
    together: stars.Together = None,
    at_most_one: stars.AtMostOne = None,
    allow_all_stars: stars.AllowAllStars = False,
    single_use: stars.SingleUse = False,
    suppression_cost: stars.SuppressionCosts = None,
    most_suppressed: stars.MostSuppressed = None,
    objective: given.ObjectiveName = "gcp",
    time_limit: given.TimeLimit = None,
    gap: given.Gap = 0.0,
    solver: given.SolverName = "highs",
    threads: given.Threads = 1,
    seed: given.Seed = 0,
    option: given.MethodOptions = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Gap thermometer: .png, .svg or .pdf.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the table as CSV.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the table in Markdown.")
    ] = None,
    schema: given.SchemaFile = None,
    quasi_identifier: given.QuasiIdentifiers = None,
    sensitive: given.Sensitive = None,
    keep: given.Keep = None,
    drop: given.Drop = None,
    missing: given.Missing = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Compare methods with each other and with the optimum, or the best bound on it."""
    ks = given.parse_ks(k)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    given.refuse_targets(given.sources_of(instance, schema, objective), plot, csv, markdown, json)
    if plot is not None:
        refuse_format(plot)
    data = given.load_table(instance, schema, quasi_identifier, sensitive, keep, drop, missing)
    asked = stars.StarRules(
        suppress_at_most,
        never,
        together,
        at_most_one,
        allow_all_stars,
        single_use,
        suppression_cost,
        most_suppressed,
    ).beside(given.mask_section(instance, schema))
    problem = given.make_problem(
        data,
        ks[0],
        given.choose_recoding(recoding, suppression, *names, stars=asked),
        objective,
        given.Rules(l_diversity, distinct_diversity, cap, apart, t_closeness, ordered_closeness),
        asked,
    )
    with showing_progress() as progress:
        comparison = compare_methods(
            problem,
            ks,
            names,
            instance=instance,
            exact=exact,
            options=given.parse_options(option),
            time_limit=time_limit,
            gap=gap,
            solver=solver,
            threads=threads,
            seed=seed,
            progress=progress,
        )
    records = [solution_record(row.solution, instance) for row in comparison.rows]
    with writing() as outputs:
        if plot is not None:
            save_figure(thermometer(comparison), plot, outputs)
        if csv is not None:
            outputs.write_text(comparison.to_frame().to_csv(index=False), csv)
        if markdown is not None:
            outputs.write_text(comparison.to_markdown(), markdown)
        write_json(records, json, outputs)
    print_table(human(json), COLUMNS, comparison.texts())
    for size, name, reason in comparison.failures:
        say(err, f"k = {size}, {name}: no solution: {reason}")
    if not comparison.complete:
        say(err, "interrupted: the methods and values of k that are missing were not run")


def bound(
    instance: given.Instance,
    k: K,
    recoding: given.RecodingName = None,
    suppression: given.Suppression = False,
    l_diversity: given.LDiversity = None,
    distinct_diversity: given.DistinctDiversity = None,
    t_closeness: given.Closeness = None,
    ordered_closeness: given.OrderedCloseness = False,
    cap: given.Caps = None,
    apart: given.Aparts = None,
    suppress_at_most: stars.SuppressAtMost = None,
    never: stars.Never = None,
    together: stars.Together = None,
    at_most_one: stars.AtMostOne = None,
    allow_all_stars: stars.AllowAllStars = False,
    single_use: stars.SingleUse = False,
    suppression_cost: stars.SuppressionCosts = None,
    most_suppressed: stars.MostSuppressed = None,
    objective: given.ObjectiveName = "gcp",
    time_limit: given.TimeLimit = None,
    gap: given.Gap = 0.0,
    solver: given.SolverName = "highs",
    threads: given.Threads = 1,
    seed: given.Seed = 0,
    schema: given.SchemaFile = None,
    quasi_identifier: given.QuasiIdentifiers = None,
    sensitive: given.Sensitive = None,
    keep: given.Keep = None,
    drop: given.Drop = None,
    missing: given.Missing = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Print a proven lower bound on the loss of any release.

    The bound of this version needs no solver: --gap, --solver, --threads and --seed change
    nothing.
    """
    given.refuse_targets(given.sources_of(instance, schema, objective), json)
    data = given.load_table(instance, schema, quasi_identifier, sensitive, keep, drop, missing)
    asked = stars.StarRules(
        suppress_at_most,
        never,
        together,
        at_most_one,
        allow_all_stars,
        single_use,
        suppression_cost,
        most_suppressed,
    ).beside(given.mask_section(instance, schema))
    problem = given.make_problem(
        data,
        k,
        given.choose_recoding(recoding, suppression, stars=asked),
        objective,
        given.Rules(l_diversity, distinct_diversity, cap, apart, t_closeness, ordered_closeness),
        asked,
    )
    with showing_progress() as progress:
        proven = lower_bound(problem, time_limit=time_limit, progress=progress)
    write_json([bound_record(problem, proven, instance)], json)
    if proven is None:
        say(human(json), f"no lower bound: {_why_no_bound(problem)}")
        return
    if says_nothing(problem, proven):
        below = bound_text(proven.value, 7)
        say(human(json), f"no lower bound above {problem.objective.name} = {below} is known")
        return
    cells = problem.n * problem.m
    name = problem.objective.name
    is_gcp = name == "gcp"
    as_gcp = f" (gcp {bound_text(proven.value / cells, 7)})" if is_gcp else ""
    say(
        human(json),
        f"no {problem.release_name} can lose less than "
        f"{name} = {bound_text(proven.value, 7)}{as_gcp}\n"
        f"by {proven.method} (proof: {proven.proof}), {proven.seconds:.2f} s",
    )


def _why_no_bound(problem: Problem) -> str:
    if problem.compiled.obstacle is not None:
        return f"of the loss {problem.objective.name!r}, {problem.compiled.obstacle}"
    if not problem.compiled.has_tables:
        return f"the loss {problem.objective.name!r} is no sum of terms of one attribute each"
    return f"recoding {problem.recoding.name} does not say as what its releases are verified"
