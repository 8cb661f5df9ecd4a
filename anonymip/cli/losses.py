"""The command that says what a loss can be used with: objective."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli.console import human, print_table, say, write_json
from anonymip.cli.options import spread
from anonymip.cli.tables import TableOptions, refuse_targets

if TYPE_CHECKING:
    from anonymip.methods.acceptance import ObjectiveReport


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
    from anonymip.objectives.losses.discovery import attributes_read, small_table

    sources = table.sources(instance or "", name)
    refuse_targets(sources, json)
    found = given.find_objective(name)
    data = small_table(attributes_read(found)) if instance is None else table.load(instance)
    report = examine(found, data)
    write_json([{"objective": name, "instance": instance, **asdict(report)}], json)
    console = human(json)
    if instance is None:
        say(console, _made_up(report))
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
    say(console, "")
    rows = [
        (method, "yes" if refusal is None else "no", refusal or "")
        for method, refusal in report.methods.items()
    ]
    print_table(console, ("method", "accepts it", "why not"), rows)
    say(console, "")
    rows = [
        (formulation, "yes" if refusal is None else "no", refusal or "")
        for formulation, refusal in report.formulations.items()
    ]
    print_table(console, ("formulation of equivalence-mip", "accepts it", "why not"), rows)


_TIERS = {
    "affine": "a sum of features times numbers: models, heuristics, bounds",
    "separable": "a sum of terms of one attribute each: models, heuristics, bounds",
    "general": "called on batches of published records",
    "members": "called on the members of classes",
}
_AGGREGATES = {"sum": "over the records", "max": "the record that loses most"}


def _made_up(report: ObjectiveReport) -> str:
    attributes = ", ".join(f"{name} {kind}" for name, kind in report.attributes.items())
    return (
        f"traced on a small made-up table, since no INSTANCE is given: {attributes}\n"
        "On your table kinds, domains and so the result may differ.\n"
    )
