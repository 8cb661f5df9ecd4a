"""The format of a table's file: encoding, separator, missing values."""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass

from anonymip.errors import InputError, unknown_name

_SAMPLE = 'Age,"1"\n'


def refuse_encoding(name: str) -> None:
    """Refuse an encoding in which a text that is written piece by piece does not come back.

    Such are made for single words, as punycode is, or for no text at all, as undefined. Unknown
    names are left to the reader, which names the file.

    Raises InputError naming the encoding.
    """
    try:
        with io.TextIOWrapper(io.BytesIO(), encoding=name, newline="") as stream:
            for sign in _SAMPLE:
                stream.write(sign)
            stream.seek(0)
            comes_back = stream.read() == _SAMPLE
    except LookupError:
        return
    except ValueError:
        comes_back = False
    if not comes_back:
        raise InputError(
            f"encoding {name!r} is not one of tables", remedy="Give another, such as utf-8"
        )


def reading_name(encoding: str) -> str:
    """Return the codec that reads an encoding: UTF-8 files may start with a byte order mark.

    Raises LookupError if there is no such encoding.
    """
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name == "utf-8" else name


@dataclass(frozen=True)
class TableFormat:
    """How the file of a table is written and how its missing values are treated.

    Parameters
    ----------
    separator, encoding
        Of a text file. A separator with a blank behind it skips blanks after each separator.
    header
        Whether the first line names the columns; otherwise `columns` does.
    columns
        Names for a file without header.
    missing
        Texts that mean "no value" in a quasi-identifier.
    policy
        ``"error"``, ``"drop"`` (leave the row out) or ``"category"`` (a value of its own, written
        `label`).
    label
        The text of that category.
    """

    separator: str = ","
    encoding: str = "utf-8"
    header: bool = True
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("",)
    policy: str = "error"
    label: str = "missing"

    def __post_init__(self) -> None:
        if not isinstance(self.header, bool):
            raise InputError(f"header is {self.header!r}", remedy="Use true or false")
        if not isinstance(self.encoding, str):
            raise InputError(
                f"encoding is {self.encoding!r}", remedy="Give its name, such as utf-8"
            )
        refuse_encoding(self.encoding)
        if self.policy not in ("error", "category", "drop"):
            raise unknown_name(
                "policy for missing values", self.policy, ("error", "category", "drop")
            )
        sign = self.separator.strip() or self.separator if isinstance(self.separator, str) else ""
        if len(sign) != 1 or sign in '"\r\n':
            raise InputError(
                f"separator {self.separator!r} is not one character that can separate cells",
                remedy="Give one character, with a blank behind it if the file has one",
            )
