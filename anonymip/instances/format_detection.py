"""The format of a text file, found from what the file holds: encoding, separator, header."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from pathlib import Path

from anonymip.errors import InputError
from anonymip.instances.columns import is_date_text, is_number_text
from anonymip.instances.table_format import TableFormat

_SEPARATORS = ("\t", ";", "|", ",")  # candidates, those first that texts and numbers seldom hold
_LINES, _SIGNS = 1_000, 2_000_000  # lines, and characters, that the separator is found from


def detect_format(
    path: str | Path, separator: str | None = None, encoding: str | None = None
) -> TableFormat:
    """Return how a text file is probably written.

    `path`: the file. `separator, encoding`: what is known of it; None is found. Returns: encoding,
    separator and whether there is a header line: columns without one are called ``column_1`` and so
    on. Decimal mark and missing values are left to :func:`anonymip.inspect`, which looks at the
    columns. Raises InputError if the file cannot be read. Whatever it holds, some format is
    returned.

    The separator is the first of tab, semicolon, bar and comma that cuts the first lines into as
    many cells each, else the one that does so most often. There is no header where a first line has
    numbers or dates in all columns that have nothing else below; or, if there are no such columns,
    where half of its cells come again below, each in its column. Complexity: O(size of the file).
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", remedy="Check the path"
        ) from None
    form = TableFormat().written(separator=separator, encoding=encoding or _encoding_of(raw))
    try:
        text = raw.decode(form.encoding, errors="replace").removeprefix("\ufeff")
    except LookupError:
        return form
    if len(text) > _SIGNS:
        text = text[: text.rfind("\n", 0, _SIGNS) + 1]
    known = () if separator is None else (form.separator.strip() or form.separator,)
    sign, lines = _separated(text, known or _SEPARATORS)
    others = [cell for line in lines for cell in line[1:]]
    if sign != "\t" and others and all(cell[:1] == " " for cell in others):
        sign += " "
        lines = [[cell.strip() for cell in line] for line in lines]
    columns: tuple[str, ...] = ()
    if not _has_header(lines):
        columns = tuple(f"column_{place}" for place in range(1, len(lines[0]) + 1))
    return TableFormat(separator or sign, form.encoding, not columns, columns)


def _encoding_of(raw: bytes) -> str:
    """Return an encoding in which the bytes are text: of the marks at the beginning, or tried."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Every other byte of what a Western table holds is zero without the mark, too.
    halves = [raw[start:2_000:2] for start in (0, 1)]
    zeros = [half.count(0) > len(half) / 2 for half in halves]
    if any(zeros) and len(raw) % 2 == 0:
        return "utf-16-be" if zeros[0] else "utf-16-le"
    for name in ("utf-8", "cp1252"):
        try:
            raw.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def _separated(text: str, signs: tuple[str, ...]) -> tuple[str, list[list[str]]]:
    """Return the separator, and the first lines in cells."""
    best, found = 0.0, (signs[-1], [[text[:1]]])
    for sign in signs:
        try:
            cut = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
            lines = [line for line in islice(cut, _LINES) if line]
        except csv.Error:
            continue
        widths = Counter(map(len, lines))
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        alike = count / len(lines) if width > 1 else 0.0
        # Of a table with one column every line has one cell.
        if alike > best or (sign == signs[-1] and not best and lines):
            best, found = alike, (sign, lines)
        if best == 1:
            break
    return found


def _has_header(lines: Sequence[Sequence[str]]) -> bool:
    first, rest = lines[0], lines[1:]
    if not rest:
        return True
    below = [
        [line[place] for line in rest if place < len(line) and line[place].strip()]
        for place in range(len(first))
    ]
    plain = [place for place, cells in enumerate(below) if cells and all(map(_is_value, cells))]
    if plain:
        heads = [first[place] for place in plain if first[place].strip()]
        return not (heads and all(map(_is_value, heads))) or _is_sequence(heads)
    again = sum(cell in cells for cell, cells in zip(first, below, strict=True))
    return 2 * again < len(first) or first in rest


def _is_value(text: str) -> bool:
    """Return whether a text is a number or a date, which no name of a column is."""
    stripped = text.strip()
    return is_number_text(stripped.replace(",", ".")) or is_date_text(stripped)


def _is_sequence(heads: Iterable[str]) -> bool:
    """Return whether names are years, or other numbers that follow each other."""
    numbers = [int(text) if text.strip().isdecimal() else None for text in heads]
    known = [number for number in numbers if number is not None]
    return len(known) == len(numbers) > 1 and all(
        after - before == 1 for before, after in pairwise(known)
    )
