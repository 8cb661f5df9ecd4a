"""Tests of solutions: checked, recomputed, and never called optimal without a proof."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    KK,
    AnonymipError,
    Attribute,
    Bound,
    Cap,
    Classes,
    Cover,
    EquivalenceClasses,
    Freeform,
    Hierarchy,
    InvalidAssignment,
    Microdata,
    Problem,
    Solution,
    Status,
    Stopped,
    WeightedLoss,
    load_instance,
    publish,
)
from anonymip.errors import gap_text
from anonymip.solution import bound_text
from anonymip.tolerances import OPTIMALITY_RELATIVE
from tests.by_hand import table_of
from tests.hard_losses import PRODUCT
from tests.random_problems import Case, cases

PROBLEM = Problem(load_instance("health-records"), 3)
OPTIMAL_CLASSES = Classes(np.array([0, 0, 0, 1, 1, 1, 1]))
NONE = "no equivalence-class release of this table with k = 3 can be below"
#: Table 1b of Liang & Samavi: 3 (2/31 + 990/33253) + 4 (5/31 + 225/33253).
LOSS = 3 * (2 / 31 + 990 / 33253) + 4 * (5 / 31 + 225 / 33253)


def solution(bound: float | None = None, **arguments: Any) -> Solution:
    """Return a solution of the health records, with a bound of that value."""
    proven = None if bound is None else Bound(bound, "prover", "solver")
    return Solution.of(PROBLEM, OPTIMAL_CLASSES, method="heuristic", bound=proven, **arguments)


def test_the_loss_is_recomputed_from_the_assignment() -> None:
    """Nobody tells a solution its loss: it is that of what is published."""
    found = solution()
    assert found.objective == pytest.approx(LOSS, rel=1e-12)
    assert found.ncp == found.objective
    assert found.gcp == pytest.approx(LOSS / 21)
    assert found.description.upper[0, 0] == 37


@given(cases(), st.data())
def test_the_loss_is_that_of_plain_python(case: Case, data: st.DataObject) -> None:
    """For random releases of random tables the recomputed loss is the naive one."""
    groups = data.draw(st.sampled_from(case.releases()))
    found = Solution.of(case.problem(), Classes.from_groups(groups, case.n), method="test")
    naive = case.release_loss(groups)
    assert abs(found.objective - naive) <= case.slack(naive)


def test_the_ncp_does_not_depend_on_the_objective() -> None:
    """Whatever was minimised, the unweighted penalty can be compared."""
    weighted = PROBLEM.replace(objective=WeightedLoss())
    found = Solution.of(weighted, OPTIMAL_CLASSES, method="test")
    assert found.objective == pytest.approx(LOSS / 3)
    assert found.ncp == pytest.approx(LOSS)
    assert found.gcp == pytest.approx(LOSS / 21)
    assert found.scale == 1.0


def test_assignments_that_break_a_rule_are_no_solutions() -> None:
    """The recoding checks before a solution exists."""
    with pytest.raises(InvalidAssignment, match="fewer than k = 3"):
        Solution.of(PROBLEM, Classes(np.array([0, 0, 1, 1, 1, 1, 1])), method="test")


@pytest.mark.parametrize("stopped", Stopped)
@pytest.mark.parametrize("bound", [None, 0.5, LOSS, LOSS * (1 - OPTIMALITY_RELATIVE / 2)])
def test_optimal_means_that_the_bound_closes_the_gap(stopped: Stopped, bound: float | None) -> None:
    """Whatever a method claims, the status is optimal exactly if optimality is proven."""
    found = solution(bound, stopped=stopped)
    proven = bound is not None and bound > 0.5
    assert found.is_optimal == proven
    assert (found.status.stopped is Stopped.OPTIMAL) == proven
    assert ("optimal" in str(found.status)) == proven
    assert ("optimal" in found.summary()) == proven
    assert ("optimal" in found.sentence()) == proven
    assert ("optimal" in repr(found)) == proven
    assert found.status.solution
    assert found.status.bound == (bound is not None)


@pytest.mark.parametrize("stopped", Stopped)
def test_no_status_but_one_contains_the_word(stopped: Stopped) -> None:
    """A reader who searches results for the word finds proven ones only."""
    text = str(Status(stopped, solution=True, bound=True))
    assert ("optimal" in text) == (stopped is Stopped.OPTIMAL)


@pytest.mark.parametrize("stopped", [Stopped.TIME, Stopped.INTERRUPT, Stopped.HEURISTIC])
def test_other_reasons_are_kept(stopped: Stopped) -> None:
    """Why a method stopped stays in the status as long as nothing is proven."""
    assert solution(0.5, stopped=stopped).status.stopped is stopped


def test_a_bound_above_the_loss_is_an_error_of_the_program() -> None:
    """A disproved bound never reaches a user as a proof."""
    with pytest.raises(AnonymipError, match=r"bound .* of prover exceeds the loss") as caught:
        solution(LOSS + 1e-3)
    assert caught.value.exit_code == 4
    with pytest.raises(AnonymipError, match="exceeds the loss"):
        solution().with_bound(Bound(LOSS * 2, "prover", "solver"))


def test_a_bound_above_the_loss_by_rounding_is_cut_to_it() -> None:
    """Within the tolerance of a solver bound and loss are equal, and the gap is 0."""
    found = solution(LOSS * (1 + OPTIMALITY_RELATIVE / 2))
    assert found.bound is not None
    assert found.bound.value == found.objective
    assert found.gap == 0.0
    assert found.is_optimal


def test_a_bound_above_the_loss_can_disprove_a_declaration() -> None:
    """Where the author of the objective declared something, this is what is false."""
    declared = Problem(PROBLEM.microdata, 3, objective=PRODUCT.objective)
    found = Solution.of(declared, OPTIMAL_CLASSES, method="heuristic")
    too_high = Bound(found.objective * 2, "prover", "argument")
    with pytest.raises(AnonymipError, match="exceeds the loss") as caught:
        found.with_bound(too_high)
    assert "take the declaration back" in (caught.value.remedy or "")
    assert "the objective is monotone" in (caught.value.remedy or "")
    with pytest.raises(AnonymipError) as caught:
        solution().with_bound(too_high)
    assert "please report it" in (caught.value.remedy or "")


def test_a_bound_above_the_loss_is_as_good_as_it_is_off() -> None:
    """Where its proof has no tolerance, what is within a solver's is lowered to as much below."""
    found = solution().with_bound(Bound(LOSS * (1 + OPTIMALITY_RELATIVE / 2), "prover", "argument"))
    assert not found.is_optimal
    assert found.bound is not None
    assert found.bound.value == pytest.approx(LOSS * (1 - OPTIMALITY_RELATIVE / 2), rel=1e-12)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_an_unknown_bound_is_no_number(value: float) -> None:
    """Infinite and undefined bounds are refused: unknown is None."""
    with pytest.raises(AnonymipError, match="bound of prover") as caught:
        Bound(value, "prover", "argument")
    assert "None" in (caught.value.remedy or "")


def test_the_better_bound_is_kept() -> None:
    """A weaker bound changes nothing, a stronger one replaces the former."""
    found = solution(0.5)
    assert found.with_bound(Bound(0.1, "other", "argument")).bound == found.bound
    stronger = found.with_bound(Bound(LOSS, "other", "solver"))
    assert stronger.bound is not None
    assert stronger.bound.method == "other"
    assert stronger.is_optimal
    assert not found.is_optimal


def test_an_optimal_solution_stays_optimal_with_a_weaker_bound() -> None:
    """Learning less cannot undo a proof."""
    assert solution(LOSS).with_bound(Bound(0.1, "other", "argument")).is_optimal


def test_the_gap() -> None:
    """(objective - bound) / objective; 0 if they are equal; None if the bound is unknown."""
    assert solution().gap is None
    assert solution(LOSS / 2).gap == pytest.approx(0.5)
    exact = solution()
    assert exact.with_bound(Bound(exact.objective, "prover", "argument")).gap == 0.0
    assert solution(-LOSS).gap == pytest.approx(2.0)


def test_the_gap_that_is_told_is_that_of_the_published_bound() -> None:
    """Who verifies a release knows 4 digits of the bound, and is told the same gap."""
    told = (LOSS - 0.1999) / LOSS
    assert solution(0.19999).told_gap == pytest.approx(told, rel=1e-12)
    assert solution(0.19999).sentence().endswith(f"; gap {gap_text(told)}")
    assert solution().told_gap is None


def test_the_gap_of_a_loss_of_zero() -> None:
    """A loss of zero has the gap 0 with a bound of 0, and none with a negative bound."""
    data = table_of({"x": [1, 1, 2, 2]})
    classes = Classes(np.array([0, 0, 1, 1]))
    found = Solution.of(Problem(data, 2), classes, method="test")
    assert found.objective == 0.0
    assert found.with_bound(Bound(0.0, "prover", "argument")).gap == 0.0
    assert found.with_bound(Bound(-1.0, "prover", "argument")).gap is None


def test_sentences_scale_bound_and_loss_alike() -> None:
    """People read the mean penalty of a cell, and its bound on the same scale."""
    assert solution().sentence() == f"loss {LOSS / 21:.4g}; no lower bound is known"
    text = solution(0.5).sentence()
    assert text.startswith(f"loss {LOSS / 21:.4g}; {NONE} 0.0238; gap ")
    assert solution(LOSS).sentence() == (f"loss {LOSS / 21:.4g}; proven optimal: {NONE} it")


def test_sentences_say_of_which_releases_they_are() -> None:
    """A bound holds for one recoding and its rules: another recoding may lose less."""
    problem = PROBLEM.replace(
        recoding=EquivalenceClasses(suppression=True), limits=(Cap("Age", 40),)
    )
    assert problem.release_name == (
        "equivalence-class release of this table with k = 3, suppression and these limits"
    )
    assert PROBLEM.replace(recoding=Freeform(), k=2).release_name == (
        "freeform release of this table with k = 2"
    )


def test_a_bound_that_says_nothing_is_not_told_as_one() -> None:
    """Where nothing above the loss of the exact table was computed, there is no gap of 100 %."""
    found = solution(0.0)
    assert found.sentence() == f"loss {LOSS / 21:.4g}; no lower bound above 0 is known"
    assert "gap" not in found.summary()


def test_nobody_makes_an_optimal_solution_with_a_gap() -> None:
    """The status optimal beside an open gap is refused wherever a solution is made."""
    optimal = Status(Stopped.OPTIMAL, solution=True, bound=True)
    found = solution(0.5)
    with pytest.raises(AnonymipError, match="calls itself optimal with a gap of"):
        replace(found, status=optimal)
    with pytest.raises(AnonymipError, match="calls itself optimal with no bound"):
        replace(solution(), status=optimal)
    with pytest.raises(AnonymipError, match="calls itself optimal with a gap of"):
        replace(solution(LOSS), bound=found.bound)


@given(st.floats(min_value=1e-250, max_value=1e250), st.sampled_from([1, -1]), st.integers(2, 8))
def test_printed_bounds_are_never_rounded_up(size: float, sign: int, digits: int) -> None:
    """A bound that is printed holds as printed, and loses less than one digit."""
    value = sign * size
    printed = float(bound_text(value, digits))
    assert printed <= value * (1 + sign * 1e-14)
    assert printed >= value - size * 10.0 ** (2 - digits)


@pytest.mark.parametrize("size", [5e-324, 3e-310, 1.2345e-306, 7e-304])
@pytest.mark.parametrize("digits", [4, 7])
def test_the_smallest_bounds_are_printed(size: float, digits: int) -> None:
    """Their digits may be fewer, but they are never rounded up."""
    for value in (size, -size):
        assert value - 1e-307 <= float(bound_text(value, digits)) <= value


def test_summaries_hold_what_was_asked_and_found() -> None:
    """Problem, method, status, solver, sizes, bound and remarks appear."""
    found = solution(0.5, seconds=1.25, solver="highs 1.0", trace=("a remark",))
    text = found.summary()
    for part in (
        "k = 3, n = 7, m = 3",
        "ncp = 0.95509, gcp = 0.04548",
        "method heuristic (heuristic), 1.25 s",
        "highs 1.0",
        "2 classes of 3 to 4 records",
        "prover (proof: solver)",
        "a remark",
    ):
        assert part in text
    assert "suppressed" not in text


def test_summaries_count_suppressed_records() -> None:
    """Records of stars are mentioned; a release of nothing else has no class sizes."""
    problem = PROBLEM.replace(recoding=EquivalenceClasses(suppression=True))
    some = Solution.of(problem, Classes(np.array([0, 0, 0, -1, 1, 1, 1])), method="test")
    assert "2 classes of 3 records, 1 suppressed" in some.summary()
    all_shown = Solution.of(problem, OPTIMAL_CLASSES, method="test")
    assert "2 classes of 3 to 4 records, 0 suppressed" in all_shown.summary()
    none = Solution.of(problem, Classes(np.full(7, -1)), method="test")
    assert "classes" not in none.summary()


def test_summaries_say_how_many_records_sets_cover() -> None:
    """Covers have sets in place of classes: of one size, or of sizes between two."""
    data = table_of({"a": [0.0, 1.0, 2.0, 3.0]})
    problem = Problem(data, 2, KK())
    pairs = [[0, 1], [0, 1], [2, 3], [2, 3]]
    even = Solution.of(problem, Cover.of(pairs), method="test")
    assert "every published record covers 2 records" in even.summary()
    uneven = Solution.of(problem, Cover.of([[0, 1, 2], *pairs[1:]]), method="test")
    assert "every published record covers 2 to 3 records" in uneven.summary()


def test_losses_are_named_once_each() -> None:
    """The sum of gcp is called ncp; another objective stands beside the gcp by its own name."""
    assert "objective" not in solution().summary()
    weighted = Solution.of(
        PROBLEM.replace(objective=WeightedLoss()), OPTIMAL_CLASSES, method="test"
    )
    assert f"objective weighted-loss = {weighted.objective:.6g}, gcp = 0.04548" in (
        weighted.summary()
    )


def test_classes_that_publish_the_same_are_one_class() -> None:
    """Ages 20 to 24 twice under bands of 5 and 10: two classes of the assignment, one of the table.

    The labels of the assignment stay what they are.
    """
    ages = [20, 21, 22, 23, 24] * 2
    bands = Hierarchy(
        [(str(age), f"{age // 5 * 5}+5", f"{age // 10 * 10}+10", "*") for age in range(20, 40)]
    )
    data = Microdata(
        pd.DataFrame({"age": [str(age) for age in ages], "sex": ["F"] * 10}),
        (Attribute("age", "hierarchical", hierarchy=bands), Attribute("sex", "categorical")),
    )
    found = Solution.of(Problem(data, 5), Classes(np.repeat([0, 1], 5)), method="test")
    assert found.sizes.tolist() == [10]
    assert "\n1 class of 10 records\n" in found.summary() + "\n"
    assert found.classes is not None
    assert found.classes.sizes.tolist() == [5, 5]


@settings(max_examples=200)
@given(cases(), st.data())
def test_counted_classes_are_those_of_the_published_table(case: Case, data: st.DataObject) -> None:
    """Whatever is published, as many classes of these sizes are counted as its rows make."""
    whole = [groups for groups in case.releases() if sum(map(len, groups)) == case.n]
    groups = data.draw(st.sampled_from(whole))
    found = Solution.of(case.problem(), Classes.from_groups(groups, case.n), method="test")
    release = publish(found)
    cells = release.frame[list(found.problem.microdata.names)]
    rows = Counter(map(tuple, cells.astype(str).to_numpy().tolist()))
    assert sorted(found.sizes.tolist()) == sorted(rows.values())
    assert release.verify().classes == len(found.sizes)


def test_notebooks_see_the_summary_escaped() -> None:
    """The representation for notebooks is HTML in which no text is taken for a tag."""
    markup = solution(trace=("a < b",))._repr_html_()
    assert "a &lt; b" in markup
    assert "k = 3" in markup


def test_frames_show_what_is_published() -> None:
    """One row a record: class, ends of ranges, values of sets."""
    frame = solution().to_frame()
    assert frame.columns.tolist() == [
        "class",
        "Age_lower",
        "Age_upper",
        "Sex",
        "Zipcode_lower",
        "Zipcode_upper",
    ]
    assert frame["class"].tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert frame.iloc[0].tolist() == [0, 35, 37, ("F",), 22071, 23061]
    assert frame.iloc[6].tolist() == [1, 61, 66, ("M",), 55099, 55324]


def test_frames_mark_suppressed_records() -> None:
    """A record of stars has the class -1, no ends and no values."""
    problem = PROBLEM.replace(recoding=EquivalenceClasses(suppression=True))
    found = Solution.of(problem, Classes(np.array([0, 0, 0, -1, 1, 1, 1])), method="test")
    row = found.to_frame().iloc[3]
    assert (row["class"], row["Sex"]) == (-1, ())
    assert math.isnan(row["Age_lower"])


def test_solutions_are_frozen() -> None:
    """Nothing about a checked solution can be changed afterwards, its options neither."""
    options: dict[str, object] = {"order": "snake"}
    found = solution(options=options)
    options["order"] = "hilbert"
    assert found.options == {"order": "snake"}
    with pytest.raises(TypeError):
        found.options["order"] = "hilbert"  # type: ignore[index]
    with pytest.raises(AttributeError):
        found.objective = 0.0  # type: ignore[misc]
    assert replace(found, seed=3).seed == 3


def test_plain_arithmetic_proves_up_to_rounding_only() -> None:
    """Where one costly cell cannot be spared, a relative tolerance would hide what others lose."""
    near = Bound(LOSS * (1 - OPTIMALITY_RELATIVE / 2), "prover", "argument")
    assert not solution().with_bound(near).is_optimal
    assert solution().with_bound(Bound(LOSS * (1 - 1e-10), "prover", "argument")).is_optimal


def test_the_log_tells_what_was_done_in_its_order() -> None:
    """What was asked, the options and seed, the method's remarks, the end and the bound."""
    found = solution(
        LOSS - 0.01,
        options={"order": "hilbert"},
        seed=3,
        seconds=1.25,
        trace=("first remark", "second remark"),
        solver="HiGHS 1.15.1",
    )
    assert found.log.splitlines() == [
        "asked: 7 records, Age, Sex, Zipcode",
        "k = 3, recoding classes, objective gcp",
        "method: heuristic (order=hilbert)",
        "seed: 3",
        "solver: HiGHS 1.15.1",
        "first remark",
        "second remark",
        f"ended: {found.status} after 1.25 s",
        found.sentence(),
        "bound: prover (proof: solver), 0.00 s",
    ]


def test_the_log_of_a_run_without_remarks_is_short() -> None:
    """What is not known has no line."""
    lines = solution().log.splitlines()
    assert lines[2:] == ["method: heuristic", f"ended: {solution().status} after 0.00 s", lines[-1]]
    assert "no lower bound is known" in lines[-1]
