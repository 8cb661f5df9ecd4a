"""The original table as the verifier sees it: coded values, domains, and what stays untouched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.privacy.reading.cells import CellError, read_number
from anonymip.privacy.reading.hierarchies import Nodes
from anonymip.privacy.reading.manifests.columns import Column, read_domain
from anonymip.privacy.reading.manifests.manifest import Manifest
from anonymip.privacy.reading.schemas import Schema
from anonymip.privacy.reading.tables import TextColumn, TextTable, distinct


@dataclass(frozen=True, eq=False)
class Original:
    """The original records that had to be published.

    Parameters
    ----------
    columns
        The m quasi-identifiers, with the domain that holds: of the hierarchy, of the schema, else
        of the manifest.
    levels
        Sorted distinct values of each quasi-identifier: float64, or object array of texts.
    codes
        (n, m) int32, index of each value in `levels`.
    untouched
        Sensitive and kept columns by name, (n,) texts each.
    rows
        (n,) row of each record in the source, from 0; gaps where records were left out.
    dropped
        Records that the missing policy left out.
    """

    columns: tuple[Column, ...]
    levels: tuple[NDArray[np.generic], ...]
    codes: NDArray[np.int32]
    untouched: dict[str, TextColumn]
    rows: NDArray[np.int64]
    dropped: int = 0

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.codes)

    def bounds(self, attribute: int) -> tuple[float, float]:
        """Return the ends of a numeric column's domain, declared or observed."""
        domain = self.columns[attribute].domain
        if domain is not None:
            return float(domain[0]), float(domain[1])
        levels = self.levels[attribute].astype(np.float64)
        return float(levels[0]), float(levels[-1])

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
) -> Original:
    """Apply missing policy, kinds and domains to the original table.

    Parameters
    ----------
    table
        The original.
    manifest, schema
        What is declared about it.
    hierarchies
        Of the hierarchical columns, by name.

    Raises
    ------
    InputError
        If a published column is absent, a numeric one holds something else, a value is missing
        although the policy forbids it, or no record is left.
    """
    for column in manifest.columns:
        if column.name not in table.columns:
            raise InputError(
                f"the original has no column {column.name!r}, which the manifest names",
                remedy="Check that release and original belong together, and the separator",
            )
    tokens = manifest.tokens
    if schema is not None and schema.tokens is not None:
        tokens = schema.tokens
    columns = tuple(
        _with_domain(column, schema, hierarchies.get(column.name))
        for column in manifest.quasi_identifiers
    )
    missing = [_missing(table.columns[column.name], tokens) for column in columns]
    rows = np.arange(table.rows)
    if manifest.policy == "drop":
        rows = rows[~np.logical_or.reduce(missing)]
    if len(rows) == 0:
        raise InputError("the original has no records", remedy="Check the file")
    codes = np.empty((len(rows), len(columns)), np.int32)
    levels: list[NDArray[np.generic]] = []
    for attribute, (column, absent) in enumerate(zip(columns, missing, strict=True)):
        texts = _filled(column, table.columns[column.name].texts, absent, manifest)[rows]
        level, codes[:, attribute] = _encode(column, texts, rows)
        levels.append(level)
    untouched = {
        column.name: _selected(table.columns[column.name], rows) for column in manifest.untouched
    }
    dropped = table.rows - len(rows)
    return Original(columns, tuple(levels), codes, untouched, rows, dropped)


def domain_problems(original: Original) -> list[str]:
    """Return a sentence for each column whose original values leave the declared domain."""
    problems: list[str] = []
    for attribute, column in enumerate(original.columns):
        level = original.levels[attribute]
        if column.is_numeric:
            low, high = original.bounds(attribute)
            numbers = level.astype(np.float64)
            outside = (numbers < low) | (numbers > high)
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
    domain = read_domain(column.name, column.kind, schema.domains[column.name])
    return replace(column, domain=domain)


def _missing(column: TextColumn, tokens: Sequence[str]) -> NDArray[np.bool_]:
    if column.nature in ("number", "single"):
        return column.null
    values, index = distinct(column.texts)
    return column.null | np.array([value in tokens for value in values], np.bool_)[index]


def _filled(
    column: Column, texts: NDArray[np.object_], absent: NDArray[np.bool_], manifest: Manifest
) -> NDArray[np.object_]:
    if manifest.policy == "drop" or not absent.any():
        return texts
    if manifest.policy == "error" or column.is_numeric:
        raise InputError(
            f"column {column.name!r} of the original misses a value in row "
            f"{int(np.argmax(absent)) + 1}, which the manifest does not provide for",
            remedy="Check the missing tokens of the schema and the policy of the manifest",
        )
    filled = texts.copy()
    filled[absent] = manifest.label
    return filled


def _encode(
    column: Column, texts: NDArray[np.object_], rows: NDArray[np.int64]
) -> tuple[NDArray[np.generic], NDArray[np.int32]]:
    values, index = distinct(texts)
    spelled: NDArray[np.generic]
    if column.is_numeric:
        spelled = np.empty(len(values), np.float64)
        for place, value in enumerate(values):
            try:
                spelled[place] = read_number(value)
            except CellError as error:
                row = int(rows[np.argmax(index == place)]) + 1
                raise InputError(
                    f"column {column.name!r}, original row {row}: the value {error}",
                    remedy="The manifest calls the column numeric: check that both belong together",
                    value=value,
                ) from None
    else:
        spelled = np.empty(len(values), dtype=object)
        spelled[:] = values
    level, order = np.unique(spelled, return_inverse=True)
    return level, order.ravel()[index].astype(np.int32)


def _selected(column: TextColumn, rows: NDArray[np.int64]) -> TextColumn:
    return TextColumn(column.texts[rows], column.null[rows], column.nature)
