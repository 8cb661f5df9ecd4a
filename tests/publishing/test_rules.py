"""Tests of releases under diversity and limits, and of objectives of every tier."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    SSE,
    Apart,
    Attribute,
    Bottleneck,
    Bound,
    Cap,
    Classes,
    Diversity,
    EquivalenceClasses,
    Hierarchy,
    HierarchyLoss,
    InputError,
    InvalidAssignment,
    Microdata,
    Problem,
    Solution,
    UnsupportedObjective,
    VerificationFailed,
    anonymize,
    class_objective,
    load_instance,
    objective,
    publish,
)
from anonymip.privacy import read_release
from anonymip.publishing.checking import broken_limits, hierarchy_paths, loss_of_table
from tests.by_hand import by_classes, table_of
from tests.random_problems import Case, ruled_cases


@objective(monotone=True)
def product(record: Any) -> Any:
    """Charge what the attributes lose together: general."""
    total: Any = 1.0
    for name in record.attributes:
        total = total * (0.5 + record.spread[name])
    return np.hypot(total, 0.0)  # which no proof knows


@class_objective(superadditive=True)
def largest_jump(members: Any) -> Any:
    """Charge the range of all values, for every member."""
    spread = members.value["Age"].max(axis=1) - members.value["Age"].min(axis=1)
    return spread * members.rows.shape[1]


def clinic(**asked: Any) -> Solution:
    """Return classes of three in the order of the table."""
    problem = Problem(load_instance("clinic-12"), 3, **asked)
    return by_classes(problem, np.arange(12) // 3)


@settings(max_examples=60)
@given(ruled_cases(), st.data())
def test_every_release_under_rules_verifies(case: Case, data: st.DataObject) -> None:
    """Any allowed release of any table, under any rules and losses, is published and holds."""
    groups = data.draw(st.sampled_from(case.releases()))
    # Nothing is left to publish where everybody is suppressed.
    assume(groups)
    problem = case.problem()
    if case.suppression and sum(map(len, groups)) < case.n:
        # With observed domains it is refused, which is tested elsewhere.
        attributes = problem.microdata.attributes
        assume(all(a.hierarchy is not None or a.domain is not None for a in attributes))
    assignment = Classes.from_groups(groups, case.n)
    solution = Solution.of(problem, assignment, method="by hand")
    release = publish(solution, np.random.default_rng(0))
    found = release.verify()
    assert found.problems == ()
    table = read_release(
        release.frame, release.manifest, hierarchies=hierarchy_paths(problem.microdata)
    )
    assert loss_of_table(problem, table) == pytest.approx(case.release_loss(groups), rel=1e-9)
    assert broken_limits(problem, table) == []


@pytest.mark.parametrize(
    "loss", [GCP(), HierarchyLoss(), Bottleneck(), Bottleneck(product), product, largest_jump]
)
def test_every_tier_is_published_and_read_back(loss: Any, tmp_path: Any) -> None:
    """Affine, general, largest and members losses are computed again before a file appears."""
    solution = clinic(objective=loss)
    manifest = publish(solution).manifest
    publish(solution).write(tmp_path / "release.csv")
    is_members = loss is largest_jump
    assert any("not from the published cells" in text for text in manifest["checked"]) == is_members
    assert ("the objective is recomputed from the published cells" in manifest["checked"]) != (
        is_members
    )
    assert set(solution.problem.compiled.assumed) <= set(manifest["assumed"])
    declared = loss in (product, largest_jump, Bottleneck(product))
    assert bool(solution.problem.compiled.assumed) == declared


def test_a_false_loss_of_members_is_refused(tmp_path: Any) -> None:
    """The loss of classes is computed again from records and classes."""
    solution = clinic(objective=largest_jump)
    assert solution.objective == 3 * (5 + 6 + 5 + 8)
    table = read_release(
        publish(solution).frame,
        publish(solution).manifest,
        hierarchies=hierarchy_paths(solution.problem.microdata),
    )
    with pytest.raises(UnsupportedObjective, match="loss of classes"):
        loss_of_table(solution.problem, table)
    with pytest.raises(VerificationFailed, match="the solution 71"):
        publish(replace(solution, objective=71.0)).write(tmp_path / "release.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_loss_of_members_is_told_in_four_digits() -> None:
    """All digits would depend on values inside the classes; loss up, bound down, gap never less."""
    data = table_of({"a": [1.0, 2.03, 4.07, 9.1, 9.2, 9.9]})
    problem = Problem(data, 3, objective=SSE("none"))
    solution = by_classes(problem, [0, 0, 0, 1, 1, 1])
    exact = solution.objective
    result = publish(solution.with_bound(Bound(0.9 * exact, "by hand", "argument"))).manifest
    value, bound = result["objective"]["value"], result["bound"]["value"]
    assert value == float(f"{value:.4g}")
    assert exact < value < 1.001 * exact
    assert 0.899 * exact < bound < 0.9 * exact
    assert result["gap"] == pytest.approx((value - bound) / value)
    assert any("4 digits" in text for text in result["assumed"])
    proven = publish(solution.with_bound(Bound(exact * (1 - 1e-9), "by hand", "argument")))
    assert proven.manifest["bound"]["value"] == proven.manifest["objective"]["value"] == value
    assert (proven.manifest["status"], proven.manifest["gap"]) == ("optimal", 0.0)
    assert proven.verify().ok


def test_the_manifest_tells_the_rules_and_no_value() -> None:
    """Diversity and caps with their numbers; which values stay apart is not said."""
    solution = clinic(limits=(Cap("Age", 12), Cap("Town", 3), Apart("Job", "nurse", "welder")))
    manifest = publish(solution).manifest
    assert manifest["diversity"] is None
    assert manifest["limits"] == [
        {"attribute": "Age", "rule": "cap", "most": 12.0},
        {"attribute": "Town", "rule": "cap", "most": 3.0},
        {"attribute": "Job", "rule": "apart"},
    ]
    text = json.dumps(manifest)
    assert "nurse" not in text
    assert "welder" not in text
    for limit in solution.problem.limits:
        assert f"no published cell breaks the {limit}" in manifest["checked"]


def test_anonymize_takes_diversity_and_limits() -> None:
    """The rules of `anonymize` reach the problem, the release and its manifest."""
    data = load_instance("clinic-12")
    arguments: dict[str, Any] = {"sensitive": ["Diagnosis"], "method": "mondrian"}
    plain = anonymize(data.frame, data.attributes, 3, **arguments)
    ruled = anonymize(
        data.frame,
        data.attributes,
        3,
        diversity=Diversity(l=1.5, distinct=2),
        limits=[Cap("Town", 2)],
        **arguments,
    )
    assert plain.manifest["diversity"] is None
    assert ruled.manifest["diversity"] == {"l": 1.5, "distinct": 2}
    assert (
        "every class has the diversity l = 1.5 and 2 distinct sensitive values"
        in (ruled.manifest["checked"])
    )
    names = list(data.names)
    held = ruled.frame.groupby(names)["Diagnosis"]
    assert held.nunique().min() >= 2
    assert max(group.value_counts().max() / len(group) for _, group in held) <= 1 / 1.5
    assert "\\*" not in set(ruled.frame["Town"])
    assert ruled.verify().ok
    with pytest.raises(InputError, match="diversity"):
        anonymize(data.frame, data.attributes, 3, keep=["Diagnosis"], diversity=Diversity(l=2))


def test_a_release_without_the_diversity_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method and a check that forget the diversity do not get past the verifier."""
    monkeypatch.setattr(Diversity, "violation", lambda self, sensitive, classes: None)
    solution = clinic(diversity=Diversity(distinct=2))
    found = publish(solution).verify()
    assert any("lack the promised diversity of 'Diagnosis'" in text for text in found.problems)


def test_a_release_that_breaks_a_limit_is_not_published(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Limits are read off the published cells again: ranges, sets, nodes."""
    monkeypatch.setattr("anonymip.recodings.equivalence.check_limits", lambda *given: None)
    frame = pd.DataFrame({"x": [1, 2, 3], "z": [1, 2, 2], "c": list("uvv"), "h": list("abb")})
    tree = Hierarchy([("a", "*"), ("b", "*")])
    attributes = (
        Attribute("x", domain=(0, 9)),
        Attribute("z", publish="set"),
        Attribute("c", "categorical"),
        Attribute("h", "hierarchical", hierarchy=tree),
    )
    breaking = [
        Apart("x", 1, 3),
        Apart("z", 1, "2.0"),
        Apart("c", "u", "v"),
        Apart("h", "a", "b"),
        Cap("x", 1),
        Cap("z", 1),
        Cap("c", 1),
        Cap("h", 0),
    ]
    keeping = [Apart("x", 0, 3), Cap("x", 2), Cap("z", 2), Cap("c", 2), Cap("h", 1)]
    for limit in (*breaking, *keeping):
        problem = Problem(Microdata(frame, attributes), 2, limits=(limit,))
        solution = by_classes(problem, [0] * 3)
        release = publish(solution)
        if limit in keeping:
            release.write(tmp_path / "kept.csv")
        else:
            with pytest.raises(VerificationFailed, match=r"breaks the|exceeds its cap"):
                release.write(tmp_path / "release.csv")
    assert not (tmp_path / "release.csv").exists()


def test_suppressed_records_are_published_only_if_they_are_diverse() -> None:
    """What lacks k or the diversity is left out; what its absence may tell is assumed."""
    data = load_instance("clinic-12")
    town, job = data.attributes[1:]
    table = Microdata(data.frame[["Town", "Job", "Diagnosis"]], (town, job), ("Diagnosis",))
    asked: dict[str, Any] = {"recoding": EquivalenceClasses(True), "diversity": Diversity(l=1.5)}
    labels = np.array([0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    whole = by_classes(Problem(table, 2, **asked), labels)
    assert not any("suppressed" in text for text in publish(whole).manifest["assumed"])
    ill = table.sensitive_codes[:, 0]
    alike = next(i for i in range(4, 12) if ill[i] == ill[1])
    for others, why in (((), "1 rows of stars only are fewer than k = 2"), ((alike,), "lack the")):
        labels[[1, *others]] = -1
        solution = by_classes(Problem(table, 2, **asked), labels)
        with pytest.raises(InputError, match=why):
            publish(solution, suppressed="starred")
        release = publish(solution)
        assert len(release.frame) == 11 - len(others)
        assert any("suppressed records" in text for text in release.manifest["assumed"])
        found = release.verify()
        assert found.ok, found.problems


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NaT])
def test_missing_sensitive_values_are_one_value(missing: Any, tmp_path: Any) -> None:
    """A diversity does not count what is missing twice, whatever stands for it."""
    secrets = pd.Series([None, missing, "x", missing], dtype=object)
    data = table_of({"a": [1, 2, 8, 9], "s": secrets}, "s")
    problem = Problem(data, 2, diversity=Diversity(distinct=2))
    with pytest.raises(InvalidAssignment, match="without the diversity"):
        by_classes(problem, [0, 0, 1, 1])
    solution = by_classes(problem, [0, 0, 0, 0])
    assert publish(solution).verify().ok
    publish(solution).write(tmp_path / "release.csv")
