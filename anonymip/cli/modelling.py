"""The command that hands a model to other tools: export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymip.cli import arguments as given
from anonymip.cli.console import human, print_table, say, write_json
from anonymip.cli.options import spread
from anonymip.cli.tables import TableOptions, refuse_targets
from anonymip.files import writing

if TYPE_CHECKING:
    from anonymip.problem import Problem


@spread
def export(
    instance: given.Instance,
    k: given.K,
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The model: an .lp, .mps or .nl file.")
    ],
    method: Annotated[
        str, typer.Option("--method", help="The method whose model is meant.")
    ] = "equivalence-mip",
    allowed: given.RecodingOptions,
    asked: given.ProblemOptions,
    option: given.MethodOptions = None,
    table: TableOptions,
    json: given.JsonTarget = None,
    show_values: given.ShowValues = False,
) -> None:
    """Write the model that a method would solve, for solvers and tools of your own."""
    from anonymip.experiments.records import model_record
    from anonymip.methods.modelling import model_of
    from anonymip.models.export import export_files, export_model

    files = export_files(output)
    refuse_targets(table.sources(instance, asked.objective), *files, json)
    problem = given.make_problem(instance, k, table, allowed, asked, method)
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
