"""Commands that make, check and measure releases: demo, inspect, anonymize, verify, risk."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from anonymip.cli import arguments as given
from anonymip.cli.console import (
    err,
    human,
    out,
    print_table,
    say,
    showing_progress,
    visible,
    write_json,
)
from anonymip.cli.options import PARTS, an_option, spread
from anonymip.cli.tables import (
    FormatOptions,
    MissingValues,
    SchemaFile,
    TableOptions,
    called,
    missing_tokens,
    named_table,
    refuse_targets,
    table_file,
)
from anonymip.errors import InputError, argument
from anonymip.files import Outputs, scratch_folder, writing
from anonymip.runtime.budget import Budget, MachineClock

if TYPE_CHECKING:
    from anonymip.privacy import Verification
    from anonymip.publishing.release import Release
    from anonymip.recodings import Recoding
    from anonymip.scale.engines import Engine

#: Methods that run in a moment where all kernels have to be compiled first.
_DEMO_METHODS = (
    *("initial", "ordered-cut", "greedy-search", "k-member", "mondrian"),
    *("hilbert", "hp", "forest"),
)
#: What the demo writes, apart from the release's manifest.
_DEMO_FILES = ("release.csv", "report.html", "comparison.md", "comparison.csv", "gap.png")


@dataclass(frozen=True)
class ReleaseOptions:
    """The options that say what a release looks like."""

    publish_suppressed: bool = an_option(
        False,
        "Publish suppressed records as rows of stars, if they are at least k; default: leave them "
        "out.",
    )
    layout: str = an_option("cells", "cells: [35..37]; columns: lower and upper columns.")
    keep_order: bool = an_option(False, "Do not shuffle the rows.")
    escape_formulas: bool = an_option(
        False, "Put an apostrophe before what a spreadsheet would run as a formula."
    )
    pseudonym_key: Path | None = an_option(
        None, "File with the key of the pseudonyms; default: a new one, which nobody keeps."
    )

    def suppressed_as(self, recoding: Recoding) -> str:
        """Return what becomes of suppressed records, as :func:`anonymip.publish` takes it."""
        if self.publish_suppressed and not getattr(recoding, "suppression", False):
            raise InputError(
                "--publish-suppressed is given, and no records may be suppressed",
                remedy="Add --suppression, or leave it out",
            )
        return "starred" if self.publish_suppressed else "left-out"


@dataclass(frozen=True)
class EngineOptions:
    """The options that say by whom a table is worked on that is solved by parts."""

    panel: ClassVar[str] = PARTS

    engine: str | None = an_option(
        None,
        "local: by parts on this machine; dask: on a cluster; auto: local, in one part if memory "
        "is enough; default: the whole table at once.",
    )
    scheduler: str | None = an_option(None, "Of Dask: tcp://host:8786; default: a cluster here.")
    workers: int | None = an_option(None, "Processes here.")
    memory_per_worker: str | None = an_option(None, "Of a cluster here, such as 2GiB.")
    part_rows: int | None = an_option(None, "Rows of a part, at most; default: 250000.")
    scratch: Path | None = an_option(None, "Folder for rows by part, which every worker sees.")

    def chosen(self) -> Engine | None:
        """Return the engine that is asked for; None for the whole table at once."""
        from anonymip.scale.engines import Engine

        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "engine"}
        given = {name: one for name, one in given.items() if one is not None}
        if self.engine is None:
            if given:
                raise InputError(
                    f"{argument(next(iter(given)))} is for tables that are solved by parts",
                    remedy=f"Add {argument('engine', 'local')} or {argument('engine', 'dask')}",
                )
            return None
        return Engine(self.engine, **given)


@spread
def anonymize(
    context: typer.Context,
    instance: given.Instance,
    k: given.K = None,
    *,
    output: Path = an_option(
        ..., "The release: a CSV, Parquet or Excel file; by parts a folder.", "-o", "--output"
    ),
    question: given.Question,
    settings: given.SolverOptions,
    chosen: given.ChosenMethod,
    parts: EngineOptions,
    shape: ReleaseOptions,
    report: given.Report = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Write a k-anonymous release of a table, verified, with its manifest beside it."""
    if str(output) == "-":
        raise InputError(
            "a release has a manifest beside it, and cannot go to standard output",
            remedy="Name a file, such as -o release.csv",
        )
    engine = parts.chosen()
    if engine is not None:
        from anonymip.scale.running import refuse_beside_parts

        refuse_beside_parts(
            report=report,
            keep_order=shape.keep_order,
            publish_suppressed=shape.publish_suppressed,
            pseudonym_key=shape.pseudonym_key,
            checkpoint=chosen.checkpoint,
            resume=chosen.resume,
            time_limit=settings.time_limit,
        )
        _anonymize_by_parts(instance, k, output, question, settings, chosen, shape, engine, json)
        return
    from anonymip.experiments.records import solution_record
    from anonymip.publishing.manifest import cut_off, manifest_path
    from anonymip.publishing.release import what_is_gone
    from anonymip.runtime.kernels import preparing_kernels
    from anonymip.warm_up import prepare

    clock = given.command_clock()
    whole = settings.budget(clock)
    manifest = manifest_path(output)
    sources = question.sources(instance)
    sources += [] if shape.pseudonym_key is None else [shape.pseudonym_key]
    keeping = chosen.keeping(output)
    refuse_targets(sources, output, manifest, report, json, *keeping.files)
    mismatch = cut_off(output)
    if mismatch is not None:
        say(err, f"warning: {mismatch}; both are replaced")
    way = {**asdict(settings), "options": chosen.options(), **keeping.settings}
    with writing() as outputs:
        with showing_progress() as progress, preparing_kernels(prepare):
            whole.progress = progress
            release = stage_release(
                instance,
                k,
                question,
                output,
                outputs,
                whole,
                method=chosen.method,
                shape=shape,
                clock=clock,
                **way,
            )
        solution = release.solution
        data = solution.problem.microdata
        if report is not None:
            from anonymip.experiments.report import html_report

            page = html_report(release, called(instance), command=given.told(context))
            outputs.write_text(page, report, public=True)
        weighted = release.manifest.get("weights")
        told = {} if weighted is None else {"weighted_gcp": weighted["gcp"]}
        write_json([{**solution_record(solution, instance), **told}], json, outputs)
    remark = keeping.finish(solution)
    console = human(json)
    attention, summary = solution.many_suppressed, solution.summary()
    if attention is not None:
        first, summary = summary.split("\n", 1)
        say(console, first)
    kinds = ", ".join(f"{visible(one.name, keep='')} {one.kind}" for one in data.attributes)
    say(console, f"quasi-identifiers: {kinds}")
    if question.table.missing is not None and not data.has_missing:
        say(
            console,
            "no values are missing: which texts mean so is said by --missing-values, or in the "
            "schema ([table] missing)",
        )
    say(console, summary)
    if weighted is not None:
        population = f"by the weights of {weighted['column']!r}, an estimate for the population"
        say(console, f"gcp {population}: {weighted['gcp']:.4g}")
    for line in what_is_gone(release, show_names=True):
        say(console, line)
    if remark is not None:
        say(console, remark)
    say(console, f"verified and written: {output}, {manifest}")


def _anonymize_by_parts(
    instance: str,
    k: int | None,
    output: Path,
    question: given.Question,
    settings: given.SolverOptions,
    chosen: given.ChosenMethod,
    shape: ReleaseOptions,
    engine: Engine,
    json: str | None,
) -> None:
    from anonymip.instances import Schema
    from anonymip.scale.part import Task
    from anonymip.scale.running import run_by_parts
    from anonymip.scale.targets import target_of

    solving = {**asdict(settings), "method": chosen.method, "options": chosen.options()}
    target = target_of(output)
    target.refuse()
    refuse_targets(question.sources(instance), json)
    task = Task(
        instance,
        question.table.declared(instance) or Schema(),
        question.beside_table(instance, k, chosen.method),
        solving,
        {"layout": shape.layout, "escape_formulas": shape.escape_formulas},
    )
    with showing_progress() as progress:
        tell = partial(say, err)
        release = run_by_parts(task, target.place, engine, Budget(progress=progress), tell)
    question.table.say_schema(instance)
    record = {"instance": instance, "output": str(target.place), **release.to_dict()}
    write_json([record], json)
    console = human(json)
    say(console, release.summary())
    say(console, f"verified and written: {target.place}")


def stage_release(
    instance: str,
    k: int | None,
    question: given.Question,
    output: Path,
    outputs: Outputs,
    whole: Budget,
    *,
    method: str = "auto",
    shape: ReleaseOptions | None = None,
    clock: MachineClock | None = None,
    **way: Any,  # how it is solved, as `anonymip.solve` takes it
) -> Release:
    """Return the release that the arguments mean, staged with its manifest and verified."""
    from anonymip.anonymization import released
    from anonymip.publishing.manifest import as_verified
    from anonymip.publishing.pseudonyms import read_key

    form, most = shape or ReleaseOptions(), question.asked.stars.most()
    problem = question.problem(instance, k, method)
    taken = {name: getattr(form, name) for name in ("layout", "keep_order", "escape_formulas")}
    taken["suppressed"] = form.suppressed_as(problem.recoding)
    taken["pseudonym_key"] = read_key(form.pseudonym_key, problem.microdata.pseudonyms)
    release = released(problem, method, way, taken, whole, clock or MachineClock(), most, output)
    whole.report("writing and verifying")
    release.stage(output, outputs, original=table_file(instance))
    return replace(release, manifest=as_verified(release.manifest), verified=True)


@spread
def inspect(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A file, or a database.")],
    *,
    output: Path | None = an_option(None, "Write a schema to edit (TOML).", "-o", "--output"),
    preset: str | None = an_option(None, "A rule to start from: hipaa-safe-harbor."),
    form: FormatOptions,
    missing_values: MissingValues = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Say what the columns of a table hold and which roles they may have; no value is shown."""
    from anonymip.instances import inspect as inspect_table

    refuse_targets([Path(table)], output, json)
    tokens = missing_tokens(missing_values)
    found = inspect_table(form.table(table), preset=preset, **form.written, missing=tokens)
    with writing() as outputs:
        if output is not None:
            outputs.write_text(found.to_toml(), output)
        write_json([{"instance": table, **found.to_dict()}], json, outputs)
    say(human(json), str(found))
    if output is not None:
        say(human(json), f"\nwritten: {output}; look at each role, then anonymize with --schema")


@spread
def verify(
    original: Annotated[
        str, typer.Argument(metavar="ORIGINAL", help="The original: a named instance, or a file.")
    ],
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The released table.")],
    *,
    manifest: Path | None = an_option(None, "Default: RELEASE.manifest.json."),
    schema: SchemaFile = None,
    form: FormatOptions,
    parts: EngineOptions,
    k: int | None = an_option(None, "Insist on this k.", "-k"),
    pseudonym_key: Path | None = an_option(None, "File with the key of the pseudonyms."),
    together_with: list[Path] | None = an_option(
        None, "Another release of ORIGINAL: what both leave of k. Repeatable.", metavar="OTHER"
    ),
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Check a release against its original by code that had no part in making it."""
    from anonymip.privacy import joined_candidates
    from anonymip.privacy import verify as verify_release
    from anonymip.privacy.parts import is_in_parts
    from anonymip.publishing.checking import hierarchy_paths
    from anonymip.publishing.manifest import manifest_path

    others = together_with or []
    place: str | Path = release
    if ":/" in str(release):
        from anonymip.scale.engines import address_of

        place = address_of(release) or release
    if is_in_parts(place):
        from anonymip.scale.running import refuse_beside_parts

        refuse_beside_parts(
            together_with=together_with,
            manifest=manifest,
            pseudonym_key=pseudonym_key,
            query=form.query,
            sheet=form.sheet,
        )
        read_as = {"schema": schema, "k": k, **form.written}
        del read_as["sheet"]
        found = _verify_by_parts(original, place, parts.chosen(), **read_as)
        write_json([{"original": original, "release": str(place), **found.to_dict()}], json)
        say(human(json), found.summary())
        if not found.ok:
            raise typer.Exit(1)
        return
    if parts.chosen() is not None:
        raise InputError(
            f"{release} is no folder of a release by parts", remedy="Leave out --engine"
        )
    sources = [Path(original), release, manifest or manifest_path(release)]
    sources += [path for other in others for path in (other, manifest_path(other))]
    refuse_targets([*sources, *([] if schema is None else [schema])], json)
    named = named_table(original, schema)
    table = form.table(original) if named is None else named.original
    trees = None if named is None else hierarchy_paths(named)
    reading: dict[str, Any] = {"schema": schema, "k": k, "hierarchies": trees, **form.written}
    result = verify_release(table, release, manifest, pseudonym_key=pseudonym_key, **reading)
    record = {"original": original, "release": str(release), **result.to_dict()}
    summary, ok = result.summary(), result.ok
    if others and ok:
        joined = joined_candidates(
            table, [release, *others], [manifest, *(None for _ in others)], **reading
        )
        record["together"] = {"with": [str(other) for other in others], **joined.to_dict()}
        summary, ok = f"{summary}\n{joined.summary()}", joined.ok
    write_json([record], json)
    say(human(json), summary)
    if not ok:
        raise typer.Exit(1)


def _verify_by_parts(
    original: str, release: str | Path, engine: Engine | None, **reading: Any
) -> Verification:
    """Verify a release by parts, by an engine or one part after the other."""
    from anonymip.privacy.parts import verify_parts
    from anonymip.scale.engines import Engine, started
    from anonymip.scale.targets import target_of

    with ExitStack() as stack:
        engine = Engine(workers=1) if engine is None else engine
        scratch = stack.enter_context(scratch_folder(target_of(release).beside(engine)))
        budget = Budget(progress=stack.enter_context(showing_progress()))
        stack.enter_context(budget.catching_interrupts())
        runner = stack.enter_context(started(engine, scratch, budget))
        return verify_parts(original, release, run=runner.map, scratch=scratch, **reading)


@spread
def risk(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The original: a named instance, or a file.")
    ],
    release: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", help="The released table.")
    ] = None,
    *,
    columns: TableOptions,
    manifest: Path | None = an_option(None, "Default: RELEASE.manifest.json."),
    k: int | None = an_option(None, "Default: the release's, else 5.", "-k"),
    population: Path | None = an_option(None, "File of all persons, the table's among them."),
    draws: int = an_option(20, "Random known matches of a cover, at each number."),
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Measure how easily persons are found, before and after publication."""
    from anonymip.privacy import risk as measure
    from anonymip.publishing.manifest import manifest_path

    sources = [*columns.sources(table), *([] if population is None else [population])]
    if release is not None:
        sources += [release, manifest or manifest_path(release)]
    refuse_targets(sources, json)
    source, reading = columns.measured(table, released=release is not None)
    found = measure(
        source, release, k=k, population=population, manifest=manifest, draws=draws, **reading
    )
    columns.say_schema(table)
    told = None if release is None else str(release)
    write_json([{"original": table, "release": told, **found.to_dict()}], json)
    say(human(json), str(found))


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the files.")] = Path("out"),
) -> None:
    """Do the main job on built-in tables, in under a minute."""
    try:
        refuse_targets([], *(folder / name for name in _DEMO_FILES))
    except InputError as error:
        raise InputError(error.message, remedy="Name another folder with --out") from None
    with writing() as outputs:
        _demo_release(folder, outputs)
        _demo_comparison(folder, outputs)
    say(out, f"\nFiles are in {folder}/: release, manifest, report, comparison, gap thermometer.")


def _demo_release(folder: Path, outputs: Outputs) -> None:
    from anonymip.experiments.report import html_report
    from anonymip.instances import load_instance
    from anonymip.methods.best_bound import ASCENT
    from anonymip.problem import Problem
    from anonymip.publishing.manifest import as_verified
    from anonymip.publishing.release import publish
    from anonymip.solving import solve
    from anonymip.warm_up import prepare

    data = load_instance("health-records")
    say(out, "1. Seven health records, k = 3, solved to proven optimality by two solvers\n")
    problem = Problem(data, k=3)
    with showing_progress() as progress:
        prepare(("equivalence-mip", "column-generation", ASCENT, *_DEMO_METHODS), progress)
        solutions = [
            solve(problem, "equivalence-mip", solver=name, progress=progress)
            for name in ("highs", "cbc")
        ]
    for solution in solutions:
        say(out, f"{solution.solver}: {solution.sentence()} (ncp {solution.ncp:.6f})")
    release = publish(solutions[0])
    table, _ = release.stage(folder / "release.csv", outputs)
    release = replace(release, manifest=as_verified(release.manifest), verified=True)
    page = html_report(release, "health-records")
    outputs.write_text(page, folder / "report.html", public=True)
    say(out, f"\n{table}:\n")
    print_table(out, list(release.table.columns), release.table.astype(str).values.tolist())
    say(out, "\n" + release.verify().summary().splitlines()[0])


def _demo_comparison(folder: Path, outputs: Outputs) -> None:
    from anonymip.experiments.comparison import COLUMNS, compare
    from anonymip.experiments.thermometer import save_figure, thermometer
    from anonymip.instances import load_instance
    from anonymip.problem import Problem

    say(out, "\n2. Heuristics against the optimum (7 records), and against a proven bound\n")
    small_problem = Problem(load_instance("health-records"), k=2)
    name = "census:1000,8,1"
    large_problem = Problem(load_instance(name), k=3)
    with showing_progress() as progress:
        small = compare(
            small_problem,
            [2, 3],
            _DEMO_METHODS,
            instance="health-records",
            exact=True,
            progress=progress,
        )
        large = compare(large_problem, [3, 10], _DEMO_METHODS, instance=name, progress=progress)
    print_table(out, COLUMNS, small.texts())
    say(out, f"\n{name}: 1,000 generated census records, 8 attributes\n")
    print_table(out, COLUMNS, large.texts())
    outputs.write_text(
        f"# health-records\n\n{small.to_markdown()}\n# {name}\n\n{large.to_markdown()}",
        folder / "comparison.md",
        public=True,
    )
    rows = large.to_frame().to_csv(index=False)
    outputs.write_text(rows, folder / "comparison.csv", public=True)
    save_figure(thermometer(large), folder / "gap.png", outputs)
