"""A run by parts: look, cut, split, solve, and put a folder of parts with its manifest in place."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np

from anonymip.errors import AnonymipError, InputError, ReleaseWarning, argument, gap_text
from anonymip.instances import Microdata, Schema
from anonymip.instances.encoding import policy_of
from anonymip.instances.readers import as_pandas
from anonymip.methods import find_method
from anonymip.objectives.language.monotonicity import never_falls
from anonymip.objectives.language.record import Feature, Record, cells_of_sets
from anonymip.problem import Problem
from anonymip.publishing.cautions import homogeneous_classes
from anonymip.publishing.manifest import describe_attribute
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.kernels import Stopwatch
from anonymip.scale.cuts import NUMBERS, Cut, Tree, choose_cuts, pruned
from anonymip.scale.engines import (
    DaskRunner,
    Engine,
    LocalRunner,
    for_memory,
    refuse_short_memory,
    started,
)
from anonymip.scale.part import (
    Pace,
    PartResult,
    PartTask,
    Plan,
    Split,
    Task,
    said_of,
    solve_part,
    split,
)
from anonymip.scale.sources import Batch, find_batches, read_batch, source_of
from anonymip.scale.survey import Whole, look_at, summed_up
from anonymip.scale.targets import part_name, target_of
from anonymip.solution import bound_text


@dataclass(frozen=True)
class ReleaseInParts:
    """A release that lies in a folder of Parquet files.

    Parameters
    ----------
    folder
        The folder; of an address a text.
    manifest
        What it promises, as it stands in the folder's ``_manifest.json``.
    rows, parts, classes
        How many; of a cover no classes.
    objective
        The loss, summed over all parts.
    bound
        What any release of the whole table loses at least, also one whose classes cross parts; None
        where nothing is proven.
    gap
        (objective - bound) / objective.
    seconds
        From reading to the folder in its place.
    link
        Where Dask shows the run; None for nowhere.
    """

    folder: Path | str
    manifest: dict[str, Any] = field(repr=False)
    rows: int
    parts: int
    classes: int
    objective: float
    bound: float | None
    gap: float | None
    seconds: float
    link: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the same as an object for JSON; the folder has its manifest."""
        left = ("folder", "manifest")
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left}

    def summary(self) -> str:
        """Return what a person wants to know, in three lines."""
        manifest = self.manifest
        bound = "no bound is known"
        if self.bound is not None:
            share = bound_text(self.bound / (self.rows * manifest["m"]))
            bound = f"no release of the whole table can be below {share}"
            bound += "" if self.gap is None else f"; gap {gap_text(self.gap)}"
        value = manifest["gcp"]
        what = f"{self.classes:,} classes" if self.classes else manifest["recoding"]
        return (
            f"{self.rows:,} rows in {self.parts} parts, {what}, "
            f"k = {manifest['k']}, by {manifest['method']}\nloss {value:.4g}; {bound}\n"
            f"{self.seconds:.1f} s, {self.rows / max(self.seconds, 1e-9):,.0f} rows a second"
        )

    def __str__(self) -> str:
        return self.summary()


def anonymize_by_parts(
    table: Any,
    quasi_identifiers: Sequence[str],
    k: int,
    output: str | Path,
    *,
    engine: Engine | str = "local",
    schema: Schema | None = None,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> ReleaseInParts:
    """Write a k-anonymous release of a table too large for memory, or for one machine.

    The table is cut into parts by values of its quasi-identifiers. Each is solved under the domains
    of the whole table, published, read back and verified; the folder of parts appears when all of
    them are there.

    Parameters
    ----------
    table
        A Parquet file, a folder of Parquet or CSV files, or an address that fsspec reads; or a Dask
        DataFrame, which is written as Parquet to the scratch folder first.
    quasi_identifiers, sensitive, keep, drop, missing
        As in :func:`anonymip.anonymize`; beside those of the schema, if one is given.
    k
        Records that must look alike.
    output
        The folder to write. A release by parts that lies there is replaced. Or an address that
        fsspec writes, at which nothing lies: the manifest is written last.
    engine
        ``"local"``, ``"dask"``, ``"auto"`` or an :class:`Engine`.
    schema
        Roles of the columns, format of text files, domains.
    progress
        Receives how many batches are read and parts solved.
    **settings
        ``objective``, ``diversity``, ``limits``, ``unit``, ``layout`` and ``escape_formulas`` as in
        :func:`anonymip.anonymize`; ``method``, ``options``, ``effort``, ``seed`` and ``solver`` as
        in :func:`anonymip.solve`.

    Returns
    -------
    ReleaseInParts
        What was written, with its loss and a bound on the loss of any release of the whole table.

    Raises
    ------
    InputError
        If something is asked that parts cannot keep, a file cannot be read or lacks a column, a
        value lies outside its domain, or no scheduler answers. Nothing is written then.

    Notes
    -----
    The same table, seed and part size give the same files, whoever does which part and however
    often it is tried. Time: that of the method for each part. Memory: that of a part for each
    worker, see ``docs/scale.md``.
    """
    roles = (schema or Schema()).with_roles(
        quasi_identifiers, sensitive, keep, drop, missing, settings.pop("unit", None)
    )
    asked = {
        "k": k,
        "recoding": settings.pop("recoding", None) or "classes",
        "objective": settings.pop("objective", None) or "gcp",
        "diversity": settings.pop("diversity", None),
        "limits": settings.pop("limits", ()),
    }
    shown = [name for name in ("layout", "escape_formulas") if name in settings]
    layout: dict[str, Any] = {name: settings.pop(name) for name in shown}
    used = Engine(engine) if isinstance(engine, str) else engine
    target = target_of(output)
    target.refuse()
    with source_of(table, target.beside(used)) as source:
        task = Task(source, roles, asked, {"method": "auto", **settings}, layout)
        return run_by_parts(task, output, used, Budget(progress=progress))


def refuse_beside_parts(**given: object) -> None:
    """Refuse options that are of a table that is solved at once."""
    for name, one in given.items():
        if one:
            raise InputError(
                f"{argument(name)} is not for tables that are solved by parts",
                remedy=f"Leave it out, or {argument('engine')}",
            )


def run_by_parts(
    task: Task,
    output: str | Path,
    engine: Engine,
    budget: Budget | None = None,
    tell: Callable[[str], object] | None = None,
) -> ReleaseInParts:
    """Do what :func:`anonymize_by_parts` does, of a task; `tell` hears where Dask shows it.

    The second Ctrl-C ends it at once; nothing is left but a hidden folder, which the next run
    removes.
    """
    watch, target = Stopwatch(), target_of(output)
    budget = budget or Budget()
    target.refuse()
    batches = find_batches(task.source, engine.part_rows)
    first = _look(task, batches[0])
    _refuse_unsuited(task, first)
    known = sum(batch.rows for batch in batches) if all(one.rows >= 0 for one in batches) else None
    width = len(first.names) + len(first.sensitive + first.keep)
    engine = for_memory(engine, known, width)
    largest = engine.part_rows if known is None else min(known, engine.part_rows)
    refuse_short_memory(engine, largest, width)
    with ExitStack() as stack:
        stack.enter_context(budget.catching_interrupts())
        scratch, ready = stack.enter_context(target.begun(engine))
        runner = stack.enter_context(started(engine, scratch, budget))
        if tell is not None and runner.link is not None:
            tell(f"Dask shows the run at {runner.link}")
        results, tree, whole = _results(task, batches, first, engine, runner, scratch)
        manifest = _manifest(results, tree, whole, first)
        text = json.dumps(manifest, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        target.put(ready, [Path(result.file) for result in results], text, budget)
        _warn(results, manifest)
        bound = manifest["bound"]
        return ReleaseInParts(
            target.place,
            manifest,
            manifest["n"],
            len(results),
            sum(result.classes for result in results),
            manifest["objective"]["value"],
            None if bound is None else bound["value"],
            manifest["gap"],
            watch.seconds,
            runner.link,
        )


def _look(task: Task, batch: Batch) -> Microdata:
    """Return the table of a batch, whose roles are checked as those of any table."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*far beyond all others")
            return task.schema.apply(as_pandas(read_batch(batch, task.schema.table)))
    except AnonymipError as error:
        raise said_of(error, str(batch)) from None


def _refuse_unsuited(task: Task, first: Microdata) -> None:
    """Refuse what no parts can keep, with the reason."""
    asked, settings = task.asked, task.settings
    once = f"Leave out {argument('engine')}: the table is then solved as a whole"
    problem = _of_any_rows(task, first)
    name = problem.recoding.name
    allows = problem.may_suppress
    if name != "classes" and problem.recoding != Freeform() and not allows:
        raise InputError(
            f"recoding {name} is not solved by parts: its sets and levels are those of a whole "
            "table",
            remedy=f"Use {argument('recoding', 'classes')} or freeform; {once}",
        )
    if allows:
        raise InputError(
            "suppression is not allowed by parts: how many records may be left out is a matter "
            "of the whole table",
            remedy="Leave it out",
        )
    diversity = asked["diversity"]
    if diversity is not None and name == "freeform":
        raise InputError(
            "a diversity of covers is not kept by parts: how many rows share the chances of a "
            "record differs from part to part",
            remedy=f"Use {argument('recoding', 'classes')}; {once}",
        )
    if diversity is not None and diversity.t is not None:
        raise InputError(
            "closeness is not kept by parts: it compares classes with the whole table",
            remedy="Leave out t",
        )
    compiled = problem.compiled
    if compiled.tier == "members" or compiled.aggregate != "sum":
        raise InputError(
            f"objective {compiled.name!r} is not solved by parts: it is no sum over records of "
            "what is published of them",
            remedy="Use another, such as gcp",
        )
    if task.schema.pseudonyms:
        raise InputError(
            "pseudonyms are not made by parts: one key would have to reach every worker",
            remedy="Leave those columns out, or put pseudonyms in their place beforehand",
        )
    if task.schema.weights is not None:
        raise InputError(
            "losses by sampling weights are not told by parts",
            remedy="Keep the column as any other, and name it to risk",
        )
    spec = find_method(str(settings["method"]))
    if spec.role == "exact" and spec.name != "split-carry":
        raise InputError(
            f"method {spec.name} proves what is optimal for a whole table, and parts are none",
            remedy="Use greedy-search, local-search or split-carry",
        )
    for name in ("time_limit", "checkpoint", "resume"):
        if settings.get(name):
            raise InputError(
                f"{argument(name)} is given, and a run by parts does not look at the clock",
                remedy=f"Use {argument('effort', ...)}; {once}",
            )
    for attribute in first.attributes:
        known = task.schema.attributes[attribute.name].get("hierarchy")
        if attribute.hierarchy is not None and known is not attribute.hierarchy:
            raise InputError(
                f"the hierarchy of column {attribute.name!r} is a rule of the codes that occur",
                remedy="Write it to a file with anonymip hierarchy, and name that in the schema",
            )


def _of_any_rows(task: Task, data: Microdata) -> Problem:
    """Return the problem of some rows under the domains of a table, without rules beside k."""
    # However few rows there are, and whatever rules ask of the table as a whole.
    some = data.by_rows.take(np.resize(np.arange(data.n), int(task.asked["k"]) + 100))
    return Problem(some, **{**task.asked, "diversity": None, "limits": ()})


def _refuse_unknown_sizes(task: Task, first: Microdata, whole: Whole) -> None:
    """Refuse a loss that reads a domain size that parts do not know."""
    compiled = _of_any_rows(task, first).compiled
    objective: Any = compiled.objective
    record = Record(compiled.domains, cells_of_sets(compiled.microdata, np.zeros((1, 1), np.int64)))
    sizes, read = record.domain_size, set[str]()

    def seen(name: str) -> Any:
        read.add(name)
        return sizes[name]

    record.domain_size = Feature(record.attributes, seen)
    with np.errstate(all="ignore"):
        objective.loss(record)
    unknown = sorted(read - whole.sizes.keys())
    if unknown:
        raise InputError(
            f"objective {compiled.name!r} reads domain_size of {unknown[0]!r}, a range of real "
            "numbers, and parts do not know how many of them the table holds",
            remedy=f"Use spread or width; or leave out {argument('engine')}: the table is then "
            "solved as a whole",
        )


def _monotone(task: Task, whole: Whole) -> tuple[str, ...] | None:
    """Return what has to be assumed for the loss to be monotone over all values of the table.

    Nothing where that is proven, None where nobody says so. The values of one part prove less: a
    class across a cut has values of several.
    """
    try:
        compiled = _of_any_rows(task, whole.values).compiled
    except AnonymipError:
        # No part need hold what the loss is not defined of.
        return None
    if whole.sample.shortened and compiled.tier == "separable":
        # The tables have some numbers of many; slopes and the rules of symbols speak of all.
        expression = compiled.expression
        if expression is None or not never_falls(expression, compiled.domains):
            return None
    return compiled.assumed if compiled.monotone else None


def _results(
    task: Task,
    batches: Sequence[Batch],
    first: Microdata,
    engine: Engine,
    runner: LocalRunner | DaskRunner,
    scratch: Path,
) -> tuple[list[PartResult], Tree, Whole]:
    """Look, cut, split, solve: return what became of each part, the cuts kept, the whole table."""
    schema = task.schema
    wanted = schema, task.columns, max(1, NUMBERS.sample // len(batches))
    seen = runner.map(look_at, [(one,) for one in batches], wanted, "reading")
    try:
        whole = summed_up(seen, schema, first.original[[*task.columns]])
        for attribute in whole.given:
            count = whole.missing[attribute.name]
            if count and policy_of(attribute, schema.table) == "error":
                raise InputError(
                    f"column {attribute.name!r} has {count} missing values",
                    remedy=f"Choose {argument('missing', 'drop')}, or fill the cells",
                )
    except AnonymipError as error:
        raise _found_again(task, batches, error) from None
    tree, parts = choose_cuts(whole.sample, engine.part_rows)
    if isinstance(tree, Cut):
        whole = replace(whole, monotone=_monotone(task, whole))
    plan = Plan(task, whole.sample.attributes, str(scratch), tree, whole.sizes, whole.monotone)
    splits: list[Split] = runner.map(split, [*enumerate(batches)], plan, "splitting")
    counts, complete = np.zeros((2, parts), np.int64)
    for one in splits:
        for part, count in one.counts.items():
            counts[part] += count
            complete[part] += one.complete.get(part, 0)
    kept, members = pruned(tree, complete, max(int(task.asked["k"]), engine.part_rows // 20))
    if isinstance(kept, Cut):
        _refuse_unknown_sizes(task, first, whole)
    sought = []
    for number, own in enumerate(members):
        places = [(one, part) for one in splits for part in own if part in one.groups]
        files = tuple((one.file, one.groups[part]) for one, part in places)
        sought.append((PartTask(number, files, int(counts[own].sum()), kept),))
    pace = Pace(whole.rows)
    solved = runner.map(solve_part, sought, plan, "solving parts", heavy=True, said_of=pace.of)
    if sum(one.fingerprint for one in solved) % 2**64 != whole.fingerprint:
        raise AnonymipError(
            "the rows of the parts are not those of the table",
            remedy="Did a file change meanwhile? Start the run again; else please report this",
        )
    return solved, kept, whole


def _found_again(task: Task, batches: Sequence[Batch], error: AnonymipError) -> AnonymipError:
    """Return the error of the first batch that has the same fault, which names file and row."""
    for batch in batches:
        try:
            _look(task, batch)
        except AnonymipError as found:
            return found
    return error


def _manifest(
    results: Sequence[PartResult], tree: Tree, whole: Whole, first: Microdata
) -> dict[str, Any]:
    """Return the manifest of all parts together."""
    parts = [result.manifest for result in results]
    base = parts[0]
    n, m = sum(one["n"] for one in parts), base["m"]
    value = fsum(one["objective"]["value"] for one in parts)
    ncp = fsum(one["ncp"] for one in parts)
    given = {one.name: describe_attribute(one) for one in whole.given}
    homogeneous = base["homogeneous"] and {
        name: {
            key: sum(one["homogeneous"][name][key] for one in parts) for key in ("classes", "rows")
        }
        for name in base["homogeneous"]
    }
    left_out = {
        **base["left_out"],
        "missing": sum(one["left_out"]["missing"] for one in parts),
        "columns": list(first.drop),
        "undeclared_columns": len(first.undeclared),
    }
    table = {key: one for key, one in base["table"].items() if key != "sha256"}
    cuts = "every row of the table lies in the part that the cuts send it to, and in no other"
    whole_claims = {} if len(parts) == 1 else _claims(results, value, ncp, whole)
    return {
        **base,
        "n": n,
        "objective": {**base["objective"], "value": value},
        "ncp": ncp,
        "gcp": ncp / (n * m),
        **whole_claims,
        "columns": [given.get(one["name"], one) for one in base["columns"]],
        "table": table,
        "homogeneous": homogeneous,
        "left_out": left_out,
        "checked": [*base["checked"], cuts],
        "parts": {
            "cuts": {"part": 0} if isinstance(tree, int) else tree.to_dict([*given]),
            "files": [
                {
                    "file": part_name(result.number),
                    "sha256": one["table"]["sha256"],
                    "n": one["n"],
                    "objective": one["objective"]["value"],
                    "ncp": one["ncp"],
                    "missing": one["left_out"]["missing"],
                    "homogeneous": one["homogeneous"],
                }
                for result, one in zip(results, parts, strict=True)
            ],
        },
    }


def _claims(
    results: Sequence[PartResult], value: float, ncp: float, whole: Whole
) -> dict[str, Any]:
    """Return bound, gap and status of several parts."""
    terms = [result.terms for result in results]
    # Exact cells are the least of a loss that never falls; 0 is not, where losses may be negative.
    if value == 0 and ncp == 0 and whole.monotone == ():
        bound = {"value": 0.0, "method": "nothing is lost", "proof": "argument"}
        return {"bound": bound, "gap": 0.0, "status": "optimal"}
    if any(one is None for one in terms):
        return {"bound": None, "gap": None, "status": "heuristic"}
    low = float(bound_text(fsum(one for one in terms if one is not None)))
    methods = list(dict.fromkeys(result.bound_method for result in results))
    bound = {"value": low, "method": "; ".join(methods), "proof": "argument"}
    if low >= value:
        return {"bound": bound, "gap": 0.0, "status": "optimal"}
    gap = (value - low) / abs(value) if value else None
    return {"bound": bound, "gap": gap, "status": "heuristic"}


def _warn(results: Sequence[PartResult], manifest: Mapping[str, Any]) -> None:
    """Say what a person should know of the release: of the whole where it can be added up."""
    for caution in homogeneous_classes(manifest["homogeneous"] or {}, manifest["n"]):
        warnings.warn(caution, ReleaseWarning, stacklevel=4)
    told: set[str] = set()
    for result in results:
        counted = homogeneous_classes(result.manifest["homogeneous"] or {}, result.manifest["n"])
        for text in result.warnings:
            # What is added up already; and what other parts say with other numbers.
            kind = re.sub(r"\d+", "", text)
            if kind not in told and kind.split("(")[0] not in {
                re.sub(r"\d+", "", one).split("(")[0] for one in counted
            }:
                warnings.warn(f"part {result.number + 1}: {text}", ReleaseWarning, stacklevel=4)
            told.add(kind)
