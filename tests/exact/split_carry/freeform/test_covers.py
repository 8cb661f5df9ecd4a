"""Chains of covers keep the rules, are never below the optimum, and reach it in one link."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Apart, Budget, Cover, Diversity, InputError, Microdata, NoSolution, Problem
from anonymip.exact.split_carry.freeform.cover_windows import CoverPiece, CoverWindows, join_pieces
from anonymip.exact.split_carry.freeform.covers import chain_covers
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.recodings import KK, Freeform, KConcealment, KOne, OneK, Recoding
from anonymip.status import Stopped
from tests.brute_force import Column
from tests.cover_brute_force import concealment_optimum, one_sided_optimum, reciprocal_covers
from tests.random_covers import regular_cover
from tests.random_problems import (
    FALLING,
    PRODUCT,
    Case,
    cases,
    larger_microdata,
    microdata,
    ruled_cases,
    without_diversity,
)

ONE_SIDED: dict[Recoding, dict[str, bool]] = {
    OneK(): {"rows": False, "columns": True},
    KOne(): {"rows": True, "columns": False},
    KK(): {"rows": True, "columns": True},
}
OPTIONS = st.builds(
    ChainOptions, S=st.integers(2, 3), boundary=st.integers(0, 6), pass_time=st.booleans()
)
NOTIONS = [Freeform(), Freeform(reciprocal=True), OneK(), KOne(), KK(), KConcealment()]


def scattered(n: int) -> Microdata:
    """Return numbers that are far apart and near, and a category."""
    numbers = tuple((7 * at * at) % 31 for at in range(n))
    texts = tuple("pqr"[(at * at) % 3] for at in range(n))
    return microdata([Column(numbers), Column(texts, numeric=False, as_set=True)])


def assert_sound(
    case: Case, problem: Problem, best: float, options: ChainOptions, **more: Any
) -> None:
    """Assert a release that keeps the rules, no better than the best; as good in one link."""
    largest = getattr(problem.recoding, "degrees", None) or (case.k,)
    single = case.n < options.S * max(largest) + max(largest)
    try:
        solution, links = chain_covers(problem, options, **more)
    except NoSolution:
        assert best == math.inf
        return
    assert isinstance(solution.assignment, Cover)
    losses = [case.set_loss(solution.assignment.of_record(i).tolist()) for i in range(case.n)]
    total = max(losses) if case.worst else sum(losses)
    assert total == pytest.approx(solution.objective, rel=1e-9, abs=1e-9)
    assert solution.objective >= best - case.slack(best) - 1e-6 * abs(best)
    if single:
        assert len(links) == 1
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    if solution.bound is not None:
        assert solution.bound.value <= best + 1e-6 * max(1.0, abs(best))
    for link in links:
        assert link.size <= case.n
        assert link.bound is None or link.bound <= link.objective + 1e-6 * abs(link.objective)
        assert link.size >= 2 or case.n < 2


@settings(max_examples=40)
@given(
    case=cases(4, 7, suppression=False),
    options=OPTIONS,
    order=st.sampled_from(["variance", "snake"]),
)
def test_freeform(case: Case, options: ChainOptions, order: str) -> None:
    """All attributes and losses, k from 2 to n."""
    problem = case.problem().replace(recoding=Freeform())
    assert_sound(case, problem, case.cover_optimum(), options, order=order)


@settings(max_examples=25)
@given(case=ruled_cases(largest=6), options=OPTIONS)
def test_freeform_under_rules(case: Case, options: ChainOptions) -> None:
    """Diversity, limits, the largest loss: links grow, and the sets have one size."""
    case = replace(case, suppression=False, k=2)
    try:
        problem = case.problem().replace(recoding=Freeform())
    except InputError:
        return
    best = case.cover_optimum()
    if case.rules is not None and case.rules.sensitive:
        best = min(case.cover_optimum([degree] * case.n) for degree in range(2, case.n + 1))
    assert_sound(case, problem, best, options)


@settings(max_examples=25)
@given(case=cases(4, 6, suppression=False, attributes=2), options=OPTIONS)
def test_reciprocal_sets(case: Case, options: ChainOptions) -> None:
    """Where n is odd and k even, all links have sets of k + 1."""
    case = replace(case, k=2)
    best = min(
        sum(case.set_loss(one) for one in sets)
        for degree in range(2, case.n + 1)
        for sets in reciprocal_covers(case.n, degree)
    )
    problem = case.problem().replace(recoding=Freeform(reciprocal=True))
    assert_sound(case, problem, best, options)


@settings(max_examples=25)
@given(case=cases(6, 7, suppression=False, attributes=2), options=OPTIONS, data=st.data())
def test_degrees_of_their_own(case: Case, options: ChainOptions, data: st.DataObject) -> None:
    """Every record keeps its own degree, whichever link it falls into."""
    case = replace(case, k=2)
    degrees = tuple(data.draw(st.lists(st.integers(2, 3), min_size=case.n, max_size=case.n)))
    problem = case.problem().replace(recoding=Freeform(degrees=degrees))
    best = case.cover_optimum(degrees)
    assert_sound(case, problem, best, options)


@pytest.mark.parametrize("recoding", ONE_SIDED, ids=lambda recoding: recoding.name)
@settings(max_examples=15)
@given(case=ruled_cases(smallest=5, largest=6, attributes=2), options=OPTIONS)
def test_one_sided_notions(recoding: Any, case: Case, options: ChainOptions) -> None:
    """(1,k), (k,1) and (k,k)-anonymity, under limits and of the largest loss."""
    case = without_diversity(replace(case, suppression=False, k=2))
    problem = case.problem().replace(recoding=recoding)
    try:
        best = one_sided_optimum(
            case.n, case.k, case.set_loss, worst=case.worst, **ONE_SIDED[recoding]
        )
    except KeyError:
        best = math.inf
    assert_sound(case, problem, best, options)


@settings(max_examples=10)
@given(case=cases(4, 4, suppression=False, attributes=2), options=OPTIONS)
def test_concealment(case: Case, options: ChainOptions) -> None:
    """Effective matches of the parts are effective in the whole."""
    case = replace(case, k=2)
    problem = case.problem().replace(recoding=KConcealment())
    best = concealment_optimum(case.n, 2, case.set_loss)
    assert_sound(case, problem, best, options)


@pytest.mark.parametrize(
    ("recoding", "k"),
    [*((recoding, 2) for recoding in NOTIONS), *((recoding, 3) for recoding in NOTIONS[:2])],
    ids=repr,
)
def test_longer_chains(recoding: Any, k: int) -> None:
    """Several links, each bounded; every notion, numbers and sets; again the same."""
    problem = Problem(larger_microdata(k, 13 * k), k, recoding)
    options = ChainOptions(S=2)
    degree = k + 1 if recoding == Freeform(reciprocal=True) and k == 2 and 13 % 2 else k
    solution, links = chain_covers(problem, options)
    assert 3 <= len(links) <= 13 // 2 + 1
    most = max(2 * degree + degree, degree * (2 * degree - 1))
    assert max(link.size for link in links) <= 2 * degree + degree - 1 + most
    assert links[0].carried == 0
    assert sum(link.size - link.carried for link in links) == problem.n
    assert solution.bound is None
    assert not solution.is_optimal
    again, _ = chain_covers(problem, options)
    assert again.objective == solution.objective


def test_identical_records_do_not_pile_up() -> None:
    """What is carried over is bounded where all sets lose nothing."""
    problem = Problem(microdata([Column((5,) * 200, domain=(0, 9))]), 3, Freeform())
    solution, links = chain_covers(problem, ChainOptions(S=3, boundary=3))
    assert solution.objective == 0.0
    assert max(link.size for link in links) <= 9 + 2 + 15
    assert all(link.proven for link in links)


def test_a_wider_boundary_and_longer_links() -> None:
    """One link for the whole is optimal and says so; none is above a chain's loss."""
    problem = Problem(larger_microdata(4, 30), 3, Freeform())
    whole, links = chain_covers(problem, ChainOptions(S=10))
    assert len(links) == 1
    assert whole.is_optimal
    for S, boundary in [(2, 0), (3, 3), (3, 9), (5, 6)]:
        chained, _ = chain_covers(problem, ChainOptions(S=S, boundary=boundary))
        assert chained.objective >= whole.objective - 1e-9


def test_odd_tables_of_reciprocal_pairs() -> None:
    """Odd n and even k: no reciprocal sets of k exist, so all have k + 1."""
    problem = Problem(larger_microdata(1, 25), 2, Freeform(reciprocal=True))
    solution, links = chain_covers(problem, ChainOptions())
    assert len(links) > 1
    assert solution.assignment.sizes.tolist() == [3] * 25


def test_links_grow_until_they_are_diverse() -> None:
    """Four records of y come behind four of x: the first link takes in what it needs."""
    values = tuple(range(12))
    sensitive = [tuple("xxxxyyyyxyxy")]
    problem = Problem(
        microdata([Column(values)], sensitive), 2, Freeform(), diversity=Diversity(l=2)
    )
    solution, links = chain_covers(problem, ChainOptions(S=2, boundary=2))
    assert links[0].size == 8
    assert solution.objective > 0


def test_the_last_link_takes_back() -> None:
    """What is fixed is opened again where the end of the table has no cover of its own."""
    values = tuple(range(10))
    sensitive = [tuple("xyxyyyyxxx")]
    problem = Problem(
        microdata([Column(values)], sensitive), 2, Freeform(), diversity=Diversity(l=2)
    )
    solution, links = chain_covers(problem, ChainOptions(S=2, boundary=2))
    assert max(link.size for link in links) > 4
    assert solution.assignment.n == 10


def test_no_cover_is_refused() -> None:
    """Where limits leave none, that is said, not an error of a link."""
    problem = Problem(
        microdata([Column((0, 0, 0, 0, 0, 0, 0, 9), domain=(0, 9))]),
        2,
        Freeform(),
        limits=(Apart("a", 0, 9),),
    )
    with pytest.raises(NoSolution):
        chain_covers(problem, ChainOptions(S=2))


@pytest.mark.parametrize("recoding", NOTIONS, ids=repr)
def test_without_time_all_are_covered_fast(recoding: Any) -> None:
    """A release all the same; no link, or none that is proven."""
    problem = Problem(larger_microdata(2, 200), 3, recoding)
    budget = Budget(deadline=time.monotonic() - 1.0)
    solution, links = chain_covers(problem, ChainOptions(), budget=budget)
    assert solution.status.stopped is Stopped.TIME
    assert not links
    assert any("200 of 200" in remark for remark in solution.trace)


def test_interrupts_are_obeyed() -> None:
    """After the interrupt the rest is covered fast, and the reason is reported."""
    problem = Problem(larger_microdata(3, 120), 3, Freeform())
    budget = Budget()
    budget.progress = lambda progress: budget.interrupt() if progress.done == 3 else None
    solution, links = chain_covers(problem, ChainOptions(), budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT
    assert len(links) == 3


def test_links_without_time_are_not_proven() -> None:
    """A link whose time ends keeps its start."""
    problem = Problem(scattered(9), 3, KK())
    records = np.arange(9)
    windows = CoverWindows.of(problem, records, {}, 0)
    ended = Budget(deadline=time.monotonic() - 1.0)
    solution = windows.solve(records, [], ended)
    assert solution is not None
    assert not solution.is_optimal
    best = windows.solve(records, [], Budget())
    assert best is not None
    assert best.objective <= solution.objective


def test_what_is_carried_is_a_start() -> None:
    """The optimum handed in is what a link without time keeps."""
    problem = Problem(scattered(9), 3, KK())
    records = np.arange(9)
    windows = CoverWindows.of(problem, records, {}, 0)
    best = windows.solve(records, [], Budget())
    assert best is not None
    assert isinstance(best.assignment, Cover)
    ended = Budget(deadline=time.monotonic() - 1.0)
    kept = windows.solve(records, [CoverPiece(records, best.assignment)], ended)
    assert kept is not None
    assert kept.objective == best.objective


@pytest.mark.parametrize("subsolver", ["freeform", "set-cover", "auto", "exact"])
def test_every_formulation(subsolver: str) -> None:
    """All are exact, so single links agree."""
    problem = Problem(scattered(8), 3, Freeform())
    options = ChainOptions(S=4, subsolver=subsolver)
    solution, links = chain_covers(problem, options)
    best, _ = chain_covers(problem, ChainOptions(S=4))
    assert solution.objective == pytest.approx(best.objective)
    assert links[0].proven
    # By sets there may be nothing left to solve once those that cost too much are out.
    assert links[0].start_accepted or subsolver != "freeform"


def test_wrong_options_are_refused() -> None:
    """Each message says what to give instead."""
    problem = Problem(larger_microdata(7, 20), 3, Freeform())
    with pytest.raises(InputError, match=r"sub-solver 'bigm'.*set-cover"):
        chain_covers(problem, ChainOptions(subsolver="bigm"))
    with pytest.raises(InputError, match=r"option carry.*classes"):
        chain_covers(problem, ChainOptions(carry="least"))
    with pytest.raises(InputError, match=r"option fixed.*classes"):
        chain_covers(problem, ChainOptions(fixed=9))


def test_losses_that_no_link_takes_are_refused() -> None:
    """What freeform_mip refuses a chain of it refuses too; pairs need no monotone loss."""
    columns = (Column(tuple(range(12))),)
    refused = Case(columns, 3, FALLING).problem().replace(recoding=Freeform())
    with pytest.raises(InputError, match="monotone"):
        chain_covers(refused, ChainOptions(S=2))
    solution, links = chain_covers(refused.replace(k=2), ChainOptions(S=2))
    assert len(links) == 3
    assert solution.bound is None


@settings(max_examples=15)
@given(case=cases(5, 7, suppression=False, attributes=2), options=OPTIONS)
def test_losses_without_tables(case: Case, options: ChainOptions) -> None:
    """Sets need no tables, only a loss that is declared monotone."""
    case = replace(case, loss=PRODUCT, k=2)
    problem = case.problem().replace(recoding=Freeform())
    assert_sound(case, problem, case.cover_optimum(), options)


@given(st.data())
def test_pieces_are_joined(data: st.DataObject) -> None:
    """Joined pieces fall into the same pieces again."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sizes = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=4))
    order = rng.permutation(sum(sizes))
    pieces = []
    for size, end in zip(sizes, np.cumsum(sizes), strict=True):
        pieces.append(CoverPiece(order[end - size : end], regular_cover(size, 2, rng)))
    joined = join_pieces(len(order), pieces)
    everything = CoverPiece(np.arange(len(order)), joined)
    for piece in pieces:
        again = everything.part(piece.records)
        assert again.records.tolist() == piece.records.tolist()
        assert again.cover.start.tolist() == piece.cover.start.tolist()
        assert again.cover.members.tolist() == piece.cover.members.tolist()
