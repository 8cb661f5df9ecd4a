"""Read the fields of a manifest's objects by key and type, and refuse those that do not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from anonymip.errors import InputError

#: What to do about a manifest that does not fit.
REMEDY = "Write the release again, or repair its manifest; docs/format.md describes it"


def value_of(given: Mapping[str, Any], key: str, kind: type | None = None, where: str = "") -> Any:
    """Return the value of a key, of type `kind` unless that is None.

    Parameters
    ----------
    given
        An object of the manifest.
    where
        What stands before the key in messages, such as ``"table."``.

    Raises
    ------
    InputError
        If the key is missing or its value of another type; true is no whole number.
    """
    if key not in given:
        refuse(where + key, "is missing")
    value = given[key]
    if kind is not None and (
        not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    ):
        refuse(where + key, f"is not of type {kind.__name__}")
    return value


def value_or_none(given: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    """Return the value of a key that may be null, else as :func:`value_of`."""
    return None if value_of(given, key, None, where) is None else value_of(given, key, kind, where)


def number_of(given: Mapping[str, Any], key: str, where: str = "") -> float:
    """Return the finite number of a key.

    Raises
    ------
    InputError
        If the key is missing or its value is none.
    """
    value = value_of(given, key, None, where)
    if not is_number(value):
        refuse(where + key, "is not a finite number")
    return float(value)


def is_number(value: object) -> bool:
    """Return whether a value of JSON is a finite number, not true or false."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def one_of(given: Mapping[str, Any], key: str, known: Sequence[str], where: str = "") -> str:
    """Return the text of a key, one of those known.

    Raises
    ------
    InputError
        If the key is missing or its value is none of them.
    """
    value = value_of(given, key, str, where)
    if value not in known:
        refuse(where + key, f"is none of {', '.join(known)}")
    return cast(str, value)


def refuse(key: str, reason: str) -> NoReturn:
    """Raise the error of a manifest whose `key` is wrong for this reason."""
    raise InputError(f"the manifest's {key} {reason}", remedy=REMEDY)
