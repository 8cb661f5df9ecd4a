"""Classes that share a sensitive value are counted, reported, and counted again."""

from __future__ import annotations

import warnings
from collections import defaultdict
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Classes,
    Diversity,
    EquivalenceClasses,
    Freeform,
    InputError,
    Microdata,
    Problem,
    Solution,
    load_instance,
    publish,
    solve,
    verify,
)
from anonymip.errors import ReleaseWarning

AGE = Attribute("age", integer=True, domain=(0, 99))


def ward(ages: list[int], ills: list[Any], labels: list[int], **asked: Any) -> Solution:
    """Return classes of people with an illness and a doctor."""
    frame = pd.DataFrame({"age": ages, "ill": ills, "doctor": ["Ann"] * len(ages)})
    data = Microdata(frame, (AGE,), sensitive=("ill",), keep=("doctor",))
    problem = Problem(data, 2, EquivalenceClasses(suppression=True), **asked)
    return Solution.of(problem, Classes(np.array(labels)), method="by hand")


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
    counted = publish(solve(problem, "mondrian")).manifest["homogeneous"]["salary-class"]
    assert counted["rows"] > 1000
