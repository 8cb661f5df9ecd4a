"""The batch engine grows the classes of the kernels, and keeps rules that these do not know."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import SSE, Cap, Diversity, InputError, Problem, census
from anonymip.heuristics.classes.greedy_search import greedy_search, grow_classes
from anonymip.heuristics.classes.k_member import k_member
from anonymip.heuristics.growing import batch_growth as module
from anonymip.heuristics.growing.batch_growth import batch_engine, grow_classes_in_batches
from anonymip.heuristics.growing.groups import SensitiveMix, joining_losses, place_leftovers
from anonymip.orders.arrangement import arrange, in_type_order
from anonymip.orders.orders import variance_order
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, Rules, record_loss
from tests.by_hand import table_of, with_illness
from tests.hard_losses import PRODUCT
from tests.heuristics.classes.test_greedy_search import exact_tables
from tests.random_problems import LOSSES, Case, microdata, ruled_cases


@settings(max_examples=150)
@given(exact_tables(), st.integers(2, 4), st.booleans(), st.integers(0, 9))
def test_same_labels_as_the_kernels(
    columns: tuple[Column, ...], k: int, farthest: bool, seed: int
) -> None:
    """Where ties are ties in any arithmetic, both engines make the same classes."""
    problem = Problem(microdata(columns), k)
    order = variance_order(problem, Budget())
    arranged = arrange(problem, order)
    drawn = int(np.random.default_rng(seed).integers(arranged.types)) if farthest else None
    kernels, _ = grow_classes(problem, arranged, Budget(), search="scan", farthest_from=drawn)
    batches, stopped = grow_classes_in_batches(
        problem,
        order,
        Budget(),
        search="scan",
        drawn=np.random.default_rng(seed) if farthest else None,
    )
    assert stopped is None
    assert batches.tolist() == kernels.tolist()


@settings(max_examples=100)
@given(st.data())
def test_compiled_classes_are_those_of_batches(data: st.DataObject) -> None:
    """Under a diversity alone both grow the same classes, of a window of candidates too."""
    columns = data.draw(exact_tables())
    n, k = len(columns[0].values), data.draw(st.integers(2, 4))
    ill = data.draw(st.lists(st.sampled_from("xyyz"), min_size=n, max_size=n))
    table = with_illness(microdata(columns), ill)
    asked = data.draw(st.sampled_from([Diversity(l=2), Diversity(distinct=2)]))
    try:
        problem = Problem(table, k, diversity=asked)
    except InputError:
        return  # a value is too frequent
    records, types = in_type_order(problem, np.array(data.draw(st.permutations(range(n)))))
    first, candidates = data.draw(st.sampled_from([None, 0])), data.draw(st.sampled_from([5, 99]))
    found = []
    for compiled in (True, False):
        growth = module._BatchGrowth(problem, records, types, candidates)
        if not compiled:
            growth._grown = growth._grown_in_batches
        growth.run(Budget(), farthest_from=first)
        found.append((growth.groups, growth.leftovers()))
    assert found[0] == found[1]


def test_close_records_share_a_class_under_squared_errors() -> None:
    """Two heaps of points are two classes, whatever the order they come in."""
    data = table_of({"a": [0.0, 9.0, 0.2, 9.1, 0.1, 9.3], "b": [1.0, 5.0, 1.1, 5.2, 0.9, 5.1]})
    for heuristic in (greedy_search, k_member):
        labels = heuristic(Problem(data, 3, objective=SSE())).assignment.labels
        assert labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_diverse_classes_grow_beyond_k_only_if_they_must() -> None:
    """Half of the values are x: pairs of x and another one, each with its nearest partner."""
    data = table_of({"a": [0, 0, 5, 5, 9, 9], "s": list("xyxzxy")}, "s")
    solution = greedy_search(Problem(data, 2, diversity=Diversity(l=2)))
    assert solution.assignment.labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_what_is_left_stays_diverse() -> None:
    """The nearest partner y of the first z is needed by an x: the farther x is taken."""
    data = table_of({"a": [0, 1, 2, 3], "s": list("zyxx")}, "s")
    solution = greedy_search(Problem(data, 2, diversity=Diversity(l=2)))
    assert sorted(solution.assignment.sizes.tolist()) == [2, 2]
    assert solution.assignment.labels[2] != solution.assignment.labels[3]


def test_capped_classes_leave_out_what_is_too_far() -> None:
    """The first record's nearest neighbours break the cap only together."""
    data = table_of({"a": [0, 3, 4, 7], "b": [0, 0, 0, 0]})
    solution = greedy_search(Problem(data, 2, limits=(Cap("a", 3),)))
    assert solution.assignment.labels.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("heuristic", [greedy_search, k_member])
def test_window_of_candidates(heuristic: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer candidates than records the classes are still valid, and the solution says so."""
    monkeypatch.setattr(module, "CANDIDATES", 15)
    monkeypatch.setattr(module, "_LEAST_CANDIDATES", 1)
    data = census(90, 4, seed=2)
    problem = Problem(data, 4, objective=PRODUCT.objective)
    solution = heuristic(problem)  # type: ignore[operator]
    assert solution.assignment.sizes.min() >= 4
    assert "the 15 that were nearest" in solution.trace[0]


@pytest.mark.parametrize("heuristic", [greedy_search, k_member])
def test_candidates_by_effort(heuristic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less effort has fewer candidates, told among options and remarks, whatever the clock."""
    monkeypatch.setitem(module._CELLS, "quick", 60 * 120 * 4 * 4)
    problem = Problem(census(120, 4, seed=2), 4, objective=PRODUCT.objective)
    quick = heuristic(problem, effort="quick")
    timed = heuristic(problem, effort="quick", budget=Budget.of(600))
    assert (quick.assignment.labels == timed.assignment.labels).all()
    assert "the 60 that were nearest" in quick.trace[0]
    assert quick.options["effort"] == "quick"
    assert heuristic(problem).trace == ()


def test_large_tables_with_rules_are_left_to_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes are repaired afterwards, and the solution says so."""
    monkeypatch.setattr(module, "LARGEST_BATCH", 50)
    data = census(90, 4, seed=2)
    name = next(a.name for a in data.attributes if a.is_numeric)
    values = data.frame[name].astype(float)
    problem = Problem(data, 3, limits=(Cap(name, 0.5 * float(values.max() - values.min())),))
    solution = greedy_search(problem)
    assert "repaired" in solution.trace[0]
    assert batch_engine(problem, "normal") == (0, solution.trace)
    assert batch_engine(problem.replace(objective=PRODUCT.objective), "normal")[0] > 0


@pytest.mark.parametrize("search", ["tree", "hash"])
def test_tree_does_not_know_rules(search: str) -> None:
    """A search that cannot keep the rules is refused."""
    data = census(20, 3, seed=0)
    problem = Problem(data, 2, objective=PRODUCT.objective)
    with pytest.raises(InputError, match="auto or scan"):
        greedy_search(problem, search=search)


@settings(max_examples=80)
@given(ruled_cases(smallest=6), st.booleans())
def test_losses_are_those_of_the_larger_classes(case: Case, by_increase: bool) -> None:
    """The first record joins the pairs and the triple of the others."""
    rules = Rules() if case.rules is None else case.rules
    groups = [[1, 2], list(range(3, case.n))]
    found = joining_losses(case.problem(), groups, [0], by_increase=by_increase)
    diversity = Rules(rules.sensitive, rules.l, rules.distinct)
    limits = Rules(caps=rules.caps, apart=rules.apart)
    for group, loss in zip(groups, found, strict=True):
        joined = [*group, 0]
        spoiled = diversity.met_by(case.columns, group) and not diversity.met_by(
            case.columns, joined
        )
        if spoiled or not limits.met_by(case.columns, joined):
            assert loss == np.inf
            continue
        times = 1 if case.worst else len(joined)
        naive = times * record_loss(case.columns, case.loss.naive, joined)
        if by_increase and not case.worst:
            naive -= len(group) * record_loss(case.columns, case.loss.naive, group)
        assert loss == pytest.approx(naive, rel=1e-8, abs=1e-8)


def test_leftovers_without_room_are_told() -> None:
    """Under a cap of 2 the value 3 joins the class at 4 and 5; 50 joins none."""
    column = Column((0.0, 1.0, 4.0, 5.0, 3.0, 50.0))
    problem = Case((column,), 2, LOSSES["gcp"], rules=Rules(caps=((0, 2.0),))).problem()
    groups = [[0, 1], [2, 3]]
    assert place_leftovers(problem, groups, [4, 5], by_increase=False) == [5]
    assert groups == [[0, 1], [2, 3, 4]]


RATIOS = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)])


@st.composite
def mixes(draw: st.DrawFn) -> tuple[Problem, Rules, list[int]]:
    """Draw a problem with a diversity that its table has, and a class."""
    n, columns = draw(st.integers(4, 9)), draw(st.integers(1, 2))
    texts = st.lists(st.sampled_from("wxyz"), min_size=n, max_size=n).map(tuple)
    sensitive = tuple(draw(texts) for _ in range(columns))
    ratio = draw(RATIOS)
    distinct = draw(st.integers(2 if ratio == 1 else 1, 3))
    # Values that occur once make the table diverse enough in all columns.
    sensitive = tuple((*values, *(f"u{at}" for at in range(3 * n))) for values in sensitive)
    table = (Column(tuple(range(4 * n))),)
    data = microdata(table, sensitive)
    diversity = Diversity(l=float(ratio), distinct=distinct)
    members = draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    problem = Problem(data, draw(st.integers(2, 4)), diversity=diversity)
    return problem, Rules(sensitive, ratio, distinct), members


def allowed(problem: Problem, rules: Rules, members: list[int]) -> bool:
    """Return whether records may be a class."""
    return len(members) >= problem.k and rules.met_by((), members)


@settings(max_examples=150)
@given(mixes())
def test_needed_is_the_least_number_of_new_values(drawn: tuple[Problem, Rules, list[int]]) -> None:
    """So many records with values of their own make the class allowed, and no fewer do."""
    problem, rules, members = drawn
    fresh = [at for at in range(problem.n) if at >= problem.n - 3 * (problem.n // 4)]
    needed = SensitiveMix(problem, np.array(members)).needed()
    assert allowed(problem, rules, members + fresh[:needed])
    if needed:
        assert not allowed(problem, rules, members + fresh[: needed - 1])


@settings(max_examples=100)
@given(mixes())
def test_candidates_are_counted_as_if_they_had_joined(
    drawn: tuple[Problem, Rules, list[int]],
) -> None:
    """What a class needs with each candidate is what the larger class needs."""
    problem, _, members = drawn
    others = np.array([at for at in range(problem.n) if at not in members])
    mix = SensitiveMix(problem, np.array(members))
    counted = mix.needed_with(others)
    for at, record in enumerate(others.tolist()):
        mix.add(record)
        assert counted[at] == mix.needed()
        mix.remove(record)


@settings(max_examples=100)
@given(mixes())
def test_leaving_is_allowed_if_the_rest_is_diverse(drawn: tuple[Problem, Rules, list[int]]) -> None:
    """A record may leave if the others are diverse, or none is left."""
    problem, rules, members = drawn
    able = SensitiveMix(problem, np.array(members)).diverse_without(np.array(members))
    for record, can in zip(members, able, strict=True):
        rest = [other for other in members if other != record]
        assert can == (not rest or rules.met_by((), rest))
