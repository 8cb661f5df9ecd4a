"""k-concealment: the three phases by hand, valid, and all that is published is counted."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings

from anonymip import (
    Budget,
    Description,
    InputError,
    Microdata,
    NoSolution,
    Problem,
    Stopped,
    census,
)
from anonymip.graphs import components
from anonymip.heuristics.freeform.k_concealment import (
    exact_cells,
    is_consistent,
    k_concealment,
    widen,
)
from anonymip.heuristics.freeform.nh import nh
from anonymip.recodings import Cap, Freeform, KConcealment
from anonymip.recodings.rows import describe_sets
from tests.brute_force import Column
from tests.cover_brute_force import concealment_optimum, effective_pairs
from tests.random_problems import LOSSES, Case, cases


def consistent(data: Microdata, published: Description, i: int, record: int) -> bool:
    """Return whether a record lies in all cells of a published one, by what is published."""
    for a, attribute in enumerate(data.attributes):
        code = data.codes[record, a]
        if attribute.hierarchy is not None:
            tree, node = attribute.hierarchy.tree, published.nodes[i, a]
            if not tree.first[node] <= data.leaves(a)[code] <= tree.last[node]:
                return False
        elif attribute.publish == "range":
            if not published.lower[i, a] <= data.values[record, a] <= published.upper[i, a]:
                return False
        elif code not in published.members.of(i, a):
            return False
    return True


@settings(max_examples=80)
@given(cases(suppression=False))
def test_each_original_has_k_matches_that_can_be_true(case: Case) -> None:
    """Effective matches by enumerating all assignments; sets are all that is consistent."""
    problem = case.problem().replace(recoding=KConcealment())
    solution = k_concealment(problem)
    cover = solution.assignment
    sets = [cover.of_record(i).tolist() for i in range(case.n)]
    if sum(map(len, sets)) <= 24:  # all assignments of denser graphs take too long
        pairs = effective_pairs(sets)
        for original in range(case.n):
            assert sum(other == original for _, other in pairs) >= case.k
    published = problem.recoding.describe(problem, cover)
    for i in range(case.n):
        wanted = [r for r in range(case.n) if consistent(problem.microdata, published, i, r)]
        assert sets[i] == wanted
    loss = sum(case.set_loss(one) for one in sets)
    assert solution.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)
    assert solution.status.stopped is Stopped.HEURISTIC


@settings(max_examples=30)
@given(cases(smallest=3, largest=4, suppression=False))
def test_never_below_the_optimum(case: Case) -> None:
    """The optimum by trying all sets of all records."""
    solution = k_concealment(case.problem().replace(recoding=KConcealment()))
    best = concealment_optimum(case.n, case.k, case.set_loss)
    assert solution.objective >= best - case.slack(best)


@settings(max_examples=60)
@given(cases(suppression=False))
def test_cells_grow_as_they_are_published(case: Case) -> None:
    """A cell widened by one record after the other covers what its set's description covers."""
    problem = case.problem().replace(recoding=KConcealment())
    cells = exact_cells(problem.microdata)
    for record in range(case.k):
        widen(cells, 0, record)
    published = describe_sets(problem.microdata, np.array([0, case.k]), np.arange(case.k))
    for record in range(case.n):
        wanted = consistent(problem.microdata, published, 0, record)
        assert is_consistent(cells, 0, record) == wanted


def test_three_phases_by_hand() -> None:
    """Values 25, 40, 50, 55, 59 with k = 2.

    Nearest others: 25-40, 40-50, 50-55, 55-59, 59-55. Only its own record covers 25: that of 40
    takes it in, now 25 to 50. Original 50 lies in the ranges of 40 and 50, but record 50 covers
    only 55, from which no path leads back: it takes in 40, now 40 to 55.
    """
    case = Case((Column((25.0, 40.0, 50.0, 55.0, 59.0)),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=KConcealment())
    solution = k_concealment(problem)
    published = problem.recoding.describe(problem, solution.assignment)
    ranges = list(zip(published.lower[:, 0].tolist(), published.upper[:, 0].tolist(), strict=True))
    assert ranges == [(25, 40), (25, 50), (40, 55), (55, 59), (55, 59)]
    assert solution.objective == pytest.approx((15 + 25 + 15 + 4 + 4) / 34)
    assert solution.method == "k-concealment"


@pytest.mark.parametrize("k", [2, 3, 5])
def test_beats_nh_at_small_k_on_samples(k: int) -> None:
    """As in Doka 8.5: over six samples the weaker notion loses less than partitioned rings."""
    tables = [census(200, 8, seed=seed) for seed in range(6)]
    weaker = sum(k_concealment(Problem(data, k, KConcealment())).objective for data in tables)
    assert weaker < sum(nh(Problem(data, k, Freeform())).objective for data in tables)


@pytest.mark.parametrize("k", [4, 15])
def test_joins_by_loss_are_hidden_too_and_lose_more(k: int) -> None:
    """Every original has k matches in its component; wide records are spared at a price."""
    problem = Problem(census(200, seed=3), k, KConcealment())
    by_loss = k_concealment(problem, join="loss")
    assert by_loss.options == {"join": "loss"}
    cover, part = by_loss.assignment, components(by_loss.assignment)
    effective = np.zeros(problem.n, np.int64)
    for i in range(problem.n):
        held = cover.of_record(i)
        effective[held[part[held] == part[i]]] += 1
    assert effective.min() >= k
    assert by_loss.objective > k_concealment(problem).objective


def test_unknown_join_is_refused() -> None:
    """Only the two names are known."""
    with pytest.raises(InputError, match="join"):
        k_concealment(Problem(census(20, seed=3), 2, KConcealment()), join="width")


def test_limits_are_kept_or_refused() -> None:
    """A cap that leaves two neighbours to each is kept, a narrower one has no solution."""
    case = Case((Column((0.0, 1.0, 2.0, 10.0, 11.0, 12.0)),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=KConcealment(), limits=(Cap("a", 2.0),))
    solution = k_concealment(problem)
    published = problem.recoding.describe(problem, solution.assignment)
    assert (published.upper - published.lower <= 2.0).all()
    with pytest.raises(NoSolution, match="keep the limits"):
        k_concealment(problem.replace(limits=(Cap("a", 0.5),)))


def test_expired_budget() -> None:
    """Out of time each record is published with k that follow each other, as its memory allows."""
    problem = Problem(census(40, 4, seed=2), 3, KConcealment())
    late = k_concealment(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert late.status.stopped is Stopped.TIME
    assert set(late.assignment.sizes.tolist()) == {3}
