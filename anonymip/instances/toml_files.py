"""Settings in TOML files: what cannot be read, or what nobody knows, is refused by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonymip.errors import InputError, did_you_mean

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
}


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Return what a TOML file holds.

    Parameters
    ----------
    path
        The file.
    what
        What it is, for messages.

    Raises
    ------
    InputError
        If it is missing or is not TOML.
    """
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

    Parameters
    ----------
    file
        Where they stand, for messages.
    where
        What leads to these keys in the file, with the dot behind it.
    given
        The keys.
    expected
        What each key is, in the words of messages.

    Raises
    ------
    InputError
        Naming file and key.
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
