"""The first look at a table: what its columns hold as a whole, and a sample of its rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError
from anonymip.instances import Attribute, Microdata, Schema
from anonymip.instances.columns import looks_numeric, missing_rows, numeric_column
from anonymip.instances.encoding import policy_of
from anonymip.instances.readers import as_pandas
from anonymip.instances.scale import unit_text
from anonymip.runtime.budget import Budget
from anonymip.scale.cuts import Sample, keys_of
from anonymip.scale.sources import Batch, read_batch

#: Distinct numbers of a batch that are kept one by one; of more their ends say all that losses ask.
_MANY = 10_000


@dataclass(frozen=True)
class Seen:
    """What one batch holds.

    `found`: by quasi-identifier values of it, those that are missing left out: all, or of many
    numbers the ends and one that is not whole, and these are `shortened`. `sample`: rows of it, and
    `weight`, how many each stands for. `fingerprint`: a sum over all rows, in whatever order they
    come. `missing`: by quasi-identifier how many values are missing, but for rows that are left
    out.
    """

    rows: int
    found: dict[str, pd.Series]
    shortened: frozenset[str]
    sample: pd.DataFrame
    weight: float
    fingerprint: int
    missing: dict[str, int]


def fingerprint_of(frame: pd.DataFrame) -> int:
    """Return a sum over rows that tells a lost, doubled or changed row, and not their order."""
    rows = np.zeros(len(frame), np.uint64)
    for name in sorted(frame.columns):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            cells: Any = column.to_numpy(np.float64, na_value=np.nan) + 0.0
        else:
            cells = column.astype(object).map(str).to_numpy(object)
        rows = rows * np.uint64(0x9E3779B97F4A7C15) + pd.util.hash_array(cells)
    return int(rows.sum(dtype=np.uint64))


def look_at(
    batch: Batch, wanted: tuple[Schema, tuple[str, ...], int], *, budget: Budget | None = None
) -> Seen:
    """Return what a batch holds; wanted are columns, published or counted, and rows as a sample."""
    schema, columns, samples = wanted
    frame = as_pandas(read_batch(batch, schema.table, columns))
    tokens = schema.table.missing
    absent = {name: missing_rows(frame[name], tokens) for name in schema.attributes}
    # What is left out with its row has no part in a domain.
    gone = np.zeros(len(frame), np.bool_)
    for name, known in schema.attributes.items():
        if (known.get("missing") or schema.table.policy) == "drop":
            gone |= absent[name]
    missing = {name: int((rows & ~gone).sum()) for name, rows in absent.items()}
    values: dict[str, pd.Series] = {}
    shortened = set()
    for name, known in schema.attributes.items():
        found = frame[name][~absent[name] & ~gone].drop_duplicates()
        values[name] = _ends(found, known, schema)
        if len(values[name]) < len(found):
            shortened.add(name)
    step = max(1, -(-len(frame) // samples))
    sample = frame[list(schema.attributes)].iloc[::step].reset_index(drop=True)
    weight = len(frame) / max(1, len(sample))
    return Seen(
        len(frame), values, frozenset(shortened), sample, weight, fingerprint_of(frame), missing
    )


def _ends(values: pd.Series, known: Any, schema: Schema) -> pd.Series:
    """Return all values, or of many numbers those that tell domain and kind."""
    plain = known.get("kind") in (None, "numeric") and known.get("publish") != "set"
    if len(values) <= _MANY or not plain or known.get("hierarchy") is not None:
        return values
    if known.get("kind") is None and not looks_numeric(schema.table.pointed(values), ()):
        return values
    numbers = pd.to_numeric(schema.table.pointed(values), errors="coerce").to_numpy(np.float64)
    if np.isnan(numbers).any():
        return values
    fraction = np.flatnonzero(numbers != np.floor(numbers))[:1]
    at = np.unique([int(numbers.argmin()), int(numbers.argmax()), *fraction.tolist()])
    return values.iloc[at]


@dataclass(frozen=True)
class Whole:
    """What is known of a table before its parts are."""

    rows: int  # how many it has, those with missing values included
    fingerprint: int  # see :func:`fingerprint_of`
    given: tuple[Attribute, ...]  # the quasi-identifiers as a manifest declares them
    sample: Sample  # what cuts are chosen on
    missing: dict[str, int]  # by quasi-identifier, how many values are missing
    values: Microdata  # all that it holds under its domains, in rows that it need not have
    #: What has to be assumed for the loss to be monotone over all these values, nothing where that
    #: is proven; None where it is neither proven nor declared, or was not asked.
    monotone: tuple[str, ...] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Domain sizes by column, but for ranges of real numbers, of which not all are kept."""
        given = enumerate(self.values.attributes)
        return {
            one.name: self.values.domain_size(a)
            for a, one in given
            if one.is_whole or one.publish != "range"
        }


def summed_up(seen: Sequence[Seen], schema: Schema, others: pd.DataFrame) -> Whole:
    """Return what all batches hold together.

    `others`: some rows of the columns that are published untouched.

    Raises InputError as a table does that is read at once.
    """
    merged = {
        name: pd.concat([one.found[name] for one in seen], ignore_index=True).drop_duplicates()
        for name in schema.attributes
    }
    length = max((len(values) for values in merged.values()), default=0)
    if not length or min(map(len, merged.values())) == 0:
        raise InputError("the table has no rows", remedy="Give a table with at least k rows")
    columns = {
        name: values.iloc[np.minimum(np.arange(length), len(values) - 1)].reset_index(drop=True)
        for name, values in merged.items()
    }
    for name in others.columns.difference(list(columns), sort=False):
        columns[name] = others[name].iloc[np.arange(length) % len(others)].reset_index(drop=True)
    with warnings.catch_warnings():
        # How many values lie far out cannot be seen from a list of them.
        warnings.filterwarnings("ignore", message=".*far beyond all others")
        data = replace(schema, drop=()).apply(pd.DataFrame(columns))
    missing = {name: sum(one.missing[name] for one in seen) for name in merged}
    attributes = tuple(
        _declared(data, a, bool(missing[one.name])) for a, one in enumerate(data.attributes)
    )
    frame = pd.concat([one.sample for one in seen], ignore_index=True)
    weights = np.repeat([one.weight for one in seen], [len(one.sample) for one in seen])
    levels = keys_of(data.original, attributes, schema.table)
    shortened = frozenset[str]().union(*(one.shortened for one in seen))
    sample = Sample(
        attributes,
        keys_of(frame, attributes, schema.table),
        weights.astype(np.float64),
        tuple(np.unique(column) for column in levels.T),
        frozenset(a for a, one in enumerate(attributes) if one.name in shortened),
    )
    fingerprint = sum(one.fingerprint for one in seen) % 2**64
    return Whole(
        sum(one.rows for one in seen),
        fingerprint,
        data.attributes,
        sample,
        missing,
        _with_missing(data, attributes, missing),
    )


def _with_missing(
    data: Microdata, attributes: tuple[Attribute, ...], missing: Mapping[str, int]
) -> Microdata:
    """Return a table under other domains, with a further row that misses what the whole does."""
    frame = data.original.iloc[[*range(len(data.original)), 0]].reset_index(drop=True)
    for one in attributes:
        # Where they are an error the caller refuses them.
        if missing[one.name] and policy_of(one, data.table) in ("category", "own"):
            column = frame[one.name].astype(object)
            column.iloc[-1] = None
            frame = frame.assign(**{one.name: column})
    return replace(data, frame=frame, attributes=attributes)


def _declared(data: Microdata, a: int, misses: bool) -> Attribute:
    """Return an attribute that declares as its domain what the whole table holds."""
    attribute = data.attributes[a]
    label = [data.table.label] if misses else []
    if attribute.domain is not None and attribute.kind == "categorical":
        return replace(attribute, domain=tuple(dict.fromkeys((*attribute.domain, *label))))
    if attribute.domain is not None or attribute.hierarchy is not None:
        return attribute
    if not attribute.is_numeric:
        return replace(attribute, domain=[*map(str, data.levels[a]), *label])
    if attribute.publish == "set":
        raise InputError(
            f"column {attribute.name!r} is published as sets of numbers, and declares no domain",
            remedy="Declare its domain in the schema: parts do not know each other's values",
        )
    # As they are written: what is coarser is counted so by the attribute itself.
    numbers = numeric_column(data.frame[attribute.name], attribute)
    low, high = float(numbers.min()), float(numbers.max())
    if attribute.kind != "date":
        return replace(attribute, domain=(low, high))
    unit: Any = attribute.scale.precision
    return replace(attribute, domain=tuple(unit_text(int(end), unit) for end in (low, high)))
