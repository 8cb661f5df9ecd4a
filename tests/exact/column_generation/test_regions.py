"""Neighbouring sets of a release that are chosen again."""

from __future__ import annotations

import pytest

from anonymip import Problem, census
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.column_generation.conditions import column_rules
from anonymip.exact.column_generation.improving.regions import columns_below, improve_by_regions
from anonymip.exact.column_generation.relaxation.loop import solve_relaxation
from anonymip.exact.column_generation.relaxation.master import Master
from anonymip.exact.column_generation.relaxation.prices import SearchedColumns
from anonymip.exact.column_generation.releases import columns_of
from anonymip.exact.column_generation.state import Run
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.freeform.ring import ring
from anonymip.recodings import EquivalenceClasses, Freeform
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch


@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
@pytest.mark.parametrize(("n", "most", "proven"), [(16, 50, True), (90, 6, False)])
def test_a_poor_release_is_improved(
    recoding: EquivalenceClasses | Freeform, n: int, most: int, proven: bool
) -> None:
    """One region of a small table is all of it, and its best release the optimum."""
    problem = Problem(census(n, 5, 3), 3, recoding)
    start = (ring if isinstance(recoding, Freeform) else initial)(problem)
    run = Run(problem, column_rules(problem), Stopwatch())
    run.offer(start.assignment)
    prices, master = SearchedColumns(run.rules), Master(run.rules, start.objective / n)
    master.add(columns_of(run.rules, start.assignment))
    centre = solve_relaxation(master, prices, Budget()).centre
    assert centre is not None
    pool = columns_below(run, prices, master, centre, Budget())
    assert improve_by_regions(run, pool, centre, master.unit, most, Budget())
    assert centre.bound <= run.loss < start.objective
    if proven:
        assert run.loss == pytest.approx(column_generation(problem).objective)
