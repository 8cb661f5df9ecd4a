"""The freeform heuristics of Doka et al. against plain-Python versions and the optimum.

One file, since the heuristics are held to the same plain-Python versions and problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from anonymip import (
    SSE,
    Bottleneck,
    Budget,
    Freeform,
    InputError,
    NoSolution,
    Problem,
    Solution,
    census,
    load_instance,
)
from anonymip.heuristics.freeform.greedy import greedy
from anonymip.heuristics.freeform.hungarian import hungarian
from anonymip.heuristics.freeform.min_cost_flow import min_cost_flow
from anonymip.heuristics.freeform.rounds import rounds as freeform_rounds
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.heuristics.freeform.set_growth import FreeformNumbers, fill_losses, increase, rebuild
from anonymip.heuristics.freeform.sort_greedy import sort_greedy
from tests.brute_force import Column, Rules
from tests.by_hand import diverse
from tests.freeform_references import (
    cheapest_round,
    greedy_by_originals,
    greedy_by_sets,
    sort_greedy_sets,
    sort_greedy_sets_by_loss,
)
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.heuristics.freeform.freeform_methods import BOTH_WAYS, EVERY, RUNS, Run, sets_of
from tests.random_problems import LOSSES, Case, Loss, cases, ruled_cases, tables

REFERENCES = {
    "greedy": greedy_by_sets,
    "greedy by originals": greedy_by_originals,
    "sort-greedy": sort_greedy_sets_by_loss,
    "sort-greedy as in the text": sort_greedy_sets,
}


def freeform(case: Case, recoding: Freeform | None = None) -> Problem:
    """Return the case as a freeform problem."""
    return case.problem().replace(recoding=recoding or Freeform())


def check_loss(case: Case, solution: Solution) -> None:
    """Compare the loss with that of the definitions."""
    losses = [case.set_loss(one) for one in sets_of(solution)]
    loss = max(losses) if case.worst else math.fsum(losses)
    assert solution.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)


def expected_sets(problem: Problem, reference: Callable[..., list[list[int]]]) -> list[list[int]]:
    """Return what a reference finds, with the package's weights, so that ties are the same."""
    rounds = Rounds(problem, "test", Budget())
    states = rounds.weights.states

    def weight(one: list[int], record: int) -> float:
        rebuild(states, one[0], np.array(one, np.int32))
        return float(increase(states, one[0], record))

    def loss(one: list[int]) -> float:
        rebuild(states, one[0], np.array(one, np.int32))
        losses = np.empty(problem.n)
        fill_losses(states, losses)
        return float(losses[one[0]])

    more = {"loss": loss} if reference is sort_greedy_sets_by_loss else {}
    return in_table(rounds, reference(problem.n, problem.k, weight, **more))


def in_table(rounds: Rounds, sets: list[list[int]]) -> list[list[int]]:
    """Return sets of places in the order as sets of records, by record."""
    found: list[list[int]] = [[] for _ in sets]
    for one in sets:
        found[int(rounds.order[one[0]])] = sorted(rounds.order[one].tolist())
    return found


@settings(max_examples=60)
@given(cases(suppression=False, largest=6))
def test_one_round_is_solved_to_the_optimum(case: Case) -> None:
    """For k = 2 the assignment and the flow are optimal."""
    pairs = Case(case.columns, 2, case.loss)
    best = pairs.cover_optimum()
    for run in (hungarian, min_cost_flow):
        assert run(freeform(pairs)).objective == pytest.approx(best, abs=pairs.slack(best))


@settings(max_examples=80)
@given(cases(smallest=5, largest=9, suppression=False), st.sampled_from(sorted(REFERENCES)))
def test_equal_to_the_plain_algorithms(case: Case, label: str) -> None:
    """Ties, dead ends and augmenting paths included, the sets are those of plain Python."""
    problem = freeform(case)
    assert sets_of(RUNS[label](problem)) == expected_sets(problem, REFERENCES[label])


@pytest.mark.crossed
@pytest.mark.parametrize("label", REFERENCES)
@pytest.mark.parametrize(
    ("n", "k"),
    [
        *((14, 4), (14, 8), (14, 10), (14, 14), (40, 21), (70, 5)),
        pytest.param(150, 5, marks=pytest.mark.thorough),
    ],
)
def test_equal_to_the_plain_algorithms_on_people(label: str, n: int, k: int) -> None:
    """Blocks rule out nothing that counts, and are made anew when half of them is full."""
    problem = Problem(census(n, 8, seed=n), k, recoding=Freeform())
    assert sets_of(RUNS[label](problem)) == expected_sets(problem, REFERENCES[label])


@pytest.mark.parametrize("seed", range(12))
def test_weights_are_those_of_the_definition(seed: int) -> None:
    """Where sums are exact the plain algorithms find the same with brute force's losses."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 13))
    k = int(rng.integers(2, n + 1))
    between = [rng.integers(0, 2**20, n - 2) / 2**20 for _ in range(2)]
    numbers = [Column((0.0, *values.tolist(), 1.0)) for values in between]
    texts = Column((*"pqr", *rng.choice(list("pqr"), n - 3).tolist()), numeric=False)
    case = Case((*numbers, texts), k, LOSSES["gcp"])
    problem = freeform(case)
    rounds = Rounds(problem, "test", Budget())

    def weight(one: list[int], record: int) -> float:
        held = rounds.order[one].tolist()
        return case.set_loss([*held, int(rounds.order[record])]) - case.set_loss(held)

    def loss(one: list[int]) -> float:
        return case.set_loss(rounds.order[one].tolist())

    for label, reference in REFERENCES.items():
        more = {"loss": loss} if reference is sort_greedy_sets_by_loss else {}
        expected = reference(n, k, weight, **more)
        assert sets_of(RUNS[label](problem)) == in_table(rounds, expected), label


@settings(max_examples=40)
@given(cases(smallest=4, largest=6, suppression=False))
def test_hungarian_rounds_are_the_best_of_all(case: Case) -> None:
    """Losses after each round fall by no more and no less than the best permutation allows."""
    problem = freeform(case)
    covers = [[[record] for record in range(case.n)]]
    for size in range(2, case.k + 1):
        covers.append(sets_of(hungarian(problem.replace(k=size))))

    def weight(one: list[int], record: int) -> float:
        return case.set_loss([*one, record]) - case.set_loss(one)

    for before, after in pairwise(covers):
        rise = math.fsum(map(case.set_loss, after)) - math.fsum(map(case.set_loss, before))
        starts = [[i, *(other for other in one if other != i)] for i, one in enumerate(before)]
        assert all(set(one) <= set(other) for one, other in zip(before, after, strict=True))
        least = cheapest_round(starts, weight)
        assert rise == pytest.approx(least, abs=case.slack(math.fsum(map(case.set_loss, after))))


@settings(max_examples=40)
@given(
    cases(smallest=4, largest=8, suppression=False),
    st.sampled_from(["loss", "increase"]),
    st.sampled_from(["published", "originals"]),
)
def test_every_round_of_sort_greedy_is_a_perfect_matching(
    case: Case, weight: str, repair: str
) -> None:
    """Each round gives every set one record more and every record one set more, for any option."""
    problem = freeform(case)
    run = partial(sort_greedy, weight=weight, repair=repair)
    covers = [[[record] for record in range(case.n)]]
    for size in range(2, case.k + 1):
        covers.append(sets_of(run(problem.replace(k=size))))
    for before, after in pairwise(covers):
        pairs = zip(before, after, strict=True)
        added = [sorted(set(new) - set(old)) for old, new in pairs]
        assert sorted(added) == [[record] for record in range(case.n)]
    solution = run(problem)
    assert solution.options == {"weight": weight, "repair": repair, "reciprocal": False}
    best = case.cover_optimum()
    assert solution.objective >= best - case.slack(best)


@settings(max_examples=60)
@given(cases(smallest=4, largest=8, suppression=False))
def test_reciprocal_covers(case: Case) -> None:
    """Sets are reciprocal, of k records, or of k + 1 where n is odd and k even."""
    assume(case.k < case.n or case.n * (case.k - 1) % 2 == 0)
    problem = freeform(case, Freeform(reciprocal=True))
    size = case.k + (case.n * (case.k - 1)) % 2
    for label, run in BOTH_WAYS.items():
        note(label)
        for solution in (run(problem), RUNS[label](problem)):
            sets = sets_of(solution)
            assert {len(one) for one in sets} == {size}
            assert all(i in sets[other] for i, one in enumerate(sets) for other in one)
            check_loss(case, solution)
            assert solution.options["reciprocal"] is True
        assert sets_of(run(freeform(case))) == sets


@settings(max_examples=20)
@given(cases(smallest=4, largest=6, suppression=False))
def test_reciprocal_hungarian_never_beats_the_freeform_optimum(case: Case) -> None:
    """What is asked beyond freeform cannot make the loss less."""
    best = case.cover_optimum()
    for run in BOTH_WAYS.values():
        loss = run(freeform(case)).objective
        assert loss >= best - case.slack(best)


@settings(max_examples=60)
@given(cases(smallest=4, largest=6, suppression=False), st.data())
def test_degrees_of_single_records(case: Case, data: st.DataObject) -> None:
    """Degrees that some cover has are kept; those that none has are refused, rightly."""
    degrees = data.draw(st.lists(st.integers(case.k, case.n), min_size=case.n, max_size=case.n))
    problem = freeform(case, Freeform(degrees=tuple(degrees)))
    best = case.cover_optimum(degrees)
    for label in sorted(RUNS.keys() - {"hungarian"}):
        note(label)
        if math.isinf(best):
            with pytest.raises(NoSolution, match="degrees"):
                RUNS[label](problem)
            continue
        solution = RUNS[label](problem)
        assert [len(one) for one in sets_of(solution)] == degrees
        check_loss(case, solution)
        assert solution.objective >= best - case.slack(best)


@settings(max_examples=40)
@given(cases(smallest=4, largest=6, suppression=False), st.data())
def test_reciprocal_covers_with_degrees(case: Case, data: st.DataObject) -> None:
    """A cover is right or refused; an odd number of matches never is one."""
    degrees = data.draw(st.lists(st.integers(case.k, case.n), min_size=case.n, max_size=case.n))
    problem = freeform(case, Freeform(reciprocal=True, degrees=tuple(degrees)))
    for run in (greedy, sort_greedy):
        try:
            solution = run(problem)
        except NoSolution:
            continue
        assert [len(one) for one in sets_of(solution)] == degrees
        assert sum(degrees) % 2 == case.n % 2


@settings(max_examples=60)
@given(ruled_cases())
def test_limits_are_kept_or_nothing_is_returned(case: Case) -> None:
    """Under limits a cover keeps them and is not below the optimum, or there is none."""
    rules = None if case.rules is None else Rules(caps=case.rules.caps, apart=case.rules.apart)
    limited = Case(case.columns, case.k, case.loss, rules=rules, worst=case.worst)
    problem, best = freeform(limited), limited.cover_optimum()
    for label, run in EVERY.items():
        note(label)
        try:
            solution = run(problem)
        except NoSolution:
            assert rules is not None or "both ways" in label
            continue
        check_loss(limited, solution)
        assert solution.objective >= best - case.slack(best)


@settings(max_examples=25)
@given(tables(), st.sampled_from([FALLING, PRODUCT, SWINGING]), st.integers(2, 4))
def test_losses_that_are_not_monotone_or_have_no_tables(
    columns: tuple[Column, ...], loss: Loss, k: int
) -> None:
    """Any loss of published records is accepted; the weights are its true increases."""
    case = Case(columns, k, loss)
    best = case.cover_optimum()
    every: list[Run] = [*RUNS.values(), partial(greedy, reciprocal=k % 2 == 1)]
    for run in every:
        solution = run(freeform(case))
        check_loss(case, solution)
        assert solution.objective >= best - 1e-9
        assert solution.trace == ()


def test_loss_without_tables_on_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the largest matrix the weights are those of GCP, and the solution says so."""
    run = RUNS["sort-greedy as in the text"]
    problem = Problem(census(60, 3, seed=2), 3, Freeform(), PRODUCT.objective)
    exact = run(problem)
    monkeypatch.setattr(freeform_rounds, "NUMBERS", FreeformNumbers(untabled=50))
    rough = run(problem)
    assert "GCP" in " ".join(rough.trace)
    plain = run(Problem(census(60, 3, seed=2), 3, Freeform()))
    assert sets_of(rough) == sets_of(plain) != sets_of(exact)


def test_loss_of_members() -> None:
    """Squared errors, spread over the members, are weights too: the pairs are the best ones."""
    problem = Problem(census(40, 3, seed=5), 2, Freeform(), SSE())
    rows = np.array([(i, other) for i in range(40) for other in range(40)])
    costs = problem.compiled.class_losses(rows).reshape(40, 40) / 2
    np.fill_diagonal(costs, np.inf)
    best = costs[linear_sum_assignment(costs)].sum()
    assert hungarian(problem).objective == pytest.approx(best)
    assert sort_greedy(problem).objective >= best


def test_largest_loss_of_a_record() -> None:
    """A bottleneck is the largest loss of the covers that the sum would get."""
    people = census(80, 4, seed=1)
    summed = greedy(Problem(people, 3, Freeform()))
    worst = greedy(Problem(people, 3, Freeform(), Bottleneck()))
    assert sets_of(worst) == sets_of(summed)
    losses = summed.problem.compiled.losses_of(summed.description)
    assert worst.objective == pytest.approx(losses.max())


@pytest.fixture(scope="module")
def people() -> Problem:
    """Return a table that every heuristic needs several steps for."""
    return Problem(census(150, 5, seed=3), 6, recoding=Freeform())


def test_the_better_the_rule_the_less_the_loss() -> None:
    """On people Hungarian beats SortGreedy, which beats Greedy (Doka et al., Section 8)."""
    problem = Problem(census(400, 8, seed=1), 8, recoding=Freeform())
    losses = [run(problem).objective for run in (hungarian, sort_greedy, greedy)]
    assert losses == sorted(losses)
    assert losses[-1] < greedy(problem, chooser="originals").objective


@pytest.mark.thorough("1000-50-0.2541")
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("n", "k", "gcp"), [(200, 50, 0.4042), (1_000, 10, 0.0956), (1_000, 50, 0.2541)]
)
def test_sort_greedy_loses_what_the_authors_program_loses(n: int, k: int, gcp: float) -> None:
    """Weighed by the loss to come, the first records of CENSUS lose within 1 % of the authors'."""
    data = load_instance("census-10k").take(np.arange(n))
    problem = Problem(data, k, recoding=Freeform())
    found = sort_greedy(problem)
    assert found.gcp == pytest.approx(gcp, rel=0.01)
    assert found.options["weight"] == "loss"
    assert RUNS["sort-greedy as in the text"](problem).gcp > 1.03 * gcp


def test_narrow_records_choose_first() -> None:
    """The increase lets wide records choose first, which loses more; in one round both agree."""
    people = census(300, 8, seed=1)
    worded = RUNS["sort-greedy as in the text"]
    large = Problem(people, 20, recoding=Freeform())
    assert sort_greedy(large).objective < 0.97 * worded(large).objective
    pairs = Problem(people, 2, recoding=Freeform())
    by_loss = sort_greedy(pairs, repair="originals")
    assert sets_of(by_loss) == sets_of(worded(pairs))


@pytest.mark.thorough
def test_single_precision_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables keep their weights in single precision and lose next to nothing by it."""
    problem = Problem(census(200, 6, seed=4), 2, recoding=Freeform())
    exact = {run: run(problem).objective for run in (hungarian, min_cost_flow)}
    monkeypatch.setattr(freeform_rounds, "NUMBERS", FreeformNumbers(double=10))
    for run, loss in exact.items():
        rough = run(problem).objective
        assert loss - 1e-9 <= rough <= loss * (1 + 1e-5)


@pytest.mark.parametrize("label", EVERY)
def test_what_is_refused(people: Problem, label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other recodings and diversities are refused with what to use instead."""
    with pytest.raises(InputError, match="recoding='freeform'"):
        EVERY[label](Problem(people.microdata, 3))
    with pytest.raises(InputError, match=r"diversity.*ring or freeform-mip"):
        EVERY[label](diverse(people, ["flu", "cold", "cough"] * 50))


def test_what_single_methods_refuse(people: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hungarian refuses several degrees, min-cost-flow reciprocity, both too many records."""
    degrees = Freeform(degrees=(7,) * 75 + (6,) * 75)
    with pytest.raises(InputError, match="sort-greedy"):
        hungarian(people.replace(recoding=degrees))
    with pytest.raises(InputError, match="reciprocal"):
        min_cost_flow(people.replace(recoding=Freeform(reciprocal=True)))
    with pytest.raises(InputError, match="chooser"):
        greedy(people, chooser="both")
    with pytest.raises(InputError, match="unknown weight"):
        sort_greedy(people, weight="gain")
    with pytest.raises(InputError, match="unknown repair"):
        sort_greedy(people, repair="both")
    monkeypatch.setattr(freeform_rounds, "NUMBERS", FreeformNumbers(all_pairs=100))
    for run in (hungarian, min_cost_flow):
        with pytest.raises(InputError, match="sort-greedy"):
            run(people)
