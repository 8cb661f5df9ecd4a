"""Tests of releases that are handed in for an entry of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from anonymip import (
    AnonymipError,
    InputError,
    InvalidAssignment,
    Solution,
    __version__,
    solve,
)
from anonymip.experiments.claims import check
from anonymip.experiments.leaderboard import problem_of
from anonymip.experiments.records import solution_record
from anonymip.instances.library.catalogue import LibraryEntry, find_entry

#: Who finds releases of each recoding of the small tables.
FINDERS = {
    "person20-k3": "mondrian",
    "person20-freeform-k3": "nh",
    "health-records-one-k-k3": "auto",
    "health-records-k-concealment-k3": "k-concealment",
    "clinic-12-pattern-k3": "pattern-greedy",
    "clinic-12-full-domain-k3": "full-domain",
}


def record_of(name: str, method: str, **more: Any) -> tuple[Solution, dict[str, Any]]:
    """Return a release of an entry, and the record that is handed in."""
    solution = solve(problem_of(find_entry(name)), method, **more)
    return solution, solution_record(solution, f"library:{name}")


@pytest.mark.parametrize("name", FINDERS)
def test_releases_are_handed_in_as_solve_writes_them(name: str) -> None:
    """Of every recoding: the same loss, computed again from the sets alone."""
    solution, record = record_of(name, FINDERS[name])
    claim = check({**record, "objective": 0.0, "bound": 99.0})
    assert claim.solution.objective == solution.objective
    assert claim.improved is claim.entry
    assert "no better than the best known" in claim.text()


def test_a_better_release_is_told(knowing: Callable[..., LibraryEntry]) -> None:
    """With the loss that was the best before, and the method that found it."""
    solution, record = record_of("person20-k3", "local-search")
    knowing("person20-k3", loss=15.0, loss_by="luck")
    claim = check(record)
    assert claim.improved.loss == solution.objective
    assert claim.improved.loss_by == f"local-search, AnonyMIP {__version__}"
    assert claim.text().endswith("of loss 13.5; the best known was 15 (luck)")
    assert claim.to_dict()["better"] is True


def test_a_release_below_a_proven_bound_is_an_error(knowing: Callable[..., LibraryEntry]) -> None:
    """One of the two is wrong, and it is not for this command to say which."""
    _, record = record_of("person20-k3", "local-search")
    knowing("person20-k3", loss=15.0, bound=14.0)
    with pytest.raises(AnonymipError, match=r"bound"):
        check(record)


def test_what_is_no_release_of_an_entry_is_refused() -> None:
    """Another table, k or loss, sets that cannot be read, and classes below k."""
    _, record = record_of("person20-k3", "mondrian")
    for change, words in (
        ({"instance": "person20"}, "no entry of the library"),
        ({"k": 2}, "k is 2 in the record"),
        ({"objective_name": "weighted-loss"}, "objective_name is 'weighted-loss'"),
        ({"groups": "none"}, "no sets of records that can be read"),
        ({"groups": None}, "no sets of records that can be read"),
    ):
        with pytest.raises(InputError, match=words):
            check({**record, **change})
    with pytest.raises(InvalidAssignment, match="fewer than k = 3"):
        check({**record, "groups": [0, 0, *([1] * 18)]})
    with pytest.raises(InvalidAssignment):
        check({**record, "groups": [0] * 19})
