"""Tests of what a person should know of a release before giving it away."""

from __future__ import annotations

import json
import re
import warnings
from collections import defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Diversity,
    EquivalenceClasses,
    Freeform,
    Hierarchy,
    InputError,
    Microdata,
    Problem,
    Solution,
    anonymize,
    load_instance,
    publish,
    solve,
    verify,
)
from anonymip.errors import ReleaseWarning
from anonymip.privacy import read_release
from anonymip.publishing.cautions import is_formula
from tests.by_hand import by_classes

N = 20


@pytest.mark.parametrize(("role", "called"), [("sensitive", "sensitive"), ("keep", "kept")])
@pytest.mark.parametrize("distinct", [18, 20])
def test_nearly_unique_columns(role: str, called: str, distinct: int) -> None:
    """A column published untouched that nearly names persons is named, without a value of it."""
    numbers = [123456789 + min(row, distinct - 1) for row in range(N)]
    frame = pd.DataFrame({"age": range(N), "ssn": numbers})
    message = re.escape(f"column 'ssn' ({called}) is nearly unique: {distinct} different values")
    with pytest.warns(ReleaseWarning, match=message) as result:
        anonymize(frame, ["age"], 5, method="initial", **{role: ["ssn"]})  # type: ignore[arg-type]
    assert not any("12345" in str(one.message) for one in result)


@pytest.mark.parametrize(
    ("rows", "distinct", "kind", "warned"),
    [
        (20, 20, "categorical", True),
        (40, 36, "categorical", True),
        (40, 35, "categorical", False),
        (19, 19, "categorical", False),
        (20, 20, "hierarchical", False),
        (20, 20, "numeric", False),
    ],
)
def test_quasi_identifiers_that_name_persons(
    rows: int, distinct: int, kind: str, warned: bool
) -> None:
    """Names are called what they are; not in small tables, with a hierarchy, nor are numbers."""
    numbers = [str(7000 + min(row, distinct - 1)) for row in range(rows)]
    tree = Hierarchy([(one, "*") for one in numbers]) if kind == "hierarchical" else None
    name = Attribute("name", kind, hierarchy=tree)  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReleaseWarning)
        anonymize(pd.DataFrame({"name": numbers}), [name], 5, method="initial")
    told = [text for one in caught if "looks like a direct" in (text := str(one.message))]
    assert len(told) == warned
    assert not any("70" in text for text in told)


@pytest.mark.parametrize(
    ("form", "numbers"), [("{},345", True), ("{},5", True), ("{}", False), ("{}-5", False)]
)
def test_numbers_that_are_written_otherwise_name_nobody(form: str, numbers: bool) -> None:
    """Separated thousands and decimal commas are called what they are, as `inspect` has them."""
    frame = pd.DataFrame({"income": [form.format(row) for row in range(101, 121)]})
    with pytest.warns(ReleaseWarning, match="is nearly unique") as caught:
        anonymize(frame, ["income:categorical"], 5, method="initial")
    (told,) = {text for one in caught if "nearly unique" in (text := str(one.message))}
    assert ("like numbers with separated thousands" in told) is numbers
    assert ("like a direct identifier" in told) is not numbers


def _visits() -> pd.DataFrame:
    """Return two rows for each of 30 patients, of whom each has one illness."""
    patients = np.repeat(np.arange(30), 2)
    ills = np.array(["flu", "gout", "mumps"])[patients % 3]
    ward = ["A", "B"] * 30
    return pd.DataFrame({"patient_id": patients, "age": patients + 20, "ill": ills, "ward": ward})


@pytest.mark.parametrize("role", ["drop", "keep", None])
def test_ids_that_repeat_without_a_unit(role: str | None) -> None:
    """Without a unit a warning names it; not where it is named, nor other columns or numbers."""
    frame = _visits()
    roles: dict[str, Any] = {} if role is None else {role: ["patient_id"]}
    with pytest.warns(ReleaseWarning, match="unit='patient_id' counts persons"):
        anonymize(frame, ["age"], 4, method="initial", **roles)
    for change in ({"unit": "patient_id"}, {"drop": ["code"]}, {"drop": ["patient_id"]}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            once = frame.iloc[::2] if change == {"drop": ["patient_id"]} else frame
            renamed = once.rename(columns={"patient_id": "code"}) if "code" in str(change) else once
            anonymize(renamed, ["age"], 4, method="initial", **change)  # type: ignore[arg-type]
        assert not any("looks like ids" in str(one.message) for one in caught)


@pytest.mark.parametrize(("role", "called"), [("sensitive", "sensitive"), ("keep", "kept")])
def test_columns_that_are_constant_within_units(role: str, called: str) -> None:
    """A column that tells persons apart is named with its units; one that varies is not."""
    with pytest.warns(ReleaseWarning) as result:
        anonymize(_visits(), ["age"], 4, unit="patient_id", **{role: ["ill", "ward"]})  # type: ignore[arg-type]
    told = [str(one.message) for one in result if "in all rows of a unit" in str(one.message)]
    assert len(told) == 1
    assert told[0].startswith(
        f"column 'ill' ({called}) has one value in all rows of a unit, for 30"
    )


def test_columns_that_are_unique_together() -> None:
    """Columns that are harmless one by one may name persons together; no value is told."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": range(400)})
    for name in ("sodium", "glucose", "albumin"):
        frame[name] = rng.integers(7000, 7030, 400)
    alone = len(frame.drop_duplicates(["sodium", "glucose", "albumin"], keep=False))
    message = f"'sodium', 'glucose', 'albumin' are together unique for {alone} of 400 rows"
    named = {"sensitive": ["sodium"], "keep": ["glucose", "albumin"]}
    with pytest.warns(ReleaseWarning, match=message) as result:
        anonymize(frame, ["age"], 5, method="initial", **named)  # type: ignore[arg-type]
    assert not any("70" in str(one.message).replace(str(alone), "") for one in result)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        few = anonymize(
            frame, ["age"], 5, method="initial", keep=["glucose"], drop=["sodium", "albumin"]
        )
    assert few.verify().ok


def test_columns_that_do_not_name_persons() -> None:
    """A column with fewer different values, or that is not published, brings no warning."""
    frame = pd.DataFrame({"age": range(N), "job": [min(row, 16) for row in range(N)]})
    frame["ssn"] = range(N)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        anonymize(frame, ["age"], 5, method="initial", sensitive=["job"], drop=["ssn"])


RUN = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "--", "-inf", "-1e999"]
HARMLESS = ["-5", "+5", "-2.5e3", "-.5", "", "-", "=", "@", "5-", "a=b", " =1", "'=1", "[-5..3]"]


def people(notes: list[Any], name: str = "note") -> pd.DataFrame:
    """Return as many persons as there are notes."""
    return pd.DataFrame({"age": range(30, 30 + len(notes)), name: notes})


@pytest.mark.parametrize("text", RUN)
def test_what_is_run(text: str) -> None:
    """Texts behind a sign are formulas."""
    assert is_formula(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_not_run(text: str) -> None:
    """Plain numbers, signs alone and signs inside are none."""
    assert not is_formula(text)


@pytest.mark.parametrize("role", ["sensitive", "keep", "quasi-identifier"])
def test_formulas_bring_a_warning(role: str) -> None:
    """A column with such cells is named, with their number and the option; no cell is shown."""
    frame = people(["=1+1", "-5", "=1+1", "x"])
    identifiers = ["age", "note:categorical"] if role == "quasi-identifier" else ["age"]
    roles = {} if role == "quasi-identifier" else {role: ["note"]}
    # Two classes that agree on the note: exact cells of a quasi-identifier are published as well.
    frame = pd.concat([frame] * 2, ignore_index=True)
    with pytest.warns(ReleaseWarning, match="column 'note' has 4 cells") as result:
        anonymize(frame, identifiers, 2, method="greedy-search", **roles)  # type: ignore[arg-type]
    assert any("escape_formulas=True" in str(one.message) for one in result)
    assert not any("=1+1" in str(one.message) for one in result)


def test_plain_numbers_bring_none() -> None:
    """Negative numbers, as numbers or as texts, are nothing to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        anonymize(people([-5, -5.5, -5, -5]), ["age"], 2, method="initial", keep=["note"])
        anonymize(people(["-5", "+5", "-5", "-5"]), ["age"], 2, method="initial", keep=["note"])


def test_names_of_columns_bring_a_warning() -> None:
    """The first line of a file is run as well."""
    with pytest.warns(ReleaseWarning, match="column '=note' has a name that a spreadsheet"):
        anonymize(people([1, 1, 2, 2], "=note"), ["age"], 2, method="initial", keep=["=note"])


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("layout", ["cells", "columns"])
def test_escaped_releases_are_read_back(ending: str, layout: str, tmp_path: Path) -> None:
    """Cells and names have their apostrophe in the file, and are read as what they were."""
    notes = [*RUN, *HARMLESS, "''", "'"]
    frame = people(notes, "=note").rename(columns={"age": "@age"})
    frame["sign"] = ["=F", "=F"] * (len(notes) // 2)
    frame["far"] = [float("-inf"), -1.0] * (len(notes) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        warnings.filterwarnings("ignore", ".*nearly unique.*", ReleaseWarning)
        release = anonymize(
            frame,
            ["@age", "sign"],
            2,
            method="initial",
            keep=["=note", "far"],
            escape_formulas=True,
            keep_order=True,
            layout=layout,
        )
    table, manifest = release.write(tmp_path / f"release{ending}")
    assert verify(frame, table).ok
    assert release.verify().ok
    assert json.loads(manifest.read_text())["table"]["formulas"] == "escaped"
    shown = release.frame
    assert [name for name in shown if is_formula(name)] == []
    assert "'=note" in shown
    assert shown["'=note"].tolist() == [
        f"'{note}" if is_formula(note) or note.startswith("'") else note for note in notes
    ]
    assert set(shown["sign"]) == {"'=F"}
    read = read_release(table, manifest)
    assert read.untouched["=note"].texts.tolist() == notes
    assert read.cells[1][0].members == ("=F",)


@pytest.mark.parametrize(
    ("written", "instead", "words"),
    [
        ("'=1+1", "=1+1", "should have an apostrophe"),
        ("x", "'x", "escapes nothing"),
        ("'=1+1", "'-5", "escapes nothing"),
        ("'=1+1", "''=1+1", "more often than in the original"),
    ],
)
def test_apostrophes_that_are_wrong(written: str, instead: str, words: str, tmp_path: Path) -> None:
    """A formula left, or an apostrophe that tells rows apart, fails the verification."""
    frame = people(["=1+1", "x", "=1+1", "x"])
    release = anonymize(frame, ["age"], 2, method="initial", keep=["note"], escape_formulas=True)
    table, _ = release.write(tmp_path / "release.csv")
    text = table.read_text()
    assert f",{written}\n" in text
    table.write_text(text.replace(f",{written}\n", f",{instead}\n", 1))
    found = verify(frame, table)
    assert not found.ok
    assert words in " ".join(found.problems)


def test_apostrophes_without_the_option_are_texts(tmp_path: Path) -> None:
    """A table that holds texts with apostrophes is published as it is."""
    frame = people(["'=1", "'x", "'=1", "'x"])
    release = anonymize(frame, ["age"], 2, method="initial", keep=["note"])
    assert "formulas" not in release.manifest["table"]
    table, _ = release.write(tmp_path / "release.csv")
    assert verify(frame, table).ok


TEXTS = st.lists(st.text("=-+@'1.e\t\r\nx", max_size=4), min_size=4, max_size=4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_any_texts_survive(notes: list[str], jobs: list[str]) -> None:
    """Escaped texts are what they were, whatever signs and apostrophes they are made of."""
    frame = people(notes).assign(job=jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        release = anonymize(
            frame,
            ["age", "job:categorical"],
            2,
            method="initial",
            keep=["note"],
            missing="category",
            escape_formulas=True,
            keep_order=True,
        )
    assert release.frame["note"].map(is_formula).sum() == 0
    assert release.frame["job"].map(is_formula).sum() == 0
    read = read_release(release.frame, release.manifest)
    assert read.untouched["note"].texts.tolist() == notes


AGE = Attribute("age", integer=True, domain=(0, 99))


def ward(ages: list[int], ills: list[Any], labels: list[int], **asked: Any) -> Solution:
    """Return classes of people with an illness and a doctor."""
    frame = pd.DataFrame({"age": ages, "ill": ills, "doctor": ["Ann"] * len(ages)})
    data = Microdata(frame, (AGE,), sensitive=("ill",), keep=("doctor",))
    problem = Problem(data, 2, EquivalenceClasses(suppression=True), **asked)
    return by_classes(problem, labels)


def test_a_class_that_shares_its_illness_is_counted_and_warned_of() -> None:
    """How many classes and rows, not which; a kept column is no sensitive one."""
    solution = ward([1, 2, 3, 4, 5, 6], list("ffffgg"), [0, 0, 0, 1, 1, 1])
    with pytest.warns(ReleaseWarning) as result:
        release = publish(solution)
    assert release.manifest["homogeneous"] == {"ill": {"classes": 1, "rows": 3}}
    (text,) = [str(one.message) for one in result if "shares" in str(one.message)]
    assert text.startswith("1 class shares one value of 'ill', 3 of 6 rows")
    assert "diversity=..." in text
    found = release.verify()
    assert found.problems == ()
    assert any("1 share one value of 'ill', 3 of 6 rows" in check for check in found.checks)


def test_what_looks_alike_is_one_class() -> None:
    """Classes of equal cells hide each other's values; rows of stars are a class of their own."""
    solution = ward([1, 1, 1, 1, 50, 60], list("ffggxx"), [0, 0, 1, 1, -1, -1])
    assert publish(solution).manifest["homogeneous"]["ill"] == {"classes": 0, "rows": 0}
    starred = publish(solution, suppressed="starred")
    assert starred.manifest["homogeneous"]["ill"] == {"classes": 1, "rows": 2}
    assert starred.verify().problems == ()


def test_a_diversity_leaves_none_and_no_warning() -> None:
    """With two values in every class nothing is shared; covers have no classes to count."""
    solution = ward([1, 2, 3, 4], list("fgfg"), [0, 0, 1, 1], diversity=Diversity(l=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        assert publish(solution).manifest["homogeneous"]["ill"]["classes"] == 0
    cover = solve(Problem(load_instance("clinic-12"), 3, Freeform()), "ring")
    release = publish(cover)
    assert release.manifest["homogeneous"] is None
    manifest = {**release.manifest, "homogeneous": {}}
    with pytest.raises(InputError, match="which a cover does not have"):
        verify(cover.problem.microdata.original, release.frame, manifest)


def test_a_manifest_that_counts_otherwise_is_found() -> None:
    """Fewer classes, other columns, another form; a manifest that counts nothing is read."""
    release = publish(ward([1, 2, 3, 4, 5, 6], list("ffffgg"), [0, 0, 0, 1, 1, 1]))

    def found(counts: Any) -> tuple[str, ...]:
        manifest = {**deepcopy(release.manifest), "homogeneous": counts}
        original = release.solution.problem.microdata.original
        return verify(original, release.frame, manifest).problems

    assert found(None) == ()
    assert "counts 0 classes with 0 rows" in found({"ill": {"classes": 0, "rows": 0}})[0]
    assert "of other columns" in found({})[0]
    assert "of other columns" in found({"doctor": {"classes": 1, "rows": 3}})[0]
    for wrong in ([], {"ill": 1}, {"ill": {"classes": 1, "rows": 3, "who": "Ann"}}):
        with pytest.raises(InputError, match="homogeneous"):
            found(wrong)


VALUES = [
    st.sampled_from("ab"),
    st.sampled_from([1.0, 2.0, None]),
    st.sampled_from([None, "", "x"]),
]


@settings(max_examples=60)
@given(st.data())
def test_the_counts_are_those_of_counting_by_hand(data: st.DataObject) -> None:
    """Of any values, missing ones being one value, writer and verifier count what a loop counts."""
    n = data.draw(st.integers(4, 10))
    values = data.draw(st.sampled_from(VALUES))
    ills = data.draw(st.lists(values, min_size=n, max_size=n))
    ages = data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    labels = data.draw(st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n))
    assume(all(labels.count(label) != 1 for label in (0, 1)))
    labels = [label if labels[0] == 0 else 1 - label for label in labels]
    release = publish(ward(ages, ills, labels), keep_order=True)
    held: dict[str, list[str]] = defaultdict(list)
    for cell, ill in zip(release.frame["age"], ills, strict=True):
        held[cell].append("" if ill is None else str(ill))
    alike = [group for group in held.values() if len(set(group)) == 1]
    expected = {"classes": len(alike), "rows": sum(map(len, alike))}
    assert release.manifest["homogeneous"] == {"ill": expected}
    assert release.verify().problems == ()


@pytest.mark.shared_data
def test_half_of_adult_ends_in_classes_of_one_salary() -> None:
    """At k = 5 k-anonymity alone shows the salary class of about every second record."""
    data = load_instance("adult")
    problem = Problem(data.take(np.arange(4000)), 5)
    told = publish(solve(problem, "mondrian", bound=False)).manifest["homogeneous"]
    assert told["salary-class"]["rows"] > 1000
