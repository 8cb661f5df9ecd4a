"""Suppressed records: left out and counted, or published by k or more."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Classes,
    Cover,
    EquivalenceClasses,
    Freeform,
    FullDomain,
    InputError,
    Microdata,
    NoSolution,
    PatternGuided,
    Problem,
    Solution,
    anonymize,
    publish,
    solve,
    verify,
)
from anonymip.errors import ReleaseWarning, VerificationFailed
from anonymip.privacy import consistency_graph
from anonymip.publishing.manifest import revealing_columns
from anonymip.publishing.release import what_is_gone
from anonymip.publishing.suppressed import allowed_suppressed, refuse_many_suppressed
from tests.by_hand import by_classes, table_of
from tests.random_problems import Case, cases


def ward(old: int = 1, **columns: Any) -> pd.DataFrame:
    """Return nine women with flu and old men with HIV."""
    return pd.DataFrame(
        {
            "age": [20, 20, 20, 21, 21, 21, 22, 22, 22, *range(95, 95 + old)],
            "sex": ["F"] * 9 + ["M"] * old,
            "ill": ["flu"] * 9 + ["HIV"] * old,
            **columns,
        }
    )


KNOWN = (
    Attribute("age", integer=True, domain=(0, 120)),
    Attribute("sex", "categorical", domain=("F", "M")),
)


@pytest.mark.parametrize(
    "recoding",
    [
        EquivalenceClasses(True),
        Freeform(suppression=True),
        PatternGuided(suppression=True),
        FullDomain(True),
    ],
)
def test_a_lone_person_is_not_published(recoding: Any) -> None:
    """Who knows the one man finds neither his row nor his illness; that he is gone is reported."""
    frame = ward()
    asked: dict[str, Any] = {"sensitive": ["ill"], "recoding": recoding, "k": 3}
    with pytest.raises(NoSolution, match=re.escape("1 of 10 records (10.0 %) would be")):
        anonymize(frame, KNOWN, **asked)
    asked["most_suppressed"] = 0.1
    release = anonymize(frame, KNOWN, **asked)
    assert set(release.frame["ill"]) == {"flu"}
    assert not (release.frame.astype(str) == "*").all(axis=1).any()
    result = release.manifest
    assert (result["n"], result["suppressed"], result["left_out"]["suppressed"]) == (10, 0, 1)
    assert any("belong to the 1 suppressed records" in text for text in result["assumed"])
    found = verify(frame, release.frame, result)
    assert (found.problems, found.n, found.left_out) == ((), 9, 1)
    assert found.ncp == pytest.approx(release.solution.ncp)
    assert what_is_gone(release)[0].startswith("1 record is suppressed and left out")
    with pytest.raises(InputError, match="fewer than k = 3"):
        anonymize(frame, KNOWN, suppressed="starred", **asked)


def test_k_suppressed_records_may_be_published_with_the_risk_told() -> None:
    """Three of k = 3 show stars where that is asked for; the manifest and a warning say so."""
    frame = ward(old=3)
    problem = Problem(
        Microdata(frame, KNOWN, sensitive=("ill",)), 3, EquivalenceClasses(suppression=True)
    )
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, -1, -1, -1])
    solution = by_classes(problem, labels)
    with pytest.warns(ReleaseWarning, match="3 rows of stars only is hers"):
        release = publish(solution, suppressed="starred")
    assert (release.frame["age"] == "*").sum() == 3
    assert release.manifest["left_out"]["suppressed"] == 0
    assert any("3 rows of stars only is hers" in text for text in release.manifest["assumed"])
    found = release.verify()
    assert found.problems == ()
    assert any("Not avoided: who finds a person" in check for check in found.checks)
    # A manifest of an older version does not count what is left out.
    older = {key: value for key, value in release.manifest.items() if key != "left_out"}
    assert verify(frame, release.frame, older).ok
    fewer = release.frame.drop(index=release.frame.index[release.frame["age"] == "*"][0])
    assert not verify(frame, fewer, older).ok


def test_what_is_left_out_leaves_no_trace(tmp_path: Path) -> None:
    """Neither categories of kept columns nor files hold a value of a record that is left out."""
    frame = ward(nurse=pd.Categorical(["Ann"] * 9 + ["Zoe"]))
    release = anonymize(frame, KNOWN, 3, sensitive=["ill"], keep=["nurse"], most_suppressed=1)
    assert release.frame["nurse"].cat.categories.tolist() == ["Ann"]
    for name in ("release.csv", "release.parquet"):
        table, manifest = release.write(tmp_path / name)
        assert b"Zoe" not in table.read_bytes()
        assert b"HIV" not in table.read_bytes()
        assert "95" not in json.dumps(json.loads(manifest.read_text())["columns"])


def test_nothing_left_to_publish_is_an_error() -> None:
    """A release without rows is none; what else suppressed may be is said."""
    problem = Problem(Microdata(ward(), KNOWN), 2, EquivalenceClasses(suppression=True))
    nobody = by_classes(problem, [-1] * 10)
    with pytest.raises(InputError, match="all 10 records are suppressed"):
        publish(nobody)
    with pytest.warns(ReleaseWarning, match="10 suppressed records are published"):
        assert publish(nobody, suppressed="starred").verify().ok
    with pytest.raises(InputError, match="suppressed is 'hidden'"):
        publish(nobody, suppressed="hidden")


@settings(max_examples=60)
@given(cases(smallest=4, largest=8, suppression=True), st.data(), st.booleans())
def test_any_choice_of_suppressed_records_is_published_and_verified(
    case: Case, data: st.DataObject, keep_order: bool
) -> None:
    """The release of any classes has a row for all others, and another row is one too many."""
    groups = data.draw(st.sampled_from(case.releases()))
    problem = case.problem()
    known = all(
        a.hierarchy is not None or a.domain is not None for a in problem.microdata.attributes
    )
    left_out = case.n - sum(map(len, groups))
    assume(groups and (known or not left_out))
    solution = Solution.of(problem, Classes.from_groups(groups, case.n), method="by hand")
    release = publish(solution, keep_order=keep_order)
    found = release.verify()
    assert found.problems == ()
    assert (found.n, found.left_out) == (case.n - left_out, left_out)
    assert found.ncp == pytest.approx(solution.ncp)
    fewer = release.frame.reset_index(drop=True)
    fewer = fewer.drop(index=data.draw(st.sampled_from(range(len(fewer)))))
    assert not replace(release, frame=fewer.reset_index(drop=True)).verify().ok


def test_the_consistency_graph_has_a_row_for_who_is_left_out() -> None:
    """To an adversary a record without a row is a row that could be anybody's."""
    frame = ward()
    release = anonymize(frame, KNOWN, 3, most_suppressed=1)
    graph = consistency_graph(frame, release.frame, release.manifest)
    assert graph.n == 10
    assert graph.rows[graph.records == 9].tolist() == [9]
    assert graph.records[graph.rows == 9].tolist() == list(range(10))


@pytest.mark.parametrize(
    ("recoding", "most", "allowed"),
    [
        (EquivalenceClasses(True), None, 5),
        (EquivalenceClasses(True), 7, 7),
        (EquivalenceClasses(True), 0.12, 12),
        (EquivalenceClasses(True), 500, 100),
        (EquivalenceClasses(), None, 5),
        (EquivalenceClasses(), 0, 0),
        (FullDomain(most_suppressed=0.3), None, 30),
        (FullDomain(most_suppressed=30), 0.2, 20),
    ],
)
def test_how_many_may_be_suppressed(recoding: Any, most: float | None, allowed: int) -> None:
    """One in twenty where nothing is said; else what is given, or the recoding's own limit."""
    data = Microdata(pd.concat([ward()] * 10, ignore_index=True), KNOWN)
    assert allowed_suppressed(Problem(data, 3, recoding), most) == allowed


def test_the_limit_of_a_full_domain_is_told_beside_its_optimum() -> None:
    """More suppression would lose less: sentence and manifest say how much, and verify checks."""
    frame = pd.DataFrame({"age": [30] * 4 + [50, 70], "ill": list("abcabc")})
    ages = Attribute("age", domain=(0, 100))
    few, many = (anonymize(frame, [ages], 3, recoding=FullDomain(True, n)) for n in (1, 2))
    assert few.solution.is_optimal
    assert many.solution.objective < few.solution.objective
    assert "with k = 3 and suppression of 1 records at most can be below it" in str(few)
    left_out = many.manifest["left_out"]
    assert (left_out["suppressed"], left_out["most"]) == (2, 2)
    found = verify(frame, many.frame, {**many.manifest, "left_out": {**left_out, "most": 1}})
    assert "The manifest claims 2 suppressed records, of 1 that may be." in found.problems


@pytest.mark.parametrize("most", [-1, 1.0, 1.5, True, "few"])
def test_wrong_limits_of_suppression_are_refused(most: Any) -> None:
    """A limit is a number of records or a share of them, and needs suppression."""
    with pytest.raises(InputError, match="most_suppressed is"):
        anonymize(ward(), KNOWN, 3, recoding=EquivalenceClasses(True), most_suppressed=most)
    with pytest.raises(InputError, match="no records may be suppressed"):
        anonymize(ward(), KNOWN, 3, recoding=EquivalenceClasses(), most_suppressed=1)


@settings(max_examples=100)
@given(st.integers(0, 40), st.integers(0, 40))
def test_many_suppressed_records_are_what_is_said_first(gone: int, most: int) -> None:
    """Above one in twenty summary and manifest begin with it; above the limit it is refused."""
    ages = [30] * 40
    data = Microdata(pd.DataFrame({"age": ages}), (Attribute("age", domain=(0, 100)),))
    problem = Problem(data, 3, EquivalenceClasses(suppression=True))
    labels = np.array([-1] * gone + [0] * (40 - gone))
    assume(gone <= 37)
    found = by_classes(problem, labels)
    told = f"{gone} of 40 records ({2.5 * gone:.1f} %) are suppressed"
    first, manifest = found.summary().splitlines()[0], publish_quietly(found)
    assert (first == f"ATTENTION: {told}") == (gone > 2)
    assert any(told in text for text in manifest["assumed"][:1]) == (gone > 2)
    if gone > most:
        with pytest.raises(NoSolution, match=f"more than the {most} that may be: nothing is"):
            refuse_many_suppressed(found, most)
    else:
        refuse_many_suppressed(found, most)


def publish_quietly(solution: Solution) -> dict[str, Any]:
    """Return the manifest of a solution; more than one suppressed in twenty are a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        manifest = publish(solution).manifest
    assert len(caught) == (solution.many_suppressed is not None)
    return manifest


def outlying(n: int = 40, outliers: int = 4) -> pd.DataFrame:
    """Return persons with an illness, the first of whom earn far more than the others."""
    pay = [10 + (7 * i) % 12 for i in range(n)]
    pay[:outliers] = [300 + 150 * i for i in range(outliers)]
    ill = ["flu", "cold", "gout"]
    return pd.DataFrame({"pay": pay, "ill": [ill[i % 3] for i in range(n)], "visit": range(n)})


PAID = (Attribute("pay", integer=True, domain=(0, 1000)),)


@pytest.mark.parametrize("kept_order", [False, True])
@pytest.mark.parametrize("suppressed", ["left-out", "starred"])
def test_covers_leave_outliers_out(suppressed: str, kept_order: bool) -> None:
    """Of those left out nothing is published; rows of stars are handed out among themselves.

    The manifest counts them, and a release that claims others fails.
    """
    frame = outlying()
    release = anonymize(
        frame,
        PAID,
        4,
        sensitive=["ill"],
        keep=["visit"],
        recoding=Freeform(suppression_price=0.1),
        most_suppressed=4,
        suppressed=suppressed,  # type: ignore[arg-type]
        keep_order=kept_order,
    )
    told, stars = release.manifest, release.frame["pay"].astype(str) == "*"
    assert told["recoding"] == "freeform"
    assert told["objective"]["suppression_price"] == 0.1
    hidden = {0, 1, 2, 3}
    if suppressed == "starred":
        assert set(release.frame["visit"][stars]) == hidden
        assert (told["suppressed"], told["left_out"]["suppressed"]) == (4, 0)
    else:
        assert not hidden & set(release.frame["visit"])
        assert (told["suppressed"], told["left_out"]["suppressed"]) == (0, 4)
    assert told["left_out"]["most"] == 4
    assert release.verify().ok
    assert release.risk(draws=0).after is not None
    for key, other in (("suppressed", told["suppressed"] + 1), ("n", told["n"] - 1)):
        assert not verify(frame, release.frame, {**told, key: other}).ok
    fewer = {**told, "left_out": {**told["left_out"], "most": 3}}
    found = verify(frame, release.frame, fewer)
    assert any("4 suppressed records, of 3 that may be" in one for one in found.problems)
    worse = release.frame.copy()
    worse.loc[worse.index[~stars.to_numpy()][0], "pay"] = "*"
    assert not verify(frame, worse, told).ok


def test_stars_of_covers_need_a_set_of_their_own() -> None:
    """Fewer rows of stars than a set has would tell of a person in no set whose rows they are."""
    problem = Problem(Microdata(outlying(), PAID, keep=("ill", "visit")), 5, Freeform(True))
    cover = solve(problem.replace(recoding=Freeform(most_suppressed=4, suppression_price=0.1)))
    with pytest.raises(InputError, match="4 rows of stars only are fewer than k = 5"):
        publish(cover, suppressed="starred")


def test_a_row_that_needs_a_suppressed_record_is_not_published() -> None:
    """Who was left out the table does not say: it is held against what was solved."""
    data = Microdata(outlying(), PAID, keep=("ill", "visit"))
    problem = Problem(data, 4, Freeform(most_suppressed=4, suppression_price=0.1))
    release = publish(solve(problem))
    assert isinstance(release.solution.assignment, Cover)
    release.read_back(release.table, release.manifest)
    # Others were left out than the solution says.
    sizes = np.roll(release.solution.assignment.sizes, 5)
    order = np.argsort(sizes == 0, kind="stable")
    other = Cover.of([[*order[:4]] if size else [] for size in sizes])
    wrong = replace(release, solution=replace(release.solution, assignment=other))
    with pytest.raises(VerificationFailed, match="needs a suppressed record"):
        wrong.read_back(release.table, release.manifest)


def test_it_is_said_why_nobody_is_left_out() -> None:
    """Where a row of stars costs more than what outliers lose, and which price lets them go."""
    for recoding in (EquivalenceClasses(), Freeform()):
        release = anonymize(outlying(), PAID, 4, keep=["ill", "visit"], recoding=recoding.within(4))
        (line,) = [line for line in what_is_gone(release) if "more might" in line]
        assert line.startswith("4 more might be left out, and are not, since each costs 1, a row")
        assert "suppression_price=0 leaves the worst out" in line


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz")), min_size=4, max_size=9),
    st.data(),
)
def test_an_observed_domain_is_that_of_the_published_records(
    rows: list[tuple[int, str]], data: st.DataObject
) -> None:
    """Where no domain is declared, what is published has it, whatever records are left out."""
    frame = pd.DataFrame(rows, columns=["age", "job"])
    objective = data.draw(st.sampled_from(["gcp", "set-gcp"]))
    attributes = (Attribute("age", integer=objective == "set-gcp"), Attribute("job", "categorical"))
    some = EquivalenceClasses(suppression=True)
    labels = np.zeros(len(frame), np.int32)
    gone = st.sets(st.integers(0, len(frame) - 1), min_size=1, max_size=2)
    labels[list(data.draw(gone))] = -1
    problem = Problem(Microdata(frame, attributes), 2, some, objective)
    solution = by_classes(problem, labels)
    kept = frame[labels >= 0]
    same = {
        "age": (kept["age"].min(), kept["age"].max()) == (frame["age"].min(), frame["age"].max()),
        "job": set(kept["job"]) == set(frame["job"]),
    }
    told = revealing_columns(solution)
    assert {name for name, equal in same.items() if not equal} <= set(told)
    counts = {name: frame[name].value_counts() for name in frame}
    for name in told:
        assert counts[name].min() <= (labels < 0).sum()
    if not told:
        assert publish(solution).verify().ok


def test_all_values_make_a_domain_that_is_counted() -> None:
    """A loss that counts numbers tells how many there are: also one between the ends."""
    ages = [20, 20, 20, 30, 40, 40, 40]
    labels = Classes(np.array([0, 0, 0, -1, 0, 0, 0], np.int32))
    for objective, told in (("gcp", []), ("liang-gcp", ["age"])):
        table = table_of({"age": ages})
        problem = Problem(table, 2, EquivalenceClasses(suppression=True), objective)
        solution = Solution.of(problem, labels, method="by hand")
        assert revealing_columns(solution) == told
