"""The grammar of one published cell, as ``docs/format.md`` gives it: reading only."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

STAR = "*"
#: Before the label of missing values: any value of the domain, or none.
ANYTHING_OR = "[..]|"
_LITERAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MEMBER = re.compile(r"((?:[^\\|}]|\\[\\|}])*)([|}])")
_ESCAPED = re.compile(r"\\([\\|}])")
_SPECIAL_START = tuple("[{*\\")


class CellError(ValueError):
    """A cell does not follow the grammar; the text says which rule, never the cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one published cell says.

    `lower, upper`: ends of the published range, equal for an exact number; NaN in text columns and
    in suppressed cells. A missing number is infinite, and above all numbers. `members`: the
    published values one by one, sorted: one of an exact cell, several of a set; empty for a proper
    range and for a suppressed cell. Of a node the values below it, as far as its hierarchy is
    known. `suppressed`: whether the cell is a star. `node`: label of the published node of a
    hierarchy, None of any other cell.
    """

    lower: float = math.nan
    upper: float = math.nan
    members: tuple[str, ...] | tuple[float, ...] = ()
    suppressed: bool = False
    node: str | None = None

    @property
    def is_range(self) -> bool:
        """Whether the cell is a proper range, lower < upper, without single values."""
        return not self.suppressed and not self.members and self.node is None


SUPPRESSED = Cell(suppressed=True)
#: A missing number or date, and any of them or none.
MISSING = Cell(math.inf, math.inf, (math.inf,))
ANYTHING = Cell(-math.inf, math.inf)


def read_number(text: str) -> float:
    """Return the finite decimal number that `text` spells; blanks around it do not matter.

    Anything else is none: text, ``nan``, ``inf``, an overflow, digits with underscores.
    """
    stripped = text.strip()
    if _LITERAL.fullmatch(stripped) is None or not math.isfinite(float(stripped)):
        raise CellError("is not a finite decimal number")
    return float(stripped) + 0.0


def number_text(number: float) -> str:
    """Return the only spelling of a number that a release may use."""
    return repr(float(number) + 0.0).removesuffix(".0")


def spells_number(text: str) -> bool:
    """Return whether a text is a finite decimal number."""
    try:
        read_number(text)
    except CellError:
        return False
    return True


def published_number(text: str, integer: bool) -> float:
    """Return a number that a release shows, whole where that is asked for; else CellError."""
    number = read_number(text)
    # A second spelling of the same number would make rows of one class differ.
    if number_text(number) != text:
        raise CellError("holds a number that is not in its shortest spelling")
    if integer and not number.is_integer():
        raise CellError("holds a fraction in a column of whole numbers")
    return number


def read_number_set(text: str, integer: bool) -> Cell:
    """Read a cell of a numeric column that shows sets; `integer`: of whole numbers only."""
    if text == STAR:
        return SUPPRESSED
    members = _members(text) if text.startswith("{") else [text]
    numbers = tuple(published_number(member, integer) for member in members)
    _refuse_unsorted(numbers)
    return Cell(numbers[0], numbers[-1], numbers)


def read_text_cell(text: str) -> Cell:
    """Read a cell of a categorical column."""
    if text == STAR:
        return SUPPRESSED
    if text.startswith("{"):
        members = tuple(_members(text))
        _refuse_unsorted(members)
        return Cell(members=members)
    return Cell(members=(_single_text(text),))


def read_node_cell(text: str, below: Mapping[str, tuple[str, ...]] | None) -> Cell:
    """Read a cell of a hierarchical column: the label of a node, or a star.

    A root whose label is a star has a backslash in front. `below`: the values that each node
    covers, by label; None if the hierarchy is not known.
    """
    if text == STAR:
        return SUPPRESSED
    label = _single_text(text)
    if below is None:
        return Cell(node=label)
    if label not in below:
        raise CellError("is no node of the hierarchy")
    return Cell(members=below[label], node=label)


def _refuse_unsorted(members: tuple[str, ...] | tuple[float, ...]) -> None:
    if any(left >= right for left, right in pairwise(members)):  # type: ignore[operator]
        raise CellError("is a set that is not sorted or repeats a value")


def _single_text(text: str) -> str:
    if text.startswith("\\"):
        if not text[1:].startswith(_SPECIAL_START):
            raise CellError("starts with a backslash that escapes nothing")
        return text[1:]
    if text.startswith(_SPECIAL_START):
        raise CellError("starts with a sign that needs a backslash in front")
    return text


def _members(text: str) -> list[str]:
    members: list[str] = []
    position = 1
    separator = "|"
    while separator == "|":
        match = _MEMBER.match(text, position)
        if match is None:
            raise CellError("is not a set {first|second|...}")
        members.append(_ESCAPED.sub(r"\1", match[1]))
        separator, position = match[2], match.end()
    if position != len(text):
        raise CellError("goes on after the end of its set")
    if len(members) < 2:
        raise CellError("is a set of a single value")
    return members
