"""Tests of disclosure risk: figures counted by hand, printed by sdcMicro, and by brute force."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import anonymip
from anonymip import (
    Attribute,
    FullDomain,
    Microdata,
    PatternGuided,
    Problem,
    Release,
    publish,
    risk,
)
from anonymip.errors import InputError
from anonymip.privacy import measuring
from anonymip.privacy.measuring import individual_risk
from tests.by_hand import by_classes
from tests.privacy.checks.test_covers import KINDS, NOTIONS, regular_sets, ring, tables
from tests.privacy.conftest import write, write_cover
from tests.privacy.graph.test_regularity import assignments_of

#: Table 4.1 of the SDC Practice Guide, its key as one text: who is where, works as what.
GUIDE = pd.DataFrame(
    {
        "residence": list("UUUURUUUUU"),
        "gender": list("FFFMFMFMFF"),
        "education": ["si", "si", "pi", "sc", "sc", "sc", "pc", "post", "si", "si"],
        "labor": ["e", "e", "n", "e", "u", "e", "n", "u", "n", "n"],
        "weight": [180, 180, 215, 76, 186, 76, 180, 215, 186, 76],
        "health": ["y", "y", "y", "y", "y", "n", "n", "y", "n", "y"],
    }
)
KEYS = ["residence", "gender", "education", "labor"]


def test_the_sdc_practice_guide() -> None:
    """The guide prints f, F, violations of k, l-diversity and `indivRisk` of sdcMicro.

    https://sdcpractice.readthedocs.io/en/latest/measure_risk.html, tables 4.1 and 4.3, listings
    4.2 to 4.4 and 4.6: keys of one value are those of records 1, 2, 3, 5, 7 and 8.
    """
    found = risk(GUIDE, None, KEYS, sensitive=["health"], weights="weight", k=3)
    f = [2, 2, 1, 2, 1, 2, 1, 1, 2, 2]
    represented = [360, 360, 215, 152, 186, 152, 180, 215, 262, 262]
    printed = [
        *(0.005424520, 0.005424520, 0.025096439, 0.012563425, 0.028247279),
        *(0.012563425, 0.029010932, 0.025096439, 0.007403834, 0.007403834),
    ]
    before = found.before
    assert (before.unique, before.below_k, before.classes) == (4, 10, 7)
    assert before.by_record.tolist() == [1 / one for one in f]
    assert before.homogeneous == {"health": (5, 6)}
    assert individual_risk(f, represented) == pytest.approx(printed, abs=5e-10)
    assert before.sample is not None
    assert before.sample.reidentified == pytest.approx(sum(printed), abs=1e-8)
    assert before.sample.individual.largest == pytest.approx(max(printed), abs=1e-9)
    assert before.sample.population_uniques == pytest.approx(2 / 215 + 1 / 186 + 1 / 180)


@pytest.mark.parametrize("f", [1, 2, 3, 5, 29, 30, 31, 200])
@pytest.mark.parametrize("p", [1.0, 0.9, 0.5, 0.2, 0.05])
def test_individual_risk_is_the_mean_of_one_in_the_population(f: int, p: float) -> None:
    """The closed forms equal the sum over negative-binomial counts; sdcMicro's are close."""
    mean = 0.0
    for j in range(f, 40 * int(f / p) + 2000):
        if p == 1.0:
            mean = 1 / f
            break
        log = math.lgamma(j) - math.lgamma(f) - math.lgamma(j - f + 1)
        mean += math.exp(log + f * math.log(p) + (j - f) * math.log1p(-p)) / j
    (found,) = individual_risk([f], [f / p])
    assert found == pytest.approx(mean, rel=1e-9)
    if f > 2:
        assert 1 - 1e-12 <= p / (f - 1 + p) / found <= 1.04


def test_hand_counted_classes(write_release: Any) -> None:
    """A class of three and one of two, one of them of one sickness."""
    original = pd.DataFrame(
        {
            "x": list("aabcc"),
            "s": ["flu", "flu", "flu", "gout", "flu"],
            "w": ["2", "3", "5", "1", "1"],
        },
        dtype=object,
    )
    people = pd.DataFrame({"x": list("aaaabbbbcccd")})
    written = write_release(original, {"x": {}}, [0, 0, 0, 1, 1], sensitive=["s"], keep=["w"])
    found = risk(
        written.original, written.release, manifest=written.manifest, weights="w", population=people
    )
    before, after = found.before, found.after
    assert after is not None
    assert (found.k, found.recoding, found.quasi_identifiers) == (2, "classes", ("x",))
    assert (before.classes, before.unique, before.below_k) == (3, 1, 1)
    assert (before.prosecutor.least, before.prosecutor.mean) == (0.5, pytest.approx(3 / 5))
    assert (before.prosecutor.largest, before.prosecutor.above) == (1.0, 0.2)
    assert before.homogeneous == {"s": (2, 3)}
    assert before.journalist is not None
    assert before.journalist.mean == before.marketer == pytest.approx((3 / 4 + 2 / 3) / 5)
    assert before.sample is not None
    assert before.sample.population_uniques == pytest.approx(1 / 5)
    assert (after.classes, after.unique, after.below_k) == (2, 0, 0)
    assert after.prosecutor.mean == pytest.approx(2 / 5)
    assert after.homogeneous == {"s": (1, 3)}
    assert after.journalist is not None
    assert after.journalist.mean == pytest.approx((3 / 8 + 2 / 3) / 5)
    assert after.by_record.tolist() == pytest.approx([1 / 3] * 3 + [1 / 2] * 2)
    assert after.sample is not None
    expected = individual_risk([3, 2], [10, 2])
    assert after.sample.reidentified == pytest.approx(3 * expected[0] + 2 * expected[1])
    assert expected[1] == 0.5  # all of them are in the sample


def test_stars_are_values_and_records_left_out_are_told(write_release: Any) -> None:
    """A row of stars is a class of its own; a record without a row is counted before, not after."""
    original = pd.DataFrame({"x": list("aabb"), "y": list("cdcd")}, dtype=object)
    columns: dict[str, dict[str, Any]] = {"x": {}, "y": {}}
    written = write_release(original, columns, [0, 0, -1, -1])
    found = risk(written.original, written.release, manifest=written.manifest)
    assert found.after is not None
    assert (found.after.classes, found.after.prosecutor.largest) == (2, 0.5)
    assert any("star" in note for note in found.notes)
    written.leave_out()
    found = risk(written.original, written.release, manifest=written.manifest)
    assert found.after is not None
    assert (found.before.records, found.after.records) == (4, 2)
    assert any(note.startswith("2 suppressed records") for note in found.notes)


VISITS = pd.DataFrame({"x": [1, 1, 1, 2, 2, 2, 5, 5, 5], "who": list("aababcdde")})


def _of_persons(frame: pd.DataFrame, labels: list[int], k: int, *, in_order: bool) -> Release:
    data = Microdata(frame, (Attribute("x"),), unit="who")
    solution = by_classes(Problem(data, k), labels)
    return publish(solution, keep_order=in_order)


def test_hand_counted_persons() -> None:
    """Persons a, b, c in one class; c, d, e in the other: of d and e, one in three finds her."""
    labels = [0] * 5 + [1] * 4
    before = risk(VISITS, None, ["x"], unit="who", k=2).before
    # Classes of a and b; of a, b and c; of d and e.
    assert (before.records, before.units, before.classes) == (9, 5, 3)
    assert before.by_record.tolist() == pytest.approx([1 / 2] * 3 + [1 / 3] * 3 + [1 / 2] * 3)
    assert before.prosecutor.mean == before.marketer == pytest.approx((4 / 2 + 1 / 3) / 5)
    assert (before.unique, before.below_k) == (0, 0)
    found = _of_persons(VISITS, labels, 2, in_order=True).risk(k=3)
    assert found.unit == "who"
    assert found.after is not None
    # Classes of a and b; of c, d and e.
    assert found.after.by_record.tolist() == pytest.approx([1 / 2] * 5 + [1 / 3] * 4)
    assert found.after.prosecutor.mean == pytest.approx((2 / 2 + 3 / 3) / 5)
    assert (found.after.below_k, found.after.prosecutor.above) == (2, pytest.approx(2 / 5))
    shuffled = _of_persons(VISITS, labels, 2, in_order=False).risk()
    assert shuffled.after is not None
    assert (shuffled.after.prosecutor.least, shuffled.after.prosecutor.mean) == (0.5, 0.5)
    assert any("no more than 2" in note for note in shuffled.notes)


def test_a_release_that_counts_rows_is_held_against_persons(write_release: Any) -> None:
    """Four rows that look alike may be of one person with four; of five there are two at least."""
    original = pd.DataFrame({"x": list("aaaabbbbb"), "who": list("ppppqqqqr")}, dtype=object)
    for labels, least in (([0] * 4 + [1] * 5, 1.0), ([0] * 9, 1 / 3)):
        written = write_release(original, {"x": {}}, labels)
        shuffled = {**written.manifest, "order": "shuffled"}
        found = risk(written.original, written.release, manifest=shuffled, unit="who")
        assert found.after is not None
        assert found.after.prosecutor.largest == pytest.approx(least)


def test_what_counts_records_is_refused_beside_units() -> None:
    """Weights, populations, rows of nobody; a release says its unit, and may lack its column."""
    people = VISITS.assign(w="1")
    for asked in ({"weights": "w"}, {"population": people}):
        with pytest.raises(InputError, match="count records, not units"):
            risk(people, None, ["x"], unit="who", **asked)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has 1 missing values"):
        risk(VISITS.assign(who=[None, *"ababcdde"]), None, ["x"], unit="who")
    release = _of_persons(VISITS, [0] * 9, 2, in_order=True)
    with pytest.raises(InputError, match="counts units of column 'who'"):
        risk(VISITS, release, unit="x")
    found = risk(VISITS.drop(columns="who"), release)
    assert found.unit is None
    assert any("rows are counted, not units" in note for note in found.notes)


@settings(max_examples=60)
@given(st.data())
def test_persons_equal_brute_force(data: st.DataObject) -> None:
    """Each person's largest risk, over her classes; shuffled rows tell no lower ones."""
    n = data.draw(st.integers(6, 12))
    who = [data.draw(st.integers(0, 4)) for _ in range(n)]
    drawn = [data.draw(st.integers(0, 2)) for _ in range(n)]
    labels = [sorted(set(drawn)).index(label) for label in drawn]
    members: dict[int, set[int]] = {}
    for person, label in zip(who, labels, strict=True):
        members.setdefault(label, set()).add(person)
    k = min(map(len, members.values()))
    assume(k >= 2)
    # The classes do not look alike.
    frame = pd.DataFrame({"x": [10 * label for label in labels], "who": list(map(str, who))})
    found = [_of_persons(frame, labels, k, in_order=kept).risk().after for kept in (True, False)]
    exact, bound = found
    assert exact is not None
    assert bound is not None
    risks = [max(1 / len(of) for of in members.values() if w in of) for w in set(who)]
    assert exact.prosecutor.mean == pytest.approx(np.mean(risks))
    assert exact.prosecutor.largest == pytest.approx(max(risks))
    assert exact.unique == sum(one == 1 for one in risks)
    assert bound.units == exact.units == len(risks)
    assert bound.prosecutor.mean >= exact.prosecutor.mean - 1e-12
    assert bound.prosecutor.largest >= exact.prosecutor.largest - 1e-12


@settings(max_examples=60)
@given(st.data())
def test_tables_and_classes_equal_brute_force(data: st.DataObject) -> None:
    """Every number equals one counted record by record in plain Python."""
    n, k = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 4))
    column = st.lists(st.sampled_from("ab"), min_size=n, max_size=n)
    original = pd.DataFrame({name: data.draw(column) for name in "xys"}, dtype=object)
    original["w"] = data.draw(st.lists(st.integers(1, 9).map(str), min_size=n, max_size=n))
    extra = data.draw(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("ab")), max_size=5)
    )
    people = pd.concat([original[["x", "y"]], pd.DataFrame(extra, columns=["x", "y"])])
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    kinds: dict[str, dict[str, Any]] = {"x": {}, "y": {}}
    written = write(original, kinds, labels, sensitive=["s"], keep=["w"], k=2)
    found = risk(
        original, written.release, manifest=written.manifest, k=k, weights="w", population=people
    )
    published = written.release[["x", "y"]].itertuples(index=False)
    shown = [(set(x.strip("{}").split("|")), set(y.strip("{}").split("|"))) for x, y in published]
    persons = list(people.itertuples(index=False))
    keys = [[({x}, {y}) for x, y in original[["x", "y"]].itertuples(index=False)], shown]
    for table, cells in zip((found.before, found.after), keys, strict=True):
        assert table is not None
        sizes = [sum(one == other for other in cells) for one in cells]
        known = [sum(x in one[0] and y in one[1] for x, y in persons) for one in cells]
        alike = [
            len({s for s, other in zip(original["s"], cells, strict=True) if other == one}) == 1
            for one in cells
        ]
        weights = [
            sum(int(w) for w, other in zip(original["w"], cells, strict=True) if other == one)
            for one in cells
        ]
        assert table.by_record.tolist() == [1 / size for size in sizes]
        assert table.unique == sizes.count(1)
        assert table.below_k == sum(size < k for size in sizes)
        assert table.prosecutor.mean == pytest.approx(sum(1 / size for size in sizes) / n)
        assert table.prosecutor.above == sum(size < k for size in sizes) / n
        assert table.journalist is not None
        assert table.journalist.largest == 1 / min(known)
        assert table.marketer == pytest.approx(sum(1 / one for one in known) / n)
        assert table.homogeneous["s"][1] == sum(alike)
        assert table.sample is not None
        alone = [1 / w for w, size in zip(weights, sizes, strict=True) if size == 1]
        assert table.sample.population_uniques == pytest.approx(sum(alone))


@settings(max_examples=40)
@given(st.data(), st.sampled_from(["freeform", *NOTIONS]))
def test_covers_equal_all_assignments(data: st.DataObject, notion: str) -> None:
    """A record's risk is one in the rows that it has in some assignment, by all permutations."""
    original = data.draw(tables(5))
    k, sets, matching = data.draw(regular_sets(len(original)))
    written = write_cover(
        original, KINDS, sets, matching, notion, k=k, sensitive=["s"], keep=["id"]
    )
    found = risk(original, written.release, manifest=written.manifest, draws=2)
    release = written.release
    contains = [
        [
            record
            for record in range(len(original))
            if all(
                original[name][record] in _values(cell[name], original[name])
                for name in ("x", "z", "c")
            )
        ]
        for _, cell in release.iterrows()
    ]
    every = assignments_of(contains)
    rows = [
        {row for one in every for held, row in one if held == record}
        for record in range(len(original))
    ]
    assert found.after is not None
    assert found.after.classes is None
    assert found.after.by_record.tolist() == [1 / len(one) for one in rows]
    alike = sum(len({release["s"][row] for row in one}) == 1 for one in rows)
    assert found.after.homogeneous == {"s": (None, alike)}
    first = found.known_matches[0]
    assert first.known == 0
    assert int(first.least.min()) <= min(len(one) for one in rows)


def _values(cell: str, column: pd.Series) -> set[str]:
    """Return the values of a column that a cell contains."""
    if cell.startswith("["):
        low, high = map(int, cell[1:-1].split(".."))
        return {value for value in column if low <= int(value) <= high}
    return set(cell.strip("{}").split("|"))


def test_a_ring_of_five() -> None:
    """Each of five has three rows; the curve starts there and ends where somebody has one."""
    original = pd.DataFrame({"c": list("abcde"), "s": list("uvuvu")}, dtype=object)
    written = write_cover(original, {"c": {}}, ring(5, 3), range(5), k=3, sensitive=["s"])
    found = risk(original, written.release, manifest=written.manifest, draws=5)
    assert found.after is not None
    assert found.after.prosecutor.largest == found.after.prosecutor.least == 1 / 3
    assert [one.known for one in found.known_matches][:2] == [0, 1]
    assert int(found.known_matches[0].least.min()) == 3
    assert risk(original, written.release, manifest=written.manifest, draws=0).known_matches == ()


@pytest.mark.parametrize(
    "recoding", [PatternGuided(), FullDomain(suppression=True), None, "freeform", "k-concealment"]
)
def test_releases_of_every_kind(recoding: Any) -> None:
    """What is published with k = 3 has a risk of one third at most, by `Release.risk` as well."""
    data = anonymip.load_instance("census:24,3,1")
    release = anonymip.anonymize(
        data.original,
        [Attribute(name, "categorical") for name in data.names],
        3,
        recoding=recoding,
        method={PatternGuided: "pattern-greedy", type(None): "ordered-cut"}.get(
            type(recoding), "auto"
        ),
        effort="quick",
        most_suppressed=23 if isinstance(recoding, FullDomain) else None,
    )
    found = release.risk(draws=2)
    assert found.after is not None
    assert found.after.prosecutor.largest <= 1 / 3
    assert found.after.below_k == 0
    assert found.before.prosecutor.largest == 1.0
    assert "before" in str(found)
    assert str(found) == str(risk(data.original, release, draws=2))


def test_missing_values_follow_the_policy() -> None:
    """They are an error, a value of their own, or leave their record out, with NaN for its risk."""
    frame = pd.DataFrame({"x": ["a", None, None, "a", "-9"], "y": [1.0, 1, 1, 1, 1]})
    with pytest.raises(InputError, match="column 'x' of the table misses a value in row 2"):
        risk(frame, None, ["x", "y"])
    own = risk(frame, None, ["x", "y"], missing="category", missing_values=["", "-9"])
    assert own.before.by_record.tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 3, 1 / 2, 1 / 3])
    left = risk(frame, None, ["x", "y"], missing="drop")
    assert np.isnan(left.before.by_record).tolist() == [False, True, True, False, False]
    assert (left.before.records, left.before.unique) == (3, 1)
    assert left.notes[0] == "2 records with missing quasi-identifiers are left out."


def test_numbers_are_compared_as_numbers() -> None:
    """1, 1.0 and 01 are one number, and three categories; a decimal comma is read."""
    frame = pd.DataFrame({"x": ["1", "1.0", "01"]})
    assert risk(frame, None, ["x"]).before.classes == 1
    assert risk(frame, None, ["x:numeric"]).before.classes == 1
    assert risk(frame, None, ["x:categorical"]).before.classes == 3
    commas = pd.DataFrame({"x": ["1,5", "1,50"]})
    assert risk(commas, None, ["x"], decimal=",").before.classes == 1
    assert risk(commas, None, ["x"]).before.classes == 2
    people = pd.DataFrame({"x": [1.0, 2.0]})
    found = risk(pd.DataFrame({"x": ["1"]}), None, ["x"], population=people)
    assert found.before.journalist is not None
    assert found.before.journalist.largest == 1.0


def test_what_is_refused() -> None:
    """Columns, weights, populations and numbers that cannot be, by name and without a value."""
    frame = pd.DataFrame({"x": ["secret", "b"], "w": [1.0, -1.0]})
    for asked, words in (
        ({}, "no quasi-identifiers"),
        ({"quasi_identifiers": ["z"]}, "unknown column 'z'"),
        ({"quasi_identifiers": ["x:text"]}, "kind"),
        ({"quasi_identifiers": ["x"], "k": 0}, "k is 0"),
        ({"quasi_identifiers": ["x"], "draws": -1}, "draws is -1"),
        ({"quasi_identifiers": ["x"], "missing": "keep"}, "policy for missing values"),
        ({"quasi_identifiers": ["x"], "weights": "w"}, "holds 1 weights"),
        ({"quasi_identifiers": ["x"], "weights": "x"}, "holds 2 weights"),
        ({"quasi_identifiers": ["x"], "population": frame[1:]}, "lacks persons of 1 records"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            risk(frame, **asked)
        assert "secret" not in str(caught.value)


def test_a_release_says_its_roles_itself(
    write_release: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others than those of the manifest are refused, and a cover of too many matches."""
    original = pd.DataFrame({"x": list("aabb"), "s": list("uvuv")}, dtype=object)
    written = write_release(original, {"x": {}}, [0, 0, 1, 1], sensitive=["s"])
    given = original, written.release
    assert risk(*given, ["x"], sensitive=["s"], manifest=written.manifest).k == 2
    for asked in ({"quasi_identifiers": ["s"]}, {"sensitive": ["x"]}, {"missing": "drop"}):
        with pytest.raises(InputError, match="as the manifest says"):
            risk(*given, manifest=written.manifest, **asked)  # type: ignore[arg-type]
    cover = write_cover(original, {"x": {}}, ring(4, 2), range(4))
    monkeypatch.setattr(measuring, "WORK", measuring.RiskWork(matches=3))
    with pytest.raises(InputError, match="do not fit into memory"):
        risk(original, cover.release, manifest=cover.manifest)


def test_no_value_leaves_the_result() -> None:
    """Neither text, representation nor JSON show a value or the risk of a single record."""
    frame = pd.DataFrame({"x": ["secret", "secret", "b"], "s": ["hush"] * 3})
    found = risk(frame, None, ["x"], sensitive=["s"])
    shown = f"{found}{found!r}{found.to_dict()}"
    assert "secret" not in shown
    assert "hush" not in shown
    assert "by_record" not in shown
    assert Counter(found.before.by_record.tolist()) == {0.5: 2, 1.0: 1}
