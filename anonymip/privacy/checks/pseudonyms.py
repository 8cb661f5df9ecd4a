"""Pseudonyms of a release: whether they stand for the ids of the original, one for one.

A release does not show whose a pseudonym is. Where rows keep their order it can be seen whether all
rows of an id have one pseudonym of their own. Of shuffled rows only how many a pseudonym has, and
with which sensitive and kept values: those of some id. With the key it is computed again, and is
then a kept column like any other.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from anonymip.errors import InputError, argument
from anonymip.privacy.arrays import Flags, Ints
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable, groups_of_pairs
from anonymip.privacy.reading.text_tables import TextColumn, distinct, first_wrong, respelled

_FORM = re.compile("[A-Z2-7]{20}")


def of_key(ids: Mapping[str, TextColumn], key: bytes | str | Path) -> dict[str, TextColumn]:
    """Return the pseudonyms that a key gives to columns of ids.

    `key`: itself, or its file, whose last line break is no part of it.
    """
    try:
        known = key if isinstance(key, bytes) else Path(key).read_bytes().rstrip(b"\r\n")
    except (OSError, ValueError):
        raise InputError(
            f"{argument('pseudonym_key')} is no file that can be read", remedy="Check the path"
        ) from None
    return {name: _computed(name, column, known) for name, column in ids.items()}


def _computed(name: str, ids: TextColumn, key: bytes) -> TextColumn:
    """Return the pseudonyms of a column; none for missing ids."""
    is_number = ids.nature in ("number", "single")

    def pseudonym(value: str) -> str:
        value = value.removesuffix(".0") if is_number else value
        said = f"{len(name)}:{name}{value}".encode("utf-8", "surrogatepass")
        return b32encode(hmac.digest(key, said, "sha256"))[:20].decode()

    return TextColumn(np.where(ids.null, "", respelled(ids.texts, pseudonym)), ids.null)


def form_problems(name: str, column: TextColumn, ids: TextColumn) -> list[str]:
    """Return where a column of pseudonyms holds something else, an id of the original say."""
    known = set(distinct(ids.texts)[0])

    def wrong(value: str) -> str:
        if value and value in known:
            return "is an id of the original"
        return "" if not value or _FORM.fullmatch(value) else "is no pseudonym"

    return [
        f"Column {name!r}, published row {row}: the cell {why}."
        for row, why in first_wrong(column, wrong)
    ]


def link_problems(
    name: str, published: PublishedTable, original: Original, *, in_order: bool
) -> list[str]:
    """Return why pseudonyms do not stand for ids one for one.

    `in_order`: whether row i shows what record i has, if there are as many rows. Otherwise every
    pseudonym needs an id of its own with as many rows that have the same sensitive and kept values;
    where records are left out, with as many rows or more. Complexity: O(n log n).
    """
    after, ids = published.pseudonyms[name], original.ids[name]
    persons, shown = distinct(ids.texts)[1], distinct(after.texts)[1]
    nobody, nameless = ids.null, after.texts == ""
    whole = published.n == original.n
    if in_order and whole:
        wrong = nobody != nameless
        both = np.stack([persons, shown])[:, ~nobody & ~nameless]
        for one, other in (both, both[::-1]):
            first = np.zeros(int(one.max(initial=0)) + 1, np.int64)
            first[one[::-1]] = other[::-1]
            rows = np.flatnonzero(~nobody & ~nameless)
            wrong[rows] |= other != first[one]
        if not wrong.any():
            return []
        row = int(np.argmax(wrong)) + 1
        return [f"Column {name!r}, published row {row}: the pseudonym is not that of its id."]
    lost = int(nobody.sum()) - int(nameless.sum())
    if not 0 <= lost <= original.n - published.n:
        return [f"Column {name!r}: other numbers of rows without a pseudonym and without an id."]
    if not whole:
        given = np.sort(np.bincount(persons[~nobody]))[::-1]
        used = np.bincount(shown[~nameless])
        used = np.sort(used[used > 0])[::-1]
        if len(used) <= len(given) and (used <= given[: len(used)]).all():
            return []
        return [f"Column {name!r}: the pseudonyms have more rows than the ids of the original."]
    pairs = [*original.paired(published.untouched).values()]
    before, now = groups_of_pairs(pairs, original.n, published.n)
    missing = _kinds(persons, before, ~nobody) - _kinds(shown, now, ~nameless)
    if not missing:
        return []
    alike = "as many rows of the same sensitive and kept values"
    return [f"Column {name!r}: {missing.total()} ids have no pseudonym with {alike}."]


def _kinds(persons: Ints, groups: Ints, named: Flags) -> Counter[bytes]:
    """Return how many persons have the same groups in their rows, each as often."""
    order = np.lexsort((groups, persons))
    order = order[named[order]]
    begins = np.flatnonzero(np.diff(persons[order])) + 1
    parts = np.split(groups[order], begins)
    return Counter(part.tobytes() for part in parts if len(part))


def finding(
    published: PublishedTable, original: Original, *, in_order: bool, by_key: bool
) -> tuple[str, list[str]]:
    """Return what is checked of all columns of pseudonyms, and what is wrong with them."""
    in_order = in_order and published.n == original.n
    problems = []
    for name, column in published.pseudonyms.items():
        problems += form_problems(name, column, original.ids[name])
        if not problems and not by_key:
            problems += link_problems(name, published, original, in_order=in_order)
    columns = ", ".join(map(repr, published.pseudonyms))
    if by_key:
        return f"The pseudonyms of {columns} are those that the key gives to the ids.", problems
    if in_order:
        return f"The pseudonyms of {columns} stand for the ids row by row, one for one.", problems
    sentence = (
        f"The pseudonyms of {columns} have as many rows, with the same sensitive and kept values, "
        "as ids of the original; whose each is, these rows do not show without the key."
    )
    return sentence, problems
