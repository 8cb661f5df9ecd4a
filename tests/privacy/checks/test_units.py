"""Units of releases, held against the original: kept order, shuffled rows, and what is missing."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import Classes, InputError, Solution, VerificationFailed, anonymize, publish, verify
from anonymip.privacy.checks import units
from anonymip.publishing.release import Release
from tests.random_problems import Case, unit_cases

PEOPLE = pd.DataFrame(
    {
        "who": ["Ann", "Ann", "Ann", "Bea", "Cyd", "Dan", "Eli", "Eli", "Fay"],
        "age": [30, 31, 32, 32, 50, 51, 70, 72, 73],
        "ill": ["flu", "flu", "gout", "flu", "gout", "flu", "gout", "flu", "gout"],
    }
)


def released(**asked: Any) -> Release:
    """Return a release of the table by persons, k = 2."""
    return anonymize(PEOPLE, ["age"], 2, sensitive=["ill"], unit="who", **asked)


@settings(max_examples=30)
@given(unit_cases(diverse=True), st.data(), st.booleans())
def test_every_release_of_units_verifies(case: Case, data: st.DataObject, keep: bool) -> None:
    """Whatever classes of k units are published, in order or not, suppressed records or not."""
    groups = data.draw(st.sampled_from(case.releases()))
    assume(groups)
    problem = case.problem()
    if sum(map(len, groups)) < case.n:
        attributes = problem.microdata.attributes
        assume(all(a.hierarchy is not None or a.domain is not None for a in attributes))
    solution = Solution.of(problem, Classes.from_groups(groups, case.n), method="by hand")
    release = publish(solution, np.random.default_rng(0), keep_order=keep)
    release.read_back(release.table, release.manifest)
    found = release.verify()
    assert found.problems == ()
    assert any("units of 'unit'" in check for check in found.checks)


def _can_be_handed_out(k: int, classes: list[list[int]], fits: list[set[int]], who: str) -> bool:
    """Return whether some order of the records gives every class k persons, trying all orders."""
    rows = [label for label, held in enumerate(classes) for _ in held]
    return any(
        all(label in fits[record] for record, label in zip(order, rows, strict=True))
        and all(
            len({who[r] for r, one in zip(order, rows, strict=True) if one == label}) >= k
            for label in range(len(classes))
        )
        for order in permutations(range(len(rows)))
    )


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 4), min_size=4, max_size=6),
    st.text("ABC", min_size=6, max_size=6),
    st.data(),
)
def test_shuffled_rows_equal_trying_all_orders(
    ages: list[int], who: str, data: st.DataObject
) -> None:
    """Releases by rows that claim units pass exactly if the records could be handed out so."""
    frame = pd.DataFrame({"age": ages, "who": list(who[: len(ages)])})
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(ages), max_size=len(ages)))
    classes = [[r for r, one in enumerate(labels) if one == label] for label in (0, 1)]
    classes = [held for held in classes if held]
    assume(min(map(len, classes)) >= 2)
    ends = [(min(ages[r] for r in held), max(ages[r] for r in held)) for held in classes]
    assume(len(set(ends)) == len(classes))
    release = anonymize(frame, ["age"], 2, drop=["who"], method="initial")
    rows = [f"[{low}..{high}]" if low < high else str(low) for low, high in ends]
    table = pd.DataFrame({"age": [rows[label] for label, held in enumerate(classes) for _ in held]})
    found = verify(frame, table, {**release.manifest, "unit": "who"})
    fits = [{label for label, (low, high) in enumerate(ends) if low <= age <= high} for age in ages]
    possible = _can_be_handed_out(2, classes, fits, who)
    told = [problem for problem in found.problems if "units of 'who'" in problem]
    assert (not told) == possible


@pytest.mark.parametrize("keep", [True, False])
def test_a_release_by_rows_that_claims_units_fails(keep: bool) -> None:
    """Classes of two rows hold one person here, whatever is handed to them."""
    by_rows = anonymize(PEOPLE, ["age"], 2, sensitive=["ill"], drop=["who"], keep_order=keep)
    found = verify(PEOPLE, by_rows.frame, {**by_rows.manifest, "unit": "who"})
    assert not found.ok
    assert any("units of 'who'" in problem for problem in found.problems)
    assert not any("Ann" in problem for problem in found.problems)


def test_what_the_manifest_and_the_verifier_say() -> None:
    """The unit is named and not published; without its column nothing shows that k holds."""
    release = released()
    assert release.manifest["unit"] == "who"
    assert "who" not in release.frame
    assert release.manifest["diversity"] is None
    assert "every class has at least k = 2 units (column 'who')" in release.manifest["checked"]
    found = release.verify()
    assert found.promise == "k counts units (column 'who'), k reached counts rows"
    blind = verify(PEOPLE.drop(columns="who"), release.frame, release.manifest)
    assert not blind.ok
    assert [one[:36] for one in blind.problems] == ["The original has no column 'who', wh"]
    strict = verify(PEOPLE, release.frame, release.manifest, k=5)
    assert any("5 units of 'who'" in problem for problem in strict.problems)


def test_a_manifest_whose_unit_is_published_is_refused() -> None:
    """What names the persons of a release stands in none."""
    release = released()
    with pytest.raises(InputError, match="unit is a column of the release"):
        verify(PEOPLE, release.frame, {**release.manifest, "unit": "age"})
    cover = {**release.manifest, "recoding": "k-one", "homogeneous": None}
    with pytest.raises(InputError, match="unit is not of classes"):
        verify(PEOPLE, release.frame, cover)


def test_a_release_of_other_classes_is_not_published() -> None:
    """The publisher counts the units of each class by the records that its rows are of."""
    release = released()
    assert units.units_by_class(np.array([0, 0, 1]), np.array([5, 5, 6])).tolist() == [1, 1]
    object.__setattr__(release, "_records", np.zeros(len(PEOPLE), np.int64))
    with pytest.raises(VerificationFailed, match="fewer than k = 2 units"):
        release.read_back(release.table, release.manifest)


def test_too_many_pairs_are_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take too long is said to be unchecked."""
    release = released()
    monkeypatch.setattr(units, "_MOST_PAIRS", 0)
    found = release.verify()
    assert found.ok
    assert any("too many records fit" in check for check in found.checks)
