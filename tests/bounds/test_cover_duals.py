"""Prices of originals bound the weaker notions: never above brute force, and higher than before."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymip import KK, Freeform, KOne, OneK, Problem, census, solve
from anonymip.bounds import cover_duals
from anonymip.bounds.combinatorial import lower_bound_of, weaker_notion_bound
from anonymip.bounds.cover_duals import Groups, cover_bound, is_priced
from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound
from anonymip.enumeration.boxes import box_rows, new_box_search, price_boxes
from anonymip.objectives.language.record import cells_of_sets
from anonymip.recodings import KConcealment, Recoding
from anonymip.runtime.budget import Budget
from tests.brute_force import Column
from tests.cover_brute_force import concealment_optimum, one_sided_optimum
from tests.hard_losses import FALLING
from tests.random_problems import LOSSES, Case, cases


@pytest.mark.parametrize(
    ("recoding", "rows", "columns"),
    [(OneK(), False, True), (KK(), True, True), (KOne(), True, False)],
)
@settings(max_examples=60)
@given(case=cases(largest=5, suppression=False))
def test_never_above_the_optimum(recoding: Recoding, rows: bool, columns: bool, case: Case) -> None:
    """Of every loss with tables: ranges, sets, hierarchies, whatever steps their losses take."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cover_duals, "NUMBERS", replace(cover_duals.NUMBERS, free_k=2))
        assert_no_higher(recoding, rows, columns, case)


def assert_no_higher(recoding: Recoding, rows: bool, columns: bool, case: Case) -> None:
    """Hold the bound of a notion against brute force."""
    problem = case.problem().replace(recoding=recoding)
    bound = cover_bound(problem, effort="thorough")
    if bound is None:
        assert not is_priced(problem)
        return
    best = one_sided_optimum(case.n, case.k, case.set_loss, rows=rows, columns=columns)
    assert bound.value <= best + case.slack(best)


@settings(max_examples=40)
@given(case=cases(largest=4, suppression=False, attributes=2))
def test_never_above_the_optimum_of_concealment(case: Case) -> None:
    """Every published record covers another one, and every original lies in k boxes."""
    bound = cover_bound(case.problem().replace(recoding=KConcealment()), effort="thorough")
    if bound is not None:
        best = concealment_optimum(case.n, case.k, case.set_loss)
        assert bound.value <= best + case.slack(best)


@settings(max_examples=60)
@given(
    case=cases(largest=6, suppression=False),
    prices=st.lists(st.sampled_from((0.0, 0.1, 0.25, 0.7, 2.0)), min_size=6, max_size=6),
    rewards=st.lists(st.sampled_from((0.0, 0.0, 0.2, 0.3, 1.5)), min_size=36, max_size=36),
    least=st.integers(1, 4),
    work=st.sampled_from((np.inf, np.inf, 0.0, 40.0, 1_000.0)),
    nodes=st.sampled_from((10**6, 10**6, 1, 3)),
)
def test_no_box_is_cheaper(
    case: Case, prices: list[float], rewards: list[float], least: int, work: float, nodes: int
) -> None:
    """Of all sets around a record the box that is found costs least; so do the losses of lines.

    Where work or nodes end before, no box is below what is told. A reward is had once,
    the highest of those of the records that are covered.
    """
    problem = case.problem()
    if not (problem.compiled.has_tables and problem.compiled.monotone):
        return
    rows = box_rows(problem)
    t, first = len(rows.counts), problem.microdata.row_types().first
    least = min(least, case.n)
    weights = np.array([np.roll(prices, own)[:t] for own in range(t)])
    had = np.array(rewards).reshape(6, 6)[:t, :t].copy()
    np.fill_diagonal(had, 0.0)
    lowest, found = np.zeros(t), np.zeros((t, t), np.bool_)
    targets = np.full(t, np.inf)
    search = new_box_search(rows, least)
    cursor = np.zeros(1, np.int64)
    price_boxes(
        rows, search, weights, had, least, targets, 0.0, nodes, work, lowest, found, cursor, t
    )
    for own in range(t):
        others = [kind for kind in range(t) if kind != own]
        alone = case.set_loss((int(first[own]),))
        values = [
            case.set_loss(tuple(int(first[kind]) for kind in (own, *chosen)))
            - alone
            - weights[own, [own, *chosen]].sum()
            - had[own, [own, *chosen]].max()
            for size in range(t)
            for chosen in combinations(others, size)
            if rows.counts[[own, *chosen]].sum() >= least
        ]
        slack = 1e-9 * (1.0 + abs(alone) + weights[own].sum()) + case.slack(alone)
        assert lowest[own] <= min(values) + slack
        through = work == np.inf and nodes > 3
        assert found[own, own] or not through
        assert not found[own].any() or rows.counts[found[own]].sum() >= least
        if problem.compiled.name == "gcp" and through:
            assert lowest[own] == pytest.approx(min(values), abs=slack)


def test_boxes_of_many_records_are_bounded_without_a_search() -> None:
    """A price of each record tells at the first node what the cheapest of two dozen loses."""
    problem = Problem(census(40, 5, seed=3, mixed=True), 24, KOne())
    rows = box_rows(problem)
    t = len(rows.counts)
    none, cursor = np.zeros((t, t)), np.zeros(1, np.int64)

    def told(work: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        lowest, found = np.zeros(t), np.zeros((t, t), np.bool_)
        targets, search = np.full(t, np.inf), new_box_search(rows, problem.k)
        cursor[0] = 0
        price_boxes(
            rows, search, none, none, problem.k, targets, 0.0, 1, work, lowest, found, cursor, t
        )
        return lowest, found

    # Without work there is no flow for such a price.
    assert not told(0.0)[0].any()
    lowest, _ = told(np.inf)
    everything = problem.compiled.record_losses(
        cells_of_sets(problem.microdata, np.arange(problem.n)[None])
    )
    assert (lowest > 0.3 * everything).all()
    assert (lowest <= everything).all()
    bound = cover_bound(problem, effort="quick")
    assert bound is not None
    assert bound.method.startswith("least boxes")
    assert bound.value >= 0.99 * float(rows.counts @ lowest)
    assert bound.value <= solve(problem, "nearest-sets", bound=False).objective


def test_by_hand() -> None:
    """Values 0, 1, 5, k = 2: 1.2, by one record published as 0..5 and another as 0..1.

    Prices of 0.2, 0 and 1: any box but single values costs what it covers beside its own record.
    """
    case = Case((Column((0, 1, 5), integer=True),), 2, LOSSES["gcp"])
    best = one_sided_optimum(case.n, case.k, case.set_loss, rows=False, columns=True)
    assert best == pytest.approx(1.2)
    bound = cover_bound(case.problem().replace(recoding=OneK()), effort="thorough")
    assert bound is not None
    assert 1.0 <= bound.value <= 1.2


def test_groups_are_nested() -> None:
    """So the farthest record that a box covers tells which groups it leaves."""
    problem = Problem(census(30, 5, seed=3, mixed=True), 4, KConcealment())
    groups = Groups.of(problem, 2)
    common = groups.members.astype(int) @ groups.members.T
    sizes = groups.members.sum(axis=1)
    assert len(groups.members) > 10
    assert np.all((common == 0) | (common == np.minimum(sizes[:, None], sizes)))
    assert groups.members[np.arange(len(sizes)), groups.hidden].all()
    _, leaving = groups.priced(np.zeros(30), np.arange(1.0, len(sizes) + 1.0))
    box = np.zeros(30, np.bool_)
    box[[0, 7, 19]] = True
    left = (~groups.members[:, box]).any(axis=1) & groups.members[:, 0]
    assert leaving[0, box].max() == pytest.approx((np.flatnonzero(left) + 1.0).sum())


@pytest.mark.thorough("60-5-0")
@pytest.mark.parametrize(
    ("n", "k", "seed"),
    [(60, 5, 0), (40, 3, 2), pytest.param(80, 8, 4, marks=pytest.mark.thorough)],
)
def test_matches_have_to_lead_back(
    n: int, k: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that a match leaves raise the bound of concealment, and not above a release."""
    problem = Problem(census(n, 6, seed=seed, mixed=True), k, KConcealment())
    bound = cover_bound(problem, effort="thorough")
    release = solve(problem, "nearest-sets", bound=False)
    none = Groups.of(problem.replace(recoding=KK()), k)
    monkeypatch.setattr(Groups, "of", lambda *asked: none)
    before = cover_bound(problem, effort="thorough")
    assert bound is not None
    assert before is not None
    assert 1.02 * before.value < bound.value <= release.objective


@pytest.mark.parametrize("recoding", [OneK(), KK(), KConcealment()])
def test_higher_than_what_neighbours_say(recoding: Recoding) -> None:
    """With mixed columns by far; a freeform cover, which is allowed, does not lose less."""
    problem = Problem(census(40, 5, seed=3, mixed=True), 4, recoding)
    bound = lower_bound_of(problem)
    assert bound is not None
    assert bound.method == "prices of originals"
    before = weaker_notion_bound(problem) or nearest_neighbour_bound(problem)
    assert before is not None
    assert bound.value > 1.2 * before.value
    assert bound.value <= solve(problem.replace(recoding=Freeform()), effort="quick").objective


def test_more_effort_is_no_lower() -> None:
    """Rounds of a lower effort are those that a higher one begins with."""
    problem = Problem(census(40, 4, seed=1, mixed=True), 3, KK())
    bounds = [cover_bound(problem, effort=effort) for effort in ("quick", "normal", "thorough")]
    values = [bound.value for bound in bounds if bound is not None]
    assert len(values) == 3
    assert values == sorted(values)


def test_refused_and_out_of_time() -> None:
    """Losses that fall, covers of another kind and a spent budget have no such bound."""
    problem = Problem(census(20, 3, seed=1), 3, OneK())
    assert cover_bound(problem.replace(recoding=Freeform())) is None
    falling = Case((Column((0, 1, 5), integer=True),), 2, FALLING).problem()
    assert cover_bound(falling.replace(recoding=OneK())) is None
    assert cover_bound(problem, budget=Budget(deadline=time.monotonic() - 1.0)) is None
