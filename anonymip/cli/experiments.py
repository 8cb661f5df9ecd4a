"""Commands that run several methods: compare, on a table or its samples, and experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from anonymip.cli import arguments as given
from anonymip.cli import completion
from anonymip.cli.console import err, human, print_table, say, say_run, showing_progress, write_json
from anonymip.cli.options import METHOD, TABLE, an_option, spread
from anonymip.cli.tables import library_entry, missing_tokens, refuse_targets
from anonymip.errors import InputError, Interrupted, NoSolution
from anonymip.files import Outputs, writing

if TYPE_CHECKING:
    import pandas as pd

    from anonymip.experiments import Experiment, Results


@dataclass(frozen=True)
class SampleOptions:
    """The options that have a comparison run on random samples of the table."""

    panel: ClassVar[str] = TABLE

    samples: int | None = an_option(None, "Random samples of the table; see --seed.")
    sample_size: int | None = an_option(None, "Records of each sample.")

    def asked(self) -> bool:
        """Return whether samples are asked for."""
        if (self.samples is None) != (self.sample_size is None):
            raise InputError(
                "of --samples and --sample-size one is given alone", remedy="Give both, or none"
            )
        return self.samples is not None


@dataclass(frozen=True)
class ComparisonFiles:
    """The options that name what is written about a comparison."""

    plot: Path | None = an_option(None, "Gap thermometer: .png, .svg or .pdf.")
    csv: Path | None = an_option(None, "Write the table as CSV.")
    markdown: Path | None = an_option(None, "Write the table in Markdown.")
    report: given.RunsReport = None
    json: given.JsonTarget = None

    @property
    def all(self) -> tuple[Path | str | None, ...]:
        """All of them, those that are not asked for too."""
        return self.plot, self.csv, self.markdown, self.report, self.json


@spread
def compare(
    instance: given.Instance,
    k: str | None = an_option(
        None, "Values of k: 5, 2-6 or 2,5,10; default: of library:NAME the entry's.", "-k"
    ),
    *,
    methods: str = an_option(
        "", "Names with commas; default: all heuristics.", autocompletion=completion.methods
    ),
    exact: bool = an_option(False, "Run the exact method too.", rich_help_panel=METHOD),
    samples: SampleOptions,
    question: given.Question,
    settings: given.SolverOptions,
    option: given.MethodOptions = None,
    files: ComparisonFiles,
    show_values: given.ShowValues = False,
) -> None:
    """Compare methods with each other and with the optimum, or the best bound on it."""
    ks = [given.k_of(instance, None)] if k is None else given.parse_ks(k)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    refuse_targets(question.sources(instance), *files.all)
    if files.plot is not None:
        from anonymip.experiments.thermometer import refuse_format

        refuse_format(files.plot)
    options = given.parse_options(option)
    if samples.asked() or len(_recodings_of(instance, names, question.allowed)) > 1:
        if files.plot is not None:
            raise InputError(
                "--plot shows one table and one recoding",
                remedy="Use --report FILE.html, which shows them all, or leave out --samples and "
                "methods of other recodings",
            )
        wanted = _experiment_of(instance, ks, names, exact, options, question, samples, settings)
        _run_experiment(wanted, instance, files, isolate=False)
        return
    from anonymip.experiments.comparison import COLUMNS, compared_methods
    from anonymip.experiments.comparison import compare as compare_methods
    from anonymip.warm_up import prepare

    problem = question.problem(instance, ks[0], *names)
    with showing_progress() as progress:
        runs = compared_methods(problem, ks, names, exact)
        prepare(runs, progress, limited=settings.time_limit is not None)
        comparison = compare_methods(
            problem,
            ks,
            names,
            instance=instance,
            exact=exact,
            options=options,
            **asdict(settings),
            progress=progress,
        )
    with writing() as outputs:
        if files.plot is not None:
            from anonymip.experiments.thermometer import save_figure, thermometer

            save_figure(thermometer(comparison), files.plot, outputs)
        if files.csv is not None:
            outputs.write_text(comparison.to_frame().to_csv(index=False), files.csv, public=True)
        if files.markdown is not None:
            outputs.write_text(comparison.to_markdown(), files.markdown, public=True)
        _stage_page(comparison.to_runs, instance, files.report, outputs)
        write_json(comparison.to_records(), files.json, outputs)
    print_table(human(files.json), COLUMNS, comparison.texts())
    for line in comparison.bound_texts():
        say(human(files.json), line)
    for size, name, reason in comparison.failures:
        say(err, f"k = {size}, {name}: no solution: {reason}")
    if not comparison.complete:
        say(err, "interrupted: the methods and values of k that are missing were not run")


def _run_experiment(asked: Experiment, title: str, files: ComparisonFiles, **way: Any) -> Results:
    """Run an experiment as :func:`run_experiment` does; write and print what it found."""
    from anonymip.experiments import run_experiment
    from anonymip.experiments.overview import to_markdown
    from anonymip.experiments.running.results import records_of

    with showing_progress() as progress:
        results = run_experiment(asked, progress=progress, **way)
    with writing() as outputs:
        if files.csv is not None:
            outputs.write_text(results.frame.to_csv(index=False), files.csv, public=True)
        if files.markdown is not None:
            outputs.write_text(to_markdown(results.frame), files.markdown, public=True)
        _stage_page(lambda: results.frame, title, files.report, outputs)
        # The loss has the name that it has in the records of other commands, too.
        records = [{**row, "objective": row["loss"]} for row in records_of(results.frame)]
        write_json(records, files.json, outputs)
    print_results(results, files.json)
    return results


def _stage_page(
    found: Callable[[], pd.DataFrame], title: str, report: Path | None, outputs: Outputs
) -> None:
    """Stage the page about runs, if one is asked for and any has ended."""
    if report is not None and len(runs := found()):
        from anonymip.experiments.pages import runs_page

        outputs.write_text(runs_page(runs, title), report, public=True)


def _recodings_of(instance: str, names: list[str], allowed: given.RecodingOptions) -> list[str]:
    """Return the recodings that an entry of the library or methods bring, where none is named."""
    entry = library_entry(instance)
    return allowed.brought(names, None if entry is None else entry.recoding)


def _experiment_of(
    instance: str,
    ks: list[int],
    names: list[str],
    exact: bool,
    options: Mapping[str, Mapping[str, Any]],
    question: given.Question,
    samples: SampleOptions,
    settings: given.SolverOptions,
) -> Experiment:
    """Return the experiment that a comparison of samples, or of several recodings, is."""
    from anonymip.experiments import Experiment, MethodChoice, Samples, TableSource
    from anonymip.experiments.comparison import compared_methods, refuse_options_beside

    if question.table.form.query is not None:
        raise InputError(
            "samples, and methods of several recodings, are compared on tables that are read again",
            remedy="Write what the query answers into a file",
        )
    table, allowed, asked = question.table, question.allowed, question.asked
    section = table.mask_section(instance)
    brought = _recodings_of(instance, names, allowed)
    brought = brought or [allowed.choose(stars=replace(asked.stars, section=section)).name]
    priceless = [name for name in brought if name not in ("pattern", "pattern-levels")]
    if asked.stars.costs and priceless:
        raise InputError(
            "--suppression-cost is for patterns where samples or recodings are compared, and "
            f"{priceless[0]} is compared too",
            remedy="Compare methods for patterns only, or one recoding without samples",
        )
    choices: list[MethodChoice] = []
    rules: dict[str, Mapping[str, object]] = {}
    for recoding in brought:
        several = len(brought) > 1
        own = [name for name in names if not several or _belongs(name, recoding)]
        stars = asked.stars.only_of(recoding) if several else asked.stars
        part = given.Question(
            table, replace(allowed, recoding=recoding), replace(asked, stars=stars)
        )
        problem = part.problem(instance, ks[0], *own)
        listed = compared_methods(problem, ks, own, exact)
        choices += [MethodChoice(name, options.get(name, {}), recoding=recoding) for name in listed]
        rules[recoding] = stars.options(recoding, allowed.suppression)
    refuse_options_beside(options, [choice.method for choice in choices])
    drawn = None
    if samples.samples is not None and samples.sample_size is not None:
        drawn = Samples(samples.samples, samples.sample_size, settings.seed)
    form: dict[str, Any] = table.form.written
    source = TableSource(
        instance,
        schema=None if table.schema is None else str(table.schema),
        quasi_identifiers=tuple(table.quasi_identifier or ()),
        sensitive=tuple(table.sensitive or ()),
        keep=tuple(dict.fromkeys((*(table.keep or ()), *filter(None, [table.weights])))),
        drop=(*(table.drop or ()), *(table.pseudonym or ())),
        unit=table.unit,
        missing=table.missing,
        **form,
        missing_values=missing_tokens(table.missing_values) or (),
        samples=drawn,
    )
    return Experiment(
        name="compare",
        tables=(source,),
        k=tuple(dict.fromkeys(ks)),
        methods=tuple(choices),
        recodings={name: given_rules for name, given_rules in rules.items() if given_rules},
        objective=asked.objective_of(instance),
        diversity=asked.rules.diversity(),
        limits=asked.rules.limits(),
        **asdict(settings),
    )


def _belongs(method: str, recoding: str) -> bool:
    """Return whether a method runs for a recoding: one that picks others runs for all."""
    from anonymip.methods import find_method

    spec = find_method(method)
    return spec.role == "selection" or spec.recoding == recoding


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
    jobs: Annotated[int, typer.Option(help="Worker processes at a time.")] = 1,
    report: given.RunsReport = None,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Run an experiment, from where it stopped; every run is kept as soon as it has ended."""
    from anonymip.experiments import Experiment

    refuse_targets([specification], report, json)
    asked = Experiment.from_toml(specification)
    folder = Path(specification.stem) if output is None else output
    if asked.objective_file is not None:
        say_run(asked.objective_file)
    files = ComparisonFiles(report=report, json=json)
    results = _run_experiment(asked, asked.name, files, folder=folder, jobs=jobs)
    say(human(json), f"\n{len(results.frame)} of {results.runs} runs are in {folder}")


def print_results(results: Results, json: str | None) -> None:
    """Print the overview of what was found, and why nothing was found where that is so."""
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
