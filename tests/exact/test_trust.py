"""How far a solver's numbers are relied on: bounds that tolerances may have lifted are lowered."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from anonymip import (
    Attribute,
    Bottleneck,
    Cap,
    Diversity,
    EquivalenceClasses,
    Freeform,
    Microdata,
    NoSolution,
    Problem,
    Solution,
    Stopped,
    objective,
    solve,
)
from anonymip.assignments import Cover
from anonymip.errors import SolverError
from anonymip.exact.trust import (
    TOO_FINE,
    TOO_HIGH,
    RefutedClaim,
    TrustOfLosses,
    claimed_bound,
    is_too_fine,
    largest_effect,
    refuse_refuted,
)
from anonymip.solution import under_assumptions
from anonymip.solvers import SolverResult
from anonymip.tolerances import FINE_LOSS, SOLVER_BLUR, SOLVER_RESOLUTION
from tests.by_hand import by_classes, table_of
from tests.hard_losses import PRODUCT


def problem_of(*columns: list[float], **given: Any) -> Problem:
    """Return a problem of numeric columns with k = 2, in which a whole column costs 1."""
    frame = pd.DataFrame(dict(zip("ab", columns, strict=False)))
    attributes = tuple(Attribute(name) for name in frame.columns)
    return Problem(Microdata(frame, attributes), 2, **given)


#: Four records that lose 4 / 10 in two classes; the largest effect of a cell is 1.
PLAIN = problem_of([0.0, 1.0, 9.0, 10.0])
#: The same with another column and a product of both, which is declared monotone.
DECLARED = problem_of([0.0, 1.0, 9.0, 10.0], [3.0, 1.0, 2.0, 0.0], objective=PRODUCT.objective)
RELEASE = by_classes(PLAIN, [0, 0, 1, 1])


def result(
    objective: float | None, bound: float | None = None, stopped: Stopped = Stopped.OPTIMAL
) -> SolverResult:
    """Return what a solver claims."""
    return SolverResult(stopped, None, objective, bound, 0.0, "Solver 1")


def trust(problem: Problem, formulation: str = "set-partition") -> TrustOfLosses:
    """Return how far a formulation is relied on."""
    return TrustOfLosses.of(problem, formulation)


@pytest.mark.parametrize("formulation", ["set-partition", "set-cover", "hull"])
def test_bounds_below_the_incumbent_stay(formulation: str) -> None:
    """An ordinary loss and a bound up to it need no correction."""
    for claimed in (-1.0, 0.1, 0.4):
        assert trust(PLAIN, formulation).bound(claimed, 0.4) == (claimed, [])


def test_a_bound_above_the_incumbent_is_discarded() -> None:
    """Above it by more than tolerances lift it, a bound says nothing and is called too high."""
    assert trust(PLAIN).bound(0.4 + 1.01 * SOLVER_RESOLUTION, 0.4) == (None, [TOO_HIGH])
    assert trust(PLAIN).bound(12.0, 0.4) == (None, [TOO_HIGH])


def test_a_bound_is_as_good_as_it_is_off() -> None:
    """Above the incumbent by less, it is lowered to as much below."""
    bound, remarks = trust(PLAIN).bound(0.4 + SOLVER_RESOLUTION / 2, 0.4)
    assert bound == pytest.approx(0.4 - SOLVER_RESOLUTION / 2, rel=1e-12)
    assert remarks == []


def test_bounds_on_fine_losses_are_lowered() -> None:
    """A loss of a thousandth of the largest effect lies within what tolerances may hide."""
    tiny = FINE_LOSS / 10
    assert trust(PLAIN).bound(tiny, tiny) == (tiny - SOLVER_RESOLUTION, [TOO_FINE])


def test_what_cells_of_fine_columns_lose_may_be_unseen() -> None:
    """By cells a column of a ten-thousandth is taken off for all records; by sets none is."""
    fine = Problem(
        Microdata(
            pd.DataFrame({"a": [0.0, 1.0, 9.0, 10.0], "b": [0.0, 3.0, 5.0, 6.0]}),
            (Attribute("a"), Attribute("b", domain=(0.0, 6e4))),
        ),
        2,
    )
    lowered = 0.4 - SOLVER_RESOLUTION - 4 * 1e-4
    bound, remarks = trust(fine, "hull").bound(0.4, 0.4)
    assert bound == pytest.approx(lowered, rel=1e-12)
    assert remarks == [TOO_FINE]
    assert trust(fine).bound(0.4, 0.4)[1] == []
    # Of the loss of the worst record one record is enough.
    bound, _ = trust(fine.replace(objective=Bottleneck()), "hull").bound(0.4, 0.4)
    assert bound == pytest.approx(0.4 - SOLVER_RESOLUTION - 1e-4, rel=1e-12)


def test_losses_that_nobody_tabulates_stay_blurred() -> None:
    """How near losses without tables lie to each other is unknown: a bound keeps off them."""
    effect = largest_effect(DECLARED)
    # In the class of all a record loses (0.5 + 1) (0.5 + 1).
    assert effect == pytest.approx(2.25)
    worst = DECLARED.replace(objective=Bottleneck(PRODUCT.objective))
    assert largest_effect(worst) == pytest.approx(2.25)
    assert trust(DECLARED).bound(3.0, 3.0) == (3.0 - SOLVER_BLUR * effect, [])
    assert trust(DECLARED).bound(2.0, 3.0) == (2.0, [])


@pytest.mark.parametrize("by_cells", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_fine_losses_are_those_below_a_share_of_the_largest_effect(
    by_cells: bool, sign: int
) -> None:
    """From one hundredth of it on a solver sees them, whatever their sign."""
    assert is_too_fine(PLAIN, sign * FINE_LOSS * 0.99, by_cells=by_cells)
    assert not is_too_fine(PLAIN, sign * FINE_LOSS * 1.01, by_cells=by_cells)


def test_steps_that_a_solver_cannot_see_are_too_fine_by_cells_alone() -> None:
    """Two values a millionth apart look alike where a model adds up cells."""
    near = problem_of([0.0, 1e-6, 0.9, 1.0])
    assert is_too_fine(near, 1.0, by_cells=True)
    assert not is_too_fine(near, 1.0, by_cells=False)
    # There a bound keeps off the incumbent by what costs of sets may be blurred.
    assert trust(near).bound(1.0, 1.0) == (1.0 - SOLVER_BLUR, [])


def test_the_price_of_stars_hides_what_narrow_ranges_cost() -> None:
    """A range of a thousandth of its domain is fine beside a star, and ordinary without stars."""
    narrow = Microdata(
        pd.DataFrame({"a": [0.0, 1.0, 9.0, 10.0]}), (Attribute("a", domain=(0.0, 1e3)),)
    )
    assert not is_too_fine(Problem(narrow, 2), 4e-3, by_cells=False)
    starred = Problem(narrow, 2, EquivalenceClasses(suppression=True))
    assert is_too_fine(starred, 4e-3, by_cells=False)


def test_costs_of_sets_hold_what_exact_cells_cost() -> None:
    """So tolerances grow with a constant of the loss, unless the model adds up cells."""
    wide = problem_of(
        [0.0, 1.0, 9.0, 10.0], objective=objective(lambda record: 100.0 + record.spread["a"])
    )
    assert trust(wide).slack == pytest.approx(4 * SOLVER_RESOLUTION * 100.0)
    assert trust(wide, "hull").slack == pytest.approx(4 * SOLVER_RESOLUTION)
    assert trust(wide, "hull").bound(400.4 + 1e-4, 400.4) == (None, [TOO_HIGH])
    bound, remarks = trust(wide).bound(400.4 + 1e-4, 400.4)
    assert bound == pytest.approx(400.4 + 1e-4 - 100.0 * SOLVER_RESOLUTION, rel=1e-12)
    assert remarks == [TOO_FINE]


def test_an_objective_below_its_own_release_is_refused() -> None:
    """The tolerances of all cells may add up; beyond, solver or model is wrong."""
    slack = 4 * SOLVER_RESOLUTION
    assert trust(PLAIN).slack == pytest.approx(slack)
    with pytest.raises(SolverError, match="but the classes it names lose") as caught:
        trust(PLAIN).compare(result(RELEASE.objective - 1.1 * slack), RELEASE)
    assert "0.4" in str(caught.value)
    for claimed in (RELEASE.objective - 0.9 * slack, RELEASE.objective + 1.0, None):
        trust(PLAIN).compare(result(claimed), RELEASE)
    cover = Cover.of([[0, 1], [0, 1], [2, 3], [2, 3]])
    covered = Solution.of(PLAIN.replace(recoding=Freeform()), cover, method="by hand")
    with pytest.raises(SolverError, match="but the sets it names lose"):
        trust(covered.problem, "set-cover").compare(result(0.0), covered)


def test_what_a_solver_claims_that_nothing_is_below() -> None:
    """Its bound, and its objective if it calls that optimal and was asked for no gap."""
    assert claimed_bound(result(3.0, 2.0), 0.0) == 3.0
    assert claimed_bound(result(3.0, 2.0), 0.1) == 2.0
    assert claimed_bound(result(3.0, 2.0, Stopped.TIME), 0.0) == 2.0
    assert claimed_bound(result(3.0), 0.0) == 3.0
    assert claimed_bound(result(3.0, None, Stopped.TIME), 0.0) is None
    assert claimed_bound(result(None, 2.0, Stopped.TIME), 0.0) == 2.0


def test_a_release_refutes_claims_above_it() -> None:
    """By more than the slack; the release is handed on."""
    refuse_refuted("Solver 1", 0.5, 0.4, 0.11, RELEASE)
    refuse_refuted("Solver 1", 0.3, 0.4, 0.0, RELEASE)
    with pytest.raises(RefutedClaim, match=r"no release loses less than 0\.5") as caught:
        refuse_refuted("Solver 1", 0.5, 0.4, 0.09, RELEASE)
    assert caught.value.release is RELEASE
    assert caught.value.remedy == "Use another solver"


def test_no_release_is_diverse_where_few_may_be_suppressed() -> None:
    """Two sensitive values have no diversity of three, and one record of four may be left out."""
    data = table_of({"a": [0.0, 1.0, 2.0, 3.0], "ill": list("xyxy")}, "ill")
    problem = Problem(data, 2, EquivalenceClasses(True, 1), diversity=Diversity(l=3))
    with pytest.raises(NoSolution, match="no release keeps the diversity l = 3 where 1 records"):
        solve(problem, "equivalence-mip")
    some = problem.replace(recoding=EquivalenceClasses(suppression=True))
    assert solve(some, "equivalence-mip").is_optimal


def test_infeasible_is_a_claim_that_limits_alone_can_make_true() -> None:
    """Limits and degrees can leave no release; without them there is one."""
    assert trust(PLAIN).no_release("Solver 1") is None
    limited = trust(problem_of([0.0, 1.0, 9.0, 10.0], limits=(Cap("a", 1.0),)))
    assert "obeys the limits, says Solver 1" in str(limited.no_release("Solver 1"))
    uneven = problem_of([0.0, 1.0, 9.0, 10.0], recoding=Freeform(degrees=(2, 2, 3, 3)))
    assert "has these degrees" in str(trust(uneven, "set-cover").no_release("Solver 1"))


def test_sources_of_bounds_name_what_is_assumed() -> None:
    """Only where the author of an objective declares something."""
    assert under_assumptions(PLAIN, "HiGHS") == "HiGHS"
    text = "HiGHS (assuming that the objective is monotone)"
    assert under_assumptions(DECLARED, "HiGHS") == text
