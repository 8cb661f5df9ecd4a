"""The arguments that commands share, and what they mean."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from anonymip.cli.stars import StarRules
from anonymip.errors import InputError
from anonymip.files import refuse_outputs
from anonymip.instances import (
    INSTANCES,
    Microdata,
    Schema,
    load_instance,
    read_schema,
)
from anonymip.methods import find_method
from anonymip.objectives import GCP, MembersObjective, Objective, load_objective
from anonymip.problem import Problem
from anonymip.recodings import Apart, Cap, Diversity, Limit, Recoding

Instance = Annotated[
    str, typer.Argument(metavar="INSTANCE", help="A named instance, or a CSV or Parquet file.")
]
RecodingName = Annotated[
    str | None,
    typer.Option(
        "--recoding", help="Which releases are allowed; default: the method's, else classes."
    ),
]
Suppression = Annotated[
    bool, typer.Option("--suppression", help="Allow suppressing whole records.")
]
PublishSuppressed = Annotated[
    bool,
    typer.Option(
        "--publish-suppressed",
        help="Publish suppressed records as rows of stars, if they are at least k; default: leave "
        "them out.",
    ),
]
LDiversity = Annotated[
    float | None,
    typer.Option("--l-diversity", help="No sensitive value makes up more than 1/L of a class."),
]
DistinctDiversity = Annotated[
    int | None,
    typer.Option("--distinct-diversity", help="Distinct sensitive values in every class."),
]
Closeness = Annotated[
    float | None,
    typer.Option(
        "--t-closeness", help="How far the sensitive values of a class may lie from the table's."
    ),
]
OrderedCloseness = Annotated[
    bool,
    typer.Option("--ordered-closeness", help="Sensitive numbers lie on a line for --t-closeness."),
]
Caps = Annotated[
    list[str] | None,
    typer.Option(
        "--cap", help="ATTRIBUTE=MOST: widest range, most values of a set, highest level."
    ),
]
Aparts = Annotated[
    list[str] | None,
    typer.Option("--apart", help="ATTRIBUTE=VALUE,VALUE: no published cell covers both."),
]
ObjectiveName = Annotated[
    str,
    typer.Option(
        "--objective",
        help="What is lost: gcp, set-gcp, liang-gcp, weighted-loss, weighted-loss-binary, or "
        "FILE.py:NAME, or one of an installed package.",
    ),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds; the best found so far is kept.")
]
Gap = Annotated[float, typer.Option("--gap", help="Relative gap to stop at.")]
SolverName = Annotated[str, typer.Option("--solver", help="highs or cbc.")]
Threads = Annotated[int, typer.Option("--threads", help="Threads of the solver.")]
Seed = Annotated[int, typer.Option("--seed", help="Of random choices and of the solver.")]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="TOML file with the roles of the columns.")
]
QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option("-q", "--quasi-identifier", help="NAME or NAME:numeric or NAME:categorical."),
]
Sensitive = Annotated[
    list[str] | None, typer.Option("--sensitive", help="Sensitive column, published untouched.")
]
Keep = Annotated[list[str] | None, typer.Option("--keep", help="Column published untouched.")]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="Column never published.")]
Missing = Annotated[
    str | None, typer.Option("--missing", help="Missing values: error, category or drop.")
]
JsonTarget = Annotated[
    str | None, typer.Option("--json", help="Write the results as JSON; - for standard output.")
]
ShowValues = Annotated[
    bool, typer.Option("--show-values", help="Show offending values of the table in messages.")
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="File that a long run of split-carry can go on from; as private as the table.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint of a run that ended early.")
]
MethodOptions = Annotated[
    list[str] | None, typer.Option("--option", help="METHOD.NAME=VALUE, an option of one method.")
]


def load_table(
    instance: str,
    schema: Path | None,
    quasi_identifiers: list[str] | None,
    sensitive: list[str] | None,
    keep: list[str] | None,
    drop: list[str] | None,
    missing: str | None,
) -> Microdata:
    """Return the table that the arguments mean.

    Raises
    ------
    InputError
        If they contradict each other or the table.
    """
    roles = (quasi_identifiers or [], sensitive or [], keep or [], drop or [])
    asked = any(roles) or missing is not None
    named = named_table(instance, schema, has_roles=asked)
    if named is not None:
        return named
    file = _schema_beside(instance) if schema is None else schema
    given = None if file is None else read_schema(file)
    if asked:
        given = (given or Schema()).with_roles(*roles, missing)
    return load_instance(instance, given)


def named_table(instance: str, schema: Path | None, *, has_roles: bool = False) -> Microdata | None:
    """Return the table of a named or generated instance, None for a file.

    Raises
    ------
    InputError
        If a schema or roles are given to one that has its own.
    """
    if not _is_named(instance):
        return None
    if has_roles or schema is not None:
        raise InputError(
            f"instance {instance} has its own schema",
            remedy="Leave out --schema, -q, --sensitive, --keep, --drop and --missing",
        )
    return load_instance(instance)


def refuse_targets(inputs: Sequence[Path], *outputs: Path | str | None) -> None:
    """Refuse, before any work is done, files that cannot be written or would destroy an input.

    Parameters
    ----------
    inputs
        Files that are read.
    *outputs
        Files to write; None and ``-`` (standard output) are passed over.

    Raises
    ------
    InputError
        Naming the file.
    """
    refuse_outputs([Path(target) for target in outputs if target not in (None, "-")], inputs)


def sources_of(instance: str, schema: Path | None, objective: str = "gcp") -> list[Path]:
    """Return the files that the arguments may be read from."""
    named = (table_file(instance), _schema_beside(instance), schema)
    function = Path(objective.rpartition(":")[0])
    return [path for path in (*named, function) if path is not None and os.path.isfile(path)]


def table_file(instance: str) -> Path | None:
    """Return the file of a table, None if the instance is a named or generated one."""
    if _is_named(instance) or not os.path.isfile(instance):
        return None
    return Path(instance)


def _is_named(instance: str) -> bool:
    return instance in INSTANCES or instance.startswith("census:")


def _schema_beside(instance: str) -> Path | None:
    """Return the schema of the same name beside a table, if there is one."""
    table = table_file(instance)
    if table is None or not os.path.isfile(table.with_suffix(".toml")):
        return None
    return table.with_suffix(".toml")


def mask_section(instance: str, schema: Path | None) -> Mapping[str, Any]:
    """Return the section ``[mask]`` of the schema that belongs to a table, empty without one."""
    file = _schema_beside(instance) if schema is None else schema
    return {} if file is None else read_schema(file).mask


def choose_recoding(
    name: str | None, suppression: bool, *methods: str, stars: StarRules | None = None
) -> Recoding:
    """Return the recoding of a name; without one, that of rules or methods, else classes.

    Raises
    ------
    InputError
        If there is none of that name, the methods solve several, or rules of stars do not fit.
    """
    stars = StarRules() if stars is None else stars
    name = stars.recoding_name(name, methods)
    if name is None:
        specs = [find_method(method) for method in methods]
        brought = dict.fromkeys(spec.recoding for spec in specs if spec.role != "selection")
        if len(brought) > 1:
            raise InputError(
                f"the methods solve different recodings: {', '.join(brought)}",
                remedy="Name methods of one recoding",
            )
        name = next(iter(brought), "classes")
    return stars.recoding(name, suppression)


def suppressed_as(recoding: Recoding, published: bool) -> str:
    """Return what becomes of suppressed records, as :func:`anonymip.publish` takes it.

    Raises
    ------
    InputError
        If they are to be published, and the recoding suppresses none.
    """
    if published and not getattr(recoding, "suppression", False):
        raise InputError(
            "--publish-suppressed is given, and no records may be suppressed",
            remedy="Add --suppression, or leave it out",
        )
    return "starred" if published else "left-out"


@dataclass(frozen=True)
class Rules:
    """The texts of the options that forbid releases: diversity, caps, values apart."""

    l_diversity: float | None = None
    distinct_diversity: int | None = None
    caps: list[str] | None = None
    aparts: list[str] | None = None
    t_closeness: float | None = None
    ordered_closeness: bool = False

    def diversity(self) -> Diversity | None:
        """Return the diversity that every class must have; None asks for nothing."""
        asked = (self.l_diversity, self.distinct_diversity, self.t_closeness)
        if all(one is None for one in asked) and not self.ordered_closeness:
            return None
        l_diversity = 1 if self.l_diversity is None else self.l_diversity
        return Diversity(
            l=l_diversity,
            distinct=1 if self.distinct_diversity is None else self.distinct_diversity,
            t=self.t_closeness,
            ordered=self.ordered_closeness,
        )

    def limits(self) -> tuple[Limit, ...]:
        """Return the limits of generalization.

        Raises
        ------
        InputError
            If a text is no ATTRIBUTE=MOST or ATTRIBUTE=VALUE,VALUE.
        """
        return (*map(_cap, self.caps or ()), *map(_apart, self.aparts or ()))


def _cap(text: str) -> Cap:
    attribute, equals, most = text.rpartition("=")
    try:
        number = float(most)
    except ValueError:
        number = None
    if not (equals and attribute) or number is None:
        raise InputError(f"cap {text!r} is not ATTRIBUTE=MOST", remedy="For example --cap age=10")
    return Cap(attribute, number)


def _apart(text: str) -> Apart:
    attribute, equals, listed = text.partition("=")
    try:
        values = next(csv.reader([listed], strict=True), [])
    except csv.Error:
        values = []
    if not (equals and attribute) or len(values) != 2:
        raise InputError(
            "--apart is not ATTRIBUTE=VALUE,VALUE",
            remedy="For example --apart job=clerk,farmer; quote commas: --apart 'job=\"a,b\",c'",
            value=text,
        )
    return Apart(attribute, *values)


def make_problem(
    data: Microdata,
    k: int,
    recoding: Recoding,
    objective: str,
    rules: Rules,
    stars: StarRules | None = None,
) -> Problem:
    """Return the problem that the arguments mean.

    Raises
    ------
    InputError
        If they contradict each other or the table.
    """
    found = find_objective(objective)
    if stars is not None:
        found = stars.objective(found, recoding.name)
    return Problem(data, k, recoding, found, rules.diversity(), rules.limits())


def find_objective(name: str) -> Objective | MembersObjective:
    """Return the objective of a name or file."""
    return GCP() if name == "gcp" else load_objective(name)


def parse_options(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """Return options by method from texts ``METHOD.NAME=VALUE``.

    Raises
    ------
    InputError
        If a text has another form.
    """
    options: dict[str, dict[str, Any]] = {}
    for text in given or []:
        target, equals, value = text.partition("=")
        method, dot, name = target.partition(".")
        if not (equals and dot and method and name):
            raise InputError(
                f"option {text!r} is not METHOD.NAME=VALUE",
                remedy="For example --option greedy-search.order=cardinality",
            )
        options.setdefault(method, {})[name] = value
    return options


def options_of(method: str, options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the options of the one method that runs.

    Raises
    ------
    InputError
        If options name another method.
    """
    for name in options:
        if name != method:
            raise InputError(
                f"options name method {name!r}, but {method} runs",
                remedy=f"Choose --method {name}, or leave the option out",
            )
    return options.get(method, {})


def parse_ks(text: str) -> list[int]:
    """Return the values of k in ``5``, ``2-6`` or ``2,3,10-12``.

    Raises
    ------
    InputError
        If the text has another form.
    """
    ks: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise InputError(f"k is {text!r}", remedy="Give numbers, such as 5 or 2-6 or 2,5,10")
        ks.extend(range(int(low), int(high or low) + 1))
    if not ks:
        raise InputError(f"k is {text!r}, an empty range", remedy="Give the smaller number first")
    return ks
