"""The format of a table's file: encoding, separator, decimal mark, missing values."""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from anonymip.errors import InputError, unknown_name

_SAMPLE = 'Age,"1"\n'
MISSING_POLICIES = ("error", "category", "drop", "own")  # what may become of missing values


def refuse_encoding(name: str) -> None:
    """Refuse an encoding in which a text that is written piece by piece does not come back.

    Such are made for single words, as punycode is, or for no text at all, as undefined. Unknown
    names are left to the reader, which names the file.
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
    """Return the codec that reads an encoding: UTF-8 files may start with a byte order mark."""
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
        ``"error"``, ``"drop"`` (leave the row out), ``"category"`` (a value like any other of a
        categorical or hierarchical attribute, written `label`) or ``"own"`` (the same, and beside
        the ranges of numbers and dates a value of its own). An attribute may have another.
    label
        The text of that value.
    decimal
        Decimal mark of numbers that are texts, ``"."`` or ``","``; a release writes its numbers
        with the same. With a comma, a point in a number is an error: it may separate thousands.
    sheet
        Of a workbook: its name, or its number from 1; None for the first.
    """

    separator: str = ","
    encoding: str = "utf-8"
    header: bool = True
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("",)
    policy: str = "error"
    label: str = "missing"
    decimal: str = "."
    sheet: str | int | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise unknown_name("decimal mark", self.decimal, (".", ","))
        if not isinstance(self.header, bool):
            raise InputError(f"header is {self.header!r}", remedy="Use true or false")
        if not isinstance(self.encoding, str):
            raise InputError(
                f"encoding is {self.encoding!r}", remedy="Give its name, such as utf-8"
            )
        refuse_encoding(self.encoding)
        if self.policy not in MISSING_POLICIES:
            raise unknown_name("policy for missing values", self.policy, MISSING_POLICIES)
        sign = self.separator.strip() or self.separator if isinstance(self.separator, str) else ""
        if len(sign) != 1 or sign in '"\r\n':
            raise InputError(
                f"separator {self.separator!r} is not one character that can separate cells",
                remedy="Give one character, with a blank behind it if the file has one",
            )

    def written(self, **given: Any) -> TableFormat:
        """Return the format with what is given of its fields; None leaves one as it is."""
        return replace(self, **{name: one for name, one in given.items() if one is not None})

    def pointed(self, series: pd.Series) -> pd.Series:
        """Return a column with points for decimal commas in its texts.

        A text with a point gets a comma for it, which no number has. Texts without a digit, such
        as words for what is not known, stay as they are.
        """
        if self.decimal == "." or pd.api.types.is_numeric_dtype(series):
            return series
        return series.map(_swapped, na_action="ignore")

    def pointed_columns(self, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """Return a table with points for decimal commas in columns of numbers.

        Raises InputError naming the first data row (from 1) whose number has a point.
        """
        if self.decimal == ".":
            return frame
        columns = {}
        for name in names:
            columns[name] = self.pointed(frame[name])
            # A comma that was there is a point now: those that are left were points.
            wrong = [
                isinstance(one, str) and "," in one and one != was
                for one, was in zip(columns[name], frame[name], strict=True)
            ]
            if any(wrong):
                row = wrong.index(True)
                raise InputError(
                    f"column {name!r} is numeric with decimal commas and holds a value with a "
                    f"point, first in data row {row + 1}",
                    remedy="Take points between thousands away, or leave the decimal comma out",
                    value=frame[name].iloc[row],
                )
        return frame.assign(**columns)


_SWAPPED = str.maketrans(".,", ",.")


def _swapped(value: object) -> object:
    if isinstance(value, str) and any(map(str.isdigit, value)):
        return value.translate(_SWAPPED)
    return value
