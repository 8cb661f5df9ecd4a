"""Damages of files: bytes, texts, rows of cells, and trees of JSON."""

from __future__ import annotations

import codecs
import json
import random
from collections.abc import Callable
from typing import Any

#: A value that no message may tell; only damages of cells put it into a table.
CANARY = "c4n4ry"
#: What stands in cells and labels of files that nobody expected.
TEXTS = (
    *("", " ", "NaN", "nan", "inf", "-inf", "1e400", "1e-400", "-0", "+5", "5.", ".5", " 7 "),
    *(
        "9" * 400,
        "0x10",
        "1_000",
        "1,5",
        "1;5",
        "\u0663",
        "\uff11\uff12",
        "NULL",
        "None",
        "true",
        "*",
        "\\",
    ),
    *("\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\x9b2J", "\ufeff", "\u202e", "\x85", "\u2028"),
    *("'", '"', '""', "=1+1", "{a|b}", "[1..2]", "{", "}", "|", "\r", "\n", "\r\n", "\t", "é"),
    *("x" * 200_000, "2024-05-01", "9007199254740993", "1e308", "-1e308", "5e-324", CANARY),
)
#: Values of JSON that nobody expected; texts in corners stand for what json cannot write.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 1.5, -0.0, 1e308, 5e-324, 2**53 + 1, 2**63, 10**30),
    *("", "1", "x" * 100_000, "\x00", "\x1b[31m", "1/0", "0/1", "-1/74", "1e400", "NaN"),
    *([], {}, [[]], [None], {"": None}, [1, 2, 3], ["a", "a"], {"k": 2}),
    *("<nan>", "<infinity>", "<huge>", "<deep list>", "<deep object>"),
)
_CORNERS = {
    "<nan>": "NaN",
    "<infinity>": "-Infinity",
    "<huge>": "1" + "0" * 5_000,
    "<deep list>": "[" * 100_000 + "]" * 100_000,
    "<deep object>": '{"a":' * 100_000 + "1" + "}" * 100_000,
}


def _flip(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice([1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    data[at : at + rng.choice([1, 4, 16])] = rng.randbytes(rng.choice([1, 4, 16]))


def _remove(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 1, 4, 40])]


def _repeat(rng: random.Random, data: bytearray) -> None:
    at, other = rng.randrange(len(data)), rng.randrange(len(data))
    data[other:other] = data[at : at + rng.choice([1, 4, 40])] * rng.choice([1, 2, 50])


def _insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice([b"\0", b"\xff\xfe", b"\xc3", b'"', b"\n\n", b"\r", b",", b"\x1a"])


def _truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _empty(rng: random.Random, data: bytearray) -> None:
    data[:] = rng.choice([b"", b"\n", b"\0", b" ", codecs.BOM_UTF8, b"\x89PNG\r\n\x1a\n"])


def _recode(rng: random.Random, data: bytearray) -> None:
    text = bytes(data).decode("utf-8", "replace") + "é\n" * rng.randrange(2)
    data[:] = text.encode(
        rng.choice(["utf-16", "utf-16-le", "utf-32", "latin-1", "cp037"]), "replace"
    )


def _mark(rng: random.Random, data: bytearray) -> None:
    data[0:0] = rng.choice([codecs.BOM_UTF8, codecs.BOM_UTF8 * 2, codecs.BOM_UTF16_BE, b"\x1f\x8b"])


def _end_lines(rng: random.Random, data: bytearray) -> None:
    data[:] = bytes(data).replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"\n \n", b'\n""\n']))


_OF_BYTES: tuple[Callable[[random.Random, bytearray], None], ...] = (
    *(_flip, _flip, _overwrite, _remove, _repeat, _insert, _truncate, _empty),
    *(_recode, _mark, _end_lines),
)


def damage_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return bytes with one to three damages."""
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if damaged:
            rng.choice(_OF_BYTES)(rng, damaged)
    return bytes(damaged)


def damage_rows(rng: random.Random, rows: list[list[str]]) -> None:
    """Damage rows of cells in place, the header seldom; most of them stay rows of a table."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        first = 0 if rng.random() < 0.15 or len(rows) < 2 else 1
        at = rng.randrange(first, len(rows))
        row, other = rows[at], rows[rng.randrange(first, len(rows))]
        kind = rng.randrange(16)
        if kind <= 6 and row:
            texts = TEXTS if at else TEXTS[:-1]
            row[rng.randrange(len(row))] = rng.choice(texts)
        elif kind <= 8 and row and other:
            one = rng.randrange(min(len(row), len(other)))
            row[one], other[one] = other[one], row[one]
        elif kind <= 10:
            rows[at:at] = [list(row) for _ in range(rng.choice([1, 1, 30]))]
        elif kind == 11 and row:
            del row[rng.randrange(len(row))]
        elif kind == 12:
            row.insert(rng.randrange(len(row) + 1), rng.choice(TEXTS[:12]))
        elif kind == 13 and len(rows) > 1:
            rows.remove(row)
        else:
            _damage_column(rng, rows)


def _damage_column(rng: random.Random, rows: list[list[str]]) -> None:
    """Repeat, empty or remove a column, or give one the name of another."""
    width = min(map(len, rows))
    if not width:
        return
    at, kind, text = rng.randrange(width), rng.randrange(5), rng.choice(TEXTS)
    if kind == 0:
        for row in rows:
            row.append(row[at])
        rows[0][-1] = rng.choice(["", "more", rows[0][at]])
    elif kind == 1:
        for row in rows[1:]:
            row[at] = text
    elif kind == 2:
        for row in rows:
            del row[at]
    elif kind == 3:
        rows[0][at] = rows[0][rng.randrange(width)]
    else:
        for number, row in enumerate(rows[1:]):
            row[at] = f"{number}" if rng.random() < 0.9 else text


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place of a tree: what holds it, and its key there."""
    found, open_nodes = [], [tree]
    while open_nodes:
        node = open_nodes.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], (dict, list)):
                open_nodes.append(node[key])
    return found


def damage_tree(rng: random.Random, tree: Any) -> str:
    """Return the JSON text of a tree with one to three damages; the tree is changed."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = _places(tree)
        if not places:
            break
        node, key = rng.choice(places)
        kind = rng.randrange(8)
        if kind <= 2:
            node[key] = rng.choice(VALUES)
        elif kind == 3:
            _change_slightly(rng, node, key)
        elif kind == 4:
            del node[key]
        elif kind == 5:
            other, place = rng.choice(places)
            node[key] = json.loads(json.dumps(other[place]))
        elif isinstance(node, dict):
            node[rng.choice(["", "x", "seed", "k", f"{key}\x1b[31m", str(key).upper()])] = node[key]
        else:
            node.insert(rng.randrange(len(node) + 1), node[key])
    text = json.dumps(tree, indent=rng.choice([None, 2]))
    for corner, written in _CORNERS.items():
        text = text.replace(f'"{corner}"', written)
    if rng.random() < 0.05:
        text = text.replace('"k":', f'"k": {rng.randint(1, 9)}, "k":', 1)
    return text


def _change_slightly(rng: random.Random, node: Any, key: Any) -> None:
    """Replace a value by one of the same type."""
    value = node[key]
    if isinstance(value, bool):
        node[key] = not value
    elif isinstance(value, int):
        node[key] = value + rng.choice([-1, 1, 10**6, -value * 2])
    elif isinstance(value, float):
        node[key] = value * rng.choice([1 + 1e-8, 0.5, -1.0, 2.0])
    elif isinstance(value, str) and value:
        at = rng.randrange(len(value))
        node[key] = value[:at] + rng.choice(["", "0", "x", "*"]) + value[at + 1 :]
    elif isinstance(value, list):
        rng.shuffle(value)


def damage_lines(
    rng: random.Random, text: str, fitting: dict[str, tuple[str, ...]], values: tuple[str, ...]
) -> str:
    """Return lines of ``key = value`` with one to three damages.

    `rng`: what draws them. `text`: the lines. `fitting`: values of the kind that each key takes;
    half of all damages are of these. `values`: values of any kind.
    """
    lines = text.splitlines()
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(lines))
        key, kind = lines[at].partition("=")[0].strip(), rng.randrange(12)
        if kind <= 6 and key in fitting:
            lines[at] = f"{key} = {rng.choice(fitting[key])}"
        elif kind <= 8 and "=" in lines[at]:
            lines[at] = f"{key} = {rng.choice(values)}"
        elif kind == 9 and len(lines) > 1:
            del lines[at]
        elif kind == 10:
            lines.insert(at, lines[rng.randrange(len(lines))])
        else:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines) + "\n"
