"""Pseudonyms in place of ids: one for one, verified, and nothing of their key in a release."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import warnings
from base64 import b32encode
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonymip
from anonymip.errors import InputError, ReleaseWarning, VerificationFailed
from anonymip.privacy import joined_candidates, verify
from anonymip.publishing import release as publishing

KEY = b"a key of twenty-four bytes"


def visits() -> pd.DataFrame:
    """Return 12 visits of five persons; of one visit nobody knows whose it is."""
    who = ["7", "7", "7", "8", "8", "9", "9", "10", "10", "11", "11", None]
    ills = list("abcabcabcabc")
    return pd.DataFrame({"patient": who, "age": [30, 31, 50, 30, 51] * 2 + [31, 50], "ill": ills})


def made(frame: pd.DataFrame | None = None, **asked: Any) -> anonymip.Release:
    """Return a release of visits with k = 2."""
    frame = visits() if frame is None else frame
    known = {"sensitive": ["ill"], "pseudonyms": ["patient"], **asked}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anonymip.anonymize(frame, ["age"], 2, **known)


@cache
def released(in_order: bool) -> anonymip.Release:
    """Return a release with the key, made once."""
    return made(pseudonym_key=KEY, keep_order=in_order)


def by_hand(column: str, value: str) -> str:
    """Return a pseudonym as docs/format.md describes it."""
    text = f"{len(column)}:{column}{value}".encode()
    return b32encode(hmac.new(KEY, text, hashlib.sha256).digest()).decode()[:20]


def test_by_hand() -> None:
    """The algorithm of docs/format.md; a missing id has no pseudonym; a column, its own ones."""
    frame = visits().assign(ward=visits()["patient"])
    release = made(frame, pseudonyms=["patient", "ward"], pseudonym_key=KEY, keep_order=True)
    for name in ("patient", "ward"):
        expected = [None if pd.isna(one) else by_hand(name, one) for one in frame[name]]
        assert release.table[name].tolist() == expected
    entry = {"name": "patient", "role": "pseudonym"}
    assert {**entry, "algorithm": "HMAC-SHA256, first 20 characters of base32"} in release.manifest[
        "columns"
    ]


@pytest.mark.parametrize("numbers", [False, True])
def test_a_key_in_a_file_joins_releases(tmp_path: Path, *, numbers: bool) -> None:
    """The same key gives the same pseudonyms, whatever type ids are of; without one they differ."""
    file = tmp_path / "key.txt"
    file.write_bytes(KEY + b"\r\n")
    frame = visits()
    if numbers:
        frame["patient"] = frame["patient"].astype(float)
    release = made(frame, pseudonym_key=file)
    assert set(release.table["patient"]) == {
        None,
        *(by_hand("patient", str(i)) for i in range(7, 12)),
    }
    once, twice = made(frame), made(frame)
    assert not set(once.table["patient"]) & set(twice.table["patient"]) - {None}
    assert verify(frame, release.table, release.manifest, pseudonym_key=file).ok
    wrong = verify(frame, once.table, once.manifest, pseudonym_key=KEY)
    assert not wrong.ok
    tables = [release.table, made(frame, pseudonym_key=KEY).table]
    with pytest.raises(InputError, match="share pseudonyms of column 'patient'"):
        joined_candidates(frame, tables, [release.manifest] * 2)
    manifests = [once.manifest, twice.manifest]
    assert joined_candidates(frame, [once.table, twice.table], manifests).problems == ()


def test_the_key_stands_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a given key nor a new one is in manifest, release or messages of errors."""
    fresh = bytes(range(32))
    monkeypatch.setattr("secrets.token_bytes", lambda size: fresh[:size])
    for key in (KEY, None):
        release = made(pseudonym_key=key)
        table, manifest = release.write(tmp_path / "release.csv")
        for text in (table.read_text(), manifest.read_text(), repr(release), str(vars(release))):
            for secret in (KEY, fresh):
                assert secret.decode("latin-1") not in text
                assert secret.hex() not in text
                assert repr(secret) not in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"pseudonym_key": b"short"}, "holds 5 bytes"),
        ({"pseudonym_key": "no/such/secret"}, "is no file that can be read"),
        ({"pseudonym_key": KEY, "pseudonyms": [], "drop": ["patient"]}, "no column is to have"),
        ({"keep": ["patient"]}, "is keep and pseudonym"),
        ({"drop": ["patient"]}, "is drop and pseudonym"),
        ({"pseudonyms": ["who"]}, "who"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], said: str) -> None:
    """Short and missing keys, without a word of them; columns of two roles, or of none."""
    with pytest.raises(InputError, match=said) as refused:
        made(**asked)
    assert "secret" not in str(refused.value).replace("secrets.t", "")


SHAPES: list[dict[str, Any]] = [
    {},
    {"keep_order": True},
    {"recoding": "freeform"},
    {"recoding": "freeform", "keep_order": True},
    {"recoding": "full-domain"},
    {"unit": "patient"},
    {"layout": "columns"},
]


@pytest.mark.crossed
@pytest.mark.parametrize("asked", SHAPES, ids=str)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_every_recoding_and_file(asked: dict[str, Any], suffix: str, tmp_path: Path) -> None:
    """Written, read back and verified: with the key, without it, and refused with another one."""
    frame = visits().dropna() if "unit" in asked else visits()
    release = made(frame, pseudonym_key=KEY, **asked)
    table, _ = release.write(tmp_path / f"release{suffix}")
    assert verify(frame, table).ok
    found = verify(frame, table, pseudonym_key=KEY)
    assert found.ok, found.problems
    assert any("those that the key gives" in one for one in found.checks)
    assert not verify(frame, table, pseudonym_key=KEY[::-1]).ok


@settings(max_examples=40)
@given(st.data())
def test_tampered_pseudonyms_are_refused(data: st.DataObject) -> None:
    """A raw id, another person's pseudonym in order, a row more or a row less of a person."""
    in_order = data.draw(st.booleans())
    frame, release = visits(), released(in_order)
    table = release.table.copy()
    shown = [one for one in table["patient"] if one is not None]
    row = data.draw(st.integers(0, len(table) - 1))
    new = data.draw(st.sampled_from(["7", "Z" * 20, None, "ABC", *sorted(set(shown))]))
    old = table.loc[row, "patient"]
    table.loc[row, "patient"] = new
    counts = [
        sorted(column.value_counts()) for column in (release.table["patient"], table["patient"])
    ]
    found = verify(frame, table, release.manifest)
    if new == old:
        assert found.ok
    elif in_order or new in ("7", "ABC") or counts[0] != counts[1]:
        assert not found.ok
    if new != old:
        assert not verify(frame, table, release.manifest, pseudonym_key=KEY).ok
        assert all(str(old) not in problem for problem in found.problems)


def test_rows_of_a_person_keep_her_values() -> None:
    """Swapped between persons, pseudonyms of shuffled rows show values that no id has."""
    frame = visits().iloc[:5]
    release = made(frame, pseudonym_key=KEY)
    table = release.table.copy()
    # Of the person with illnesses a, b, c one row goes to the one with a and b, and back.
    first = table["patient"] == by_hand("patient", "7")
    gives, takes = (
        int(np.flatnonzero(first & (table["ill"] == "c"))[0]),
        int(np.flatnonzero(~first & (table["ill"] == "a"))[0]),
    )
    swapped = table["patient"].to_numpy(object).copy()
    swapped[[gives, takes]] = swapped[[takes, gives]]
    found = verify(frame, table.assign(patient=swapped), release.manifest)
    assert any("ids have no pseudonym with as many rows" in one for one in found.problems)


def test_records_left_out_leave_their_pseudonyms_out() -> None:
    """Suppressed records have no row: their pseudonyms have fewer rows, never more."""
    frame = pd.DataFrame({"patient": list("aabbccd"), "age": [1, 1, 1, 1, 1, 1, 90]})
    ages = anonymip.Attribute("age", domain=(0, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = anonymip.anonymize(
            frame, [ages], 2, pseudonyms=["patient"], most_suppressed=1, pseudonym_key=KEY
        )
    assert len(release.table) == 6
    assert verify(frame, release.table, release.manifest).ok
    table = release.table.copy()
    table["patient"] = table["patient"].iloc[0]
    found = verify(frame, table, release.manifest)
    assert any("more rows than the ids" in one for one in found.problems)


def test_units_are_counted_by_their_pseudonyms() -> None:
    """A class of one pseudonym fails, however the records might be handed out; risk counts them."""
    frame = visits().dropna()
    release = made(frame, unit="patient", pseudonym_key=KEY)
    found = release.verify()
    assert any("k pseudonyms of the units 'patient'" in one for one in found.checks)
    classes = release.table.groupby("age")["patient"]
    assert classes.nunique().min() >= 2
    table = release.table.copy()
    table["patient"] = classes.transform("first")
    assert any(
        "hold fewer than 2 units" in one for one in verify(frame, table, release.manifest).problems
    )
    risk = release.risk()
    assert risk.after is not None
    assert risk.after.prosecutor.largest == 1 / classes.nunique().min()
    assert any("link the rows of a person" in note for note in risk.notes)


def test_what_is_linked_is_counted() -> None:
    """Persons a, b with rows in classes of 30 and 60; c, d, e, f with one row each."""
    frame = pd.DataFrame(
        {"who": list("abcd") + list("abef"), "age": [30] * 4 + [60] * 4, "ill": list("stst" * 2)}
    )
    for unit, hint in (({}, True), ({"unit": "who"}, False)):
        with pytest.warns(ReleaseWarning) as told:
            anonymip.anonymize(frame, ["age"], 3, sensitive=["ill"], pseudonyms=["who"], **unit)
        (said,) = [str(one.message) for one in told if "links the rows" in str(one.message)]
        assert "for 2 with several rows: 6 of 6 share the classes" in said
        assert ("unit='who' has k count persons" in said) == hint
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        anonymip.anonymize(frame.assign(who=list("abcdefgh")), ["age"], 3, pseudonyms=["who"])
    assert not caught


def test_a_mistaken_release_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two persons with one pseudonym, in rows that show no more, are found before publication."""
    real = publishing.pseudonym_column

    def exchanged(*given: Any) -> pd.Series:
        column = real(*given)
        column.iloc[[0, 3]] = column.iloc[[3, 0]].to_numpy()
        return column

    monkeypatch.setattr(publishing, "pseudonym_column", exchanged)
    with pytest.raises(VerificationFailed, match="one for one"):
        made(visits().assign(ill="a"))


def test_foreign_manifests_are_refused() -> None:
    """An unknown algorithm, a unit that is a kept column, a key of no meaning."""
    release = made(pseudonym_key=KEY)
    manifest = json.loads(json.dumps(release.manifest))
    entry = next(one for one in manifest["columns"] if one["role"] == "pseudonym")
    entry["salt"] = "7"
    found = verify(visits(), release.table, manifest)
    assert any(re.search("1 keys of no known meaning", one) for one in found.problems)
    del entry["salt"]
    entry["algorithm"] = "reversed"
    with pytest.raises(InputError, match=r"columns\.algorithm"):
        verify(visits(), release.table, manifest)
    del entry["algorithm"]
    entry["role"] = "keep"
    assert not verify(visits(), release.table, manifest).ok
    with pytest.raises(InputError, match="unit is a column of the release"):
        verify(visits(), release.table, {**manifest, "unit": "patient"})
