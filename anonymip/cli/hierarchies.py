"""The command that writes the hierarchy of a column of codes or dates, to look at or change."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from anonymip.cli.console import out, say
from anonymip.cli.options import TABLE, an_option, spread
from anonymip.cli.tables import FormatOptions, missing_tokens, refuse_targets
from anonymip.errors import InputError
from anonymip.files import replacing


@dataclass(frozen=True)
class RuleOptions:
    """The options that say what stands above the codes or dates of a column."""

    panel: ClassVar[str] = TABLE

    mask: str | None = an_option(None, "Side from which characters become stars: right, left.")
    shown: str | None = an_option(
        None, "Signs that each level still shows, such as 3,2.", metavar="N,N"
    )
    cut: str | None = an_option(None, "In place of a mask: what codes are cut at, as E11.9.")
    above: Path | None = an_option(
        None, "With --cut: the hierarchy of the first parts of the codes."
    )
    calendar: bool = an_option(
        False, "In place of a mask: dates in months, quarters, years, decades."
    )
    date_format: str | None = an_option(
        None,
        "With --calendar: the form of dates, such as %d.%m.%Y (default: ISO 8601).",
        "--format",
    )
    root: str = an_option("*", "Name of the whole.")
    missing_values: str | None = an_option(
        None, "Texts that mean no code: NA,-9.", metavar="TEXT,TEXT"
    )


@spread
def hierarchy(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A file, or a database, with the column.")
    ],
    *,
    column: str = an_option(
        ..., "The column of codes or dates.", "-q", "--quasi-identifier", rich_help_panel=TABLE
    ),
    output: Path = an_option(..., "The hierarchy: one line a value.", "-o", "--output"),
    rule: RuleOptions,
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
    from anonymip.instances.scale import told_unit

    refuse_targets([Path(table), *([rule.above] if rule.above else [])], output)
    given = {name: one for name, one in form.written.items() if one is not None}
    layout = TableFormat(**given, missing=missing_tokens(rule.missing_values) or ("",))  # type: ignore[arg-type]
    if rule.calendar and (rule.mask or rule.shown or rule.cut or rule.above):
        raise InputError("--calendar is given beside a rule of codes", remedy="Give one of them")
    if rule.date_format is not None and not rule.calendar:
        raise InputError("--format is that of dates", remedy="Give --calendar as well")
    source = form.table(table)
    frame = read_table(source, layout) if source is table else source
    if column not in frame.columns:
        raise unknown_column(column, "quasi-identifier", list(map(str, frame.columns)), ())
    if rule.calendar:
        known = rule.date_format and told_unit(rule.date_format)
        dates = Attribute(
            column,
            "date",
            publish="node",
            format=rule.date_format,
            precision=known or None,
            missing="drop",
        )
        data = Microdata(frame[[column]], (dates,), table=layout)
        tree = data.attributes[0].hierarchy
        assert tree is not None
        path_of = {path[0]: [*path[:-1], rule.root] for path in tree.paths}
        told = data.original[column].iloc[data.rows].astype(object).map(str)
        paths = dict(zip(told, data.frame[column].map(path_of), strict=True))
        # The text of the table stands below its day, where it is not written as one.
        made = Hierarchy(
            [path if text == path[0] else [text, *path] for text, path in paths.items()]
        )
    else:
        lifted = None if rule.above is None else read_hierarchy(rule.above)
        codes = frame[column][~missing_rows(frame[column], layout.missing)]
        code_rule = CodeRule(rule.mask, _numbers(rule.shown), rule.cut, lifted, rule.root)
        made = code_rule.hierarchy(codes.astype(object).map(str).unique())
    with replacing(output) as (file,), file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=";", lineterminator="\n").writerows(made.paths)
    what = "dates" if rule.calendar else "codes"
    say(out, f"written: {output}, {len(made.paths)} {what}, {made.height} levels above them")
    say(out, "It holds the values of the table: it is as private as the table.")


def _numbers(listed: str | None) -> tuple[int, ...]:
    try:
        return () if listed is None else tuple(map(int, listed.split(",")))
    except ValueError:
        raise InputError("--shown is no list of numbers", remedy="Write --shown 3,2") from None
