"""One part of a table: solved, published, read back and verified under the domains of the whole."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound, nearest_neighbour_terms
from anonymip.errors import AnonymipError, InputError, Interrupted, ReleaseWarning, argument
from anonymip.instances import Attribute, Microdata, Schema
from anonymip.instances.encoding import complete_rows
from anonymip.instances.readers import as_pandas
from anonymip.problem import Problem
from anonymip.publishing.manifest import as_verified, of_file
from anonymip.publishing.release import publish
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.scale.cuts import Cut, Tree, keys_of, losses_across, part_numbers, way_to
from anonymip.scale.sources import Batch, read_batch, read_groups
from anonymip.scale.survey import fingerprint_of
from anonymip.solution import Solution, under_assumptions
from anonymip.solving import solve


@dataclass(frozen=True)
class Task:
    """What is asked of a table that is solved by parts."""

    source: str  # a file, a folder of files, or an address of either
    schema: Schema  # roles of its columns
    asked: Mapping[str, Any]  # what :class:`anonymip.Problem` takes beside the table
    #: What :func:`anonymip.solve` takes: ``method``, ``options``, ``effort``, ``seed`` ...
    settings: Mapping[str, Any]
    #: What :func:`anonymip.publish` takes: ``layout``, ``escape_formulas``.
    layout: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that parts are made of."""
        schema = self.schema
        unit = () if schema.unit is None else (schema.unit,)
        names = (*schema.attributes, *schema.sensitive, *schema.keep, *unit)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Plan:
    """What every part is solved by."""

    task: Task
    attributes: tuple[Attribute, ...]  # the quasi-identifiers with the domains of the whole table
    scratch: str  # folder of the rows by part and of what is published of them
    tree: Tree  # the cuts, as the rows were split by them
    #: Of the whole table, which the values of a part do not tell: domain sizes by column, and what
    #: is assumed for the loss to be monotone, see :class:`~anonymip.scale.survey.Whole`.
    sizes: Mapping[str, int]
    monotone: tuple[str, ...] | None


@dataclass(frozen=True)
class Split:
    """Where the rows of a batch lie: a file with a row group for each part that it has rows of.

    `counts`: rows by part. `complete`: those of them that are not left out for what they miss.
    """

    file: str
    groups: dict[int, int]
    counts: dict[int, int]
    complete: dict[int, int]


def said_of(error: AnonymipError, where: str) -> AnonymipError:
    """Return an error whose message begins with where it was found."""
    error.message = f"{where}: {error.message}"
    error.args = (error.message if error.remedy is None else f"{error.message}. {error.remedy}",)
    return error


def split(number: int, batch: Batch, plan: Plan, *, budget: Budget | None = None) -> Split:
    """Write the rows of a batch in the order of their parts, a row group for each part."""
    form = plan.task.schema.table
    table = read_batch(batch, form, plan.task.columns)
    frame = as_pandas(table)
    try:
        keys = keys_of(frame, plan.attributes, form)
    except AnonymipError as error:
        raise said_of(error, str(batch)) from None
    numbers = part_numbers(keys, plan.tree)
    order = np.argsort(numbers, kind="stable")
    present, counts = np.unique(numbers, return_counts=True)
    place = Path(plan.scratch) / f"rows-{number:06}.parquet"
    ordered, at = table.take(pa.array(order)), 0
    with _appearing(place) as temporary, parquet.ParquetWriter(temporary, ordered.schema) as writer:
        for count in counts.tolist():
            writer.write_table(ordered.slice(at, count), row_group_size=max(1, count))
            at += count
    parts = present.tolist()
    complete = np.bincount(numbers[complete_rows(frame, plan.attributes, form)])
    return Split(
        str(place),
        {part: group for group, part in enumerate(parts)},
        dict(zip(parts, counts.tolist(), strict=True)),
        {part: int(complete[part]) for part in np.flatnonzero(complete).tolist()},
    )


@contextmanager
def _appearing(place: Path) -> Iterator[Path]:
    """Give a file that has its name when it is whole: a task may be tried more than once."""
    temporary = place.with_name(f"{secrets.token_hex(4)}.{place.name}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield temporary
        os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class PartTask:
    """A part of the table.

    `places`: files and row groups of its rows. `tree`: the cuts that were kept.
    """

    number: int
    places: tuple[tuple[str, int], ...]
    rows: int
    tree: Tree = 0


@dataclass(frozen=True)
class PartResult:
    """What became of a part.

    `file`: what is published of it. `manifest`: of that, with the loss. `terms`: sum over its
    records of what each adds at least to the loss of any release of the whole table; None where
    nothing is proven. `bound_method`: what proves it. `fingerprint`: of its rows. `warnings`: what
    was said of it.
    """

    number: int
    file: str
    manifest: dict[str, Any]
    rows: int
    classes: int
    terms: float | None
    bound_method: str
    fingerprint: int
    warnings: tuple[str, ...] = field(default=())


@dataclass
class Pace:
    """What is told whenever a part is solved: the loss so far, rows a second, the time left.

    `rows`: of the table.
    """

    rows: int
    done: int = 0
    loss: float = 0.0
    watch: Stopwatch = field(default_factory=Stopwatch)

    def of(self, result: PartResult) -> dict[str, Any]:
        """Return what is told when a part is there."""
        self.done += result.rows
        self.loss += result.manifest["objective"]["value"]
        speed = self.done / max(self.watch.seconds, 1e-9)
        left = timedelta(seconds=round((self.rows - self.done) / speed))
        return {"incumbent": self.loss, "note": f"{speed:,.0f} rows a second, about {left} left"}


def solve_part(task: PartTask, plan: Plan, *, budget: Budget | None = None) -> PartResult:
    """Solve, publish and verify a part; the same task gives the same file.

    Rows are sorted by what they show: the order then says nothing, and no generator is needed. Of a
    cover the assignment of sensitive and kept values is drawn by the system, at every try anew.
    Raises AnonymipError as solving and publishing do; the message names the part.
    """
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", ReleaseWarning)
            return _solved(task, plan, budget, said)
    except AnonymipError as error:
        raise said_of(error, f"part {task.number + 1} of {task.rows:,} rows") from None


def _solved(
    task: PartTask, plan: Plan, budget: Budget | None, said: Sequence[warnings.WarningMessage]
) -> PartResult:
    own = Budget() if budget is None else budget.renewed(None)
    own.progress = None
    if own.is_interrupted:
        raise Interrupted("it was stopped", remedy="Start it again")
    rows = read_groups(task.places)
    asked, roles = plan.task, plan.task.schema
    frame = as_pandas(rows)[list(asked.columns)]
    fingerprint = fingerprint_of(frame)
    data = Microdata(
        frame, plan.attributes, roles.sensitive, roles.keep, (), roles.table, roles.unit
    ).with_sizes(plan.sizes)
    try:
        problem = Problem(data, **asked.asked)
    except InputError as error:
        # The whole table may keep what one part of it cannot.
        larger = f"Have larger parts ({argument('part_rows', ...)})"
        error.remedy = larger if error.remedy is None else f"{larger}. {error.remedy}"
        raise
    way = way_to(task.tree, task.number)
    # Nearest neighbours take a fifth of the time of what comes after them, see docs/scale.md.
    is_quick = bool(way) and asked.settings.get("effort") == "quick"
    settings = {**asked.settings, "bound": False} if is_quick else asked.settings
    solution = solve(problem, budget=own, **settings)
    if own.is_interrupted:
        raise Interrupted("it was stopped", remedy="Start it again")
    if is_quick and asked.settings.get("bound", True):
        found = nearest_neighbour_bound(problem, effort="quick", budget=own)
        solution = solution if found is None else solution.with_bound(found)
    terms, method = proven(problem, solution, way, plan.monotone)
    release = publish(solution, by_content=True, **asked.layout)
    # A part that is tried again has a file of its own: of a cover it differs.
    place = Path(plan.scratch) / f"part-{task.number:05}-{secrets.token_hex(4)}.parquet"
    with _appearing(place) as temporary:
        _write(release.table, rows.schema, temporary)
        manifest = of_file(as_verified(release.manifest), temporary)
        release.read_back(temporary, manifest, data.original)
    return PartResult(
        task.number,
        str(place),
        manifest,
        task.rows,
        0 if solution.classes is None else len(solution.sizes),
        terms,
        method,
        fingerprint,
        tuple(dict.fromkeys(str(one.message) for one in said)),
    )


def _write(frame: pd.DataFrame, given: pa.Schema, place: Path) -> None:
    """Write what is published; columns of the original keep the types that they had there."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    for at, one in enumerate(table.schema):
        # A column of gaps alone has no type, and other parts have one.
        kind = given.field(one.name).type if one.name in given.names else pa.string()
        if pa.types.is_null(one.type):
            table = table.set_column(at, one.name, table.column(at).cast(kind))
    parquet.write_table(table, place)


def proven(
    problem: Problem,
    solution: Solution,
    way: Sequence[tuple[Cut, bool]],
    monotone: tuple[str, ...] | None,
) -> tuple[float | None, str]:
    """Return what the records of a part add at least to the loss of any release of the whole table.

    Let y be duals of the part's records: no class within the part costs less than the sum of its
    members' y. A class that holds record i and one beyond a cut costs each of its members e(i) at
    least, see :func:`~anonymip.scale.cuts.losses_across`. Then z(i) = min(y(i), e(i)) are duals of
    the whole table: a class within one part costs its y at least, and so its z; one of several
    parts costs each member i at least e(i), and so z(i). The z of all parts add up to a bound on
    any release, also on those whose classes cross cuts.

    Without cuts this is the solution's own bound. None where the loss is not known to be monotone
    over the values of all parts, of which a class across a cut has some. `monotone`: as in
    :class:`Plan`.
    """
    bound = solution.bound
    if not way:
        return (None, "") if bound is None else (bound.value, bound.method)
    if monotone is None or not problem.compiled.monotone or bound is None:
        return None, ""
    proof, method = bound.duals, bound.method
    if proof is None or proof.cuts or proof.pool is not None or proof.count_dual:
        # The bound rests on more than duals of records.
        duals = nearest_neighbour_terms(problem)
        method = under_assumptions(problem, "nearest-neighbour")
    else:
        duals = proof.coverage * proof.duals
    capped: Floats = np.minimum(duals, losses_across(problem, way))
    if monotone and not problem.compiled.assumed:
        # The values of the part prove what those of the whole do not.
        method = f"{method} (assuming that {' and '.join(monotone)})"
    return fsum(capped), f"{method}, by parts"
