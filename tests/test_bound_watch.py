"""The plugin that holds all bounds of a run against all losses."""

from __future__ import annotations

from anonymip import Problem, load_instance, lower_bound, solve
from anonymip.exact.split_carry.checkpoint import Fingerprint
from tests.bound_watch import WATCH, Watch


def test_watch_finds_a_bound_above_a_loss() -> None:
    """A bound above a loss of the same problem is found, in whichever order they come."""
    problem, other = (Problem(load_instance("person20"), k) for k in (3, 4))
    watch = Watch()
    watch.test = "here"
    watch.see(problem, 13.5, "one", bound=False)
    watch.see(problem, 13.5, "two", bound=True)
    watch.see(other, 13.6, "two", bound=True)
    assert not watch.contradictions
    watch.see(problem, 13.6, "three", bound=True)
    (text,) = watch.contradictions
    assert "13.6 of three (here) exceeds the loss 13.5 of one (here)" in text
    watch.see(other, 13.5, "one", bound=False)
    assert len(watch.contradictions) == 2


def test_whatever_is_solved_is_watched() -> None:
    """Losses of solutions and bounds that stand alone are both seen."""
    problem = Problem(load_instance("health-records"), 3)
    asked = Fingerprint.of(problem, {})
    bound = lower_bound(problem)
    assert bound is not None
    assert WATCH.bounds[asked].value >= bound.value
    found = solve(problem, "mondrian").objective
    assert WATCH.losses[asked].value <= found
