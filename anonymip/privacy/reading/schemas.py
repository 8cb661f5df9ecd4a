"""What the verifier reads of the schema of the original."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anonymip.errors import InputError
from anonymip.privacy.reading.declared_hierarchies import declared_paths


@dataclass(frozen=True)
class Schema:
    """The parts of a schema file that the verifier reads."""

    kinds: Mapping[str, str | None] = field(default_factory=dict)
    domains: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None
    columns: tuple[str, ...] | None = None
    tokens: tuple[str, ...] | None = None
    hierarchies: Mapping[str, Path | Sequence[Sequence[str]]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that have a role."""
        return (*self.kinds, *self.sensitive, *self.keep, *self.drop)

    def role_of(self, name: str) -> str | None:
        """Return the declared role of a column, None if it has none."""
        if name in self.kinds:
            return "quasi-identifier"
        roles = {"sensitive": self.sensitive, "keep": self.keep, "drop": self.drop}
        return next((role for role, names in roles.items() if name in names), None)


def read_schema(path: str | Path | None) -> Schema | None:
    """Read what the verifier needs of a schema file; None for None.

    Raises
    ------
    InputError
        If the file is missing, is not TOML, or declares something of the wrong type.
    """
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
    if not (_is_table_of_tables(attributes) and isinstance(table, dict)):
        raise InputError(
            f"the schema {file} does not consist of tables",
            remedy="Write [attributes.NAME] and [table]",
        )
    columns = _texts(table, "columns", file)
    return Schema(
        {name: _kind(given) for name, given in attributes.items()},
        {name: given["domain"] for name, given in attributes.items() if "domain" in given},
        _texts(table, "sensitive", file) or (),
        _texts(table, "keep", file) or (),
        _texts(table, "drop", file) or (),
        table.get("separator"),
        table.get("encoding"),
        None if table.get("header", not columns) else columns,
        _texts(table, "missing", file),
        {
            name: declared_paths(given["hierarchy"], name, file)
            for name, given in attributes.items()
            if "hierarchy" in given
        },
    )


def _kind(given: Mapping[str, Any]) -> str | None:
    """Return the declared kind; who names a hierarchy need not say hierarchical."""
    declared: str | None = given.get("kind")
    return "hierarchical" if declared is None and "hierarchy" in given else declared


def _is_table_of_tables(given: object) -> bool:
    return isinstance(given, dict) and all(isinstance(entry, dict) for entry in given.values())


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
