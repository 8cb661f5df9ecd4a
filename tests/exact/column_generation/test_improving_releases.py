"""Better releases: dives, perturbed classes, neighbouring sets that are chosen again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import GCP, Budget, Microdata, Problem, Solution, census
from anonymip.exact.classes.small import solve_small
from anonymip.exact.column_generation import improving_releases
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.column_generation.conditions import column_rules, columns_of
from anonymip.exact.column_generation.improving_releases import (
    Improver,
    columns_below,
    dive,
    improve_by_neighbourhoods,
)
from anonymip.exact.column_generation.pricing import Master, SearchedColumns, solve_relaxation
from anonymip.exact.column_generation.run import Run
from anonymip.exact.column_generation.settings import WORK
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.freeform.ring import ring
from anonymip.recodings import EquivalenceClasses, Freeform

RECODINGS = [EquivalenceClasses(), EquivalenceClasses(suppression=True), Freeform()]


def relaxed(problem: Problem) -> tuple[Master, SearchedColumns, float]:
    """Return a master whose relaxation is solved, its pricing, and its bound."""
    rules = column_rules(problem)
    prices, master = SearchedColumns(rules), Master(rules, problem.whole / problem.n)
    centre = solve_relaxation(master, prices, Budget()).centre
    assert centre is not None
    return master, prices, centre.bound


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(9, 24), st.sampled_from(RECODINGS))
def test_what_comes_out_is_a_release(
    seed: int, n: int, recoding: EquivalenceClasses | Freeform
) -> None:
    """Whatever is kept is a release that the problem allows, and never below the bound."""
    problem = Problem(census(n, 3, seed), 3, recoding, GCP())
    master, prices, bound = relaxed(problem)
    found = dive(master, prices, Budget())
    if found is not None:
        assert Solution.of(problem, found, method="dive").objective >= bound


@pytest.mark.parametrize("recoding", RECODINGS)
def test_the_master_is_left_as_it_was(recoding: EquivalenceClasses | Freeform) -> None:
    """Nothing is required of its columns afterwards: its value is that of the relaxation again."""
    problem = Problem(census(30, 5, 1), 3, recoding)
    master, prices, bound = relaxed(problem)
    assert dive(master, prices, Budget()) is not None
    point = master.solve(Budget())
    assert point is not None
    assert point.value == pytest.approx(bound, rel=1e-6)


def test_it_is_near_the_relaxation() -> None:
    """On a table of 90 records it is nearer to the bound than any simple start."""
    problem = Problem(census(90, 4, 3), 3)
    master, prices, bound = relaxed(problem)
    found = dive(master, prices, Budget())
    assert found is not None
    loss = Solution.of(problem, found, method="dive").objective
    assert loss < bound + 0.3 * (initial(problem).objective - bound)


def test_copies_of_rows_are_dealt_with() -> None:
    """Rows of one type may be kept in several columns, and what is left over joins classes."""
    frame = census(8, 3, 5).frame
    repeated = frame.iloc[np.repeat(np.arange(8), [1, 4, 2, 5, 1, 3, 3, 2])].reset_index(drop=True)
    microdata = census(8, 3, 5)
    problem = Problem(Microdata(repeated, microdata.attributes), 3)
    master, prices, bound = relaxed(problem)
    found = dive(master, prices, Budget())
    assert found is not None
    loss = Solution.of(problem, found, method="dive").objective
    assert bound <= loss + 1e-9
    assert loss >= solve_small(problem).objective - 1e-9


def test_time_ends_it() -> None:
    """Without time there is no release, and the master is free all the same."""
    problem = Problem(census(20, 3, 1), 3)
    master, prices, bound = relaxed(problem)
    budget = Budget()
    budget.interrupt()
    assert dive(master, prices, budget) is None
    point = master.solve(Budget())
    assert point is not None
    assert point.value == pytest.approx(bound, rel=1e-6)


@pytest.mark.crossed
@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
@pytest.mark.parametrize(("n", "most", "proven"), [(16, 50, True), (90, 6, False)])
def test_a_poor_release_is_improved(
    recoding: EquivalenceClasses | Freeform, n: int, most: int, proven: bool
) -> None:
    """One region of a small table is all of it, and its best release the optimum."""
    problem = Problem(census(n, 5, 3), 3, recoding)
    start = (ring if isinstance(recoding, Freeform) else initial)(problem)
    run = Run(problem, column_rules(problem))
    run.offer(start.assignment)
    prices, master = SearchedColumns(run.rules), Master(run.rules, start.objective / n)
    master.add(columns_of(run.rules, start.assignment))
    centre = solve_relaxation(master, prices, Budget()).centre
    assert centre is not None
    pool = columns_below(run, prices, master, centre, Budget())
    assert improve_by_neighbourhoods(run, pool, centre, master.unit, most, Budget())
    assert centre.bound <= run.loss < start.objective
    if proven:
        assert run.loss == pytest.approx(column_generation(problem).objective)


def test_as_much_is_not_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of the steps improve a poor release until one gains nothing; then only more is done."""
    problem = Problem(census(90, 5, 3), 3)
    start = initial(problem)
    run = Run(problem, column_rules(problem))
    run.offer(start.assignment)
    prices, master = SearchedColumns(run.rules), Master(run.rules, start.objective / problem.n)
    improver = Improver(run, prices, master)
    while improver.perturb(None, 0.1):
        pass
    assert run.loss < start.objective
    made: list[int] = []

    def iterate(problem: Problem, labels: np.ndarray, *, steps: int, **_: object) -> object:
        made.append(steps)
        return labels, None, ""

    monkeypatch.setattr(improving_releases, "iterate_classes", iterate)
    assert not improver.perturb(None, 0.1)
    assert made == []
    assert not improver.perturb(None)
    assert made == [WORK["normal"].perturbed * problem.n]
