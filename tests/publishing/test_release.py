"""Tests of the way from a solution to a release: cells, rows, manifest, what is not revealed.

One file, since the same releases are looked at from all sides.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    GCP,
    Attribute,
    EquivalenceClasses,
    Freeform,
    InputError,
    LiangGCP,
    Microdata,
    Problem,
    Solution,
    TableFormat,
    VerificationFailed,
    anonymize,
    census,
    load_instance,
    publish,
    solve,
    verify,
    versions,
)
from anonymip.publishing.release import refuse_layout


def test_columns_come_in_the_order_of_the_table() -> None:
    """Columns keep the order of the original, whatever the order of the roles."""
    frame = pd.DataFrame(
        {"s": list("uvuv"), "b": [1, 2, 3, 4], "v": list("wxyz"), "a": list("FFMM")}
    )
    published = anonymize(frame, ["a", "b"], 2, sensitive=["s"], keep=["v"], objective=LiangGCP())
    assert list(published.frame) == ["s", "b", "v", "a"]
    assert [column["name"] for column in published.manifest["columns"]] == ["s", "b", "v", "a"]
    assert published.solution.objective == pytest.approx(4 / 3)


@pytest.mark.parametrize("layout", ["rows", "", "Cells"])
def test_unknown_layouts(layout: str) -> None:
    """A layout that does not exist is refused, before anything is solved."""
    data = load_instance("health-records")
    with pytest.raises(InputError, match="cells or columns"):
        refuse_layout(data, layout)
    with pytest.raises(InputError, match="cells or columns"):
        anonymize(pd.DataFrame({"a": [1, 2]}), ["a"], 2, layout=layout, method="no such method")


@pytest.mark.parametrize("role", ["keep", "drop", "quasi-identifier"])
def test_names_that_the_layout_needs(role: str) -> None:
    """A column in the way of a new one is refused, even if it is not published itself."""
    frame = pd.DataFrame({"a": [1, 2], "a_upper": ["x", "y"]})
    roles: dict[str, Any] = {role: ["a_upper"]} if role != "quasi-identifier" else {}
    names = ["a", "a_upper"] if role == "quasi-identifier" else ["a"]
    with pytest.raises(InputError, match="'a_upper', which is taken"):
        anonymize(frame, names, 2, layout="columns", **roles)


def test_a_seeded_shuffle_moves_whole_rows() -> None:
    """Rows are shuffled as a whole: every visit stays with its disease and its class."""
    data = census(50, 3, 1)
    frame = data.frame.assign(
        visit=[f"{row:04d}" for row in range(50)], disease=[f"d{row % 7}" for row in range(50)]
    )
    tagged = Microdata(frame, data.attributes, sensitive=("disease",), keep=("visit",))
    solution = solve(Problem(tagged, 5), "mondrian")
    kept = publish(solution, keep_order=True).frame
    shuffled = publish(solution, np.random.default_rng(1)).frame
    again = publish(solution, np.random.default_rng(1)).frame
    assert shuffled["visit"].tolist() != kept["visit"].tolist()
    pd.testing.assert_frame_equal(shuffled, again)
    restored = shuffled.sort_values("visit").reset_index(drop=True)
    pd.testing.assert_frame_equal(restored, kept)
    # Each class publishes exactly the diseases of its members.
    labels = solution.assignment.labels
    names = list(data.names)
    by_cells = {tuple(cells): Counter(group) for cells, group in shuffled.groupby(names)["disease"]}
    by_label = Counter(
        frozenset(Counter(frame["disease"][labels == label]).items()) for label in set(labels)
    )
    assert Counter(frozenset(group.items()) for group in by_cells.values()) == by_label


def test_shuffles_differ() -> None:
    """Without a generator the order comes from the operating system, another each time."""
    solution = solve(Problem(census(100, 3, 1), 5), "mondrian")
    orders = {tuple(map(tuple, publish(solution).frame.to_numpy())) for _ in range(3)}
    assert len(orders) == 3


def test_the_index_does_not_leak() -> None:
    """Row labels and attributes of the original frame stay behind."""
    frame = pd.DataFrame({"age": [30, 31, 60, 61], "s": list("uvwx")}, index=list("abcd"))
    frame.index.name = "person"
    frame.attrs["owner"] = "clinic"
    published = anonymize(frame, ["age"], 2, sensitive=["s"])
    assert published.frame.index.equals(pd.RangeIndex(4))
    assert published.frame.index.name is None
    assert published.frame.attrs == {}
    kept = anonymize(frame, ["age"], 2, sensitive=["s"], keep_order=True).frame
    assert kept["s"].tolist() == list("uvwx")


def test_categories_of_rows_left_out_do_not_leak() -> None:
    """A categorical column does not carry the values of records that are not published."""
    frame = pd.DataFrame({"age": [30, 31, None], "s": pd.Categorical(["u", "v", "secret"])})
    published = anonymize(frame, ["age"], 2, sensitive=["s"], missing="drop")
    assert sorted(published.frame["s"].astype(str)) == ["u", "v"]
    assert isinstance(published.frame["s"].dtype, pd.CategoricalDtype)
    assert published.frame["s"].dtype.categories.tolist() == ["u", "v"]


def test_untouched_and_unpublished_columns() -> None:
    """Kept columns come out letter by letter; dropped and undeclared ones do not come out."""
    frame = pd.DataFrame(
        {
            "name": ["Ann", "Bob", "Cyd", "Dan"],
            "age": [30, 31, 60, 61],
            "zip": ["02138", "02139", "00501", "10001"],
            "weight": [70.25, np.nan, 80.5, 81.0],
            "town": ["x", "x", "y", "y"],
        }
    )
    given = frame.copy()
    published = anonymize(frame, ["age"], 2, keep=["zip", "weight"], drop=["name"], keep_order=True)
    assert list(published.frame) == ["age", "zip", "weight"]
    assert published.frame["zip"].tolist() == frame["zip"].tolist()
    pd.testing.assert_series_equal(published.frame["weight"], frame["weight"])
    pd.testing.assert_frame_equal(frame, given)


def test_the_manifest_tells_no_value() -> None:
    """No observed value, no end of an observed domain, and no seed stands in the manifest."""
    frame = pd.DataFrame(
        {
            "age": [34177, 36177, 61177, 65177],
            "sex": ["Fem", "Fem", "Mal", "Mal"],
            "s": list("uvwx"),
        }
    )
    published = anonymize(frame, ["age", "sex"], 2, sensitive=["s"], seed=987123)
    text = json.dumps(published.manifest)
    for value in ("34177", "36177", "61177", "65177", "Fem", "Mal", "987123", "seed"):
        assert value not in text
    assert [column.get("domain") for column in published.manifest["columns"]] == [None] * 3


def test_the_manifest_says_what_was_promised() -> None:
    """The manifest names k, loss, bound, gap, proof, method, solver, versions and columns."""
    data = load_instance("health-records")
    solution = solve(Problem(data, 3, objective=LiangGCP()), "equivalence-mip", solver="cbc")
    manifest = publish(solution).manifest
    assert manifest["format"] == "anonymip-release/1"
    assert (manifest["k"], manifest["n"], manifest["m"]) == (3, 7, 3)
    assert manifest["objective"] == {"name": "liang-gcp", "value": solution.objective}
    assert manifest["ncp"] == solution.ncp
    assert manifest["gcp"] == pytest.approx(solution.ncp / 21)
    assert manifest["bound"]["proof"] == "solver"
    assert manifest["status"] == "optimal"
    assert manifest["gap"] == solution.gap
    assert 0 <= manifest["gap"] <= 1e-6
    assert manifest["solver"].startswith("CBC")
    assert manifest["versions"] == versions()
    assert [(column["name"], column["role"]) for column in manifest["columns"]] == [
        ("Age", "quasi-identifier"),
        ("Sex", "quasi-identifier"),
        ("Zipcode", "quasi-identifier"),
        ("Disease", "sensitive"),
    ]
    assert any("CBC" in text for text in manifest["assumed"])
    assert any("nothing else is published" in text for text in manifest["assumed"])
    assert not any("order" in text for text in manifest["assumed"])
    kept = publish(solution, keep_order=True).manifest
    assert kept["order"] == "kept"
    assert any("order" in text for text in kept["assumed"])


def test_declared_domains_are_told() -> None:
    """A declared domain is no secret; it stands in the manifest, and the loss is measured on it."""
    frame = pd.DataFrame({"age": [30, 40], "sex": ["F", "M"]})
    published = anonymize(
        frame,
        [Attribute("age", domain=(0, 100)), Attribute("sex", "categorical", domain=list("FMX"))],
        2,
    )
    domains = [column["domain"] for column in published.manifest["columns"]]
    assert domains == [[0.0, 100.0], ["F", "M", "X"]]
    assert published.manifest["ncp"] == pytest.approx(2 * (0.1 + 0.5))


def test_the_example_of_three_lines() -> None:
    """Four persons, two quasi-identifiers, k = 2: ranges, proof, and a verified release."""
    people = pd.DataFrame({"age": [34, 36, 61, 65], "sex": ["F", "F", "M", "M"]})
    published = anonymize(people, ["age", "sex"], k=2, keep_order=True)
    assert str(published) == (
        "loss 0.04839; proven optimal: no equivalence-class release of this table with k = 2 can "
        "be below it"
    )
    assert published.frame["age"].tolist() == ["[34..36]", "[34..36]", "[61..65]", "[61..65]"]
    assert published.verify().ok
    assert str(published) in repr(published)
    assert "proven optimal" in published._repr_html_()


def test_arguments_reach_the_solver() -> None:
    """Method, options, objective, recoding, limits and progress are those that were asked for."""
    phases: list[str] = []
    data = census(40, 3, 1)
    declared = [
        replace(attribute, domain=data.domain_bounds(a) if attribute.is_numeric else level.tolist())
        for a, (attribute, level) in enumerate(zip(data.attributes, data.levels, strict=True))
    ]
    published = anonymize(
        data.frame,
        declared,
        4,
        method="mondrian",
        options={"strict": False},
        objective=LiangGCP(),
        recoding=EquivalenceClasses(True),
        time_limit=60,
        progress=lambda message: phases.append(message.phase),
    )
    solution = published.solution
    assert (solution.method, dict(solution.options)) == ("mondrian", {"strict": False})
    assert solution.problem.objective == LiangGCP()
    assert solution.problem.recoding == EquivalenceClasses(True)
    assert phases


def test_an_attribute_may_have_any_name() -> None:
    """A name with a colon is a name where an Attribute says so, and numbers can be names."""
    frame = pd.DataFrame({"age:numeric": ["x", "y"], 7: [1, 2]})
    published = anonymize(frame, [Attribute("age:numeric", "categorical"), "7"], 2)
    assert published.frame.to_dict("list") == {"age:numeric": ["{x|y}"] * 2, "7": ["[1..2]"] * 2}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"quasi_identifiers": "age"}, "quasi_identifiers is one text"),
        ({"sensitive": "disease"}, "sensitive is one text"),
        ({"keep": "visit"}, "keep is one text"),
        ({"drop": "name"}, "drop is one text"),
        ({"frame": [[1, 2]]}, "frame is a list"),
        ({"quasi_identifiers": []}, "no quasi-identifiers"),
        ({"quasi_identifiers": ["nope"]}, "unknown column 'nope'"),
        ({"k": 1}, "k is 1"),
        ({"k": 3}, "k is 3"),
        ({"missing": "skip"}, "'skip'"),
        ({"method": "simplex"}, "unknown method 'simplex'"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: str) -> None:
    """Each wrong argument is refused by name."""
    usual: dict[str, Any] = {
        "frame": pd.DataFrame({"age": [1, 2]}),
        "quasi_identifiers": ["age"],
        "k": 2,
    }
    with pytest.raises(InputError, match=words):
        anonymize(**{**usual, **arguments})


_TEXT = "instances.scale.Scale.text"


def narrow(_: object, lower: float, upper: float, write: object) -> str:
    """Write a range that loses its upper end."""
    return f"[{lower:g}..{(lower + upper) / 2:g}]"


@pytest.mark.parametrize(
    ("function", "faulty"),
    [
        (_TEXT, narrow),
        (_TEXT, lambda _, lower, upper, write: f"[{lower:g}..{upper + 1:g}]"),
        (_TEXT, lambda _, lower, upper, write: f"{lower:g}..{upper:g}"),
        ("publishing.cells._text_set", lambda values: str(values[0])),
        ("publishing.cells._text_set", lambda values: "{" + "|".join(map(str, values[::-1])) + "}"),
        ("publishing.cells._number", lambda value: f"{value:.0f}"),
    ],
)
def test_a_faulty_writer_publishes_nothing(
    monkeypatch: pytest.MonkeyPatch, function: str, faulty: Any
) -> None:
    """Whatever a fault in the writer does to the cells, the verifier refuses the release."""
    frame = pd.DataFrame({"age": [30.25, 40.5, 30.75, 40], "sex": ["F", "M", "M", "F"]})
    assert anonymize(frame, ["age", "sex"], 4).verify().ok
    monkeypatch.setattr(f"anonymip.{function}", faulty)
    with pytest.raises(VerificationFailed, match="Nothing was published"):
        anonymize(frame, ["age", "sex"], 4)


def test_a_false_manifest_publishes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss in the manifest that the cells do not have is caught as well."""
    monkeypatch.setattr(Solution, "ncp", property(lambda self: 0.5 * self.objective))
    with pytest.raises(VerificationFailed, match=r"fails its verification: .*[^.]\. Nothing was"):
        anonymize(pd.DataFrame({"age": [1, 2]}), ["age"], 2)


def test_the_loss_is_that_of_the_published_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """An objective other than the ncp is computed again from the cells, too."""
    monkeypatch.setattr("anonymip.publishing.checking.loss_of_table", lambda problem, table: 0.25)
    with pytest.raises(VerificationFailed, match=r"loses 0\.25"):
        anonymize(pd.DataFrame({"age": [1, 2]}), ["age"], 2, objective=LiangGCP())


def test_verification_by_hand() -> None:
    """Whoever has original, release and manifest can verify; another original does not fit."""
    frame = pd.DataFrame({"age": [1, 2, 8, 9]})
    published = anonymize(frame, ["age"], 2, objective=GCP())
    assert verify(frame, published.frame, published.manifest).ok
    assert not verify(frame + 1, published.frame, published.manifest).ok


def test_versions_are_those_installed() -> None:
    """The versions are read from what is installed."""
    result = versions()
    assert result["numpy"] == np.__version__
    assert result["pandas"] == pd.__version__
    assert result["highspy"] == metadata.version("highspy")


def test_versions_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison asks with every row; whoever changes the answer changes no other."""
    first = versions()

    def again(name: str) -> str:
        raise AssertionError(f"the version of {name} is looked up again")

    monkeypatch.setattr("anonymip.publishing.manifest.metadata.version", again)
    known = dict(first)
    first.clear()
    assert versions() == known


def test_only_a_verified_release_says_so(tmp_path: Path) -> None:
    """`publish` alone promises no verification; what is written or anonymized has had it."""
    solution = solve(Problem(load_instance("health-records"), 3))
    release = publish(solution)
    said = "read back and verified"
    assert not any(said in text for text in release.manifest["checked"])
    _, manifest = release.write(tmp_path / "release.csv")
    written = json.loads(manifest.read_text(encoding="utf-8"))["checked"]
    assert sum(said in text for text in written) == 1
    frame = pd.DataFrame({"age": [1, 2, 5, 7]})
    whole = anonymize(frame, ["age"], 2)
    assert sum(said in text for text in whole.manifest["checked"]) == 1
    _, manifest = whole.write(tmp_path / "whole.csv")
    written = json.loads(manifest.read_text(encoding="utf-8"))["checked"]
    assert sum(said in text for text in written) == 1


def test_the_published_bound_has_few_digits() -> None:
    """All digits of a bound depend on values inside the classes; a few say how good it is."""
    problem = Problem(load_instance("census:60,8,1"), 5)
    solution = solve(problem, "mondrian")
    manifest = publish(solution).manifest
    assert solution.bound is not None
    value = manifest["bound"]["value"]
    assert value == float(f"{value:.4g}")
    assert solution.bound.value * 0.999 <= value <= solution.bound.value
    assert manifest["gap"] == pytest.approx(1 - value / solution.objective)
    assert publish(solution).verify().ok


def test_categories_do_not_tell_the_order_of_the_original() -> None:
    """Unordered categories are sorted; ordered ones mean something and stay."""
    values = ["c", "a", "b", "a"]
    frame = pd.DataFrame(
        {
            "age": [1, 2, 5, 7],
            "ill": pd.Categorical(values, categories=["c", "a", "b", "unused"]),
            "grade": pd.Categorical(values, categories=["c", "a", "b"], ordered=True),
        }
    )
    release = anonymize(frame, ["age"], 2, sensitive=["ill", "grade"])
    assert release.frame["ill"].cat.categories.tolist() == ["a", "b", "c"]
    assert release.frame["grade"].cat.categories.tolist() == ["c", "a", "b"]


def test_what_parquet_cannot_hold_is_a_clear_error(tmp_path: Path) -> None:
    """A column of mixed types is the caller's to mend; nothing is written."""
    frame = pd.DataFrame({"age": [1, 2], "note": pd.Series([1, "x"], dtype=object)})
    release = anonymize(frame, ["age"], 2, keep=["note"])
    with pytest.raises(InputError, match="cannot be written as Parquet"):
        release.write(tmp_path / "release.parquet")
    assert list(tmp_path.iterdir()) == []
    release.write(tmp_path / "release.csv")


@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
def test_kept_order_keeps_the_labels(missing: str, recoding: Any, tmp_path: Path) -> None:
    """With the order a data frame keeps its labels; files have none, and both are verified."""
    frame = pd.DataFrame(
        {"age": [1, 2, None if missing == "drop" else 9, 4, 5], "sex": list("FFMMM")},
        index=list("vwxyz"),
    )
    kept = list("vwyz") if missing == "drop" else list("vwxyz")
    release = anonymize(
        frame, ["age", "sex"], 2, recoding=recoding, missing=missing, keep_order=True
    )
    assert release.frame.index.tolist() == kept
    assert release.verify().ok
    assert verify(frame, release.frame, release.manifest).ok
    table, _ = release.write(tmp_path / "release.parquet")
    assert pd.read_parquet(table).index.equals(pd.RangeIndex(len(kept)))
    assert verify(frame, table).ok
    shuffled = anonymize(frame, ["age", "sex"], 2, recoding=recoding, missing=missing)
    assert shuffled.frame.index.equals(pd.RangeIndex(len(kept)))


def test_other_labels_than_the_original_are_refused() -> None:
    """Labels that the original does not have, or has elsewhere, would reveal something."""
    frame = pd.DataFrame({"age": [1, 2, 3, 4]}, index=list("wxyz"))
    release = anonymize(frame, ["age"], 2, keep_order=True)
    turned = release.frame.set_axis(list("xwyz"), axis=0)
    assert "labels" in " ".join(verify(frame, turned, release.manifest).problems)
    result = release.manifest | {"order": "shuffled"}
    assert "labels" in " ".join(verify(frame, release.frame, result).problems)


def test_all_that_an_attribute_says_is_kept() -> None:
    """Precision, open groups, forms of dates and missing values of a given attribute count."""
    frame = pd.DataFrame(
        {"age": [21, 23, 98, 97, None, None], "born": ["03.02.2001", "28.02.2001"] * 3}
    )
    attributes = [
        Attribute("age", precision=10, at_most=90, integer=True, missing="own"),
        Attribute("born", "date", format="%d.%m.%Y", precision="month"),
    ]
    release = anonymize(frame, attributes, 2, keep_order=True)
    assert release.frame["age"].tolist() == ["[20..29]"] * 2 + ["90+"] * 2 + ["missing"] * 2
    assert set(release.frame["born"]) == {"2001-02"}


@pytest.mark.parametrize("name", ["x.ods", "x.csv.gz", "x.json", "x.2024", "X.XLS"])
def test_endings_that_are_not_written(name: str, tmp_path: Path) -> None:
    """A name that promises another kind of file is refused, and nothing is written."""
    release = anonymize(pd.DataFrame({"age": [1, 2]}), ["age"], 2)
    with pytest.raises(InputError, match=re.escape("no release is written as") + r".*\.parquet"):
        release.write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x", "x.csv", "x.CSV", "x.txt", "x.data", "x.pq", "x.Parquet"])
def test_endings_that_are_written(name: str, tmp_path: Path) -> None:
    """Text and Parquet files are written by their names and read back by them."""
    frame = pd.DataFrame({"age": [1, 2]})
    table, _ = anonymize(frame, ["age"], 2).write(tmp_path / name)
    assert verify(frame, table).ok


def test_tabs_only_where_they_are_written(tmp_path: Path) -> None:
    """A release has the separator of its table, and ``.tsv`` promises tabs."""
    people = pd.DataFrame({"age": [1, 2]})
    with pytest.raises(InputError, match="promises tabs"):
        anonymize(people, ["age"], 2).write(tmp_path / "x.tsv")
    tabbed = Microdata(people, (Attribute("age"),), table=TableFormat(separator="\t"))
    table, _ = publish(solve(Problem(tabbed, 2))).write(tmp_path / "x.tsv")
    assert verify(people, table).ok
