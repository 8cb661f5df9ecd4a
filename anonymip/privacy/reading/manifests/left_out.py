"""What a manifest says of the records and columns that have no place in the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anonymip.privacy.reading.manifests.fields import refuse, value_of

#: Keys of the manifest's object.
LEFT_OUT_KEYS = frozenset(("suppressed", "missing", "columns", "undeclared_columns"))
#: No table has more records; sums with it stay exact.
_MOST = 2**53


@dataclass(frozen=True)
class LeftOut:
    """Records without a row.

    Parameters
    ----------
    suppressed
        Suppressed records; their loss counts.
    missing
        Records that the missing policy left out, whose loss does not count; None if not stated.
    """

    suppressed: int = 0
    missing: int | None = None


def read_left_out(given: object) -> LeftOut:
    """Return what a manifest says is left out; absent, every suppressed record has its row.

    Raises
    ------
    InputError
        If it is no object of counts and columns.
    """
    if given is None:
        return LeftOut()
    if not isinstance(given, Mapping):
        refuse("left_out", "is not an object")
    columns = value_of(given, "columns", list, "left_out.")
    if not all(isinstance(name, str) for name in columns):
        refuse("left_out.columns", "is not a list of texts")
    _count(given, "undeclared_columns")
    return LeftOut(_count(given, "suppressed"), _count(given, "missing"))


def _count(given: Mapping[str, Any], key: str) -> int:
    number: int = value_of(given, key, int, "left_out.")
    if number < 0:
        refuse(f"left_out.{key}", "is below 0")
    if number > _MOST:
        refuse(f"left_out.{key}", "is more than any table holds")
    return number
