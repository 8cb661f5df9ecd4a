"""Tests of the promise of t-closeness: what keeps it passes, what does not is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anonymip import (
    Diversity,
    InputError,
    Mask,
    PatternGuided,
    Problem,
    Release,
    Suppressions,
    publish,
)
from tests.by_hand import by_patterns, table_of


def released(secrets: list[object], *, t: float, ordered: bool = False) -> Release:
    """Return a release of two classes of two records each, which the rule allows."""
    table = table_of({"a": list("xxyy"), "s": secrets}, "s")
    rule = Diversity(t=t, ordered=ordered)
    problem = Problem(table, 2, PatternGuided(Mask()), Suppressions(), rule)
    return publish(by_patterns(problem, [0] * 4))


def test_a_kept_promise_passes_and_a_smaller_one_does_not() -> None:
    """Classes {1, 2} and {1, 3} lie a quarter from {1, 1, 2, 3}."""
    release = released([1, 2, 1, 3], t=0.25)
    assert release.manifest["diversity"] == {"l": 1.0, "distinct": 1, "t": 0.25, "ordered": False}
    assert release.verify().ok
    promise = {**release.manifest["diversity"], "t": 0.2499}
    told = replace(release, manifest={**release.manifest, "diversity": promise}).verify()
    assert any("promised diversity of 's'" in problem for problem in told.problems)


def test_numbers_on_a_line_are_nearer_than_without_their_order() -> None:
    """Shares of {1, 2} and {1, 3} up to each number: a quarter of one of two steps."""
    release = released([1, 2, 1, 3], t=0.125, ordered=True)
    assert release.verify().ok
    promise = {**release.manifest["diversity"], "ordered": False}
    assert not replace(release, manifest={**release.manifest, "diversity": promise}).verify().ok


@pytest.mark.parametrize(
    "wrong",
    [{"t": 1.0}, {"t": -0.5}, {"t": "near"}, {"t": 0.5, "matches": 2}, {"t": 0.5, "ordered": 1}],
)
def test_malformed_promises_are_refused(wrong: dict[str, object]) -> None:
    """A distance out of its range, of a cover, or with an order that is no truth value."""
    release = released([1, 2, 1, 2], t=0.25)
    promise = {"l": 1.0, "distinct": 1, **wrong}
    with pytest.raises(InputError, match="diversity"):
        replace(release, manifest={**release.manifest, "diversity": promise}).verify()
