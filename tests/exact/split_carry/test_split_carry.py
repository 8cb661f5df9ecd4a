"""Split & Carry: the paper's example, both engines, every kind of problem, and the clock."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymip
from anonymip import (
    SSE,
    Budget,
    Classes,
    InputError,
    Microdata,
    NoSolution,
    Problem,
    Stopped,
    load_instance,
)
from anonymip.exact.classes.small import solve_small
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.split_carry.links import Answer, ChainClock, ClassLinks, _priced
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.split_carry import ChainRun, run_chain, split_carry
from anonymip.exact.split_carry.state import CARRIED, Link, add_link, links_of, new_chain
from anonymip.orders.orders import find_order
from anonymip.runtime.compilation import CompilationStopped
from tests.by_hand import diverse, table_of
from tests.hard_losses import PRODUCT, SWINGING
from tests.random_problems import Case, cases, ruled_cases


def census(n: int, k: int, seed: int = 1, attributes: int = 4) -> Problem:
    """Return a generated problem."""
    return Problem(load_instance(f"census:{n},{attributes},{seed}"), k)


def run(problem: Problem, *, compiled: bool = True, **options: Any) -> ChainRun:
    """Run a chain with the given options, or its links one by one."""
    if compiled:
        return run_chain(problem, ChainOptions(**options))
    with mock.patch("anonymip.exact.split_carry.segments.compiles", return_value=False):
        return run_chain(problem, ChainOptions(**options))


def labels_of(found: ChainRun) -> list[int]:
    """Return the classes of all records."""
    assignment = found.solution.assignment
    assert isinstance(assignment, Classes)
    return [int(label) for label in assignment.labels]


#: Of Table 4b, the optimum.
APPENDIX_C = [
    *([0, 2, 15, 17], [1, 11, 12], [3, 4, 18]),
    *([5, 6, 8, 9], [7, 10, 16], [13, 14, 19]),
]


@pytest.mark.thorough("set-partition-cbc")
@pytest.mark.parametrize(
    ("subsolver", "solver"),
    [
        ("exact", "highs"),
        ("set-partition", "cbc"),
        *(
            pytest.param(subsolver, "highs", marks=pytest.mark.thorough)
            for subsolver in ("bigm", "set-partition")
        ),
    ],
)
def test_liang_appendix_c(subsolver: str, solver: str) -> None:
    """Two links, of 9 and 17 records; the records carried over, the classes and the loss."""
    problem = Problem(load_instance("person20"), 3)
    options = ChainOptions(subsolver=subsolver, solver=solver)
    found = run_chain(problem, options)
    assert [(link.size, link.carried) for link in found.links] == [(9, 0), (17, 6)]
    assert all(link.proven for link in found.links)
    groups = sorted(group.tolist() for group in found.solution.assignment.groups())  # type: ignore[union-attr]
    assert groups == APPENDIX_C
    assert found.solution.objective == pytest.approx(13.5, abs=1e-9)
    assert found.solution.bound is None
    chain = new_chain(find_order(problem, "variance", Budget()), 2)
    seen: list[list[int]] = []
    links = ClassLinks(problem, chain, options, 0)
    clock = ChainClock(2, Budget(), pass_time=True)
    while not chain.done:
        links.advance(clock, 1)
        seen.append(chain.records[chain.carried[: chain.cursor[CARRIED]]].tolist())
    # The paper lists them by the sets of the initial solution.
    assert set(seen[0]) == {14, 7, 10, 16, 19, 13}


@pytest.mark.parametrize(("subsolver", "solver"), [("set-partition", "cbc"), ("bigm", "highs")])
def test_subsolvers_find_what_the_search_finds(subsolver: str, solver: str) -> None:
    """Links by a model lose what links by the search lose, and are as proven."""
    problem = census(14, 2, attributes=3)
    exact = run(problem, S=2)
    model = run(problem, S=2, subsolver=subsolver, solver=solver)
    assert [link.size for link in exact.links] == [4, 6, 8, 6]
    assert exact.links[0].objective == pytest.approx(model.links[0].objective)
    assert all(link.proven for link in (*exact.links, *model.links))
    assert any(link.start_accepted for link in model.links)
    assert any("the start was accepted in" in remark for remark in model.solution.trace)
    assert all(link.start_accepted is None for link in exact.links)


def test_a_generated_table_is_pinned() -> None:
    """The sizes of the links and the loss of a table that anyone can generate."""
    found = run(census(60, 3))
    assert sum(link.size - link.carried for link in found.links) == 60
    assert found.links[0].carried == 0
    assert [link.size - link.carried for link in found.links] == [9] * 6 + [6]
    optimum = run(census(60, 3), S=3, boundary=9)
    assert optimum.solution.objective <= found.solution.objective
    assert found.solution.trace[0].startswith("7 links of up to")


def test_the_tail_belongs_to_the_last_window() -> None:
    """20 records with k = 3: 9 new ones, then 11; 22 of them: 9, 9, 4."""
    for n, new in ((20, [9, 11]), (22, [9, 9, 4]), (11, [11]), (3, [3])):
        links = run(census(n, 3)).links
        assert [link.size - link.carried for link in links] == new
        assert len(links) == ChainOptions().links_of(n, 3)


@given(cases(4, 8))
def test_one_link_is_the_problem_itself(case: Case) -> None:
    """Where the table fits into a window, the chain finds the optimum and says so."""
    problem = case.problem()
    found = run(problem, S=max(2, case.n // case.k))
    assert len(found.links) == 1
    optimum = case.optimum()
    assert found.solution.objective == pytest.approx(optimum, rel=1e-9, abs=1e-9)
    assert found.links[0].proven
    assert found.solution.bound is not None
    assert found.solution.bound.value <= optimum + case.slack(optimum)


def test_a_link_that_column_generation_proves_tells_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a solver proves the link that is the problem itself, the bound is the solver's."""
    monkeypatch.setattr("anonymip.exact.split_carry.links.MAX_NODES", 10)
    problem = census(18, 3)
    found = run(problem, S=6)
    expected = column_generation(problem, effort="quick").bound
    bound = found.solution.bound
    assert len(found.links) == 1
    assert expected is not None
    assert bound is not None
    assert (bound.method, bound.proof) == (expected.method, expected.proof)
    assert bound.proof == "solver"
    assert bound.value == found.links[0].bound == pytest.approx(expected.value)
    assert found.solution.is_optimal


_VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"boundary": 1},
    {"boundary": 6},
    {"boundary": 30},
    {"carry": "least"},
    {"fixed": 6},
    {"fixed": 7, "accept": 1, "prefer": "loss"},
    {"subsolver": "set-partition"},
)


@given(st.data(), st.sampled_from(_VARIANTS))
def test_any_problem_and_variant(data: st.DataObject, variant: dict[str, Any]) -> None:
    """Feasible, never below the optimum; a link's bound is never above what it holds."""
    case = data.draw(st.one_of(cases(5, 8), ruled_cases(5, 8)))
    problem = case.problem()
    if variant.get("fixed", 2 * case.k) < 2 * case.k:
        variant = {}
    try:
        found = run(problem, **{"S": 2, **variant})
    except NoSolution:
        assert problem.limits, "only limits may leave nothing"
        return
    optimum = case.optimum()
    assert found.solution.objective >= optimum - case.slack(optimum)
    for link in found.links:
        assert link.bound is None or link.bound <= link.objective + case.slack(link.objective)
    if len(found.links) > 1:
        assert found.solution.bound is None


@given(cases(6, 9, suppression=False), st.sampled_from(_VARIANTS[:-1]))
def test_both_engines_find_the_same_classes(case: Case, variant: dict[str, Any]) -> None:
    """The compiled loop and one link at a time, to the last label."""
    if variant.get("fixed", 2 * case.k) < 2 * case.k:
        variant = {}
    _compare_engines(case.problem(), {"S": 2, **variant})


@pytest.mark.thorough("{'boundary': 30}")
@pytest.mark.parametrize("variant", _VARIANTS[:-1], ids=str)
def test_both_engines_on_a_larger_table(variant: dict[str, Any]) -> None:
    """Ties and windows of many sizes."""
    _compare_engines(census(150, 3, seed=4), variant)


def _compare_engines(problem: Problem, options: dict[str, Any]) -> None:
    compiled, single = run(problem, **options), run(problem, compiled=False, **options)
    assert labels_of(compiled) == labels_of(single)
    for one, other in zip(compiled.links, single.links, strict=True):
        assert (one.size, one.carried, one.proven) == (other.size, other.carried, other.proven)
        assert one.objective == pytest.approx(other.objective, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "loss", [PRODUCT.objective, SWINGING.objective, SSE()], ids=lambda loss: loss.name
)
def test_losses_without_tables(loss: Any) -> None:
    """General losses and losses of members go link by link, and windows stay small."""
    problem = census(40, 3, attributes=2).replace(objective=loss)
    if isinstance(loss, SSE):
        data = load_instance("census:40,4,1")
        numeric = tuple(a for a in data.attributes if a.is_numeric)
        frame = data.frame[[a.name for a in numeric]]
        problem = Problem(Microdata(frame, numeric), 3, objective=loss)
    found = run(problem, S=2)
    assert len(found.links) == ChainOptions(S=2).links_of(40, 3)
    whole = Classes(np.zeros(40, np.int32))
    cells = problem.recoding.describe(problem, whole)
    assert found.solution.objective <= problem.compiled.total(cells, whole)


def test_identical_rows_do_not_pile_up() -> None:
    """10,000 identical records: every window has its 9 new rows and 3 carried over."""
    problem = Problem(table_of({"a": [1] * 10_000, "b": ["x"] * 10_000}), 3)
    found = run(problem)
    assert {link.size for link in found.links[1:-1]} == {12}
    assert found.solution.objective == 0
    assert run(problem, boundary=9).links[5].size == 12


@pytest.mark.parametrize("k", [2, 3, 4])
def test_lemma_2_bounds_the_windows(k: int) -> None:
    """No window exceeds k (2k - 1 + S), with ties and without."""
    for problem in (census(400, k), census(400, k, attributes=2)):
        links = run(problem).links
        assert max(link.size for link in links) <= k * (2 * k - 1 + 3)
        assert all(link.proven for link in links)


@pytest.mark.shared_data
@pytest.mark.parametrize(("S", "bound"), [(3, 24), (4, 27), (5, 30)])
def test_liang_table_8(S: int, bound: int) -> None:
    """Most windows hold their k S new rows and k carried over; Lemma 2 bounds them all."""
    data = load_instance("census-100k").take(np.arange(5000))
    found = run(Problem(data, 3), S=S)
    sizes = Counter(link.size for link in found.links)
    assert max(sizes) <= bound
    assert sizes.most_common(1)[0][0] == 3 * (S + 1)
    assert S > 3 or sizes[12] >= 0.7 * len(found.links)
    assert all(link.proven for link in found.links)
    assert found.solution.objective < 68.1


def test_a_wider_boundary_and_larger_windows_pay() -> None:
    """What the paper expects of l and S, on a table where it holds."""
    problem = census(600, 3)
    plain, wide = run(problem).solution, run(problem, boundary=9).solution
    assert wide.objective < plain.objective
    assert run(problem, S=5).solution.objective < plain.objective


def test_windows_of_one_size() -> None:
    """All but the last have P records; fixing the oldest is better than the cheapest."""
    problem = census(600, 3)
    oldest = run(problem, fixed=18, accept=1)
    sizes = [link.size for link in oldest.links]
    assert set(sizes[:-1]) == {18}
    cheapest = run(problem, fixed=18, accept=1, prefer="loss")
    assert oldest.solution.objective < cheapest.solution.objective


def test_a_window_without_diversity_takes_in_more_records() -> None:
    """Sensitive values that change along the order: windows grow until both kinds are there."""
    plain = Problem(table_of({"a": range(24)}), 2)
    problem = diverse(plain, ["x"] * 12 + ["y"] * 12)
    for compiled in (True, False):
        found = run(problem, S=2, compiled=compiled)
        assert found.solution.assignment.count <= 12  # type: ignore[union-attr]
    mixed = diverse(plain, ["x", "y"] * 12)
    assert run(mixed, S=2).solution.objective == run(mixed, S=2, compiled=False).solution.objective


@pytest.mark.thorough
def test_a_forced_timeout_leaves_links_unproven() -> None:
    """The start is used where time ends, the rest is cut, and the release is valid."""
    problem = census(150, 5, attributes=8)
    found = run_chain(problem, ChainOptions(subsolver="bigm"), budget=Budget.of(4))
    assert found.links
    assert not any(link.proven for link in found.links)
    assert found.solution.bound is None
    assert found.solution.is_optimal is False


def test_a_budget_that_is_over_still_gives_a_release() -> None:
    """All records are cut in their order."""
    problem = census(150, 3)
    budget = Budget()
    budget.interrupt()
    found = run_chain(problem, budget=budget)
    assert found.links == ()
    assert found.solution.status.stopped is Stopped.INTERRUPT
    assert found.solution.trace[-1] == "interrupted before the first link"


def test_the_clock_passes_time_on() -> None:
    """What a link leaves the next may use; what it overdraws the next lacks."""
    clock = ChainClock(10, Budget.of(1000), pass_time=True)
    own = ChainClock(10, Budget.of(1000), pass_time=False)
    assert clock.allowance() == pytest.approx(100, rel=0.01)
    clock.spend(1, 30.0)
    assert clock.allowance() == pytest.approx(170, rel=0.01)
    assert own.allowance() == pytest.approx(100, rel=0.01)
    clock.spend(1, 300.0)
    assert clock.allowance() == 0.0
    assert clock.budget_of_link() is None
    assert clock.unused == pytest.approx(-130, rel=0.01)
    assert ChainClock(10, Budget(), pass_time=True).allowance() is None
    assert ChainClock(10, Budget(), pass_time=True, link_time=7.0).allowance() == 7.0
    capped = ChainClock(10, Budget.of(1000), pass_time=False, link_time=7.0)
    assert capped.allowance() == 7.0


def test_a_link_has_its_own_time() -> None:
    """Without a time limit of the whole, links whose time is over keep what they have."""
    problem = Problem(anonymip.census(60, 3, seed=1), 5)
    found = run_chain(problem, ChainOptions(S=4, subsolver="bigm", link_time=0.05))
    assert "time" in {link.reason for link in found.links}
    assert found.solution.options["link_time"] == 0.05
    assert found.solution.status.stopped is not Stopped.TIME
    with pytest.raises(InputError, match="option link_time of split-carry is -1"):
        ChainOptions(link_time=-1)


def test_links_are_kept_as_they_are() -> None:
    """A table of numbers in between changes nothing."""
    chain = new_chain(np.arange(9), 4)
    links = (
        Link(9, 0, 1.5, None, False, None, 0.25, "rules"),
        Link(12, 3, 2.5, 2.25, False, True, 0.5, "time"),
        Link(12, 3, 2.5, 2.5, True, False, 0.125),
    )
    for link in links:
        add_link(chain, link)
    assert links_of(chain) == links


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"S": 1}, "at least 2"),
        ({"boundary": -1}, "0 for k"),
        ({"carry": "all"}, "classes, least"),
        ({"subsolver": "simplex"}, "exact"),
        ({"accept": 2}, "fixed"),
        ({"fixed": 5}, "2 k = 6"),
        ({"fixed": 12, "carry": "least"}, "Leave one"),
        ({"subsolver": "freeform"}, "set-partition"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], remedy: str) -> None:
    """With a remedy."""
    with pytest.raises(InputError, match=remedy):
        split_carry(census(20, 3), **options)


def test_a_bound_is_kept_where_time_ends_before_there_is_a_better_one() -> None:
    """Column generation without time takes nothing from what the search has proven."""
    problem, budget = census(20, 4, attributes=6), Budget()
    found = solve_small(problem, max_nodes=1)
    assert not found.proven
    assert found.bound is not None
    budget.interrupt()
    answer = Answer(found.labels.astype(np.int64), found.objective, found.bound, reason="cap")
    assert _priced(problem, answer, budget, 0).bound == found.bound


def test_the_solution_tells_its_options() -> None:
    """What was asked for, and nothing that had no say."""
    solution = split_carry(census(30, 3), S=2, boundary=6)
    assert solution.options["S"] == 2
    assert solution.options["boundary"] == 6
    assert "accept" not in solution.options
    assert solution.method == "split-carry"


def test_a_rest_whose_kernel_is_not_compiled_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that is stopped gives a release even if its last kernel is not there yet."""

    def stopped(*given: Any) -> Any:
        raise CompilationStopped(Stopped.INTERRUPT)

    monkeypatch.setattr("anonymip.exact.split_carry.segments.cut_rows", stopped)
    budget = Budget()
    budget.interrupt()
    solution = split_carry(census(50, 3), budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT
    assert 3 <= solution.sizes.min() <= solution.sizes.max() <= 5
