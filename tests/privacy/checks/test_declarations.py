"""Domains and the unit of a manifest, held against the schema."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from anonymip import Problem, Verification, publish, read_schema, solve, verify

SCHEMA = """[attributes.age]
kind = "numeric"
domain = [0, 110]
[attributes.zip]
kind = "categorical"
domain = ["01067", "01069", "02138"]
missing = "category"
[attributes.born]
kind = "date"
precision = "year"
domain = ["1930-01-01", "1999-12-31"]
[table]
sensitive = ["ill"]
unit = "who"
"""
PEOPLE = pd.DataFrame(
    {
        "who": ["Ann", "Ann", "Bea", "Cyd", "Dan", "Eli"],
        "age": [30, 31, 32, 50, 51, 52],
        "zip": ["01067", "01067", None, "02138", "02138", "02138"],
        "born": [
            "1970-05-01",
            "1969-01-01",
            "1968-02-03",
            "1950-01-01",
            "1949-01-02",
            "1948-03-04",
        ],
        "ill": ["flu", "gout", "flu", "flu", "gout", "flu"],
    }
)


def judged(folder: Path, made: str, held: str, **domains: object) -> Verification:
    """Return what another schema finds of a release whose manifest declares `domains`."""
    schema = folder / "schema.toml"
    schema.write_text(made, encoding="utf-8")
    release = publish(solve(Problem(read_schema(schema).apply(PEOPLE), 2), "ordered-cut"))
    columns = [
        {**one, "domain": domains[one["name"]]} if one["name"] in domains else one
        for one in release.manifest["columns"]
    ]
    schema.write_text(held, encoding="utf-8")
    return verify(PEOPLE, release.frame, {**release.manifest, "columns": columns}, schema=schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("[0, 110]", "[0.0, 110.0]"),
        ('"01067", "01069"', '"01069", "01067"'),
        ('"02138"]', '"02138", "missing"]'),
        ('"1930-01-01"', "1930-12-31"),
        ("domain = [0, 110]", ""),
        ('unit = "who"', 'drop = ["who"]'),
    ],
)
def test_what_a_schema_declares_otherwise_or_not_at_all_is_no_fault(
    tmp_path: Path, old: str, new: str
) -> None:
    """Spelling and order mean nothing, missing values need no place, and much may be left open."""
    assert old in SCHEMA
    found = judged(tmp_path, SCHEMA, SCHEMA.replace(old, new))
    assert found.ok, found.problems


@pytest.mark.parametrize(
    ("column", "domain"),
    [
        ("age", None),
        ("age", [0, 109]),
        ("age", [-1, 110]),
        ("zip", None),
        ("zip", ["01067", "01069x", "02138", "missing"]),
        ("zip", ["01067", "02138", "missing"]),
        ("zip", ["01067", "01069", "02138", "94110", "missing"]),
        ("born", None),
        ("born", ["1930", "2000"]),
    ],
)
def test_a_domain_that_is_not_the_schemas_is_a_problem(
    tmp_path: Path, column: str, domain: object
) -> None:
    """Also where the loss is that of the schema's domain."""
    found = judged(tmp_path, SCHEMA, SCHEMA, **{column: domain})
    assert [one for one in found.problems if f"{column!r} has a domain in the schema" in one]
    assert len(found.problems) == 1


@pytest.mark.parametrize(
    ("roles", "counted"),
    [
        ('drop = ["who"]\nsensitive = ["ill"]', "rows"),
        ('drop = ["who"]\nunit = "ill"', "units 'ill'"),
    ],
)
def test_a_unit_that_is_not_the_schemas_is_a_problem(
    tmp_path: Path, roles: str, counted: str
) -> None:
    """Who declares persons is not given rows, nor anything else that repeats."""
    problems = judged(tmp_path, SCHEMA.partition("sensitive")[0] + roles, SCHEMA).problems
    told = f"By the schema k counts units 'who', by the manifest {counted}: "
    assert [one for one in problems if one.startswith(told)]
