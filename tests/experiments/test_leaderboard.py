"""Tests of the leaderboard: distances to proven optima, and figures that a run improves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from anonymip import InputError, __version__, solve
from anonymip.experiments.leaderboard import Leaderboard, Standing, measure, problem_of
from anonymip.instances.library.catalogue import LibraryEntry, find_entry

#: A second proof, by models that know nothing of searches and column generation.
SECOND = {
    "health-records-k2": {"method": "equivalence-mip", "options": {"formulation": "bigm"}},
    "health-records-k3": {"method": "equivalence-mip", "options": {"formulation": "bigm"}},
    "wong-5-k2": {"method": "equivalence-mip", "options": {"formulation": "bigm"}},
    "health-records-freeform-k3": {"method": "freeform-mip"},
    "wong-5-freeform-k2": {"method": "freeform-mip"},
    "person20-freeform-k3": {"method": "freeform-mip"},
}


@pytest.mark.parametrize("name", SECOND)
def test_proven_figures_are_proven_by_another_method(name: str) -> None:
    """The optima of the papers' small tables."""
    entry = find_entry(name)
    assert entry.is_proven
    solution = solve(problem_of(entry), **SECOND[name])  # type: ignore[arg-type]
    assert solution.is_optimal
    assert solution.objective == pytest.approx(entry.loss, rel=1e-6)


@pytest.mark.all_trials
def test_methods_are_measured_against_the_optimum() -> None:
    """Distances are those of their own releases; the nearest method stands first."""
    entries = [find_entry(name) for name in ("health-records-k3", "person20-k3", "person20-k5")]
    board = measure(entries, ["mondrian", "local-search"])
    assert board.complete
    assert [one.entry.name for one in board.standings[::2]] == [one.name for one in entries]
    for one in board.standings:
        own = solve(problem_of(one.entry), one.method).objective
        assert one.loss == own
        assert one.entry.loss is not None
        assert one.distance == pytest.approx(own / one.entry.loss - 1, abs=1e-9)
    first, second = board.method_texts()
    assert first[:5] == ["classes", "local-search", "3", "3", "0.00 %"]
    assert second[:3] == ["classes", "mondrian", "3"]
    text = board.to_markdown()
    assert "| person20-k3 | 20 | 3 | classes | gcp | 13.5 | 13.49999 | proven |" in text
    assert "| classes | local-search | 3 | 3 | 0.00 % | 0.00 % | 0.00 % |" in text


def test_what_is_not_proven_has_no_distance(knowing: Callable[..., LibraryEntry]) -> None:
    """Nor has a method that found nothing; figures of another program are marked."""
    entry = knowing("person20-k3", bound=1.0, bound_by="prototype")
    assert Standing(entry, "mondrian", 14.0, 0.1).distance is None
    assert Standing(find_entry("person20-k5"), "mondrian", None, 0.1).distance is None
    board = Leaderboard((entry,), (Standing(entry, "mondrian", 14.0, 0.1),))
    assert board.method_texts() == []
    assert board.entry_texts()[0][5:8] == ["13.5", "1*", "92.59 %"]


def test_a_run_improves_what_is_known(knowing: Callable[..., LibraryEntry]) -> None:
    """A better release and a better bound, with who found them."""
    worse = knowing("health-records-k3", loss=2.0, loss_by="x", bound=0.1, bound_by="prototype")
    board = measure([worse], ["local-search"], exact=True)
    (entry,) = board.entries
    assert board.found["health-records-k3"].objective == entry.loss
    assert entry.is_proven
    assert entry.loss == pytest.approx(0.9550901541)
    assert entry.loss_by == f"local-search, AnonyMIP {__version__}"
    assert str(entry.bound_by).endswith(f", AnonyMIP {__version__}")


def test_methods_that_solve_nothing_are_refused() -> None:
    """Those of another recoding than all instances."""
    with pytest.raises(InputError, match="hungarian solves none of these instances"):
        measure([find_entry("person20-k3")], ["hungarian"])
    with pytest.raises(InputError, match="unknown method"):
        measure([find_entry("person20-k3")], ["mondrain"])


def test_instances_without_a_heuristic_are_left_as_they_are() -> None:
    """One that no heuristic takes ends nothing, and it is said."""
    told: list[str] = []
    entries = [find_entry(name) for name in ("health-records-one-k-k3", "aggarwal-4-pattern-k2")]
    board = measure(entries, told=told.append)
    assert board.entries[0] is entries[0]
    assert {one.entry.name for one in board.standings} == {"aggarwal-4-pattern-k2"}
    assert any("no heuristic of recoding one-k" in text for text in told)
