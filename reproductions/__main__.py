"""``python -m reproductions NAME ... [--quick] [-o FOLDER]``, and ``--list``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli.app import run
from anonymip.cli.console import human, print_table, say, showing_progress, write_json
from anonymip.cli.tables import refuse_targets
from anonymip.errors import InputError
from reproductions import performing
from reproductions.performing import Reproduced, files_of, find_reproduction, listed
from reproductions.specification import Reproduction


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="What; --list names them.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--list", help="List them, with their data.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: all methods, in two minutes.")
    ] = False,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw pictures anew from the rows in the folder.")
    ] = False,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of rows, pictures, texts and runs.")
    ] = Path("out/reproductions"),
    jobs: Annotated[int, typer.Option("--jobs", help="Worker processes at a time.")] = 1,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Repeat tables and figures of the papers, and say which of their statements hold."""
    if every:
        known = list(performing.reproductions().values())
        write_json([listed(one) for one in known], json)
        _print_list(known, json)
        return
    if not names:
        raise InputError("nothing is named", remedy="Name what to reproduce; --list shows all")
    wanted = [find_reproduction(name) for name in names]
    if redraw:
        _redraw(wanted, output, json)
        return
    # Once each: who names one twice has its files written twice.
    files = dict.fromkeys(file for asked in wanted for file in files_of(asked, output, quick))
    refuse_targets([], json, *files)
    records = []
    for asked in wanted:
        with showing_progress() as progress:
            done = performing.reproduce(asked, output, quick=quick, jobs=jobs, progress=progress)
        _print_findings(done, output, json)
        records.append(done.record())
    write_json(records, json)


def _redraw(asked: list[Reproduction], folder: Path, json: str | None) -> None:
    records = []
    for one in asked:
        for picture in performing.redraw(one, folder):
            say(human(json), f"drawn: {picture}")
            records.append({"name": one.name, "picture": str(picture)})
    write_json(records, json)


def _print_list(known: list[Reproduction], json: str | None) -> None:
    rows = [
        [
            one.name,
            f"{one.paper}, {one.place}",
            one.title,
            ", ".join(source.instance for source in one.sources),
            "" if one.minutes is None else f"{one.minutes:g} min",
            "stored" if one.stored else "no full results stored yet",
        ]
        for one in known
    ]
    print_table(human(json), ["name", "paper", "what", "data", "full", "results"], rows)


def _print_findings(done: Reproduced, folder: Path, json: str | None) -> None:
    asked, console = done.asked, human(json)
    size = f" (quick: {asked.shrunk})" if done.quick else ""
    say(console, f"{asked.paper}, {asked.place}: {asked.title}{size}")
    for source in asked.sources:
        say(console, source.note)
    words = {True: "holds", False: "does not hold", None: "not decided"}
    rows = [[words[one["holds"]], one["says"], one["measured"]] for one in done.findings]
    print_table(console, ["", "statement of the paper", "measured"], rows)
    say(console, f"rows, picture and text: {folder / done.stem}.csv, .png, .md\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    app.command()(reproduce)
    return run(arguments, command=typer.main.get_command(app))


if __name__ == "__main__":
    raise SystemExit(main())
