"""The original as the verifier sees it: schema, coded values, domains, what stays untouched."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.privacy.arrays import Codes, Flags, Ints
from anonymip.privacy.reading.cell_grammar import CellError, read_number, spells_number
from anonymip.privacy.reading.hierarchies import CodePaths, Nodes, Paths, declared_paths, read_nodes
from anonymip.privacy.reading.manifest_entries import Column, read_domain
from anonymip.privacy.reading.release_manifest import Manifest, read_manifest
from anonymip.privacy.reading.text_tables import (
    TextColumn,
    TextTable,
    distinct,
    paired_codes,
    pointed,
    read_table,
)


@dataclass(frozen=True, eq=False)
class Original:
    """The original records that had to be published."""

    #: The m quasi-identifiers, with the domain that holds: of the hierarchy, of the schema, else of
    #: the manifest.
    columns: tuple[Column, ...]
    #: Sorted distinct values of each quasi-identifier: float64, a missing one infinite, or object
    #: array of texts.
    levels: tuple[NDArray[np.generic], ...]
    codes: Codes  # (n, m) int32, index of each value in `levels`
    untouched: dict[str, TextColumn]  # sensitive and kept columns by name, (n,) texts each
    rows: Ints  # (n,) row of each record in the source, from 0; gaps where records were left out
    dropped: int = 0  # records that the missing policy left out
    #: (n,) texts of the column that says whom a row is about; None if there is none.
    units: TextColumn | None = None
    #: (n,) texts of the columns in whose place there are pseudonyms; null where no id is.
    ids: Mapping[str, TextColumn] = field(default_factory=dict)
    #: Columns of which the schema declares another domain than the manifest.
    other_domains: frozenset[str] = frozenset()

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.codes)

    def paired(self, columns: Mapping[str, TextColumn]) -> dict[str, tuple[Ints, Ints]]:
        """Return codes of the untouched values of records and of some published columns."""
        return {name: paired_codes(self.untouched[name], one) for name, one in columns.items()}

    def bounds(self, attribute: int) -> tuple[float, float]:
        """Return the ends of a numeric column's domain, declared or observed."""
        domain = self.columns[attribute].domain
        if domain is not None:
            return float(domain[0]), float(domain[1])
        levels = self.levels[attribute].astype(np.float64)
        present = levels[levels < np.inf]
        return (float(present[0]), float(present[-1])) if len(present) else (0.0, 0.0)

    def values(self, attribute: int) -> frozenset[str]:
        """Return the domain of a text column: declared, of its hierarchy, or observed."""
        domain = self.columns[attribute].domain
        given = self.levels[attribute] if domain is None else domain
        return frozenset(str(value) for value in given)


def encode_original(
    table: TextTable,
    manifest: Manifest,
    schema: Schema | None,
    hierarchies: Mapping[str, Nodes],
    decimal: str = ".",
) -> Original:
    """Apply missing policy, kinds and domains to the original table.

    `decimal`: mark of numbers that are texts.
    """
    for column in manifest.columns:
        if column.name not in table.columns:
            raise InputError(
                f"the original has no column {column.name!r}, which the manifest names",
                remedy="Check that release and original belong together, and the separator",
            )
    tokens = manifest.table.tokens
    if schema is not None and schema.tokens is not None:
        tokens = schema.tokens
    columns: list[Column] = []
    missing: list[Flags] = []
    other: set[str] = set()
    gone = np.zeros(table.rows, np.bool_)
    for declared in manifest.quasi_identifiers:
        absent = missing_in(table.columns[declared.name], tokens)
        column = _with_domain(declared, schema, hierarchies.get(declared.name))
        columns.append(_with_label(column, manifest) if absent.any() else column)
        missing.append(absent)
        # A missing value may be a category, which neither needs to declare.
        if _declares_another(schema, declared, {manifest.table.label} if absent.any() else set()):
            other.add(declared.name)
        if manifest.policy_of(declared) == "drop":
            gone |= absent
    rows = np.flatnonzero(~gone)
    if len(rows) == 0:
        raise InputError("the original has no records", remedy="Check the file")
    codes = np.empty((len(rows), len(columns)), np.int32)
    levels: list[NDArray[np.generic]] = []
    for attribute, (column, absent) in enumerate(zip(columns, missing, strict=True)):
        source = table.columns[column.name]
        texts = pointed(source, decimal) if column.kind == "numeric" else source.texts
        texts = _filled(column, texts[rows], absent[rows], rows, manifest)
        policy = manifest.policy_of(column)
        # Beside nodes the label is a value like any other.
        label = manifest.table.label if column.is_node or policy == "own" else None
        level, codes[:, attribute] = _encode(column, texts, rows, label)
        levels.append(level)
    untouched = {
        column.name: _selected(table.columns[column.name], rows) for column in manifest.untouched
    }
    units = None if manifest.unit is None else table.columns.get(manifest.unit)
    units = None if units is None else _selected(units, rows)
    ids = {}
    for name in manifest.pseudonyms:
        one = table.columns[name]
        ids[name] = _selected(replace(one, null=missing_in(one, (*tokens, ""))), rows)
    return Original(
        *(tuple(columns), tuple(levels), codes, untouched, rows, int(gone.sum()), units, ids),
        frozenset(other),
    )


def domain_problems(original: Original) -> list[str]:
    """Return a sentence for each column whose original values leave the declared domain."""
    problems: list[str] = []
    for attribute, column in enumerate(original.columns):
        level = original.levels[attribute]
        if column.is_numeric:
            low, high = original.bounds(attribute)
            numbers = level.astype(np.float64)
            outside = (numbers < low) | ((numbers > high) & (numbers < np.inf))
        else:
            permissible = original.values(attribute)
            outside = np.array([str(value) not in permissible for value in level])
        if outside.any():
            record = int(np.argmax(outside[original.codes[:, attribute]]))
            problems.append(
                f"Column {column.name!r}, original row {original.rows[record] + 1}: "
                "the value lies outside the declared domain."
            )
    return problems


def _with_domain(column: Column, schema: Schema | None, nodes: Nodes | None) -> Column:
    if nodes is not None:
        return replace(column, domain=nodes.values)
    if schema is None or column.name not in schema.domains:
        return column
    domain = read_domain(column.name, column.kind, schema.domains[column.name], column.scale)
    return replace(column, domain=domain)


def _declares_another(schema: Schema | None, column: Column, beside: set[str]) -> bool:
    """Return whether a schema declares a domain that is not the manifest's and what is `beside`."""
    if schema is None or column.name not in schema.domains or column.kind == "hierarchical":
        return False
    declared, given = _with_domain(column, schema, None).domain or (), column.domain or ()
    return {*declared, *beside} != {*given, *beside}


def _with_label(column: Column, manifest: Manifest) -> Column:
    """Return a column whose missing values may be a category, which a schema need not declare."""
    label, domain = manifest.table.label, column.domain
    is_category = column.kind == "categorical" and manifest.policy_of(column) in ("category", "own")
    if domain is None or not is_category or label in domain:
        return column
    return replace(column, domain=(*map(str, domain), label))


def missing_in(column: TextColumn, tokens: Sequence[str]) -> Flags:
    """Return (n,) where a column has no value, or a text that is declared to mean none."""
    values, index = distinct(column.texts)
    if column.nature in ("number", "single"):
        numbers = {read_number(token) for token in tokens if spells_number(token)}
        meant = [spells_number(value) and read_number(value) in numbers for value in values]
    else:
        meant = [value in tokens for value in values]
    return column.null | np.array(meant, np.bool_)[index]


def _filled(
    column: Column, texts: NDArray[np.object_], absent: Flags, rows: Ints, manifest: Manifest
) -> NDArray[np.object_]:
    if not absent.any():
        return texts
    policy = manifest.policy_of(column)
    is_range = column.is_numeric and column.publish == "range"
    if policy == "error" or (column.is_numeric and not (policy == "own" and is_range)):
        raise InputError(
            f"column {column.name!r} of the original misses a value in row "
            f"{int(rows[np.argmax(absent)]) + 1}, which the manifest does not provide for",
            remedy="Check the missing tokens of the schema and the policy of the manifest",
        )
    if column.is_numeric and (texts[~absent] == manifest.table.label).any():
        raise InputError(
            f"column {column.name!r} of the original holds the text that stands for missing values",
            remedy="Check the missing tokens of the schema and the label of the manifest",
        )
    filled = texts.copy()
    filled[absent] = manifest.table.label
    return filled


def _encode(
    column: Column, texts: NDArray[np.object_], rows: Ints, label: str | None
) -> tuple[NDArray[np.generic], Codes]:
    """Return levels and codes of a column; `label` stands for a missing number or date."""
    values, index = distinct(texts)
    spelled: NDArray[Any] = np.array(values, dtype=object)
    if column.is_numeric or column.kind == "date":
        for place, value in enumerate(values):
            try:
                if column.is_numeric:
                    spelled[place] = np.inf if value == label else column.scale.value(value)
                elif value != label:
                    spelled[place] = column.scale.path(column.scale.value(value))[0]
            except CellError as error:
                row = int(rows[np.argmax(index == place)]) + 1
                raise InputError(
                    f"column {column.name!r}, original row {row}: the value {error}",
                    remedy=f"The manifest calls the column {column.kind}: check that both belong "
                    "together",
                    value=value,
                ) from None
    if column.is_numeric:
        spelled = spelled.astype(np.float64)
    level, order = np.unique(spelled, return_inverse=True)
    return level, order.ravel()[index].astype(np.int32)


def _selected(column: TextColumn, rows: Ints) -> TextColumn:
    return TextColumn(column.texts[rows], column.null[rows], column.nature)


@dataclass(frozen=True)
class Schema:
    """The parts of a schema file that the verifier reads."""

    kinds: Mapping[str, str | None] = field(default_factory=dict)
    domains: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)  # of the columns that have one
    sensitive: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | int | None = None
    columns: tuple[str, ...] | None = None
    tokens: tuple[str, ...] | None = None
    hierarchies: Mapping[str, Path | Sequence[Sequence[str]] | CodePaths] = field(
        default_factory=dict
    )
    policies: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    weights: str | None = None


def read_schema(path: str | Path | None) -> Schema | None:
    """Read what the verifier needs of a schema file; None for None."""
    if path is None:
        return None
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the schema {file} cannot be read", remedy="Check the path") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"the schema {file} is not TOML", remedy="Correct it") from error
    attributes, table = document.get("attributes", {}), document.get("table", {})
    entries = attributes.values() if isinstance(attributes, dict) else [None]
    if not all(isinstance(one, dict) for one in (*entries, table)):
        raise InputError(
            f"the schema {file} does not consist of tables",
            remedy="Write [attributes.NAME] and [table]",
        )
    columns, weights = _texts(table, "columns", file), table.get("weights")
    sensitive = _texts(table, "sensitive", file) or ()
    kept = (*(_texts(table, "keep", file) or ()), *(() if weights is None else (str(weights),)))
    # A column that is named twice has the role that stands last here.
    roles = {
        **dict.fromkeys(_texts(table, "pseudonyms", file) or (), "pseudonym"),
        **dict.fromkeys(_texts(table, "drop", file) or (), "drop"),
        **dict.fromkeys(kept, "keep"),
        **dict.fromkeys(sensitive, "sensitive"),
        **dict.fromkeys(attributes, "quasi-identifier"),
    }
    declared = attributes.items()
    return Schema(
        {name: _kind(given) for name, given in declared},
        {name: given["domain"] for name, given in declared if "domain" in given},
        roles,
        sensitive,
        columns=None if table.get("header", not columns) else columns,
        tokens=_texts(table, "missing", file),
        hierarchies={
            name: declared_paths(given["hierarchy"], name, file)
            for name, given in declared
            if "hierarchy" in given
        },
        policies={name: str(given["missing"]) for name, given in declared if "missing" in given},
        weights=weights,
        **{key: table.get(key) for key in ("separator", "encoding", "decimal", "sheet", "unit")},
    )


def _kind(given: Mapping[str, Any]) -> str | None:
    """Return the declared kind; a hierarchy, or a format of dates, says it as well."""
    declared: str | None = given.get("kind")
    if declared is None and "format" in given:
        return "date"
    return "hierarchical" if declared is None and "hierarchy" in given else declared


def _texts(table: Mapping[str, Any], key: str, file: Path) -> tuple[str, ...] | None:
    given = table.get(key)
    if given is None:
        return None
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise InputError(
            f"table.{key} of the schema {file} is not a list of texts",
            remedy='Write ["one", "two"]',
        )
    return tuple(given)


@dataclass(frozen=True, eq=False)
class Inputs:
    """All that is known of a release before its table is read."""

    manifest: Manifest  # what is declared of the release
    schema: Schema | None  # the schema of the original; None if none was given
    source: TextTable  # the original as texts
    hierarchies: dict[str, Nodes]  # of the hierarchical columns, by name
    records: Original  # the original as the manifest declares it


class Reading(TypedDict, total=False):
    """How files are read, as :func:`~anonymip.privacy.verify` takes it."""

    separator: str | None
    encoding: str | None
    decimal: str | None
    columns: Sequence[str] | None
    sheet: str | int | None
    hierarchies: Mapping[str, Paths] | None


def read_inputs(
    original: str | Path | Any,
    release: str | Path | Any,
    manifest: Mapping[str, Any] | str | Path | None,
    schema: str | Path | None,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    columns: Sequence[str] | None = None,
    sheet: str | int | None = None,
    hierarchies: Mapping[str, Paths] | None = None,
) -> Inputs:
    """Read the manifest and the original of a release: of the release its path alone is looked at.

    The arguments are those of :func:`~anonymip.privacy.verify`.
    """
    claims = read_manifest(manifest, release)
    given = read_schema(schema)
    known = Schema() if given is None else given
    source = read_table(
        original,
        separator=separator or known.separator or claims.table.separator,
        encoding=encoding or known.encoding or claims.table.encoding,
        names=columns or known.columns,
        sheet=known.sheet if sheet is None else sheet,
    )
    tokens = claims.table.tokens if known.tokens is None else known.tokens

    def codes_of(column: Column) -> tuple[list[str], list[str]]:
        """Return the values of a column of the original, and what stands for missing ones."""
        if column.name not in source.columns:
            return [], []
        shown = source.columns[column.name]
        absent = missing_in(shown, tokens)
        filled = claims.policy_of(column) in ("category", "own") and absent.any()
        return distinct(shown.texts[~absent])[0], [claims.table.label] if filled else []

    asked = [
        _with_domain(column, given, None) if column.kind == "date" else column
        for column in claims.quasi_identifiers
    ]
    nodes = read_nodes(asked, known.hierarchies, hierarchies or {}, codes_of)
    mark = decimal or known.decimal or claims.table.decimal
    records = encode_original(source, claims, given, nodes, mark)
    return Inputs(claims, given, source, nodes, records)


def schema_finding(
    manifest: Manifest, schema: Schema | None, records: Original
) -> tuple[str, list[str]]:
    """Return what is checked of the columns' declarations, and where they are not the schema's."""
    if schema is None:
        return "Not checked: the roles of the columns, since no schema was given.", []
    problems = []
    for column in manifest.columns:
        name, kind = column.name, schema.kinds.get(column.name)
        role = schema.roles.get(name)
        if role is not None and role != column.role:
            problems.append(
                f"Column {name!r} is {role} in the schema but {column.role} in the manifest."
            )
        elif role == "quasi-identifier" and kind not in (None, column.kind):
            problems.append(f"Column {name!r} is {kind} in the schema, not in the manifest.")
        elif name in records.other_domains:
            problems.append(
                f"Column {name!r} has a domain in the schema that is not the one of the manifest: "
                "give the schema that the release was made with, or make the release again."
            )
    if schema.unit not in (None, manifest.unit):
        counted = "rows" if manifest.unit is None else f"units {manifest.unit!r}"
        problems.append(
            f"By the schema k counts units {schema.unit!r}, by the manifest {counted}: give the "
            "schema that the release was made with, or make the release again."
        )
    told = (
        "Roles, kinds and domains of the columns and the unit are what the schema declares of them."
    )
    return told, problems
