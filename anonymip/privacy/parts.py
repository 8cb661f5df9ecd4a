"""Verification of a release by parts: each part against the records that the cuts send to it.

The cuts of the manifest say which records of the original a part is of. The records are sent there
anew, batch by batch, and each part is verified as a release of its own under the domains of the
whole original. So no process holds more than a batch or a part.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import fsum
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError
from anonymip.privacy.arrays import Floats, Ints
from anonymip.privacy.checks.loss_claims import is_ncp, optimality_problems, relative_gap
from anonymip.privacy.reading.cell_grammar import CellError
from anonymip.privacy.reading.hierarchies import Paths
from anonymip.privacy.reading.manifest_entries import (
    Column,
    count_of,
    is_number,
    refuse,
    value_of,
)
from anonymip.privacy.reading.original import Schema, missing_in, read_schema
from anonymip.privacy.reading.release_manifest import Manifest, read_manifest
from anonymip.privacy.reading.stored_files import (
    Piece,
    file_here,
    names_in,
    pieces_of,
    read_parquet,
)
from anonymip.privacy.reading.text_tables import TextColumn, distinct, pointed, read_table
from anonymip.privacy.verification import Verification, verify

MANIFEST = "_manifest.json"  # the manifest of a folder
_NAMED = 20  # problems that are named of all parts together
#: Cuts above one another, at most.
_DEEPEST = 200
_SAME = 1e-9
_ENTRY = {"file", "sha256", "n", "objective", "ncp", "missing", "homogeneous"}

#: Calls a function with each task and what is common to all: task by task, or on a cluster.
Run = Callable[..., list[Any]]


def is_in_parts(release: object) -> bool:
    """Return whether a release is a folder of parts, or an address, which nothing else can be."""
    if isinstance(release, str) and "://" in release:
        return True
    return isinstance(release, str | os.PathLike) and os.path.isfile(Path(release) / MANIFEST)


def verify_parts(
    original: str | Path,
    release: str | Path,
    *,
    schema: str | Path | None = None,
    k: int | None = None,
    hierarchies: Mapping[str, Paths] | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    run: Run | None = None,
    scratch: str | Path | None = None,
) -> Verification:
    """Check a release by parts against the original and its manifest.

    Beside what :func:`~anonymip.privacy.verify` checks of each part: that the folder holds the
    files of the manifest and no others, that the sums over the parts are what is claimed of the
    whole, and that bound, gap and status agree with them. Domains that are not declared are those
    of the whole original. `original`: a file or a folder of Parquet or CSV files, or an address
    that fsspec reads. `release`: the folder, with its manifest in it, or its address. `schema, k,
    hierarchies, separator, encoding, decimal`: as in :func:`~anonymip.privacy.verify`. `run`:
    called as ``run(function, tasks, common, phase)``, returns the function's results in the order
    of the tasks; None does one after the other here. `scratch`: folder that every worker sees, for
    the records by part; None for one of the system's. Raises InputError if a file cannot be read,
    or the manifest is malformed or missing.
    """
    folder = str(release)
    document = _document(folder)
    claims = read_manifest(document, release)
    cuts, entries = _parts(document, claims)
    run = _one_by_one if run is None else run
    with ExitStack() as stack:
        if scratch is None:
            scratch = stack.enter_context(tempfile.TemporaryDirectory())
        how = {"schema": schema, "k": k, "decimal": decimal, "hierarchies": hierarchies}
        common = _Common(document, cuts, str(scratch), separator, encoding, how)
        pieces = pieces_of(str(original))
        numbered = [*enumerate(pieces)]
        sent: list[_Sent] = run(_send, numbered, common, "reading the original")
        common = replace(common, domains=_domains(claims, sent))
        tasks = [
            (n, folder, entry, [(one.file, one.groups[n]) for one in sent if n in one.groups])
            for n, entry in enumerate(entries)
        ]
        found: list[Verification] = run(_verify_part, tasks, common, "verifying parts")
    problems = _whole_problems(folder, claims, entries)
    return _together(claims, entries, found, problems)


def _document(folder: str) -> dict[str, Any]:
    with file_here(folder, MANIFEST) as path:
        if path is None:
            raise InputError(
                f"there is no manifest {MANIFEST} at {folder}: it is written last, and what has "
                "none is no release",
                remedy="Check the address; if a run is at work there, wait for its end",
            )
        read_manifest(path, folder)  # refuses what is no manifest
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document


@dataclass(frozen=True)
class _Cut:
    """A cut: column, the most that goes to the lower side, both sides: cuts or numbers of parts."""

    column: str
    at_most: float
    lower: _Cut | int
    higher: _Cut | int


def _parts(
    document: Mapping[str, Any], claims: Manifest
) -> tuple[_Cut | int, list[dict[str, Any]]]:
    """Return the cuts and the entries of the parts, checked for form."""
    given = document.get("parts")
    if not isinstance(given, dict) or set(given) != {"cuts", "files"}:
        refuse("parts", "is not an object of cuts and files")
    entries = given["files"]
    if not isinstance(entries, list) or not entries:
        refuse("parts.files", "is not a list")
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or set(entry) != _ENTRY:
            refuse("parts.files", "holds something else than what is said of a part")
        if entry["file"] != f"part-{number:05}.parquet":
            refuse("parts.files", "names files otherwise than part-00000.parquet and so on")
        for key in ("n", "missing"):
            count_of(entry, key, "parts.files.")
        for key in ("objective", "ncp"):
            value_of(entry, key, float, "parts.files.")
    names = {column.name for column in claims.quasi_identifiers}
    seen: list[int] = []

    def read(node: object, depth: int) -> _Cut | int:
        if isinstance(node, dict) and set(node) == {"part"} and isinstance(node["part"], int):
            seen.append(node["part"])
            return int(node["part"])
        keys = {"column", "at_most", "lower", "higher"}
        if not isinstance(node, dict) or set(node) != keys or depth > _DEEPEST:
            refuse("parts.cuts", "is not a cut or a part")
        if node["column"] not in names or not is_number(node["at_most"]):
            refuse("parts.cuts", "cuts something else than a quasi-identifier at a number")
        sides = (read(node["lower"], depth + 1), read(node["higher"], depth + 1))
        return _Cut(str(node["column"]), float(node["at_most"]), *sides)

    cuts = read(given["cuts"], 0)
    if sorted(seen) != [*range(len(entries))]:
        refuse("parts.cuts", "does not name every part once")
    return cuts, entries


@dataclass(frozen=True)
class _Common:
    """What all tasks are told."""

    document: Mapping[str, Any]
    cuts: _Cut | int
    scratch: str
    separator: str | None
    encoding: str | None
    how: Mapping[str, Any]  # further arguments of `verify`
    domains: Mapping[str, Any] = field(default_factory=dict)


def _one_by_one(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], common: Any, phase: str
) -> list[Any]:
    return [function(*task, common) for task in tasks]


@dataclass(frozen=True)
class _Sent:
    """Where the records of a piece lie by part, and what it holds of columns without a domain.

    `ends`: of numbers the least and the greatest, each with its text. `texts`: all of others.
    """

    file: str
    groups: dict[int, int]
    ends: dict[str, tuple[tuple[float, str], tuple[float, str]]]
    texts: dict[str, list[str]]


def _send(number: int, piece: Piece, common: _Common, **_: Any) -> _Sent:
    """Write the records of a piece in the order of their parts, a row group for each part."""
    import pyarrow as pa
    from pyarrow import parquet

    claims, known = (
        read_manifest(common.document, ""),
        read_schema(common.how["schema"]) or Schema(),
    )
    file, groups, said = piece
    if groups is None:
        frame = _text_frame(file, claims, known, common)
        frame = frame.assign(**{n: "" if one is None else str(one) for n, one in said.items()})
        table = pa.Table.from_pandas(frame, preserve_index=False)
    else:
        table = read_parquet(file, methodcaller("read_row_groups", list(groups)))
        kinds = [
            one.with_type(one.type.value_type) if pa.types.is_dictionary(one.type) else one
            for one in table.schema
        ]
        table = table.cast(pa.schema(kinds)).replace_schema_metadata()
        for name, value in said.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
    columns = _identifiers(table, file, claims)
    tokens = claims.table.tokens if known.tokens is None else known.tokens
    mark = common.how["decimal"] or known.decimal or claims.table.decimal
    absent = {name: missing_in(column, tokens) for name, column in columns.items()}
    gone = np.zeros(table.num_rows, np.bool_)
    for column in claims.quasi_identifiers:
        if claims.policy_of(column) == "drop":
            gone |= absent[column.name]
    keys: dict[str, Floats] = {}
    ends, texts = {}, {}
    for column in claims.quasi_identifiers:
        name = column.name
        is_number = column.kind == "numeric"
        values, place = distinct(pointed(columns[name], mark) if is_number else columns[name].texts)
        numbers = np.full(len(values), np.inf)
        there = np.unique(place[~absent[name]])
        for at in there.tolist():
            numbers[at] = _number(column, values[at], file)
        keys[name] = np.where(absent[name], np.inf, numbers[place])
        kept = np.unique(place[~absent[name] & ~gone])
        if column.domain is not None or name in known.domains or column.is_node or not len(kept):
            continue
        if column.is_numeric:
            low, high = kept[numbers[kept].argmin()], kept[numbers[kept].argmax()]
            ends[name] = ((float(numbers[low]), values[low]), (float(numbers[high]), values[high]))
        else:
            texts[name] = [values[at] for at in kept.tolist()]
            if (absent[name] & ~gone).any():
                texts[name].append(claims.table.label)
    parts = np.zeros(table.num_rows, np.int64)
    for rows, part in _rows_of(common.cuts, keys, np.arange(table.num_rows)):
        parts[rows] = part
    order = np.argsort(parts, kind="stable")
    present, counts = np.unique(parts, return_counts=True)
    place_of = Path(common.scratch) / f"records-{number:06}-{os.getpid()}.parquet"
    ordered, begin = table.take(pa.array(order)), 0
    with parquet.ParquetWriter(place_of, ordered.schema) as writer:
        for count in counts.tolist():
            writer.write_table(ordered.slice(begin, count), row_group_size=count)
            begin += count
    return _Sent(str(place_of), {p: g for g, p in enumerate(present.tolist())}, ends, texts)


def _text_frame(file: str, claims: Manifest, known: Schema, common: _Common) -> pd.DataFrame:
    folder, _, name = file.rpartition("/")
    with file_here(folder, name) as local:
        table = read_table(
            local or file,
            separator=common.separator or known.separator or claims.table.separator,
            encoding=common.encoding or known.encoding or claims.table.encoding,
            names=known.columns,
        )
    return pd.DataFrame({name: column.texts for name, column in table.columns.items()})


def _identifiers(table: Any, file: str, claims: Manifest) -> dict[str, TextColumn]:
    """Return the quasi-identifiers of a piece as texts."""
    names = [column.name for column in claims.quasi_identifiers]
    for name in names:
        if name not in table.column_names:
            raise InputError(
                f"{file} has no column {name!r}, which the manifest names",
                remedy="Check that release and original belong together",
            )
    return read_table(table.select(names)).columns


def _number(column: Column, text: str, file: str) -> float:
    """Return what a cut compares: a number as it is counted, or the digest of a text."""
    if not column.is_numeric:
        return float(int(hashlib.sha256(text.encode()).hexdigest()[:12], 16))
    try:
        return float(column.scale.value(text))
    except CellError as error:
        raise InputError(
            f"{file}, column {column.name!r}: a value {error}",
            remedy=f"The manifest calls the column {column.kind}: check that both belong together",
            value=text,
        ) from None


def _rows_of(
    cuts: _Cut | int, keys: Mapping[str, Floats], rows: Ints
) -> Iterator[tuple[Ints, int]]:
    if isinstance(cuts, int):
        yield rows, cuts
        return
    low = keys[cuts.column][rows] <= cuts.at_most
    yield from _rows_of(cuts.lower, keys, rows[low])
    yield from _rows_of(cuts.higher, keys, rows[~low])


def _domains(claims: Manifest, sent: Sequence[_Sent]) -> dict[str, Any]:
    """Return the observed domains of the whole original, as a manifest would declare them."""
    domains: dict[str, Any] = {}
    for column in claims.quasi_identifiers:
        ends = [one.ends[column.name] for one in sent if column.name in one.ends]
        texts = [text for one in sent for text in one.texts.get(column.name, ())]
        if ends:
            low, high = min(one[0] for one in ends), max(one[1] for one in ends)
            is_date = column.scale.unit is not None
            domains[column.name] = [end[1] if is_date else end[0] for end in (low, high)]
        elif texts:
            domains[column.name] = sorted(set(texts))
    return domains


def _verify_part(
    number: int,
    folder: str,
    entry: Mapping[str, Any],
    places: Sequence[tuple[str, int]],
    common: _Common,
    **_: Any,
) -> Verification | str:
    """Verify one part; a text says why there is nothing to verify."""
    import pyarrow as pa

    if not places:
        return "has no record of the original"
    tables = [read_parquet(at, methodcaller("read_row_group", group)) for at, group in places]
    records = pa.concat_tables(tables, promote_options="permissive")
    document = common.document
    columns = [
        {**one, "domain": common.domains[one["name"]]} if one["name"] in common.domains else one
        for one in document["columns"]
    ]
    manifest = {
        **{key: one for key, one in document.items() if key != "parts"},
        "n": entry["n"],
        "objective": {**document["objective"], "value": entry["objective"]},
        "ncp": entry["ncp"],
        "gcp": entry["ncp"] / max(1, entry["n"] * document["m"]),
        "homogeneous": entry["homogeneous"],
        "left_out": {**document["left_out"], "missing": entry["missing"]},
        "table": {**document["table"], "sha256": entry["sha256"]},
        "columns": columns,
        "bound": None,
        "gap": None,
        "status": "heuristic",
    }
    with file_here(folder, entry["file"]) as file:
        if file is None:
            return "is not there"
        return verify(records, file, manifest, **common.how)


def _whole_problems(
    folder: str, claims: Manifest, entries: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return where the claims of the whole are not the sums of those of the parts."""
    problems = []
    there = names_in(folder) - {MANIFEST}
    foreign = len(there - {entry["file"] for entry in entries})
    if foreign:
        problems.append(f"The folder holds {foreign} files that the manifest does not name.")
    sums = (
        ("n", claims.n, sum(entry["n"] for entry in entries)),
        ("objective value", claims.loss.objective, fsum(entry["objective"] for entry in entries)),
        ("ncp", claims.loss.ncp, fsum(entry["ncp"] for entry in entries)),
        ("gcp", claims.loss.gcp, fsum(e["ncp"] for e in entries) / max(1, claims.n * claims.m)),
        ("number of rows left out", claims.left_out.missing, sum(e["missing"] for e in entries)),
    )
    for name, claimed, found in sums:
        if claimed is None or abs(claimed - found) > _SAME * max(abs(claimed), abs(found)):
            problems.append(f"The manifest claims {name} {claimed}; its parts add up to {found}.")
    for name, (classes, rows) in (claims.homogeneous or {}).items():
        parts = [entry["homogeneous"].get(name, {}) for entry in entries]
        found_here = tuple(sum(one.get(key, 0) for one in parts) for key in ("classes", "rows"))
        if found_here != (classes, rows):
            problems.append(f"The manifest counts other classes that share one value of {name!r}.")
    return [*problems, *optimality_problems(claims)]


def _together(
    claims: Manifest,
    entries: Sequence[Mapping[str, Any]],
    found: Sequence[Verification | str],
    problems: list[str],
) -> Verification:
    """Return what was found of all parts as of one release."""
    whole = [one for one in found if isinstance(one, Verification)]
    named = list(problems)
    for entry, one in zip(entries, found, strict=True):
        said = (f"The file {one}.",) if isinstance(one, str) else one.problems
        named += [f"{entry['file']}: {problem}" for problem in said]
    if len(named) > _NAMED:
        named = [*named[:_NAMED], f"{len(named) - _NAMED} more problems."]
    reached = [one.k_reached for one in whole if one.k_reached is not None]
    losses = [one.ncp for one in whole if one.ncp is not None]
    ncp = fsum(losses) if len(losses) == len(found) else None
    n = sum(one.n or 0 for one in whole)
    has_bound = any(one.bound is not None for one in whole) or claims.loss.bound is not None
    bound = claims.loss.bound if has_bound and is_ncp(claims.loss.name) else None
    some = dict.fromkeys(check for one in whole for check in one.checks)
    checks = [check for check in some if all(check in one.checks for one in whole)]
    cuts = "Every record lies in the part that the cuts send it to; the claims of the parts add up."
    return Verification(
        ok=not named,
        recoding=claims.recoding,
        k=claims.k,
        k_reached=min(reached) if reached and len(reached) == len(whole) else None,
        promise=whole[0].promise if whole else None,
        classes=sum(one.classes or 0 for one in whole),
        suppressed=sum(one.suppressed or 0 for one in whole),
        left_out=claims.left_out.suppressed,
        n=n,
        m=claims.m,
        objective_name=claims.loss.name,
        objective=claims.loss.objective,
        ncp=ncp,
        gcp=None if ncp is None else ncp / max(1, n * claims.m),
        bound=bound,
        gap=None if ncp is None or bound is None else relative_gap(ncp, bound),
        problems=tuple(named),
        checks=(*([] if problems else [cuts]), *checks),
    )
