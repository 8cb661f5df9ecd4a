"""The command that writes the hierarchy of a column of codes or dates, to look at or change."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from anonymip.cli.arguments import TABLE, spread
from anonymip.cli.console import out, say
from anonymip.cli.tables import FormatOptions, missing_tokens, refuse_targets
from anonymip.errors import InputError
from anonymip.files import replacing


@spread
def hierarchy(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A file, or a database, with the column.")
    ],
    *,
    column: Annotated[
        str,
        typer.Option(
            "-q", "--quasi-identifier", help="The column of codes or dates.", rich_help_panel=TABLE
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The hierarchy: one line a value.")
    ],
    mask: Annotated[
        str | None,
        typer.Option(
            help="Side from which characters become stars: right, left.", rich_help_panel=TABLE
        ),
    ] = None,
    shown: Annotated[
        str | None,
        typer.Option(
            metavar="N,N",
            help="Signs that each level still shows, such as 3,2.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    cut: Annotated[
        str | None,
        typer.Option(
            help="In place of a mask: what codes are cut at, as E11.9.", rich_help_panel=TABLE
        ),
    ] = None,
    above: Annotated[
        Path | None,
        typer.Option(
            help="With --cut: the hierarchy of the first parts of the codes.", rich_help_panel=TABLE
        ),
    ] = None,
    calendar: Annotated[
        bool,
        typer.Option(
            "--calendar",
            help="In place of a mask: dates in months, quarters, years, decades.",
            rich_help_panel=TABLE,
        ),
    ] = False,
    date_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="With --calendar: the form of dates, such as %d.%m.%Y (default: ISO 8601).",
            rich_help_panel=TABLE,
        ),
    ] = None,
    root: Annotated[str, typer.Option(help="Name of the whole.", rich_help_panel=TABLE)] = "*",
    missing_values: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT,TEXT", help="Texts that mean no code: NA,-9.", rich_help_panel=TABLE
        ),
    ] = None,
    form: FormatOptions,
) -> None:
    """Write the hierarchy of a column: of codes, masked or cut at separators, or of dates.

    The file is one to look at and to change; a schema names it: hierarchy = "postcode.csv".
    """
    from anonymip.instances import Attribute, Hierarchy, Microdata, TableFormat
    from anonymip.instances.columns import missing_rows, unknown_column
    from anonymip.instances.hierarchies.codes import CodeRule
    from anonymip.instances.hierarchies.hierarchy import read_hierarchy
    from anonymip.instances.readers import read_table

    refuse_targets([Path(table), *([above] if above else [])], output)
    given = {name: one for name, one in form.written.items() if one is not None}
    layout = TableFormat(**given, missing=missing_tokens(missing_values) or ("",))  # type: ignore[arg-type]
    if calendar and (mask or shown or cut or above):
        raise InputError("--calendar is given beside a rule of codes", remedy="Give one of them")
    if date_format is not None and not calendar:
        raise InputError("--format is that of dates", remedy="Give --calendar as well")
    source = form.table(table)
    frame = read_table(source, layout) if source is table else source
    if column not in frame.columns:
        raise unknown_column(column, "quasi-identifier", list(map(str, frame.columns)), ())
    if calendar:
        dates = Attribute(column, "date", publish="node", format=date_format, missing="drop")
        data = Microdata(frame[[column]], (dates,), table=layout)
        tree = data.attributes[0].hierarchy
        assert tree is not None
        path_of = {path[0]: [*path[:-1], root] for path in tree.paths}
        told = data.original[column].iloc[data.rows].astype(object).map(str)
        paths = dict(zip(told, data.frame[column].map(path_of), strict=True))
        # The text of the table stands below its day, where it is not written as one.
        made = Hierarchy(
            [path if text == path[0] else [text, *path] for text, path in paths.items()]
        )
    else:
        lifted = None if above is None else read_hierarchy(above)
        codes = frame[column][~missing_rows(frame[column], layout.missing)]
        rule = CodeRule(mask, _numbers(shown), cut, lifted, root)
        made = rule.hierarchy(codes.astype(object).map(str).unique())
    with replacing(output) as (file,), file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=";", lineterminator="\n").writerows(made.paths)
    what = "dates" if calendar else "codes"
    say(out, f"written: {output}, {len(made.paths)} {what}, {made.height} levels above them")
    say(out, "It holds the values of the table: it is as private as the table.")


def _numbers(listed: str | None) -> tuple[int, ...]:
    try:
        return () if listed is None else tuple(map(int, listed.split(",")))
    except ValueError:
        raise InputError("--shown is no list of numbers", remedy="Write --shown 3,2") from None
