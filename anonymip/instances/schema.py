"""The schema of a table, from TOML or from the command line; settings in TOML files."""

from __future__ import annotations

import json
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError, InputWarning, argument, did_you_mean, within
from anonymip.instances.attribute import Attribute
from anonymip.instances.columns import (
    all_whole,
    are_plain_dates,
    far_values,
    looks_like_dates,
    looks_numeric,
    missing_rows,
    no_dates,
    no_numbers_among,
    refuse_foreign_cells,
    unknown_column,
)
from anonymip.instances.hierarchies.codes import CodeRule, rule_of_codes
from anonymip.instances.hierarchies.hierarchy import Hierarchy, declared_hierarchy
from anonymip.instances.microdata import Microdata
from anonymip.instances.readers import as_pandas, read_table
from anonymip.instances.table_format import TableFormat

#: Types by what messages call them. A single text is a list of one, where texts are listed.
_TYPES: dict[str, tuple[type, ...]] = {
    "a text": (str,),
    "a list": (list, str),
    "a number": (int, float),
    "a whole number": (int,),
    "true or false": (bool,),
    "a table": (dict,),
    "a list of tables": (list,),
    "a text or a table": (str, dict),
    "a whole number or a list": (int, list),
    "a whole number or a text": (int, str),
    "a number or a unit": (int, float, str),
    "a number or a date": (int, float, str, date),
}


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Return what a TOML file holds. `what`: it is, for messages."""
    file = Path(path)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"cannot read the {what} {file}: {error.strerror}", remedy="Check the path"
        ) from None
    except RecursionError:
        raise InputError(
            f"the {what} {file} is nested too deep", remedy="Nest fewer lists and tables"
        ) from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise InputError(f"the {what} {file} is not TOML: {error}", remedy="Correct it") from None


def check_keys(
    file: Path | str, where: str, given: Mapping[str, Any], expected: Mapping[str, str]
) -> None:
    """Refuse keys that are unknown and values of a wrong type.

    `file`: where they stand, for messages. `where`: what leads to these keys in the file, with the
    dot behind it. `expected`: what each key is, in the words of messages.
    """
    for key, value in given.items():
        if key not in expected:
            raise InputError(
                f"{file}: unknown key {where}{key}",
                remedy=did_you_mean(key, expected, f"Known are {', '.join(sorted(expected))}"),
            )
        wanted = expected[key]
        # TOML's true is no number, although Python's is.
        is_bool = isinstance(value, bool)
        if not isinstance(value, _TYPES[wanted]) or is_bool != (wanted == "true or false"):
            raise InputError(f"{file}: {where}{key} is not {wanted}", remedy=f"Give {wanted}")


def keys_of(**listed: str) -> dict[str, str]:
    """Return what each key holds, given the keys of each type as one text."""
    return {key: kind.replace("_", " ") for kind, keys in listed.items() for key in keys.split()}


_ATTRIBUTE_KEYS = keys_of(
    a_text="kind publish format missing",
    a_list="domain",
    a_number_or_a_unit="precision",
    a_number_or_a_date="at_most at_least",
    a_number="weight",
    true_or_false="integer",
    a_text_or_a_table="hierarchy",
)
_TABLE_KEYS = keys_of(
    a_text="separator encoding decimal unit weights",
    true_or_false="header",
    a_whole_number_or_a_text="sheet",
    a_list="missing columns sensitive keep drop pseudonyms",
)
#: Which cells may be stars; what the rules mean is for the recoding to say.
_MASK_KEYS = keys_of(
    a_number="suppress_at_most",
    a_list="never together at_most_one patterns",
    true_or_false="allow_all_stars single_use",
    a_table="costs",
)
_DOCUMENT_KEYS = keys_of(a_table="attributes table mask")


@dataclass(frozen=True)
class Schema:
    """Roles of the columns and format of the file.

    Parameters
    ----------
    attributes
        Quasi-identifiers in order, each with the parameters of :class:`Attribute` that are
        known; a missing ``kind`` is found from the data.
    sensitive, keep, drop
        Columns of these roles.
    table
        Format of the file.
    mask
        Which cells may be suppressed together, by the keys of the section ``[mask]``; see
        :func:`anonymip.recodings.patterns.read_mask_section`.
    replaced
        Quasi-identifiers that it declared before others took their place.
    unit
        Column that says whom a row is about.
    pseudonyms
        Columns of ids in whose place pseudonyms are published.
    weights
        Column of sampling weights, which is kept.
    """

    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    table: TableFormat = field(default_factory=TableFormat)
    mask: Mapping[str, Any] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    unit: str | None = None
    pseudonyms: tuple[str, ...] = ()
    weights: str | None = None

    def with_roles(
        self,
        quasi_identifiers: Sequence[str] = (),
        sensitive: Sequence[str] = (),
        keep: Sequence[str] = (),
        drop: Sequence[str] = (),
        missing: str | None = None,
        unit: str | None = None,
        pseudonyms: Sequence[str] = (),
        weights: str | None = None,
    ) -> Schema:
        """Return a schema with further roles; given quasi-identifiers replace the former ones.

        `quasi_identifiers`: ``name`` or ``name:kind``; other parameters of a name already known are
        kept, its hierarchy only if it stays hierarchical. `sensitive, keep, drop`: further columns.
        `missing`: policy for missing values, of all columns. `unit`: column that says whom a row is
        about; it need not be left out as well. `pseudonyms`: further columns of ids in whose place
        pseudonyms are published: not left out either. `weights`: column of sampling weights.
        """
        attributes: Mapping[str, Mapping[str, Any]] = self.attributes
        if quasi_identifiers:
            attributes = dict(_parse_declaration(text, attributes) for text in quasi_identifiers)
            if len(attributes) < len(quasi_identifiers):
                raise InputError(
                    "a quasi-identifier is named twice", remedy="Name each column once"
                )
        table = self.table
        if missing is not None:
            table = replace(table, policy=missing)
            attributes = {
                name: {key: one for key, one in known.items() if key != "missing"}
                for name, known in attributes.items()
            }
        unit = self.unit if unit is None else unit
        named = dict.fromkeys((*self.pseudonyms, *pseudonyms))
        # What is given now stands before what the schema says of a column.
        hashed = tuple(name for name in named if name in pseudonyms or name not in drop)
        left_out = dict.fromkeys((*(name for name in self.drop if name not in hashed), *drop))
        return Schema(
            attributes,
            (*self.sensitive, *(name for name in sensitive if name not in self.sensitive)),
            (*self.keep, *(name for name in keep if name not in self.keep)),
            tuple(name for name in left_out if name != unit or name in hashed),
            table,
            self.mask,
            (*self.replaced, *self.attributes) if quasi_identifiers else self.replaced,
            unit,
            hashed,
            # A column of weights that is left out now is none.
            weights or (None if self.weights in drop else self.weights),
        )

    def with_format(self, **given: Any) -> Schema:
        """Return a schema of a file that is written otherwise.

        `given`: fields of :class:`TableFormat`; None leaves one as it is.
        """
        return replace(self, table=self.table.written(**given))

    @property
    def declared(self) -> frozenset[str]:
        """All names of columns that are written down in it."""
        single = tuple(name for name in (self.unit, self.weights) if name is not None)
        untouched = (self.sensitive, self.keep, self.pseudonyms)
        roles = (self.attributes, *untouched, self.drop, self.replaced, single)
        return frozenset(name for names in (*roles, self.table.columns) for name in names)

    def apply(self, frame: Any) -> Microdata:
        """Return the microdata of `frame` under this schema: as :class:`Microdata` takes it.

        Raises InputError if table and schema contradict each other.
        """
        table = as_pandas(frame)
        table = table.set_axis([str(name) for name in table.columns], axis=1)
        attributes = []
        columns = list(table.columns)
        # Of columns with one name the first: Microdata refuses them with a message of its own.
        places = dict(zip(reversed(columns), range(len(columns) - 1, -1, -1), strict=True))
        for name, known in self.attributes.items():
            if name not in places:
                raise unknown_column(name, "quasi-identifier", columns, self.declared)
            column = table.iloc[:, places[name]]
            attributes.append(_resolve(name, known, column, self.table))
        given = table if isinstance(frame, pd.DataFrame) else frame
        roles = (self.sensitive, self.keep, self.drop)
        beside = (self.unit, self.pseudonyms, self.weights)
        data = Microdata(given, tuple(attributes), *roles, self.table, *beside)
        _point_out_stretched(data)
        return data

    def read(self, path: str | Path) -> Microdata:
        """Read a table and return its microdata under this schema."""
        return self.apply(read_table(path, self.table))


def far_numbers(data: Microdata, a: int) -> dict[str, int]:
    """Return how many numbers or dates lie far beyond all others, see :func:`far_values`."""
    if data.attributes[a].publish != "range":
        return {}
    numbers = data.levels[a].astype(np.float64)[data.codes[:, a]]
    return far_values(numbers[numbers < data.beyond[a]])


def _point_out_stretched(data: Microdata) -> None:
    """Warn of observed domains that a few far values stretch."""
    for a, attribute in enumerate(data.attributes):
        far = {} if attribute.domain is not None else far_numbers(data, a)
        if far:
            warnings.warn(
                f"column {attribute.name!r} has values far beyond all others "
                f"({told_of_far_values(far)}): they stretch its domain, so that every loss looks "
                "small. Correct them if they are errors; or "
                f"give them a group of their own, {' and '.join(far)} in a schema; or declare the "
                "domain, if it is meant",
                InputWarning,
                stacklevel=3,
            )


def told_of_far_values(far: Mapping[str, int]) -> str:
    """Return how many values lie far above or below the others."""
    sides = {"at_most": "above", "at_least": "below"}
    return ", ".join(f"{count} {sides[end]}" for end, count in far.items())


def _parse_declaration(
    text: str, known: Mapping[str, Mapping[str, Any]]
) -> tuple[str, Mapping[str, Any]]:
    name, colon, kind = text.rpartition(":")
    if not colon or text in known:
        return text, known.get(text, {})
    before = dict(known.get(name, {}))
    has_hierarchy = before.get("hierarchy") is not None
    kinds = ("numeric", "categorical", "date")
    if kind not in kinds and not (kind == "hierarchical" and has_hierarchy):
        raise InputError(
            f"quasi-identifier {text!r}: unknown kind {kind!r}",
            remedy=did_you_mean(kind, kinds)
            or "Use name:numeric, name:categorical or name:date; hierarchies are named in a schema",
        )
    if has_hierarchy and kind != "hierarchical":
        # A hierarchy and its form of publishing belong to that kind only.
        before = {key: before[key] for key in before if key not in ("hierarchy", "publish")}
    return name, {**before, "kind": kind}


def _resolve(
    name: str, known: Mapping[str, Any], column: pd.Series, table: TableFormat
) -> Attribute:
    """Complete an attribute from its column: the kind, the codes, whether numbers are whole."""
    parameters = dict(known)
    if "kind" not in parameters:
        if parameters.get("hierarchy") is not None:
            parameters["kind"] = "hierarchical"
        elif parameters.get("format") is not None or are_plain_dates(column, table.missing):
            parameters["kind"] = "date"
    if parameters.get("kind") != "date":
        refuse_foreign_cells(column, name, "quasi-identifier")
    if "kind" not in parameters:
        parameters["kind"] = _kind_of(name, column, table)
    policy = parameters.get("missing") or table.policy
    domain = parameters.get("domain")
    is_category = parameters["kind"] == "categorical" and policy in ("category", "own")
    if is_category and domain and missing_rows(column, table.missing).any():
        # A category that need not be declared.
        parameters["domain"] = tuple(dict.fromkeys((*domain, table.label)))
    if isinstance(parameters.get("hierarchy"), CodeRule):
        parameters["hierarchy"] = _codes(name, parameters["hierarchy"], column, table, policy)
    if parameters["kind"] == "numeric" and "integer" not in parameters:
        parameters["integer"] = all_whole(table.pointed(column), table.missing)
    return Attribute(name, **parameters)


def _codes(
    name: str, rule: CodeRule, column: pd.Series, table: TableFormat, policy: str
) -> Hierarchy:
    """Return the hierarchy of the codes of a column."""
    absent = missing_rows(column, table.missing)
    codes = column[~absent].astype(object).map(str)
    others = [table.label] if policy in ("category", "own") and absent.any() else []
    with within(f"column {name!r}"):
        return rule.hierarchy(codes.unique(), others)


def _kind_of(name: str, column: pd.Series, table: TableFormat) -> str:
    """Return the kind of a column that nobody declared."""
    missing, numbers = table.missing, table.pointed(column)
    if looks_like_dates(column, missing):
        raise no_dates(column, name, missing)
    if looks_numeric(numbers, missing):
        return "numeric"
    others = no_numbers_among(numbers, missing)
    if len(others):
        count = "1 value is none" if len(others) == 1 else f"{len(others)} values are none"
        warnings.warn(
            f"column {name!r} holds numbers, but {count}, the first in data row {others[0] + 1}: "
            "so it is categorical, and a release shows sets of its values instead of ranges. "
            f"Declare the texts that mean no value ([table] missing in a schema), with {name}:"
            f"numeric and {argument('missing', 'drop')}; or {name}:categorical, if that is meant",
            InputWarning,
            stacklevel=4,
        )
    return "categorical"


def read_schema(path: str | Path) -> Schema:
    """Read a schema file (TOML).

    Parameters
    ----------
    path
        The file; paths of hierarchies in it are relative to its folder.

    Raises
    ------
    InputError
        If the file is missing, is not TOML, or has unknown keys or values of a wrong type.
    """
    file = Path(path)
    document = read_toml(file, "schema")
    check_keys(file, "", document, _DOCUMENT_KEYS)
    attributes: dict[str, dict[str, Any]] = {}
    for name, given in document.get("attributes", {}).items():
        if not isinstance(given, dict):
            raise InputError(
                f"{file}: attributes.{name} is not a table", remedy=f"Write [attributes.{name}]"
            )
        check_keys(file, f"attributes.{name}.", given, _ATTRIBUTE_KEYS)
        attributes[name] = dict(given)
        if "hierarchy" in given:
            with within(f"{file}: attributes.{name}"):
                attributes[name]["hierarchy"] = _hierarchy(file.parent, name, given["hierarchy"])
    table = document.get("table", {})
    check_keys(file, "table.", table, _TABLE_KEYS)
    mask = document.get("mask", {})
    check_keys(file, "mask.", mask, _MASK_KEYS)
    lists: dict[str, Any] = {
        key: _texts(file, key, table.get(key, ()))
        for key in ("columns", "sensitive", "keep", "drop", "pseudonyms")
    }
    columns = lists.pop("columns")
    written = ("separator", "encoding", "decimal", "header", "sheet")
    form: dict[str, Any] = {"header": not columns, "columns": columns}
    form |= {key: table[key] for key in written if key in table}
    form["missing"] = _texts(file, "missing", table.get("missing", ("",)))
    beside = {key: table.get(key) for key in ("unit", "weights")}
    return Schema(attributes, **lists, table=TableFormat(**form), mask=mask, **beside)


def _hierarchy(folder: Path, name: str, given: object) -> Hierarchy | CodeRule:
    """Return the declared hierarchy of a column, or the rule of one."""
    if isinstance(given, Mapping) and ("mask" in given or "separator" in given):
        return rule_of_codes(given, folder)
    return declared_hierarchy(given, folder, name)


def toml_value(value: object) -> str:
    """Return a value as TOML: JSON's texts are TOML's, but for one sign."""
    if isinstance(value, Mapping):
        pairs = (f"{toml_value(key)} = {toml_value(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def schema_text(document: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a schema file, given what TOML makes of one: sections by name.

    >>> print(schema_text({"table": {"drop": ["name"]}, "attributes": {"age": {"weight": 2}}}))
    [table]
    drop = ["name"]
    <BLANKLINE>
    [attributes."age"]
    weight = 2
    <BLANKLINE>
    """
    sections = [(key, document[key]) for key in ("table", "mask") if document.get(key)]
    attributes = document.get("attributes", {}).items()
    sections += [(f"attributes.{toml_value(name)}", given) for name, given in attributes]
    texts = [
        "\n".join([f"[{name}]", *(f"{key} = {toml_value(one)}" for key, one in given.items()), ""])
        for name, given in sections
    ]
    return "\n".join(texts)


def _texts(file: Path, key: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, (list, tuple)) or not all(isinstance(text, str) for text in given):
        raise InputError(
            f"{file}: table.{key} is not a list of texts", remedy='Write ["one", "two"]'
        )
    return tuple(given)
