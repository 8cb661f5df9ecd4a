"""Tests of the verifier: good releases pass, every kind of corruption is caught."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Cover,
    EquivalenceClasses,
    Freeform,
    Hierarchy,
    Solution,
    anonymize,
    publish,
)
from anonymip.errors import InputError, gap_text
from anonymip.privacy import consistency_graph, match_probabilities, verify
from anonymip.publishing.checking import hierarchy_paths
from anonymip.recodings import KK, KConcealment, KOne, OneK
from tests.random_problems import Case, cases


def test_good_release_passes(patients: Any, tmp_path: Path) -> None:
    """The hand-made release of two classes keeps its promises, in memory and from files."""
    found = patients.verify()
    assert found.ok, found.problems
    assert (found.k, found.k_reached, found.classes, found.suppressed) == (3, 3, 2, 0)
    assert (found.n, found.m) == (7, 3)
    # Ages 35-37 and 61-66 of 35-66; zip codes 22071-23061 and 55099-55324 of 22071-55324.
    expected = (3 * 2 + 4 * 5) / 31 + (3 * 990 + 4 * 225) / 33253
    assert found.ncp == pytest.approx(expected, rel=1e-12)
    assert found.gcp == pytest.approx(expected / 21, rel=1e-12)
    assert verify(*patients.save(tmp_path)) == found
    assert len(found.checks) == 16


def test_result_is_readable_and_goes_to_json(patients: Any) -> None:
    """The summary tells the outcome; the object survives JSON."""
    patients.manifest.update(bound={"value": 0.5, "method": "x", "proof": "argument"})
    patients.manifest["gap"] = 1 - 0.5 / patients.manifest["ncp"]
    found = patients.verify()
    assert "k = 3 reached" in found.summary()
    assert found.bound == 0.5
    assert found.gap == pytest.approx(patients.manifest["gap"])
    assert f"; gap {gap_text(found.gap)}\n" in found.summary()
    assert json.loads(json.dumps(found.to_dict()))["problems"] == []
    patients.manifest["k"] = 4
    assert "FAILS" in patients.verify().summary()


def test_proven_optimum_passes(patients: Any) -> None:
    """A bound within the tolerance of solvers proves optimality."""
    value = patients.manifest["ncp"] * (1 - 1e-7)
    patients.manifest.update(
        bound={"value": value, "method": "x", "proof": "solver"}, gap=1e-7, status="optimal"
    )
    assert patients.verify().problems == ()


def test_swapped_quasi_identifiers_leave_no_matching(write_release: Any) -> None:
    """Two rows that swap a value fail although every record fits somewhere, and every row too."""
    original = pd.DataFrame(
        {"x": ["0", "1", "2"] * 2 + ["7", "8", "9"] * 2, "y": list("aaabbbaaabbb")}, dtype=object
    )
    labels = [row // 3 for row in range(12)]
    written = write_release(original, {"x": {"kind": "numeric"}, "y": {}}, labels)
    written.manifest["order"] = "shuffled"
    assert written.verify().ok
    written.release.loc[[3, 6], "y"] = ["a", "b"]
    found = written.verify()
    assert found.k_reached == 2
    (problem,) = found.problems
    assert re.match("3 original records, row [4-9] among them", problem)
    assert "fit into only 2 published rows" in problem


def test_one_class_too_large_leaves_no_matching(write_release: Any) -> None:
    """Every record is contained somewhere, but three share two places."""
    original = pd.DataFrame({"x": list("012789")}, dtype=object)
    labels = [0, 0, 0, 1, 1, 1]
    written = write_release(original, {"x": {"kind": "numeric"}}, labels, order=[3, 1, 0, 5, 2, 4])
    assert written.verify().ok
    written.release["x"] = ["[0..2]"] * 4 + ["[7..9]"] * 2
    (problem,) = written.verify().problems
    assert problem.startswith("3 original records")
    assert "fit into only 2 published rows" in problem


def test_kept_values_bind_the_matching(write_release: Any) -> None:
    """A kept column that is an identifier ties every row to its record."""
    original = pd.DataFrame({"x": ["0", "1", "8", "9"], "id": list("abcd")}, dtype=object)
    kinds = {"x": {"kind": "numeric"}}
    written = write_release(original, kinds, [0, 0, 1, 1], keep=["id"], order=[2, 0, 3, 1])
    assert written.verify().ok
    written.release["id"] = written.release["id"].to_numpy()[::-1]
    assert not written.verify().ok


def test_sensitive_and_kept_values_stay_together(write_release: Any) -> None:
    """Columns that hold the original values each are false if rows pair them otherwise."""
    original = pd.DataFrame({"x": list("0011"), "s": list("uvuv"), "t": list("pqpq")}, dtype=object)
    written = write_release(
        original, {"x": {"kind": "numeric"}}, [0] * 4, sensitive=["s"], keep=["t"], order=range(4)
    )
    assert written.verify().ok
    written.release["t"] = ["p", "q", "q", "p"]
    (problem,) = written.verify().problems
    assert problem.startswith("Published row 3: the combination of sensitive and kept values")


def test_a_lone_row_of_stars_breaks_k(write_release: Any) -> None:
    """Who finds no class knows that it is hers; half suppressed rows are a class like any other."""
    original = pd.DataFrame({"x": ["0", "1", "9"], "y": list("aab")}, dtype=object)
    written = write_release(original, {"x": {"kind": "numeric"}, "y": {}}, [0, 0, -1])
    found = written.verify()
    assert [problem.split(":")[0] for problem in found.problems] == [
        "1 rows of stars only are fewer than 2"
    ]
    assert (found.k_reached, found.classes, found.suppressed) == (1, 1, 1)
    assert found.ncp == pytest.approx(2 / 9 + 2)
    written.release.loc[2, "y"] = "b"
    written.claim_loss(2 / 9 + 1)
    written.manifest["suppressed"] = 0
    assert any("fewer than 2 rows" in problem for problem in written.verify().problems)


def test_a_record_left_out_costs_everything(write_release: Any) -> None:
    """It has no row, its loss is m, and the verifier says what it could not check."""
    original = pd.DataFrame({"x": ["0", "1", "9"], "y": list("aab")}, dtype=object)
    written = write_release(original, {"x": {"kind": "numeric"}, "y": {}}, [0, 0, -1]).leave_out()
    found = written.verify()
    assert found.problems == ()
    assert (found.n, found.k_reached, found.suppressed, found.left_out) == (2, 2, 0, 1)
    assert found.ncp == pytest.approx(2 / 9 + 2)
    assert found.gcp == pytest.approx(found.ncp / 6)
    assert "1 suppressed records left out" in found.summary()
    assert any("Not checked: which 1 records" in check for check in found.checks)
    for count, sentence in ((0, "claims 3 rows; the release has 2"), (2, "claims 1 rows")):
        written.manifest["left_out"]["suppressed"] = count
        assert any(sentence in problem for problem in written.verify().problems)


@pytest.mark.parametrize("row", [0, 1])
def test_each_row_belongs_to_a_record_though_others_are_left_out(
    write_release: Any, row: int
) -> None:
    """In the order of the original the first row needs a record as much as the last one does."""
    original = pd.DataFrame({"x": ["0", "0", "9"], "y": list("aab")}, dtype=object)
    written = write_release(original, {"x": {"kind": "numeric"}, "y": {}}, [0, 0, -1]).leave_out()
    assert written.verify().ok
    written.release.loc[row, "x"] = "5"
    told = f"Published row {row + 1}: no original record behind those of the rows before it fits"
    assert any(problem.startswith(told) for problem in written.verify().problems)


@pytest.mark.parametrize("kept", [True, False])
def test_a_row_of_nobody_is_found_beside_records_left_out(write_release: Any, kept: bool) -> None:
    """Every row needs a record of its own with its values; records left out are no excuse."""
    original = pd.DataFrame(
        {"x": ["9", "0", "1", "5", "6", "9"], "s": list("pqqpqr")}, dtype=object
    )
    written = write_release(
        original,
        {"x": {"kind": "numeric"}},
        [-1, 0, 0, 1, 1, -1],
        sensitive=["s"],
        order=None if kept else [4, 2, 0, 5, 1, 3],
    ).leave_out()
    assert written.verify().problems == ()
    # As many p as before, but of records of another class.
    swapped = written.release["s"].to_numpy().copy()
    p, q = swapped.tolist().index("p"), int((written.release["x"] == "[0..1]").argmax())
    swapped[[p, q]] = swapped[[q, p]]
    written.release["s"] = swapped
    found = written.verify().problems
    said = "no original record behind those of the rows before it" if kept else "fit into only 0"
    assert any(said in problem for problem in found), found


def test_covers_and_empty_releases_leave_nobody_out(write_release: Any, cover_release: Any) -> None:
    """Without rows there is nothing to keep, and a weaker cover gives every record a row."""
    frame = pd.DataFrame({"x": ["a", "b", "c"]}, dtype=object)
    empty = write_release(frame, {"x": {}}, [-1, -1, -1]).leave_out()
    assert any("has no rows" in problem for problem in empty.verify().problems)
    sets = [[0, 1], [1, 0], [2, 0]]
    cover = cover_release(frame, {"x": {}}, sets, [0, 1, 2]).leave_out()
    cover.manifest["left_out"]["suppressed"] = 1
    cover.manifest["recoding"] = "k-one"
    cover.release = cover.release.iloc[:2]
    assert any("which no cover k-one does" in problem for problem in cover.verify().problems)


def test_what_is_left_out_has_a_form(write_release: Any) -> None:
    """Counts and names of columns; anything else is refused, and other keys are named."""
    frame = pd.DataFrame({"x": ["a", "a", "b"]}, dtype=object)
    forms = (("suppressed", -1), ("suppressed", 10**400), ("missing", None), ("columns", "x"))
    for key, value in forms:
        written = write_release(frame, {"x": {}}, [0, 0, -1]).leave_out()
        written.manifest["left_out"][key] = value
        with pytest.raises(InputError, match=f"left_out.{key}"):
            written.verify()
    for value in (1, [[]], "x"):
        written = write_release(frame, {"x": {}}, [0, 0, -1])
        written.manifest["left_out"] = value
        with pytest.raises(InputError, match="left_out is not an object"):
            written.verify()
    written = write_release(frame, {"x": {}}, [0, 0, -1]).leave_out()
    written.manifest["left_out"] |= {"who": "Ann", "missing": 3}
    found = written.verify().problems
    assert any("1 keys of no known meaning" in problem for problem in found)
    assert any("claims that 3 records with missing values" in problem for problem in found)


def test_a_release_of_stars_only_is_anonymous(write_release: Any) -> None:
    """It is useless too; that it shows suppressed records is said."""
    written = write_release(pd.DataFrame({"x": ["a", "b"]}, dtype=object), {"x": {}}, [-1, -1])
    found = written.verify()
    assert found.ok
    assert (found.k_reached, found.classes, found.gcp) == (2, 0, 1.0)
    assert any("Not avoided: who finds a person in no class" in check for check in found.checks)


def test_constant_columns_cost_nothing(write_release: Any) -> None:
    """A domain of a single value costs 0, a star in it 1."""
    original = pd.DataFrame({"x": ["5", "5", "5"], "y": ["a", "a", "a"]}, dtype=object)
    written = write_release(original, {"x": {"kind": "numeric"}, "y": {}}, [0, 0, -1])
    found = written.leave_out().verify()
    assert found.ok
    assert found.ncp == 2


def test_insisting_on_a_larger_k_fails(patients: Any) -> None:
    """The caller's k counts beside the manifest's."""
    assert patients.verify(k=3).ok
    assert not patients.verify(k=4).ok
    for wrong in (0, True):
        with pytest.raises(InputError):
            patients.verify(k=wrong)


def test_other_objectives_are_not_recomputed(patients: Any) -> None:
    """The value of another objective is taken as given, and the result says so."""
    patients.manifest["objective"] = {"name": "weighted", "value": 3.0}
    patients.manifest.update(bound={"value": 2.0, "method": "x", "proof": "solver"}, gap=1 / 3)
    found = patients.verify()
    assert found.ok, found.problems
    assert (found.bound, found.gap) == (None, None)
    told = "Not checked: the objective value of the loss 'weighted', which is not the ncp."
    assert told in found.checks
    assert f"\nweighted 3 claimed; gcp {found.gcp:.6g}\n" in str(found)
    assert "\nloss" not in str(found)


def test_schema_overrules_the_manifest(patients: Any, tmp_path: Path) -> None:
    """Domains of the schema set the loss; roles, kinds and dropped columns are compared."""
    original, release = patients.save(tmp_path)
    schema = tmp_path / "schema.toml"
    roles = '[table]\nsensitive = ["disease"]\ndrop = ["name"]\n'
    schema.write_text(f'[attributes.age]\nkind = "numeric"\n{roles}', encoding="utf-8")
    assert verify(original, release, schema=schema).ok
    schema.write_text(f"[attributes.age]\ndomain = [0, 100]\n{roles}", encoding="utf-8")
    told = verify(original, release, schema=schema).problems
    assert "'age' has a domain in the schema that is not the one of the manifest" in told[0]
    assert "claims ncp" in told[1]
    schema.write_text(f"[attributes.age]\ndomain = [36, 100]\n{roles}", encoding="utf-8")
    problems = verify(original, release, schema=schema).problems
    assert "Column 'age', original row 2: the value lies outside the declared domain." in problems
    schema.write_text("[attributes.disease]\n", encoding="utf-8")
    assert (
        "is quasi-identifier in the schema" in verify(original, release, schema=schema).problems[0]
    )
    schema.write_text('[attributes.age]\nkind = "categorical"\n', encoding="utf-8")
    assert "is categorical in the schema" in verify(original, release, schema=schema).problems[0]


def test_original_without_header_and_with_blanks_behind_separators(
    patients: Any, tmp_path: Path
) -> None:
    """The schema describes the original's file; arguments do the same without a schema."""
    _, release = patients.save(tmp_path)
    raw, schema = tmp_path / "raw.data", tmp_path / "schema.toml"
    rows = patients.original.itertuples(index=False)
    raw.write_text("\n".join(", ".join(row) for row in rows) + "\n\n", encoding="utf-8")
    names = list(patients.original.columns)
    schema.write_text(
        f'[table]\nseparator = ", "\ncolumns = {json.dumps(names)}\n', encoding="utf-8"
    )
    assert verify(raw, release, schema=schema).ok
    assert verify(raw, release, separator=", ", columns=names).ok


@pytest.mark.parametrize("policy", ["drop", "category", "error"])
def test_missing_values_follow_the_policy(write_release: Any, policy: str) -> None:
    """Records with missing values are left out, get a category, or are refused."""
    full = pd.DataFrame(
        {"x": ["1", "2", "3", "3"], "c": ["a", "a", "?", "b"], "s": list("uvwx")}, dtype=object
    )
    kinds = {"x": {"kind": "numeric"}, "c": {}}
    if policy == "drop":
        seen, labels = full.iloc[[0, 1, 3]].reset_index(drop=True), [0, 0, 0]
    else:
        seen, labels = full.replace("?", "unknown"), [0, 0, 1, 1]
    written = write_release(seen, kinds, labels, sensitive=["s"])
    written.manifest["table"]["missing"] = {"policy": policy, "tokens": ["?"], "label": "unknown"}
    written.original = full
    if policy == "error":
        with pytest.raises(InputError, match=r"column 'c' .* row 3"):
            written.verify()
    else:
        assert written.verify().problems == ()


def test_nulls_of_a_data_frame_are_missing(write_release: Any) -> None:
    """A null is missing whatever the tokens, and a number has no category for it."""
    seen = pd.DataFrame({"x": ["1", "2"]}, dtype=object)
    written = write_release(seen, {"x": {"kind": "numeric"}}, [0, 0])
    written.original = pd.DataFrame({"x": [1.0, None, 2.0]})
    missing = written.manifest["table"]["missing"]
    missing["policy"] = "drop"
    assert written.verify().problems == ()
    missing["policy"] = "category"
    with pytest.raises(InputError, match="row 2"):
        written.verify()


def test_originals_that_do_not_fit_are_input_errors(patients: Any) -> None:
    """Absent columns, text in numbers and empty tables name column and row, not the value."""
    whole = patients.original
    patients.original = whole.drop(columns="zip")
    with pytest.raises(InputError, match="'zip'"):
        patients.verify()
    patients.original = whole.replace("66", "sixty")
    with pytest.raises(InputError, match="column 'age', original row 6") as caught:
        patients.verify()
    assert "sixty" not in str(caught.value)
    assert caught.value.value == "sixty"
    patients.original = whole.iloc[:0]
    with pytest.raises(InputError, match="no records"):
        patients.verify()


def test_absent_files_are_input_errors(patients: Any, tmp_path: Path) -> None:
    """Neither original nor release may be absent."""
    original, release = patients.save(tmp_path)
    with pytest.raises(InputError, match="no file"):
        verify(tmp_path / "absent.csv", release)
    release.unlink()
    with pytest.raises(InputError, match="no file"):
        verify(original, release)


def test_ragged_and_empty_releases_fail_without_exception(patients: Any, tmp_path: Path) -> None:
    """A release that is no table, or has no rows, is a failed release."""
    original, release = patients.save(tmp_path)
    header = release.read_text(encoding="utf-8").splitlines()[0]
    release.write_text(f"{header}\n1,2\n", encoding="utf-8")
    assert "row 1 has 2 cells" in verify(original, release).problems[0]
    release.write_text(f"{header}\n", encoding="utf-8")
    found = verify(original, release)
    assert not found.ok
    assert found.ncp is None
    json.dumps(found.to_dict())


def test_problems_never_show_values(patients: Any) -> None:
    """A value of a table without header, or of a bad cell, stays out of the report."""
    patients.release.columns = ["22071", "flu", "Ann", "secret"]
    report = patients.verify().summary()
    for value in ("22071", "flu", "Ann", "secret"):
        assert value not in report


@pytest.mark.thorough
def test_verifier_loads_nothing_of_the_package_but_its_errors() -> None:
    """No code is shared with what makes releases."""
    program = (
        "import sys; import anonymip.privacy; "
        "print(*[m for m in sys.modules if m.startswith('anonymip.')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    foreign = [
        name
        for name in run.stdout.split()
        if name not in ("anonymip.errors", "anonymip._version")
        and not name.startswith("anonymip.privacy")
    ]
    assert foreign == []


@settings(max_examples=25)
@given(cases(suppression=False), st.data())
@pytest.mark.parametrize("recoding", [Freeform(), OneK(), KOne(), KK(), KConcealment()])
@pytest.mark.parametrize("keep_order", [False, True])
def test_published_covers_verify(
    recoding: Freeform, keep_order: bool, case: Case, data: st.DataObject
) -> None:
    """Whatever ring is published, as whatever notion, is found to keep its promise."""
    order = np.array(data.draw(st.permutations(range(case.n))))
    sets = np.empty((case.n, case.k), np.int64)
    for step in range(case.k):
        sets[order, step] = np.roll(order, -step)
    problem = case.problem().replace(recoding=recoding)
    solution = Solution.of(problem, Cover.of(sets), method="ring")
    release = publish(solution, keep_order=keep_order)
    found = release.verify()
    assert found.problems == ()
    assert found.recoding == recoding.name
    assert found.k_reached == case.k
    graph = consistency_graph(
        problem.microdata.original,
        release.frame,
        release.manifest,
        hierarchies=hierarchy_paths(problem.microdata),
    )
    assert graph.n == case.n
    assert match_probabilities(graph).largest <= 1


def test_the_hierarchies_of_the_release_are_taken_as_they_are() -> None:
    """Who made it with a hierarchy has nothing else at hand."""
    tree = Hierarchy([("p", "g", "r"), ("q", "g", "r"), ("z", "h", "r")])
    frame = pd.DataFrame({"t": list("ppqqzz")})
    made = anonymize(frame, [Attribute("t", "hierarchical", hierarchy=tree)], 3)
    assert verify(frame, made.frame, made.manifest, hierarchies={"t": tree}).ok
    with pytest.raises(InputError, match="hierarchies="):
        verify(frame, made.frame, made.manifest)


def test_a_loss_with_a_price_is_told_as_its_release_tells_it() -> None:
    """A suppressed record loses its price, and a row of stars in what tools compare."""
    frame = pd.DataFrame({"a": [20, 20, 30, 41, 57, 64]})
    free = EquivalenceClasses(suppression=True, suppression_price=0.02)
    made = anonymize(frame, [Attribute("a", domain=(0, 100))], 2, recoding=free, most_suppressed=5)
    loss = made.solution.objective / len(frame)
    assert f"loss {loss:.6g} with suppressed" in made.verify().summary()
