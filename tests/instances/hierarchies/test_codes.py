"""Tests of hierarchies of codes: masked, cut at separators, read again by the verifier."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    EquivalenceClasses,
    Hierarchy,
    InputError,
    Microdata,
    Problem,
    publish,
    read_schema,
    solve,
    verify,
)
from anonymip.instances.hierarchies.codes import CodeRule
from anonymip.privacy.reading.hierarchies import declared_paths
from tests.by_hand import by_classes

POSTCODES = ["02138", "02139", "02215", "10001", "90210", "02139"]
DIAGNOSES = ["E11.9", "E11", "E10.1", "I10", "I10", "E11.65"]


def test_masks() -> None:
    """Signs become stars one by one, or down to as many as are named; from either side."""
    right = CodeRule("right").hierarchy(POSTCODES)
    assert right.paths[0] == ("02138", "0213*", "021**", "02***", "0****", "*")
    assert CodeRule("left", (3, 1)).hierarchy(["12345"]).paths == (
        ("12345", "**345", "****5", "*"),
    )
    uneven = CodeRule("right", (4, 2), root="any").hierarchy(["2138", "02138", "7"])
    assert {path[0]: path[1:] for path in uneven.paths} == {
        "02138": ("0213*", "02***", "any"),
        "2138": ("21**", "any"),
        "7": ("any",),
    }


def test_codes_are_cut_at_separators(tmp_path: Path) -> None:
    """A category holds its codes and itself; what lies above it is read from a file."""
    cut = CodeRule(separator=".").hierarchy([*DIAGNOSES, "a.b.c"])
    assert {path[0]: path[1:] for path in cut.paths} == {
        "E10.1": ("E10.*", "*"),
        "E11": ("E11.*", "*"),
        "E11.65": ("E11.*", "*"),
        "E11.9": ("E11.*", "*"),
        "I10": ("I10.*", "*"),
        "a.b.c": ("a.b.*", "a.*", "*"),
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either a mask or a separator"),
        ({"mask": "right", "separator": "."}, "either a mask or a separator"),
        ({"mask": "rigth"}, "codes are masked from 'rigth'"),
        ({"mask": "right", "keep": (2, 3)}, "no list of falling numbers"),
        ({"mask": "right", "keep": (0,)}, "no list of falling numbers"),
        ({"separator": ""}, "an empty separator"),
    ],
)
def test_contradictions_are_refused(arguments: dict[str, Any], words: str) -> None:
    """What cannot be is told with what to write."""
    with pytest.raises(InputError, match=words):
        CodeRule(**arguments)


def test_a_code_like_a_mask_is_refused() -> None:
    """A value that looks like what is published for others would be a node in two places."""
    with pytest.raises(InputError):
        CodeRule("right").hierarchy(["0213*", "02138"])


SCHEMAS = {
    "mask": 'hierarchy = {mask = "right", keep = [3, 2]}',
    "from the left": 'hierarchy = {mask = "left"}',
    "separator": 'hierarchy = {separator = "."}',
    "above": 'hierarchy = {separator = ".", above = "blocks.csv"}',
}


@pytest.mark.parametrize("missing", ["drop", "category"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_declares_them(name: str, missing: str, tmp_path: Path) -> None:
    """A release is verified with the schema alone, by code that shares nothing with this."""
    codes = POSTCODES if "mask" in SCHEMAS[name] else DIAGNOSES
    people = tmp_path / "people.csv"
    frame = pd.DataFrame({"code": [*codes, "", *codes], "age": range(13)})
    frame.to_csv(people, index=False)
    (tmp_path / "blocks.csv").write_text("E10;E10-E14;*\nE11;E10-E14;*\nI10;I10-I15;*\n")
    schema = tmp_path / "schema.toml"
    schema.write_text(f"[attributes.age]\n[attributes.code]\n{SCHEMAS[name]}\n")
    table = read_schema(schema).with_roles(missing=missing).read(people)
    assert table.n == (12 if missing == "drop" else 13)
    release = publish(solve(Problem(table, 3)))
    written, _ = release.write(tmp_path / "release.csv", original=people)
    assert verify(people, written, schema=schema).ok
    other = pd.read_csv(written, dtype=str)
    other.loc[0, "code"] = "no such code"
    assert not verify(people, other, release.manifest, schema=schema).ok


def test_the_number_of_codes_is_not_told_beside_suppressed_records() -> None:
    """Losses divide by the codes that occur, those of suppressed records among them: refused."""
    codes = CodeRule("right").hierarchy(["11", "12", "13", "99"])
    frame = pd.DataFrame({"code": ["11", "12", "13", "99"] * 2})
    for hierarchy in (codes, Hierarchy(codes.paths)):
        table = Microdata(frame, (Attribute("code", "hierarchical", hierarchy=hierarchy),))
        problem = Problem(table, 2, EquivalenceClasses(True))
        labels = np.array([0, 0, 1, -1, 1, 1, 1, -1], np.int32)
        solution = by_classes(problem, labels)
        if hierarchy is codes:
            with pytest.raises(InputError, match="the domain of 'code' is what was observed"):
                publish(solution)
        else:
            assert publish(solution).verify().ok


RULES = ('{mask = "right"}', '{mask = "left", keep = [2]}', '{separator = "."}')
CODES = st.lists(st.text("ab.1", min_size=1, max_size=5), min_size=1, max_size=6)


@settings(max_examples=200)
@given(CODES, st.sampled_from(RULES))
def test_the_verifier_has_the_same_paths(codes: list[str], rule: str) -> None:
    """Two programs make the same paths of any codes, or both refuse them."""
    given_rule = tomllib.loads(f"rule = {rule}")["rule"]
    read = declared_paths(given_rule, "x", Path("schema.toml"))
    theirs = sorted(read(codes, []))  # type: ignore[operator]
    arguments = {**given_rule, "keep": tuple(given_rule.get("keep", ()))}
    ours = CodeRule(**arguments)
    assert [list(path) for path in sorted((c, *ours._levels(c)) for c in set(codes))] == theirs
