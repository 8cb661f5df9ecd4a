"""What a published file says, read after ``docs/format.md``, and whether it keeps its promises."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.fuzzing.judge.asked import COVERS, Asked
from tests.fuzzing.judge.losses import Loss
from tests.fuzzing.judge.table import ANYTHING, MISSES, STAR, Cell, Column

#: Choices of those left out that are tried.
_CHOICES = 100

#: Losses agree up to this relative difference.
ROUNDING = Fraction(1, 10**9)


def differs(found: float, exact: Fraction) -> bool:
    """Return whether a loss is not the exact one, but for rounding."""
    return abs(Fraction(found) - exact) > ROUNDING * abs(exact)


#: Cells that cover missing numbers.
_WITHOUT_VALUE = {"missing": MISSES, "[..]|missing": ANYTHING}


class Malformed(Exception):
    """The file is no release."""


def _number(text: str, column: Column) -> float:
    try:
        number = float(text)
    except ValueError:
        raise Malformed("a number is none") from None
    written = repr(number + 0.0).removesuffix(".0")
    if text != ("0" if number == 0 else written):
        raise Malformed("a number is not written as it must be")
    if column.integer and not number.is_integer():
        raise Malformed("a number is not whole")
    return number


def _members(text: str) -> list[str]:
    """Return the members of a set between braces."""
    found, own, at = [], "", 0
    while at < len(text):
        if text[at] == "\\":
            own += text[at + 1]
            at += 1
        elif text[at] == "|":
            found.append(own)
            own = ""
        elif text[at] == "}":
            raise Malformed("a brace within a set")
        else:
            own += text[at]
        at += 1
    return [*found, own]


def read_cell(text: str, column: Column) -> Cell:
    """Return what a cell says."""
    if text == "*":
        return STAR
    if column.misses and text in _WITHOUT_VALUE:
        return _WITHOUT_VALUE[text]
    if column.scale is not None and not column.paths:
        if text not in (known := column.scaled_cells()):
            raise Malformed("a cell of no steps, units and groups of its column")
        return known[text]
    if column.kind == "numeric":
        if text.startswith("["):
            parts = text[1:-1].split("..")
            if column.publish != "range" or not text.endswith("]") or len(parts) != 2:
                raise Malformed("a range is none")
            low, high = (_number(part, column) for part in parts)
            if not low < high:
                raise Malformed("a range of one number")
            return ("range", low, high)
        if text.startswith("{"):
            numbers = [_number(part, column) for part in text[1:-1].split("|")]
            if column.publish != "set" or len(numbers) < 2 or sorted(set(numbers)) != numbers:
                raise Malformed("a set of numbers is none")
            return ("set", frozenset(numbers))
        number = _number(text, column)
        return (
            ("set", frozenset([number])) if column.publish == "set" else ("range", number, number)
        )
    if column.kind == "categorical" and text.startswith("{"):
        listed = _members(text[1:-1])
        if not text.endswith("}") or len(listed) < 2 or sorted(set(listed)) != listed:
            raise Malformed("a set of texts is none")
        return ("set", frozenset(listed))
    if text[:1] in ("[", "{", "*"):
        raise Malformed("a text begins with a sign that needs a backslash")
    single = text[1:] if text.startswith("\\") else text
    if column.kind == "categorical":
        return ("set", frozenset([single]))
    if single not in column.below:
        raise Malformed("a node is none of its hierarchy")
    return ("node", single)


def _scaled_pair(low: str, high: str, column: Column) -> Cell:
    """Return what the two cells of a scaled column say."""
    scale = column.scale
    assert scale is not None
    for cell in column.scaled_cells().values():
        first = scale.shown(cell[1], last=False)
        last = scale.shown(cell[2], last=cell[2] != scale.most)
        first += "-" if cell[1] == scale.least else ""
        last += "+" if cell[2] == scale.most else ""
        if (low, high) == (first, last):
            return cell
    raise Malformed("a pair of ends of no steps, units and groups of its column")


def read_rows(path: Path, asked: Asked, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a release: cells of quasi-identifiers, texts of other columns."""
    form = manifest["table"]
    text = path.read_bytes().decode(form["encoding"])
    lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=form["separator"]))
    names, *rows = [line for line in lines if line]
    table = asked.table
    expected: list[str] = []
    for described in manifest["columns"]:
        ends = [described["name"] + "_lower", described["name"] + "_upper"]
        split = form["layout"] == "columns" and described.get("publish") == "range"
        expected += ends if split else [described["name"]]
    if names != expected:
        raise Malformed("the header is another")
    known = {column.name: column for column in table.columns}
    others = {name for name, _ in asked.shown}
    if {described["name"] for described in manifest["columns"]} != set(known) | others:
        raise Malformed("the columns are others")
    found = []
    for row in rows:
        if len(row) != len(names):
            raise Malformed("a row is longer or shorter than the header")
        cells = dict(zip(names, row, strict=True))
        own: dict[str, Any] = {name: cells[name] for name in others}
        for name, column in known.items():
            if name in cells:
                own[name] = read_cell(cells[name], column)
                continue
            low, high = cells[name + "_lower"], cells[name + "_upper"]
            if low == "*" or high == "*":
                own[name] = STAR
            elif column.misses and low == high and low in _WITHOUT_VALUE:
                own[name] = _WITHOUT_VALUE[low]
            elif column.scale is not None:
                own[name] = _scaled_pair(low, high, column)
            else:
                own[name] = ("range", _number(low, column), _number(high, column))
        found.append(own)
    return found


def matching(fits: Sequence[Sequence[int]], count: int) -> list[int] | None:
    """Return a right side of its own for every left one; None if there is none."""
    owner = [-1] * count

    def find(left: int, seen: set[int]) -> bool:
        for right in fits[left]:
            if right not in seen:
                seen.add(right)
                if owner[right] < 0 or find(owner[right], seen):
                    owner[right] = left
                    return True
        return False

    if not all(find(left, set()) for left in range(len(fits))):
        return None
    return owner


def _has_regular(fits: Sequence[Sequence[int]], degree: int) -> bool:
    """Return whether every record can have `degree` rows and every row as many records."""
    n = len(fits)
    taken: list[set[int]] = [set() for _ in range(n)]
    holders: list[set[int]] = [set() for _ in range(n)]

    def find(record: int, seen: set[int]) -> bool:
        for row in fits[record]:
            if row in seen or row in taken[record]:
                continue
            seen.add(row)
            if len(holders[row]) < degree:
                taken[record].add(row)
                holders[row].add(record)
                return True
            for other in list(holders[row]):
                if find(other, seen):
                    holders[row].discard(other)
                    taken[other].discard(row)
                    taken[record].add(row)
                    holders[row].add(record)
                    return True
        return False

    return all(find(record, set()) for record in range(n) for _ in range(degree))


def _effective(fits: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return for each record the rows that it has in some assignment."""
    n = len(fits)
    found: list[list[int]] = [[] for _ in range(n)]
    for record in range(n):
        for row in fits[record]:
            others = [
                [one for one in fits[other] if one != row] for other in range(n) if other != record
            ]
            if matching(others, n) is not None:
                found[record].append(row)
    return found


def _cover_problems(asked: Asked, fits: list[list[int]], rows: list[dict[str, Any]]) -> list[str]:
    n, k, wrong = len(fits), asked.k, []
    held = [sum(row in one for one in fits) for row in range(n)]
    lasting = _effective(fits)
    least = list(asked.degrees) or [k] * n
    if asked.recoding == "freeform" and not asked.degrees and not _has_regular(fits, k):
        wrong.append("there are no k disjoint assignments")
    if asked.recoding in ("freeform", "k-concealment") and any(
        len(one) < need for one, need in zip(lasting, least, strict=True)
    ):
        wrong.append("a record has too few effective matches")
    if asked.recoding in ("one-k", "k-k") and min(map(len, fits)) < k:
        wrong.append("a record matches too few rows")
    if asked.recoding in ("k-one", "k-k") and min(held) < k:
        wrong.append("a row matches too few records")
    if asked.rules.diverse:
        wrong += _cover_diversity(asked, lasting, rows)
    return wrong


def _cover_diversity(
    asked: Asked, lasting: list[list[int]], rows: list[dict[str, Any]]
) -> list[str]:
    share = Fraction(asked.rules.l).limit_denominator(10**6)
    wrong = []
    for name, _ in asked.table.sensitive:
        for own in lasting:
            shown = [rows[row][name] for row in own]
            counts = [shown.count(value) for value in set(shown)]
            if len(counts) < asked.rules.distinct:
                wrong.append("the rows of a record show too few sensitive values")
            if not any(
                sum(min(count, int(size / share)) for count in counts) >= size
                for size in range(asked.k, len(own) + 1)
            ):
                wrong.append("the rows of a record are not diverse")
    return wrong


def _class_problems(asked: Asked, rows: list[dict[str, Any]]) -> list[str]:
    names = [column.name for column in asked.table.columns]
    classes: dict[tuple[Cell, ...], list[dict[str, Any]]] = {}
    for row in rows:
        classes.setdefault(tuple(row[name] for name in names), []).append(row)
    wrong = []
    # Rows of stars are a class too, whether somebody calls them so or not.
    for alike in classes.values():
        if len(alike) < asked.k:
            wrong.append(f"a class of {len(alike)} rows")
        for name, values in asked.table.sensitive[asked.rules.unit > 0 :]:
            if not asked.rules.allow_values([row[name] for row in alike], values):
                wrong.append("a class without the diversity")
    return wrong


def release_problems(asked: Asked, path: Path, manifest_path: Path) -> list[str]:
    """Return what is wrong with a release on disk."""
    manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
    try:
        rows = read_rows(path, asked, manifest)
    except Malformed as error:
        return [str(error)]
    table = asked.table
    wrong = []
    left_out = table.n - len(rows)
    if left_out < 0 or (left_out and not asked.suppression):
        return [f"{len(rows)} rows for {table.n} records"]
    if manifest["left_out"]["suppressed"] != left_out:
        wrong.append("the manifest counts other records that are left out")
    fits = _fits(asked, rows, _open(asked))
    shown = _fits(asked, rows, lambda record, row: _says(asked, record, row))
    both = [sorted(set(one) & set(other)) for one, other in zip(fits, shown, strict=True)]
    by_row = [[i for i in range(table.n) if row in both[i]] for row in range(len(rows))]
    if matching(by_row, table.n) is None:
        wrong.append("the rows cannot be handed to the records that they describe")
    if asked.recoding in COVERS:
        # Who is left out the table does not say; of large tables too many may be.
        if math.comb(table.n, left_out) <= _CHOICES:
            found = [
                _cover_problems(asked, [fits[record] for record in kept], rows)
                for kept in combinations(range(table.n), len(rows))
            ]
            wrong += min(found, key=len)
    else:
        wrong += _class_problems(asked, rows)
    wrong += _cell_problems(asked, rows, manifest)
    wrong += _loss_problems(asked, rows, manifest, left_out)
    return wrong


def _open(asked: Asked) -> Callable[[int, dict[str, Any]], bool]:
    return lambda record, row: all(
        column.contains(row[column.name], column.values[record]) for column in asked.table.columns
    )


def _says(asked: Asked, record: int, row: dict[str, Any]) -> bool:
    return all(row[name] == values[record] for name, values in asked.shown)


def _fits(
    asked: Asked, rows: list[dict[str, Any]], holds: Callable[[int, dict[str, Any]], bool]
) -> list[list[int]]:
    return [
        [at for at, row in enumerate(rows) if holds(record, row)] for record in range(asked.table.n)
    ]


def _cell_problems(asked: Asked, rows: list[dict[str, Any]], manifest: dict[str, Any]) -> list[str]:
    wrong = []
    columns = asked.table.columns
    for row in rows:
        cells = tuple(row[column.name] for column in columns)
        stars = tuple(cell == STAR for cell in cells)
        if not asked.rules.allow_cells(asked.table, cells):
            wrong.append("a cell that breaks a cap, or covers what must stay apart")
        if all(stars) and asked.suppression:
            continue
        if asked.recoding == "pattern":
            exact = all(
                star or column.is_exact(cell)
                for star, column, cell in zip(stars, columns, cells, strict=True)
            )
            if not exact or not asked.mask.allows(stars):
                wrong.append("a row that is not of the mask")
        elif asked.recoding not in ("full-domain", "pattern-levels") and any(stars):
            wrong.append("a star that nobody asked for")
    if asked.recoding == "full-domain":
        wrong += _level_problems(asked, rows, manifest["levels"])
    return wrong


def _level_problems(asked: Asked, rows: list[dict[str, Any]], levels: dict[str, int]) -> list[str]:
    for column in asked.table.columns:
        allowed = {column.at_level(record, levels[column.name]) for record in range(asked.table.n)}
        if asked.suppression:
            allowed.add(STAR)
        if any(row[column.name] not in allowed for row in rows):
            return ["a cell that is not on the level of its column"]
    return []


def _loss_problems(
    asked: Asked, rows: list[dict[str, Any]], manifest: dict[str, Any], left_out: int
) -> list[str]:
    columns, wrong = asked.table.columns, []
    cells = [[row[column.name] for column in columns] for row in rows]
    cells += [list(asked.table.stars)] * left_out
    ncp = sum((Loss().record(asked.table, one) for one in cells), Fraction(0))
    if differs(manifest["ncp"], ncp):
        wrong.append(f"the manifest's ncp is {manifest['ncp']!r}, the table's {float(ncp)!r}")
    if not asked.loss.of_members:
        own = asked.loss.total(asked.loss.record(asked.table, one) for one in cells)
        value = manifest["objective"]["value"]
        if differs(value, own):
            wrong.append(f"the manifest's objective is {value!r}, the table's {float(own)!r}")
    bound, gap = manifest["bound"], manifest["gap"]
    if bound is not None and bound["value"] > manifest["objective"]["value"]:
        wrong.append("the manifest's bound is above its objective")
    if manifest["status"] == "optimal" and (gap is None or gap > 1e-6):
        wrong.append(f"the manifest says optimal beside a gap of {gap!r}")
    return wrong
