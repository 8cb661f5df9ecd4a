"""The keys of an experiment's specification, as TOML and JSON write it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonymip.errors import InputError
from anonymip.instances.toml_files import check_keys

_EXPERIMENT_KEYS = {
    "name": "a text",
    "tables": "a list of tables",
    "k": "a whole number or a list",
    "methods": "a list of tables",
    "recodings": "a table",
    "objective": "a text",
    "diversity": "a table",
    "limits": "a table",
    "effort": "a text",
    "time_limit": "a number",
    "gap": "a number",
    "solver": "a text",
    "threads": "a whole number",
    "seed": "a whole number",
    "repetitions": "a whole number",
    "bound": "true or false",
}
_TABLE_KEYS = {
    "instance": "a text",
    "schema": "a text",
    "quasi_identifiers": "a list",
    "sensitive": "a list",
    "keep": "a list",
    "drop": "a list",
    "missing": "a text",
    "attributes": "a whole number or a list",
    "rows": "a whole number",
    "samples": "a table",
    "name": "a text",
}
_SAMPLES_KEYS = {"count": "a whole number", "size": "a whole number", "seed": "a whole number"}
_METHOD_KEYS = {
    "method": "a text",
    "options": "a table",
    "recoding": "a text",
    "label": "a text",
    "effort": "a text",
    "time_limit": "a number",
}
_DIVERSITY_KEYS = {
    "l": "a number",
    "distinct": "a whole number",
    "t": "a number",
    "ordered": "true or false",
}
_LIMITS_KEYS = {"cap": "a table", "apart": "a list"}


def check_document(file: Path | str, document: Mapping[str, Any]) -> None:
    """Refuse a specification with keys that are unknown or missing, or of a wrong type.

    Raises
    ------
    InputError
        Naming file and key.
    """
    check_keys(file, "", document, _EXPERIMENT_KEYS)
    _require(file, "", document, "name", "tables", "k", "methods")
    for place, table in _tables(file, "tables", document["tables"]):
        check_keys(file, place, table, _TABLE_KEYS)
        _require(file, place, table, "instance")
        samples = table.get("samples", {"count": 0, "size": 0})
        check_keys(file, f"{place}samples.", samples, _SAMPLES_KEYS)
        _require(file, f"{place}samples.", samples, "count", "size")
    for place, method in _tables(file, "methods", document["methods"]):
        check_keys(file, place, method, _METHOD_KEYS)
        _require(file, place, method, "method")
    for _ in _tables(file, "recodings", list(document.get("recodings", {}).values())):
        pass
    check_keys(file, "diversity.", document.get("diversity", {}), _DIVERSITY_KEYS)
    limits = document.get("limits", {})
    check_keys(file, "limits.", limits, _LIMITS_KEYS)
    for one in limits.get("apart", []):
        if not isinstance(one, list) or len(one) != 3:
            raise InputError(
                f"{file}: limits.apart is not a list of attributes with two values each",
                remedy='Write apart = [["job", "clerk", "farmer"]]',
            )


def _tables(file: Path | str, key: str, given: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return what leads to each table of a list, counted from 1, and the table."""
    for number, one in enumerate(given, start=1):
        if not isinstance(one, dict):
            raise InputError(f"{file}: {key}[{number}] is not a table", remedy="Give a table")
    return [(f"{key}[{number}].", one) for number, one in enumerate(given, start=1)]


def _require(file: Path | str, where: str, given: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if key not in given:
            raise InputError(f"{file}: {where}{key} is missing", remedy=f"Add {key}")
