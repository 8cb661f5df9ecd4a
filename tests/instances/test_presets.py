"""Presets of inspections: what the rule removes is dropped, the rest is coarse enough."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anonymip import InputError, inspect, read_schema
from anonymip.instances import Schema

#: Columns with what the rule calls them.
REMOVED = {
    "last_name": "(A)",
    "City": "(B)", "street": "(B)", "phone": "(D)", "fax": "(E)", "email": "(F)",
    "SSN": "(G)", "patient_id": "(H)", "MRN": "(H)", "member no": "(I)", "account": "(J)",
    "license_number": "(K)", "vehicle": "(L)", "device_id": "(M)", "url": "(N)", "ip": "(O)",
    "fingerprint": "(P)", "photo": "(Q)", "zip": "(B)",
}  # fmt: skip
KEPT = ("ethnicity", "cell_count", "platelets", "state", "bakterien")


def patients(n: int = 60) -> pd.DataFrame:
    """Return patients with a column of each kind that the rule names, and others."""
    rng = np.random.default_rng(5)
    days = pd.Timestamp("1925-01-01") + pd.to_timedelta(rng.integers(0, 35_000, n), unit="D")
    columns = {name: rng.choice(["a", "b", "c"], n) for name in (*REMOVED, *KEPT)}
    columns["zip"] = rng.choice(["02138", "02139", "94110"], n)
    columns |= {"zip3": rng.choice(["021", "941"], n), "age": rng.integers(20, 100, n)}
    columns |= {"birth_date": days.strftime("%d.%m.%Y"), "seen": days.strftime("%Y-%m-%d")}
    return pd.DataFrame(columns | {"remark": ["one two three four five"] * n})


def test_hipaa_safe_harbor(tmp_path: Path) -> None:
    """Identifiers are dropped with their letter; dates become years, ages 90+."""
    table = patients()
    found = inspect(table, preset="hipaa-safe-harbor")
    by_name = {one.name: one for one in found.columns}
    for name, letter in REMOVED.items():
        assert by_name[name].role == "drop", name
        assert by_name[name].why.startswith(letter), name
    for name in KEPT:
        assert "(" not in by_name[name].why, name
    for name in ("birth_date", "seen"):
        assert by_name[name].declared["precision"] == "year"
    assert "at_least" in by_name["birth_date"].why
    assert by_name["age"].declared["at_most"] == 90
    assert by_name["zip3"].role == "quasi-identifier"
    text = found.to_toml()
    for told in ("45 CFR 164.514(b)(2)", "no legal advice", "036, 059", "893"):
        assert told in text
        assert told in str(found)
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    schema = read_schema(tmp_path / "schema.toml")
    shown = release(table, schema)
    assert shown["birth_date"].str.fullmatch(r"\[?\d{4}(\.\.\d{4}\])?").all()
    assert not set(REMOVED) & set(shown.columns)


def release(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return a release of k = 3 by a fast method."""
    from anonymip import Problem, publish, solve

    return publish(solve(Problem(schema.apply(table), 3), "mondrian")).frame


def test_a_preset_that_there_is_not() -> None:
    """It is refused by name."""
    with pytest.raises(InputError, match="unknown preset 'hipaa'"):
        inspect(patients(), preset="hipaa")


def test_without_a_preset_nothing_is_said_of_it() -> None:
    """The usual suggestions name no rule."""
    found = inspect(patients())
    assert "CFR" not in found.to_toml()
    assert not found.notes
