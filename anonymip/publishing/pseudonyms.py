"""Pseudonyms in the place of ids: keyed hashes, their key, and what they link."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b32encode
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError, argument
from anonymip.instances.columns import missing_rows
from anonymip.problem import Problem
from anonymip.publishing.cautions import equal_labels

#: Characters of a pseudonym: 100 bits, of which no two ids of a table are expected to share all.
_LENGTH = 20
ALGORITHM = f"HMAC-SHA256, first {_LENGTH} characters of base32"
_LEAST_KEY = 16  # bytes of a key at least: fewer could be tried one after the other


def read_key(given: bytes | str | Path | None, pseudonyms: Sequence[str]) -> bytes:
    """Return the key of a table's pseudonyms: that of a file, or a new one that nobody keeps.

    It is empty where a table has no pseudonyms. A line break at the end of a file is no part of it.
    Raises InputError, without what was given, if there is no such file, the key is short, or there
    is nothing to use it for.
    """
    name = argument("pseudonym_key")
    if given and not pseudonyms:
        raise InputError(
            f"{name} is given, and no column is to have pseudonyms",
            remedy=f"Name it by {argument('pseudonyms', ..., option='--pseudonym')}",
        )
    key = given
    if key is None or not pseudonyms:
        return secrets.token_bytes(32) if pseudonyms else b""
    if not isinstance(key, bytes):
        try:
            key = Path(key).read_bytes()
        except (OSError, ValueError):
            raise InputError(f"{name} is no file that can be read", remedy=_MAKE_ONE) from None
        key = key.rstrip(b"\r\n")
    if len(key) < _LEAST_KEY:
        raise InputError(
            f"{name} holds {len(key)} bytes, and fewer than {_LEAST_KEY} can be guessed",
            remedy=_MAKE_ONE,
        )
    return key


_MAKE_ONE = (
    "Write random characters into a file, such as secrets.token_hex() gives in Python; or give "
    "none, and a new key is made and thrown away"
)


def pseudonym_column(ids: pd.Series, tokens: Sequence[str], key: bytes) -> pd.Series:
    """Return the pseudonyms of a column of ids, none for missing ones.

    The name of the column is hashed as well: equal ids of persons and of wards are not linked.
    `tokens`: texts that mean no id, as empty ones do.
    """
    absent = missing_rows(ids, (*tokens, ""))
    texts = ids.astype(object).map(str).to_numpy(object)
    if pd.api.types.is_numeric_dtype(ids):  # gaps make numbers with a point of whole ones
        texts = np.array([text.removesuffix(".0") for text in texts], dtype=object)
    codes, values = pd.factorize(texts)
    hashed = np.array([_pseudonym(str(ids.name), value, key) for value in values], dtype=object)
    shown = hashed[codes]
    shown[absent] = None
    return pd.Series(shown, dtype=object, name=ids.name)


def _pseudonym(column: str, value: str, key: bytes) -> str:
    said = f"{len(column)}:{column}{value}".encode(errors="surrogatepass")
    return b32encode(hmac.digest(key, said, hashlib.sha256)).decode("ascii")[:_LENGTH]


def linked_rows(
    columns: Sequence[pd.Series], cells: Sequence[NDArray[np.object_]] | None, problem: Problem
) -> list[str]:
    """Return a caution for each column of pseudonyms that links several rows.

    `columns`: pseudonyms of the rows. `cells`: the published columns of the quasi-identifiers, in
    the same order; None of a cover, whose rows all differ. Complexity: O(m n log n).
    """
    cautions = []
    for column in columns:
        persons = pd.factorize(column)[0]
        several = int(np.sum(np.bincount(persons[persons >= 0]) > 1))
        if not several:
            continue
        told = ""
        if cells is not None:
            # Persons by the classes of all their rows; those below 0 are nobody.
            labels = equal_labels(cells, len(persons))
            order = np.lexsort((labels, persons))
            order = order[persons[order] >= 0]
            begins = np.flatnonzero(np.diff(persons[order])) + 1
            kinds = Counter(part.tobytes() for part in np.split(labels[order], begins))
            few = sum(count for count in kinds.values() if count < problem.k)
            everybody = kinds.total()
            told = (
                f": {few:,} of {everybody:,} share the classes of all their rows with fewer than "
                f"k = {problem.k} persons, themselves counted"
            )
        remedy = ""
        if problem.microdata.unit != column.name:
            remedy = f"; {argument('unit', column.name)} has k count persons, in each class alone"
        cautions.append(
            f"column {column.name!r} (pseudonym) links the rows of a person, for {several:,} with "
            f"several rows{told}. Who knows a person by several rows finds all of hers; leave the "
            f"column out ({argument('drop', column.name)}) unless rows have to be joined{remedy}"
        )
    return cautions
