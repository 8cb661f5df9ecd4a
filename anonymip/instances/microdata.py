"""Microdata: a table about persons, immutable, pandas outside, levels and codes inside."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError, argument
from anonymip.instances.attribute import Attribute
from anonymip.instances.columns import (
    is_number_text,
    missing_rows,
    refuse_dates_as_categories,
    refuse_foreign_cells,
    unknown_column,
)
from anonymip.instances.encoding import (
    Encoded,
    complete_rows,
    encode,
    ends_of,
    on_calendar,
    policy_of,
    without_missing,
)
from anonymip.instances.readers import FrameKind, as_pandas
from anonymip.instances.table_format import TableFormat
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.frozen import Frozen

#: An undeclared column with at least this share of distinct values looks like an identifier.
NEARLY_UNIQUE = 0.9


class RowTypes(NamedTuple):
    """Distinct rows of a table."""

    #: (t,) int64, a row of each type, the first in the table; types in lexicographic order.
    first: Ints
    inverse: Ints  # (n,) int64, the type of every row
    counts: Ints  # (t,) int64, the rows of each type


@dataclass(frozen=True, eq=False)
class Microdata(Frozen):
    """A table about persons: one record per person, or several where a column names the person.

    Every column is a quasi-identifier (named in `attributes`), sensitive, kept or dropped. Other
    columns are listed in :attr:`undeclared` and not published; one that is nearly unique is
    refused, since it is either an identifier or was forgotten.

    Parameters
    ----------
    frame
        The table, n rows: a data frame of pandas, polars or another library that narwhals reads,
        or an Arrow table. What is kept is one of pandas.
    attributes
        The m quasi-identifiers, in order.
    sensitive, keep
        Columns published untouched; `sensitive` ones are what an adversary wants to learn.
    drop
        Columns never published, such as names.
    unit
        Column that says whom a row is about, where persons have several rows: k then counts
        persons. It is never published, but for pseudonyms in its place.
    table
        Format of the file it came from, and the policy for missing values.
    pseudonyms
        Columns of ids in whose place pseudonyms are published.
    weights
        Column of sampling weights: how many persons of a population each record stands for. It is
        kept, and losses are told by it too; no search looks at it.

    Attributes
    ----------
    levels : tuple of numpy.ndarray
        Sorted observed values of each attribute: float64 for numeric ones, else texts, in the order
        of the hierarchy's leaves, or of their numbers if all are numbers.
    codes : numpy.ndarray
        (n, m) int32, rank of each cell in the levels of its attribute.
    original : pandas.DataFrame
        The table as given, before the policy for missing values.
    kind : FrameKind or None
        The kind of frame that it came as, and that releases are given back as; None of pandas'.
    values : numpy.ndarray
        (n, m) float64: numbers of numeric attributes and of categories that are numbers, else the
        codes.
    beyond
        (m,) float64: of numeric attributes whose missing values are a value of their own, what
        stands for these in `levels` and `values`; infinite where no value is missing.

    Raises
    ------
    InputError
        On empty tables, unknown or duplicate columns, missing values, text in numeric columns,
        values outside a declared domain or hierarchy.
    """

    frame: pd.DataFrame
    attributes: tuple[Attribute, ...]
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    table: TableFormat = field(default_factory=TableFormat)
    unit: str | None = None
    pseudonyms: tuple[str, ...] = ()
    weights: str | None = None

    def __post_init__(self) -> None:
        for name in ("attributes", "sensitive", "keep", "drop", "pseudonyms"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        given = self.frame
        object.__setattr__(self, "frame", as_pandas(given))
        object.__setattr__(self, "kind", FrameKind.of(given))
        _check_columns(self)
        if self.weights not in (None, *self.keep, *self.sensitive):
            object.__setattr__(self, "keep", (*self.keep, self.weights))
        original = self.frame.copy()
        original.columns = original.columns.map(str)
        object.__setattr__(self, "original", original)
        complete = without_missing(original, self.attributes, self.table)
        numeric = [one.name for one in self.attributes if one.kind == "numeric"]
        object.__setattr__(self, "frame", self.table.pointed_columns(complete, numeric))
        if len(self.frame) == 0:
            raise InputError("the table has no rows", remedy="Give a table with at least k rows")
        for a, attribute in enumerate(self.attributes):
            if attribute.kind == "date" and attribute.publish == "node":
                attribute, labels = on_calendar(original[attribute.name], attribute, self.table)
                all_of_them = (*self.attributes[:a], attribute, *self.attributes[a + 1 :])
                object.__setattr__(self, "attributes", all_of_them)
                frame = self.frame.assign(**{attribute.name: labels[self.rows]})
                object.__setattr__(self, "frame", frame)
        self.__dict__.update(encode(self.frame, self.attributes)._asdict())
        _check_undeclared(self)
        _check_unit(self)
        if self.weights is not None:
            self.sampling_weights.setflags(write=False)

    _kept_beside_fields = ("original", "kind", *Encoded._fields, "_counts_both", "_sizes")
    _counts_both: ClassVar[bool] = False
    #: Domain sizes by column, of the table that this one is a part of.
    _sizes: ClassVar[Mapping[str, int]] = {}
    levels, codes, values, beyond = Encoded()
    original = pd.DataFrame()
    kind: ClassVar[FrameKind | None] = None

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.frame)

    @property
    def m(self) -> int:
        """Number of quasi-identifiers."""
        return len(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quasi-identifiers."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def undeclared(self) -> tuple[str, ...]:
        """Columns that were given no role; they are not published."""
        roles = (self.names, self.sensitive, self.keep, self.drop, self.pseudonyms)
        declared = {self.unit, *(name for names in roles for name in names)}
        return tuple(str(name) for name in self.frame.columns if name not in declared)

    @cached_property
    def rows(self) -> Ints:
        """(n,) int64, row of each record in the original; gaps where records were left out."""
        return complete_rows(self.original, self.attributes, self.table)

    @property
    def has_missing(self) -> bool:
        """Whether the original misses values of quasi-identifiers."""
        return any(
            missing_rows(self.original[name], self.table.missing).any() for name in self.names
        )

    @property
    def kept_missing(self) -> dict[str, int]:
        """Missing values that are published as a value of their own, by quasi-identifier."""
        found = {
            one.name: int(
                (self.values[:, a] == self.beyond[a]).sum()
                if one.is_numeric
                else (self.frame[one.name] == self.table.label).sum()
            )
            for a, one in enumerate(self.attributes)
            if policy_of(one, self.table) in ("category", "own")
        }
        return {name: count for name, count in found.items() if count}

    def domain_bounds(self, attribute: int) -> tuple[float, float]:
        """Return lowest and highest permissible value of a numeric attribute."""
        levels = self.levels[attribute].astype(np.float64)
        return ends_of(self.attributes[attribute], levels[levels < self.beyond[attribute]])

    def domain_size(self, attribute: int) -> int:
        """Return the number of permissible values: declared, of the hierarchy, or observed.

        A range of whole numbers permits every whole number in it, observed or not; one of dates
        every unit. Of a part that was told the sizes of the whole it is these.
        """
        given = self.attributes[attribute]
        if given.name in self._sizes:
            return self._sizes[given.name]
        if given.is_whole and (given.domain is not None or given.publish == "range"):
            low, high = self.domain_bounds(attribute)
            return int(high - low) + 1 + int(self.beyond[attribute] < np.inf)
        if given.hierarchy is not None:
            return len(given.hierarchy.leaves)
        if given.domain is not None and not given.is_numeric:
            return len(given.domain)
        return len(self.levels[attribute])

    def leaves(self, attribute: int) -> Ints:
        """Return (levels,) the leaves of the hierarchy that the observed values are."""
        hierarchy = self.attributes[attribute].hierarchy
        if hierarchy is None:
            return np.full(len(self.levels[attribute]), -1)
        return np.array([hierarchy.tree.place[str(text)] for text in self.levels[attribute]])

    @cached_property
    def sensitive_codes(self) -> Codes:
        """(n, columns) int32, sensitive values as codes; missing and empty ones are one value."""
        return self._codes_of(self.sensitive)

    def _codes_of(self, names: Sequence[str]) -> Codes:
        codes = np.empty((self.n, len(names)), np.int32)
        for column, name in enumerate(names):
            values = self.frame[name]
            # A release shows missing values as empty texts, whatever the table says for missing.
            texts = values.astype(object).map(str).where(values.notna(), "")
            codes[:, column] = pd.factorize(texts)[0]
        codes.setflags(write=False)
        return codes

    @property
    def counted(self) -> tuple[str, ...]:
        """Columns whose values a class must have enough of: the unit, else the sensitive ones.

        Both, the unit first, where sensitive values are to be diverse beside it.
        """
        if self.unit is None:
            return self.sensitive
        return (self.unit, *self.sensitive) if self._counts_both else (self.unit,)

    @cached_property
    def counted_codes(self) -> Codes:
        """(n, columns) int32, the values of the counted columns as codes."""
        return self.sensitive_codes if self.unit is None else self._codes_of(self.counted)

    def counting(self, *, both: bool) -> Microdata:
        """Return the same table that counts sensitive columns beside the unit, or does not."""
        if both == self._counts_both:
            return self
        return self._copied(("counted_codes", "counted_values", "by_rows"), _counts_both=both)

    @cached_property
    def by_rows(self) -> Microdata:
        """The same table with rows for units: what holds of it holds under units as well."""
        if self.unit is None:
            return self
        hidden = () if self.unit in self.pseudonyms else (self.unit,)
        derived = ("by_rows", "counted_codes", "counted_values", "undeclared")
        return self._copied(derived, unit=None, drop=(*self.drop, *hidden))

    def with_sizes(self, sizes: Mapping[str, int]) -> Microdata:
        """Return the same table as a part of one with these domain sizes, by column."""
        return self._copied(("by_rows",), _sizes=dict(sizes))

    def _copied(self, derived: Collection[str], **changed: Any) -> Microdata:
        """Return the same table without what was `derived`, and with what is `changed`."""
        other = object.__new__(Microdata)
        kept = {name: value for name, value in self.__dict__.items() if name not in derived}
        other.__dict__.update(kept | changed)
        return other

    @cached_property
    def counted_values(self) -> tuple[Ints, Ints]:
        """Values of the counted columns, numbered through all of these.

        (n, columns) int64 numbers, and (columns + 1,) where those of each column begin.
        """
        codes = self.counted_codes.astype(np.int64)
        widths = codes.max(axis=0, initial=-1) + 1
        starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        values = np.ascontiguousarray(codes + starts[:-1])
        return values, starts

    @cached_property
    def sampling_weights(self) -> Floats:
        """(n,) float64, how many persons each record stands for; 1 where no column says it."""
        if self.weights is None:
            return np.ones(self.n)
        column = self.frame[self.weights]
        absent = missing_rows(column, (*self.table.missing, ""))
        texts = self.table.pointed(column).astype(object).map(str)
        numbers = np.array([float(text) if is_number_text(text) else 0.0 for text in texts])
        wrong = absent | ~((numbers > 0) & (numbers < np.inf))
        if wrong.any():
            raise InputError(
                f"column {self.weights!r}, which holds sampling weights, has {int(wrong.sum())} "
                f"that are no numbers above 0, the first in row {int(wrong.argmax()) + 1}",
                remedy="Say how many persons each record stands for, or leave these rows out",
            )
        with np.errstate(over="ignore"):
            total = numbers.sum()
        if not np.isfinite(total):
            raise InputError(
                f"the sampling weights of column {self.weights!r} have a sum that is no number",
                remedy="Divide them by the largest",
            )
        return numbers

    def take(
        self,
        rows: NDArray[np.integer],
        columns: NDArray[np.integer] | None = None,
        *,
        as_part: bool = False,
    ) -> Microdata:
        """Return a table of some of the records in which a loss is what it is in the whole table.

        Levels, codes and observed domains stay those of the whole, so levels may occur in no row.
        `rows`: records, in the order wanted. `columns`: (m,) all quasi-identifiers, in the order
        wanted; None for that of this table. `as_part`: whether records keep their rows in the
        original of this table, by which errors name them; otherwise the original has the records
        taken alone, numbered from 0.
        """
        frame = self.frame.iloc[rows].reset_index(drop=True)
        codes, values = self.codes[rows], self.values[rows]
        levels, attributes, beyond = self.levels, self.attributes, self.beyond
        if columns is not None:
            codes, values = (np.ascontiguousarray(part[:, columns]) for part in (codes, values))
            levels = tuple(levels[a] for a in columns)
            attributes, beyond = tuple(attributes[a] for a in columns), beyond[columns]
        for array in (codes, values):
            array.setflags(write=False)
        return self._copied(
            self.__dict__.keys() - {given.name for given in dataclasses.fields(self)},
            frame=frame,
            original=self.original if as_part else frame,
            kind=self.kind,
            attributes=attributes,
            **Encoded(levels, codes, values, beyond)._asdict(),
            rows=self.rows[rows] if as_part else np.arange(len(frame)),
            _sizes=self._sizes,
        )

    def row_types(self, columns: Sequence[int] | None = None) -> RowTypes:
        """Return the distinct rows with multiplicities.

        `columns`: attributes in which rows of one type agree; None means all. Complexity: O(m n + n
        log n).
        """
        looked_at = range(self.m) if columns is None else columns
        key = row_keys(self.codes[:, list(looked_at)], [len(self.levels[a]) for a in looked_at])
        _, first, inverse, counts = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        arrays = [part.astype(np.int64).ravel() for part in (first, inverse, counts)]
        for part in arrays:
            part.setflags(write=False)
        return RowTypes(*arrays)

    def __repr__(self) -> str:
        return f"<Microdata: {self.n} records, quasi-identifiers {', '.join(self.names)}>"


def row_keys(codes: NDArray[np.integer], sizes: Sequence[int]) -> Ints:
    """Return one integer per row, ordered like the rows; compresses whenever 63 bits overflow."""
    key = np.zeros(len(codes), np.int64)
    span = 1
    for column, size in enumerate(sizes):
        if span > (2**62) // max(size, 1):
            _, key = np.unique(key, return_inverse=True)
            key = key.astype(np.int64).ravel()
            span = int(key.max()) + 1
        key = key * size + codes[:, column]
        span *= size
    return key


def _check_columns(data: Microdata) -> None:
    present = [str(name) for name in data.frame.columns]
    repeated = sorted({name for name in present if present.count(name) > 1})
    if repeated:
        raise InputError(
            "duplicate column names", remedy="Rename the columns", value=", ".join(repeated)
        )
    if not data.attributes:
        raise InputError(
            "no quasi-identifiers are named",
            remedy=f"Name at least one, by {argument('attributes', ..., option='-q')} or a schema",
        )
    for attribute in data.attributes:
        if not isinstance(attribute, Attribute):
            raise InputError(
                f"attributes holds a {type(attribute).__name__}",
                remedy="Give Attribute(name, ...) for each quasi-identifier",
            )
    roles: dict[str, str] = {}
    untouched = (*data.keep, *data.sensitive)
    named = (
        ("quasi-identifier", data.names),
        ("sensitive", data.sensitive),
        ("keep", data.keep),
        ("drop", data.drop),
        ("pseudonym", data.pseudonyms),
        ("unit", () if data.unit is None or data.unit in data.pseudonyms else (data.unit,)),
        ("weights", () if data.weights is None or data.weights in untouched else (data.weights,)),
    )
    declared = {name for _, names in named for name in names} | set(data.table.columns)
    kinds = {attribute.name: attribute.kind for attribute in data.attributes}
    for role, names in named:
        for name in names:
            if name not in present:
                raise unknown_column(name, role, present, declared)
            if name in roles:
                raise InputError(
                    f"column {name!r} is {roles[name]} and {role}", remedy="Give it one role"
                )
            roles[name] = role
            if role != "drop":
                is_date = role == "quasi-identifier" and kinds[name] == "date"
                column = data.frame.iloc[:, present.index(name)]
                refuse_foreign_cells(column, name, "date" if is_date else role)
    for attribute in data.attributes:
        column = data.frame.iloc[:, present.index(attribute.name)]
        refuse_dates_as_categories(column, attribute, data.table.missing)


def _check_undeclared(data: Microdata) -> None:
    for name in data.undeclared:
        if distinct_values(data.frame[name]) >= max(2.0, NEARLY_UNIQUE * data.n):
            raise InputError(
                f"column {name!r} has no role and is nearly unique",
                remedy=f"Publish it with {argument('keep', ...)}, leave it out with "
                f"{argument('drop', ...)}, or make it a quasi-identifier",
            )


def _check_unit(data: Microdata) -> None:
    if data.unit is None:
        return
    # An empty text tells of no person either.
    absent = missing_rows(data.frame[data.unit], (*data.table.missing, ""))
    if absent.any():
        raise InputError(
            f"column {data.unit!r}, which names the units, has {int(absent.sum())} missing values, "
            f"the first in row {int(absent.argmax()) + 1}",
            remedy="Fill the cells, or leave these rows out",
        )


def distinct_values(series: pd.Series) -> int:
    """Return the number of different values of a column, missing ones not counted."""
    try:
        return series.nunique()
    except (TypeError, NotImplementedError):  # lists and other values that have no hash
        return series.map(str).nunique()
