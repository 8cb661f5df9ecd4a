"""The table that a command reads: a named instance, or a file and the roles of its columns."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from anonymip.cli.console import say_once
from anonymip.cli.options import TABLE, an_option
from anonymip.errors import InputError
from anonymip.files import refuse_outputs

if TYPE_CHECKING:
    from anonymip.instances import Microdata, Schema
    from anonymip.instances.library.catalogue import LibraryEntry

SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="TOML file with the roles of the columns.")
]


MissingValues = Annotated[
    str | None,
    typer.Option(
        "--missing-values",
        metavar="TEXT,TEXT",
        help="Texts that mean no value, as empty cells do: NA,-9.",
        rich_help_panel=TABLE,
    ),
]


#: How the address of a database begins, and no address of the web.
_ADDRESS = re.compile(r"(?!(https?|ftp|file)://)[a-z][a-z0-9+_]*://", re.IGNORECASE)
#: Addresses of databases as they were typed, by what is shown and written of them.
_ADDRESSES: dict[str, str] = {}


def hide_passwords(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command without the passwords of databases.

    From here on nothing knows them but the reader of tables: no report, record or message.
    """
    if not any("://" in one for one in arguments):
        return list(arguments)
    from anonymip.instances.readers import without_password

    shown = [without_password(one) if _ADDRESS.match(one) else one for one in arguments]
    _ADDRESSES.update(
        {told: one for told, one in zip(shown, arguments, strict=True) if told != one}
    )
    return shown


@dataclass(frozen=True)
class FormatOptions:
    """The options that say how the file of a table is written; they go before its schema."""

    panel: ClassVar[str] = TABLE

    separator: str | None = an_option(None, "Between cells of a text file; \\t is a tab.")
    encoding: str | None = an_option(None, "Of a text file, such as utf-8 or cp1252.")
    decimal: str | None = an_option(None, "Decimal mark of numbers: a point or a comma.")
    sheet: str | None = an_option(None, "Of a workbook: name or number of the sheet; default: 1.")
    query: str | None = an_option(None, 'Of the database whose address TABLE is: "select ...".')

    def table(self, source: str) -> Any:
        """Return what the database answers that a source is the address of; else the source."""
        from anonymip.instances.readers import is_address, read_table, refuse_sheet

        refuse_sheet(source, self.sheet)
        if is_address(source) or self.query is not None:
            return read_table(_ADDRESSES.get(source, source), query=self.query)
        return source

    @property
    def written(self) -> dict[str, str | None]:
        """How the file is written, by the names of :class:`anonymip.TableFormat`."""
        separator = "\t" if self.separator in ("\\t", "tab") else self.separator
        written = {"separator": separator, "encoding": self.encoding, "decimal": self.decimal}
        return {**written, "sheet": self.sheet}


@dataclass(frozen=True)
class TableOptions:
    """The options that say what the columns of a table are, and how its file is written."""

    panel: ClassVar[str] = TABLE

    schema: SchemaFile = None
    quasi_identifier: list[str] | None = an_option(
        None, "NAME or NAME:numeric or NAME:categorical.", "-q", "--quasi-identifier"
    )
    sensitive: list[str] | None = an_option(None, "Sensitive column, published untouched.")
    keep: list[str] | None = an_option(None, "Column published untouched.")
    drop: list[str] | None = an_option(None, "Column never published.")
    unit: str | None = an_option(
        None, "Column that says whom a row is about: k then counts persons; never published."
    )
    weights: str | None = an_option(
        None,
        "Sampling weights, persons whom each record stands for: published untouched.",
        metavar="COLUMN",
    )
    pseudonym: list[str] | None = an_option(
        None, "Column of ids in whose place keyed hashes are published."
    )
    missing: str | None = an_option(None, "Missing values: error, category, drop or own.")
    missing_values: MissingValues = None
    form: FormatOptions = field(default_factory=FormatOptions)

    @property
    def format(self) -> dict[str, Any]:
        """What is given of the format of the file, by the names of :class:`TableFormat`."""
        tokens = missing_tokens(self.missing_values)
        given = {**self.form.written, "missing": tokens}
        return {name: one for name, one in given.items() if one is not None}

    def load(self, instance: str) -> Microdata:
        """Return the table that the arguments mean; refuse what contradicts it, or each other."""
        from anonymip.instances import Schema, load_instance

        asked_otherwise = bool(self.format) or self.form.query is not None
        named = named_table(instance, self.schema, has_roles=self._asks or asked_otherwise)
        if named is not None:
            return named
        given = self.declared(instance)
        table = self.form.table(instance)
        if table is not instance:
            return (given or Schema()).apply(table)
        try:
            return load_instance(instance, given)
        except InputError as error:
            file = self._schema_of(instance)
            if file is None or self.schema is not None:
                raise
            # Nobody named this file: what it declares is not to be blamed on the options.
            told = f"{error.message} (by the options and {file}, the schema beside the table)"
            raise InputError(told, remedy=error.remedy, value=error.value) from None

    @property
    def _roles(self) -> tuple[list[str], list[str], list[str], list[str]]:
        return self.quasi_identifier or [], self.sensitive or [], self.keep or [], self.drop or []

    @property
    def _asks(self) -> bool:
        """Whether roles of columns are given."""
        given = any((*self._roles, self.pseudonym))
        return given or any(one is not None for one in (self.missing, self.unit, self.weights))

    def declared(self, instance: str) -> Schema | None:
        """Return the schema of a table that is no named one; None where nothing is declared."""
        from anonymip.instances import Schema, read_schema

        file, form = self._schema_of(instance), self.format
        given = None if file is None else read_schema(file)
        if self._asks:
            rest = (self.missing, self.unit, self.pseudonym or [], self.weights)
            given = (given or Schema()).with_roles(*self._roles, *rest)
        if form:
            given = (given or Schema()).with_format(**form)
        return given

    def measured(self, instance: str, *, released: bool) -> tuple[Any, dict[str, Any]]:
        """Return a table as given, and how `risk` reads it; of a release its manifest has roles."""
        from anonymip.publishing.checking import hierarchy_paths

        roles: dict[str, Any] = {
            "quasi_identifiers": self.quasi_identifier,
            "sensitive": self.sensitive or (),
            "missing": self.missing,
            "unit": self.unit,
            "weights": self.weights,
        }
        idle = [*(self.keep or ()), *(self.drop or ()), *(self.pseudonym or ())]
        asked = bool(any(roles.values()) or idle or self.format)
        named = named_table(instance, self.schema, has_roles=asked)
        if named is None:
            roles["missing_values"] = missing_tokens(self.missing_values)
            roles["schema"] = self._schema_of(instance)
            return self.form.table(instance), {**roles, **self.form.written}
        roles = {"missing_values": named.table.missing, "hierarchies": hierarchy_paths(named)}
        if not released:
            roles["quasi_identifiers"], roles["sensitive"] = named.names, named.sensitive
            roles["missing"], roles["unit"] = named.table.policy, named.unit
            roles["weights"] = named.weights
        return named.original, roles

    def mask_section(self, instance: str) -> Mapping[str, Any]:
        """Return the section ``[mask]`` of the schema of a table, empty without one."""
        from anonymip.instances import read_schema

        file = self._schema_of(instance)
        return {} if file is None else read_schema(file).mask

    def sources(self, instance: str, objective: str | None = None) -> list[Path]:
        """Return the files that the arguments may be read from."""
        database = Path(instance.partition(":///")[2])
        named = (table_file(instance), _schema_beside(instance), self.schema, database)
        function = Path((objective or "").rpartition(":")[0])
        return [path for path in (*named, function) if path is not None and os.path.isfile(path)]

    def _schema_of(self, instance: str) -> Path | None:
        return _schema_beside(instance) if self.schema is None else self.schema

    def say_schema(self, instance: str) -> None:
        """Say that a schema was read which nobody named."""
        file = self._schema_of(instance)
        if file is not None and self.schema is None:
            say_once(f"schema: {file}, beside the table")


def missing_tokens(text: str | None) -> tuple[str, ...] | None:
    """Return the texts that mean no value, listed as in CSV, and the empty one; None for None."""
    if text is None:
        return None
    try:
        listed = next(csv.reader([text], strict=True), [])
    except csv.Error:
        raise InputError(
            "--missing-values is no list", remedy="For example --missing-values NA,-9"
        ) from None
    return tuple(dict.fromkeys(("", *listed)))


def named_table(instance: str, schema: Path | None, *, has_roles: bool = False) -> Microdata | None:
    """Return the table of a named or generated instance, None for a file."""
    if not _is_named(instance):
        return None
    if has_roles or schema is not None:
        raise InputError(
            f"instance {instance} has its own schema",
            remedy="Leave out --schema, -q, --sensitive, --keep, --drop, --unit, --weights, "
            "--pseudonym, --missing, and what says how a file is written",
        )
    from anonymip.instances import load_instance

    return load_instance(instance)


def table_file(instance: str) -> Path | None:
    """Return the file of a table, None if the instance is a named or generated one."""
    return None if _is_named(instance) or not os.path.isfile(instance) else Path(instance)


def called(instance: str) -> str:
    """Return what readers may know of where a table lies: paths name persons, addresses secrets."""
    return "a-database" if "://" in instance else Path(instance).name


def _is_named(instance: str) -> bool:
    from anonymip.instances import INSTANCES

    return instance in INSTANCES or instance.startswith(("census:", "library:"))


def library_entry(instance: str) -> LibraryEntry | None:
    """Return the entry of the library that an instance is, None if it is another."""
    if not instance.startswith("library:"):
        return None
    from anonymip.instances.library.catalogue import find_entry

    return find_entry(instance)


def _schema_beside(instance: str) -> Path | None:
    """Return the schema of the same name beside a table, if there is one."""
    table = table_file(instance)
    if table is None or not os.path.isfile(table.with_suffix(".toml")):
        return None
    return table.with_suffix(".toml")


def refuse_targets(inputs: Sequence[Path], *outputs: Path | str | None) -> None:
    """Refuse, before any work is done, outputs that cannot be written or would destroy an input."""
    refuse_outputs([Path(target) for target in outputs if target not in (None, "-")], inputs)
