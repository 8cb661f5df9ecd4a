"""Tests of freeform generalization and of the weaker notions as recodings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    KK,
    SSE,
    Apart,
    Cap,
    Classes,
    Cover,
    Diversity,
    Freeform,
    InputError,
    InvalidAssignment,
    KConcealment,
    KOne,
    OneK,
    Problem,
    Solution,
    load_instance,
    lower_bound,
)
from tests.by_hand import by_cover, table_of
from tests.cover_brute_force import (
    concealment_optimum,
    effective_pairs,
    one_sided_optimum,
    reciprocal_covers,
    regular_optimum,
)
from tests.random_problems import Case, cases, ruled_cases

HEALTH = load_instance("health-records")


def ring(n: int, k: int) -> Cover:
    """Return consecutive records on a closed order, Wong et al., Section 5.1."""
    return Cover.of((np.arange(n)[:, None] + np.arange(k)) % n)


def solution(case: Case, recoding: Any, sets: Any) -> Solution:
    """Return the checked solution of a case with a cover."""
    return by_cover(case.problem().replace(recoding=recoding), sets)


@settings(max_examples=100)
@given(ruled_cases(largest=6))
def test_optimum_of_brute_force_is_a_solution(case: Case) -> None:
    """What dynamic programming finds is accepted, and its loss is recomputed."""
    best = case.cover_optimum()
    if math.isinf(best):
        return
    _, sets = regular_optimum(case.n, [case.k] * case.n, case.set_loss, case.worst)
    found = solution(case, Freeform(), sets)
    assert found.objective == pytest.approx(best, rel=1e-9, abs=1e-9)


@settings(max_examples=100)
@given(cases(largest=7, suppression=False))
def test_no_worse_than_classes_and_bounded(case: Case) -> None:
    """For a monotone loss: bound <= freeform <= classes; a class holds a regular graph."""
    problem = case.problem().replace(recoding=Freeform())
    best = case.cover_optimum()
    if problem.compiled.monotone:
        assert best <= case.optimum() + case.slack(best)
    bound = lower_bound(problem)
    assert (bound is not None) == problem.compiled.monotone
    if bound is not None:
        assert bound.value <= best + case.slack(best)


def test_freeform_beats_one_class_below_2k() -> None:
    """Values 0, 1, 5 with k = 2: 10 against 15."""

    def spread(one: tuple[int, ...]) -> float:
        values = [(0, 1, 5)[record] for record in one]
        return max(values) - min(values)

    assert regular_optimum(3, [2, 2, 2], spread)[0] == 10


def refusal(recoding: Any, sets: Any, k: int = 3, **rules: Any) -> str:
    """Return why an assignment of the seven health records is refused."""
    assignment = sets if isinstance(sets, Classes | Cover) else Cover.of(sets)
    with pytest.raises(InvalidAssignment) as caught:
        Solution.of(Problem(HEALTH, k, recoding, **rules), assignment, method="test")
    return str(caught.value)


def test_covers_that_break_a_rule_are_refused() -> None:
    """Each rule is named with a record."""
    good = ring(7, 3)
    assert Solution.of(Problem(HEALTH, 3, Freeform()), good, method="test").objective > 0
    assert "covers 2 original records where 3 are needed" in refusal(Freeform(), ring(7, 2))
    lopsided = good.matches.copy()
    lopsided[0] = [0, 1, 3]
    assert "lies in 2 sets where 3 are needed" in refusal(Freeform(), lopsided)
    assert "own set" in refusal(Freeform(), (np.arange(7)[:, None] + np.arange(1, 4)) % 7)
    assert "not reciprocal" in refusal(Freeform(reciprocal=True), good)
    assert "is no cover but Classes" in refusal(Freeform(), Classes(np.zeros(7, int)))
    assert "covers 6 records, the table has 7" in refusal(Freeform(), ring(6, 3))
    assert Solution.of(Problem(HEALTH, 3, Freeform()), ring(7, 4), method="test").objective > 0


def test_limits_bind_every_cell() -> None:
    """Caps and values that must stay apart, as in classes."""
    widest = Cap(HEALTH.names[0], 1)
    assert "break the cap" in refusal(Freeform(), ring(7, 3), limits=(widest,))
    sexes = [str(level) for level in HEALTH.levels[1]]
    apart = Apart(HEALTH.names[1], sexes[0], sexes[1])
    assert "stay apart" in refusal(Freeform(), ring(7, 3), limits=(apart,))


def test_sets_have_the_diversity() -> None:
    """No value in more than 1/l of a set."""
    data = table_of({"age": range(8), "illness": list("aabbabba")}, "illness")
    problem = Problem(data, 2, Freeform(), diversity=Diversity(l=2))
    with pytest.raises(InvalidAssignment, match="covers a set without the diversity"):
        Solution.of(problem, ring(8, 2), method="test")


def test_degrees_of_their_own() -> None:
    """Adaptive anonymity: record i covers and is covered by as many as it asks for."""
    degrees = (2, 2, 3, 3, 2, 2, 2)
    recoding = Freeform(degrees=degrees)
    problem = Problem(HEALTH, 2, recoding)
    sets = [[0, 1], [1, 0], [2, 3, 4], [3, 2, 5], [4, 2], [5, 3], [6, 6]]
    sets[5], sets[6] = [5, 6], [6, 3]
    found = by_cover(problem, sets)
    assert found.assignment.sizes.tolist() == list(degrees)
    pairs = effective_pairs(sets)
    assert len(pairs) == sum(degrees)
    with pytest.raises(InvalidAssignment, match="where 3 are needed"):
        Solution.of(problem, ring(7, 2), method="test")


@pytest.mark.parametrize(
    ("degrees", "text"),
    [((2, 2), "2 degrees for 7"), ((1,) * 7, "degrees are 1 to 1"), ((8,) * 7, "8 to 8")],
)
def test_degrees_that_do_not_fit_are_refused(degrees: tuple[int, ...], text: str) -> None:
    """One a record, from k to n."""
    with pytest.raises(InputError, match=text):
        Problem(HEALTH, 2, Freeform(degrees=degrees))
    with pytest.raises(InputError, match="whole numbers"):
        Freeform(degrees=(2.5,))  # type: ignore[arg-type]


def test_squared_errors_of_sets() -> None:
    """A loss of members charges each record its share of its own set."""
    values = np.array([1.0, 2.0, 4.0, 9.0])
    data = table_of({"a": values})
    problem = Problem(data, 3, Freeform(), objective=SSE("none"))
    cover = ring(4, 3)
    expected = sum(values[one].var() for one in cover.matches)
    found = Solution.of(problem, cover, method="test").objective
    assert found == pytest.approx(expected, rel=1e-12)


@settings(max_examples=60)
@given(cases(smallest=4, largest=5, suppression=False), st.data())
def test_weaker_notions_accept_what_brute_force_accepts(case: Case, data: st.DataObject) -> None:
    """Random covers: accepted exactly if the sets have the property."""
    n = case.n
    sets = [
        sorted({record, *data.draw(st.sets(st.integers(0, n - 1), max_size=3))})
        for record in range(n)
    ]
    times = [sum(record in one for one in sets) for record in range(n)]
    pairs = effective_pairs(sets)
    effective = [sum(original == record for _, original in pairs) for record in range(n)]
    enough = {
        OneK: min(times) >= case.k,
        KOne: min(map(len, sets)) >= case.k,
        KK: min(*times, *map(len, sets)) >= case.k,
        KConcealment: min(effective) >= case.k,
    }
    for recoding, expected in enough.items():
        problem = case.problem().replace(recoding=recoding())
        if expected:
            assert by_cover(problem, sets).objective is not None
        else:
            with pytest.raises(InvalidAssignment, match=f"fewer than k = {case.k}"):
                by_cover(problem, sets)


@settings(max_examples=15)
@given(cases(smallest=4, largest=4, suppression=False))
def test_order_of_the_notions(case: Case) -> None:
    """(1,k), (k,1) <= (k,k) <= freeform, (1,k) <= k-concealment <= freeform."""
    if not case.problem().compiled.monotone or case.worst:
        return
    freeform = case.cover_optimum()
    n, k, loss = case.n, case.k, case.set_loss
    slack = case.slack(freeform)
    one_k = one_sided_optimum(n, k, loss, rows=False, columns=True)
    k_one = one_sided_optimum(n, k, loss, rows=True, columns=False)
    k_k = one_sided_optimum(n, k, loss, rows=True, columns=True)
    concealed = concealment_optimum(n, k, loss)
    assert max(one_k, k_one) <= k_k + slack
    assert k_k <= freeform + slack
    assert one_k <= concealed + slack
    assert concealed <= freeform + slack
    for recoding, best in (
        (KOne(), k_one),
        (KK(), k_k),
        (OneK(), one_k),
        (KConcealment(), concealed),
    ):
        bound = lower_bound(case.problem().replace(recoding=recoding))
        assert bound is not None
        assert bound.value <= best + slack


@pytest.mark.parametrize(("n", "k", "count"), [(4, 2, 3), (5, 3, 12), (6, 2, 15), (5, 5, 1)])
def test_reciprocal_covers_are_regular_graphs(n: int, k: int, count: int) -> None:
    """Perfect matchings of 4 and 6, pentagons, the complete graph."""
    found = list(reciprocal_covers(n, k))
    assert len(found) == count
    for sets in found:
        problem = Problem(load_instance(f"census:{n},2,1"), k, Freeform(reciprocal=True))
        assert by_cover(problem, sets).objective is not None
