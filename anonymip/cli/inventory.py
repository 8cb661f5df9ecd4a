"""Commands about what there is: methods, solvers, instances, leaderboard, losses, kernels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli import completion
from anonymip.cli.console import err, human, out, print_table, say, showing_progress, write_json
from anonymip.cli.options import an_option, spread
from anonymip.cli.tables import TableOptions, refuse_targets
from anonymip.errors import InputError, InvalidAssignment, VerificationFailed
from anonymip.files import writing

if TYPE_CHECKING:
    from anonymip.instances.library.catalogue import LibraryEntry
    from anonymip.solvers import Availability


def methods() -> None:
    """List the methods: recoding, role, what they need, source, options."""
    from anonymip.methods import METHODS

    print_table(
        out,
        ("method", "recoding", "role", "needs", "source", "options"),
        [
            (
                spec.name,
                spec.recoding,
                spec.role,
                ", ".join(spec.needs) or "-",
                spec.source,
                ", ".join(f"{option.name}={option.default}" for option in spec.options) or "-",
            )
            for spec in METHODS.values()
        ],
    )


def solvers() -> None:
    """List the solvers: installed or not, what their licences allow, their versions."""
    from anonymip.solvers import availability, solver_names

    rows = []
    for name in solver_names():
        found = availability(name)
        here = "yes" if found.installed else "no"
        rows.append((name, here, _licence(found), found.version or "-", found.reason or ""))
    print_table(out, ("solver", "installed", "licence", "version", "remark"), rows)


def _licence(found: Availability) -> str:
    if found.max_variables is None:
        return found.licence or "-"
    return f"{found.licence} ({found.max_variables} variables, {found.max_rows} rows)"


def instances() -> None:
    """List the named instances and whether their data are here."""
    from anonymip.instances import INSTANCES

    rows = [
        (one.name, _presence(one.name), one.description, one.source) for one in INSTANCES.values()
    ]
    what = "generated census records, up to 35 attributes"
    source = "ranges and variances of Liang & Samavi 2020, Tables 3, 9, 10"
    rows.append(("census:n,m,seed", "yes", what, source))
    print_table(out, ("instance", "here", "description", "source"), rows)


def fetch(
    name: Annotated[str, typer.Argument(help="The data: adult.", show_default=False)],
    *,
    address: Annotated[
        str | None, typer.Option(help="A mirror; the file must be the same.")
    ] = None,
) -> None:
    """Fetch public benchmark data into the user's cache, and say on what terms they are given."""
    from anonymip.instances.library.fetching import fetch

    found = fetch(name, address=address)
    say(out, f"licence: {found.source.licence}")
    for file in found.files:
        say(out, f"here: {file}")


@spread
def leaderboard(
    *,
    instance: list[str] | None = an_option(
        None, "An entry; repeatable. Default: all proven optima."
    ),
    method: list[str] | None = an_option(
        None,
        "A method; repeatable. Default: all heuristics.",
        autocompletion=completion.method,
    ),
    exact: bool = an_option(False, "Run the exact methods too."),
    known: bool = an_option(False, "Run nothing: print what is known of all entries."),
    check: Path | None = an_option(None, "A release of an entry, as 'solve --json' writes it."),
    update: bool = an_option(False, "Write what is better into the library's files."),
    output: Path | None = an_option(None, "Write both tables in Markdown.", "-o", "--output"),
    settings: given.SolverOptions,
    json: given.JsonTarget = None,
) -> None:
    """Measure methods on the library of instances: how far each is from the proven optimum."""
    from anonymip.experiments import leaderboard as boards
    from anonymip.instances.library.catalogue import library, stage_entries

    if check is not None:
        _check(check, update, json)
        return
    refuse_targets([], output, json)
    if known:
        entries = boards.chosen_entries(instance or list(library()))
        board = boards.Leaderboard(tuple(entries), ())
    else:
        entries = _at_hand(boards.chosen_entries(instance or []), bool(instance))
        with showing_progress() as progress:
            board = boards.measure(
                entries,
                method or [],
                exact=exact,
                progress=progress,
                told=lambda text: say(err, text),
                **asdict(settings),
            )
        if not instance:
            board = board.with_others()
    with writing() as outputs:
        if output is not None:
            outputs.write_text(board.to_markdown(), output, public=True)
        write_json([one.to_dict() for one in board.standings], json, outputs)
        if update:
            stage_entries(board.entries, outputs)
            for entry in board.entries:
                if entry.name in board.found:
                    boards.stage_release(entry, board.found[entry.name], outputs)
    if board.standings:
        print_table(human(json), boards.METHOD_COLUMNS, board.method_texts())
        say(human(json), "")
    print_table(human(json), boards.ENTRY_COLUMNS, board.entry_texts())
    if not board.complete:
        say(err, "interrupted: the methods and instances that are missing were not run")


def _at_hand(entries: list[LibraryEntry], named: bool) -> list[LibraryEntry]:
    """Return the entries whose files are here; those that are named must be."""
    from anonymip.instances import INSTANCES

    here = [
        entry
        for entry in entries
        if named or entry.table not in INSTANCES or _presence(entry.table) == "yes"
    ]
    if len(here) < len(entries):
        say(err, f"{len(entries) - len(here)} instances are left out: their data are not here")
    return here


def _check(file: Path, update: bool, json: str | None) -> None:
    """Check a release that is handed in, and say whether it is better than what is known."""
    from anonymip.experiments.leaderboard import read_claim, stage_release
    from anonymip.instances.library.catalogue import stage_entries

    refuse_targets([file], json)
    try:
        claim = read_claim(file)
    except InvalidAssignment as error:
        raise VerificationFailed(
            f"{file} holds no release that its entry allows: {error}",
            remedy="Hand in what 'anonymip solve --json' writes of the entry",
        ) from error
    with writing() as outputs:
        write_json([claim.to_dict()], json, outputs)
        if update and claim.improved is not claim.entry:
            stage_entries([claim.improved], outputs)
            stage_release(claim.improved, claim.solution, outputs)
    say(human(json), claim.text())


def _presence(name: str) -> str:
    from anonymip.instances import INSTANCES

    instance = INSTANCES[name]
    if not instance.files:
        return "yes"
    try:
        instance.paths()
    except InputError:
        return "no (ANONYMIP_DATA)"
    return "yes"


def versions() -> None:
    """Print the versions of Python, the package and what its results depend on."""
    from anonymip.publishing.manifest import versions as current_versions
    from anonymip.solvers import availability, solver_names

    for name, version in current_versions().items():
        say(out, f"{name} {version}")
    for name in solver_names():
        found = availability(name)
        say(out, f"solver {name} {found.version or 'not installed'}")


def warm_up(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METHOD]...",
            autocompletion=completion.method,
            help="Methods, bound, dual-ascent; default: what the usual commands need.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes that compile.")] = 2,
    json: given.JsonTarget = None,
) -> None:
    """Compile what commands need, once, so that the first of them does not wait for it."""
    from anonymip import warm_up as compiling
    from anonymip.runtime.kernel_cache import folder

    with showing_progress() as progress:
        done = compiling.warm_up(runs or (), jobs=jobs, progress=progress)
    place = str(folder())
    write_json([{**done._asdict(), "folder": place}], json)
    of = f"for {done.purpose}" if runs else f"what {done.purpose} need where no method is named"
    ready = f"{done.kernels} of {done.total} kernels ready, with those they call"
    say(human(json), f"{ready}, {done.seconds:.0f} s: {of}; kept in {place}")


@spread
def objective(
    name: Annotated[
        str,
        typer.Argument(
            metavar="OBJECTIVE", help="FILE.py:NAME (runs the file), or the name of an objective."
        ),
    ],
    instance: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANCE]", help="A named instance, or a CSV or Parquet file."),
    ] = None,
    *,
    table: TableOptions,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Say what is proven about a loss, and which methods accept it.

    Without INSTANCE it is traced on a small table made of the attributes that it reads.
    """
    from anonymip.methods.acceptance import examine
    from anonymip.objectives.losses.loading import attributes_read, small_table

    sources = table.sources(instance or "", name)
    refuse_targets(sources, json)
    found = given.find_objective(name)
    data = small_table(attributes_read(found)) if instance is None else table.load(instance)
    table.say_schema(instance or "")
    report = examine(found, data)
    write_json([{"objective": name, "instance": instance, **asdict(report)}], json)
    console = human(json)
    if instance is None:
        attributes = ", ".join(f"{name} {kind}" for name, kind in report.attributes.items())
        say(
            console,
            f"traced on a small made-up table, since no INSTANCE is given: {attributes}\n"
            "On your table kinds, domains and so the result may differ.\n",
        )
    price = report.suppression_price
    lines = (
        ("tier", report.tier, _TIERS[report.tier]),
        ("summed", report.aggregate, _AGGREGATES[report.aggregate]),
        ("monotone", report.monotone, report.monotone_reason),
        ("superadditive", report.superadditive, report.superadditive_reason),
        ("suppressed record", "none" if price is None else f"{price:.6g}", "what it costs"),
        ("bound", report.bound or "none", "of any release, without a solver"),
    )
    print_table(console, (report.name, "", "why"), lines)
    for title, refusals in (
        ("method", report.methods),
        ("formulation of equivalence-mip", report.formulations),
    ):
        say(console, "")
        rows = [
            (name, "yes" if refusal is None else "no", refusal or "")
            for name, refusal in refusals.items()
        ]
        print_table(console, (title, "accepts it", "why not"), rows)


_TIERS = {
    "affine": "a sum of features times numbers: models, heuristics, bounds",
    "separable": "a sum of terms of one attribute each: models, heuristics, bounds",
    "general": "called on batches of published records",
    "members": "called on the members of classes",
}
_AGGREGATES = {"sum": "over the records", "max": "the record that loses most"}
