"""Tests of missing values by column: left out, a category, or a value of its own beside ranges."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonymip
from anonymip import (
    SSE,
    Apart,
    Attribute,
    Cap,
    InputError,
    Microdata,
    Problem,
    UnsupportedObjective,
    anonymize,
    class_objective,
    objective,
    publish,
    read_schema,
    solve,
    verify,
)
from anonymip.certificates.check import check
from anonymip.instances.table_format import TableFormat
from anonymip.objectives.language import tables
from tests.fuzzing.judge.asked import Asked
from tests.fuzzing.judge.losses import Loss
from tests.fuzzing.judge.table import Table
from tests.fuzzing.package import judged, problem_of
from tests.fuzzing.tables import _dates, _numeric, _steps, with_holes

RECODINGS = ("classes", "freeform", "k-k", "one-k", "pattern", "full-domain")


def drawn(seed: int, recoding: str) -> Asked:
    """Return a problem of numbers, steps and dates of which some are missing."""
    rng = random.Random(seed)
    n = rng.randint(4, 6 if recoding == "classes" else 5)
    columns = [
        rng.choice([_numeric, _steps, _dates])(rng, f"q{a}", n) for a in range(rng.randint(1, 3))
    ]
    table = with_holes(rng, Table(tuple(columns)), frozenset())
    plain = recoding in ("pattern", "full-domain")
    loss = Loss(rng.choice(["gcp", "gcp", "liang-gcp", *([] if plain else ["bottleneck-gcp"])]))
    return Asked(table, 2, recoding, loss)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from(RECODINGS), st.booleans())
def test_optima_are_those_of_brute_force(seed: int, recoding: str, large: bool) -> None:
    """Whatever is missing, the optimum is that of a search that knows nothing of the package.

    Columns of many numbers are looked up otherwise than those of few.
    """
    asked = drawn(seed, recoding)
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr(tables, "LARGEST_NODE_TABLE", 0)
        found = solve(problem_of(asked))
        best, faults = judged(asked, found)
        assert not faults
        assert found.is_optimal
        assert float(best) == pytest.approx(found.objective, rel=1e-9, abs=1e-12)
        assert float(best) == pytest.approx(float(asked.optimum()[1] or 0), rel=1e-6, abs=1e-9)
        for layout in ("cells", "columns"):
            # The loss of stars may tell of an observed domain, which is refused.
            with suppress(InputError):
                assert publish(found, layout=layout).verify().ok


def people(**columns: Any) -> pd.DataFrame:
    """Return a table of eight persons, two of whose ages are missing."""
    ages = [20, 22, None, 31, 34, None, 60, 61]
    frame = pd.DataFrame({"age": ages, "sex": list("FFFFMMMM")}).astype({"age": "Int64"})
    return frame.assign(**columns)


SEX = Attribute("sex", "categorical")


def test_what_is_published() -> None:
    """A class without values says so, one of numbers is a range, a mixed one says nothing."""
    data = Microdata(people(), (Attribute("age", missing="own"), SEX))
    labels = np.array([0, 0, 1, 2, 2, 1, 3, 3])
    solution = anonymip.Solution.of(
        Problem(data, 2), anonymip.Classes(labels.astype(np.int32)), method="by hand"
    )
    cells = publish(solution, keep_order=True).frame["age"].tolist()
    assert cells == [*["[20..22]"] * 2, "missing", *["[31..34]"] * 2, "missing", *["[60..61]"] * 2]
    # Of each record the share of 41 years that is open; of one class the sex as well.
    assert solution.objective == pytest.approx((2 * 2 + 2 * 3 + 2 * 1) / 41 + 2 + 2)
    mixed = anonymip.Classes(np.array([0, 0, 0, 0, 1, 1, 1, 1], np.int32))
    release = publish(anonymip.Solution.of(Problem(data, 2), mixed, method="by hand"))
    assert set(release.frame["age"]) == {"[..]|missing"}
    assert release.manifest["ncp"] == 8
    assert release.manifest["columns"][0]["missing"] == "own"
    assert release.solution.to_frame()["age_upper"].tolist() == [inf] * 8
    columns = publish(release.solution, layout="columns")
    assert set(columns.frame["age_lower"]) == set(columns.frame["age_upper"]) == {"[..]|missing"}
    assert columns.verify().ok


def test_nobody_is_left_out() -> None:
    """Numbers and dates that are missing are a value of their own, categories a category."""
    born = ["1968-01-02", "1968-02-03", None, None, "1970-01-01", "1970-05-01", None, None]
    frame = people(born=born, town=["a", None, "b", "b", "a", "a", None, "b"])
    release = anonymize(frame, ["age", "sex", "born:date", "town"], 2, missing="own")
    assert len(release.frame) == 8
    assert release.manifest["left_out"]["missing"] == 0
    kept = release.solution.problem.microdata.kept_missing
    assert kept == {"age": 2, "born": 4, "town": 2}
    assert anonymip.risk(frame, release, missing="own").after is not None


def test_columns_have_policies_of_their_own(tmp_path: Path) -> None:
    """A schema leaves out rows for one column, and keeps what another misses."""
    frame = people(town=["a", None, "b", "b", "a", "a", "b", "b"], lab=["1,5", "NA"] * 4)
    schema = tmp_path / "schema.toml"
    schema.write_text(
        """
        [attributes.age]
        missing = "own"
        [attributes.town]
        missing = "drop"
        [attributes.lab]
        kind = "numeric"
        missing = "own"
        [table]
        missing = ["", "NA"]
        decimal = ","
        drop = ["sex"]
        """
    )
    data = read_schema(schema).apply(frame)
    assert data.rows.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert data.kept_missing == {"age": 2, "lab": 3}
    release = publish(solve(Problem(data, 2)))
    file, _ = release.write(tmp_path / "release.csv")
    people_file = tmp_path / "people.csv"
    frame.to_csv(people_file, index=False)
    assert verify(people_file, file, schema=schema).ok
    assert anonymip.risk(people_file, file, schema=schema).before.records == 7


def test_what_is_refused() -> None:
    """Policies that a column cannot keep, and losses and limits that need a number."""
    frame, sets = people(), Attribute("age", publish="set", missing="own")
    with pytest.raises(InputError, match=r"unknown attribute 'age': policy .* 'mine'"):
        Attribute("age", missing="mine")
    with pytest.raises(InputError, match="2 missing values, the first in data row 3") as caught:
        Microdata(frame, (Attribute("age", missing="category"), SEX))
    assert "missing='own'" in str(caught.value.remedy)
    with pytest.raises(InputError, match="2 missing values"):
        Microdata(frame, (sets, SEX))
    own = (Attribute("age", missing="own"), SEX)
    with pytest.raises(InputError, match="may be taken for a number"):
        Microdata(frame, own, table=TableFormat(label="0"))
    texts = frame.assign(age=["missing", "", *"123456"])
    with pytest.raises(InputError, match="holds the text 'missing'"):
        Microdata(texts, own, table=TableFormat())
    data = Microdata(frame, own)
    for limit in (Cap("age", 5), Apart("age", 20, 60)):
        with pytest.raises(InputError, match="value of its own"):
            Problem(data, 2, limits=(limit,))
    for loss in (
        SSE(),
        objective(lambda record: record.upper["age"]),
        class_objective(lambda members: members.value["age"].max(axis=1)),
    ):
        with pytest.raises(UnsupportedObjective):
            Problem(Microdata(frame, own[:1], drop=("sex",)), 2, objective=loss)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from(["cells", "columns"]), st.data())
def test_other_cells_are_refused(seed: int, layout: str, data: st.DataObject) -> None:
    """A cell that is moved, closed or opened by hand breaks the grammar, the truth or the loss."""
    rng = np.random.default_rng(seed)
    ages = [None if rng.random() < 0.4 else int(rng.integers(20, 60)) for _ in range(7)]
    frame = pd.DataFrame({"age": [*ages, 70, None], "sex": list("FFFFMMMMM")})
    attributes = (Attribute("age", integer=True, missing="own"), SEX)
    solution = solve(Problem(Microdata(frame, attributes), 2), "ordered-cut")
    release = publish(solution, layout=layout, keep_order=True)
    changed = release.frame.copy()
    row = data.draw(st.integers(0, 8))
    names = [name for name in changed if name != "sex"]
    cell = str(changed.loc[row, names[0]])
    others = {"missing", "[..]|missing", "*", "[20..70]", "70", "20", "inf", "", "Missing"}
    changed.loc[row, names] = data.draw(st.sampled_from(sorted(others - {cell})))
    assert not verify(frame, changed, release.manifest).ok
    assert not verify(frame.fillna(44), release.frame, release.manifest).ok
    manifest = json.loads(json.dumps(release.manifest))
    manifest["columns"][0]["missing"] = "drop"
    assert not verify(frame, release.frame, manifest).ok


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("recoding", ["classes", "freeform"])
def test_certificates_prove_it(large: bool, recoding: str, monkeypatch: Any) -> None:
    """A checker without the package reckons missing values as the package does."""
    if large:
        monkeypatch.setattr(tables, "LARGEST_NODE_TABLE", 0)
    table = replace(drawn(7, "classes").table, sensitive=())
    asked = Asked(table, 2, recoding)
    solution = solve(problem_of(asked))
    loss, bound = check(json.loads(json.dumps(anonymip.certify(solution).content)))
    assert loss == asked.optimum()[1]
    assert bound == pytest.approx(loss)


def test_numbers_that_mean_no_value_in_parquet(tmp_path: Path) -> None:
    """A declared -9 is missing in a column of numbers, before and after it is published."""
    frame = people(age=[20, 22, -9, 31, 34, -9, 60, 61])
    file = tmp_path / "people.parquet"
    frame.to_parquet(file)
    form = TableFormat(missing=("", "-9"), policy="own")
    data = Microdata(frame, (Attribute("age"), SEX), table=form)
    assert data.kept_missing == {"age": 2}
    release, _ = publish(solve(Problem(data, 2))).write(tmp_path / "release.parquet")
    assert verify(file, release).ok


@pytest.mark.thorough
def test_many_values_are_no_cliff() -> None:
    """Five thousand lab values beside missing ones are solved, bounded and verified as any."""
    rng = np.random.default_rng(0)
    lab = np.where(rng.random(6000) < 0.05, np.nan, np.round(rng.lognormal(1, 1, 6000), 5))
    frame = pd.DataFrame({"lab": lab, "age": rng.integers(20, 90, 6000)})
    problem = Problem(Microdata(frame, (Attribute("lab", missing="own"), Attribute("age"))), 5)
    assert problem.compiled.tier == "separable"
    found = solve(problem, "greedy-search")
    assert found.bound is not None
    assert publish(found).verify().ok


def test_a_declared_domain_need_not_name_what_is_missing(tmp_path: Path) -> None:
    """Where values miss, the category of these is in the domain: for losses, and for verifiers."""
    table, schema = tmp_path / "answers.csv", tmp_path / "answers.toml"
    table.write_text("age,q\n" + "".join(f"{30 + n},{n % 3 or -9}\n" for n in range(9)))
    declared = '[attributes.age]\ndomain = [0, 100]\n[attributes.q]\nkind = "categorical"\n'
    told = '[table]\nmissing = ["", "-9"]\n'
    losses = {}
    for domain in ("[1, 2, 3]", '[1, 2, 3, "missing"]'):
        schema.write_text(f'{declared}domain = {domain}\nmissing = "category"\n{told}')
        data = read_schema(schema).read(table)
        assert data.attributes[1].domain == ("1", "2", "3", "missing")
        release = publish(solve(Problem(data, 3), "mondrian"))
        path, _ = release.write(tmp_path / "release.csv", original=table)
        found = verify(table, path, schema=schema)
        assert found.ok, found.problems
        losses[domain] = found.ncp
    assert len(set(losses.values())) == 1
    schema.write_text(f"{declared}domain = [1, 2, 3]\n[table]\nmissing = 'x'\n")
    with pytest.raises(InputError, match="outside its domain"):
        read_schema(schema).read(table)


def test_a_hierarchy_without_the_category_of_missing_values_is_told_of() -> None:
    """The error names the value and what to add, since nobody typed it."""
    towns = anonymip.Hierarchy([("Rome", "South", "*"), ("Oslo", "North", "*")])
    frame = pd.DataFrame({"town": ["Rome", "Oslo", None, "Oslo"]})
    attribute = Attribute("town", "hierarchical", hierarchy=towns, missing="category")
    with pytest.raises(InputError, match="count as the value 'missing'") as caught:
        Microdata(frame, (attribute,))
    assert caught.value.remedy == "Add a line to it: missing, and what lies above, up to *"


@pytest.mark.parametrize("value", [0.0, 3.5, 8e100, -8e100])
def test_missing_is_no_number_however_large_the_only_one_is(value: float) -> None:
    """What stands for missing values is told from a number of which one more is the same number."""
    rows = pd.DataFrame({"pay": [None, value, value, None]})
    data = Microdata(rows, [Attribute("pay", "numeric", missing="own")])
    assert len(data.levels[0]) == 2
    found = anonymip.solve(Problem(data, 2), "auto")
    assert found.objective == 0.0
    assert found.assignment.labels.tolist() in ([0, 1, 1, 0], [1, 0, 0, 1])
    assert anonymip.publish(found).verify().ok
