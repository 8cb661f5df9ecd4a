"""`auto` picks as documented and says what it picked."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    GCP,
    KK,
    Bottleneck,
    Cap,
    Cover,
    Diversity,
    EquivalenceClasses,
    Freeform,
    InputError,
    KConcealment,
    KOne,
    NoSolution,
    OneK,
    Problem,
    Solution,
    census,
    load_instance,
    objective,
    publish,
    solve,
)
from anonymip.effort import EFFORTS
from anonymip.errors import AnonymipError
from anonymip.methods import METHODS, selection
from anonymip.methods.selection import REACH, auto
from anonymip.models import model_size
from anonymip.objectives.language.protocol import FunctionObjective
from anonymip.recodings import Recoding
from anonymip.runtime.budget import Budget
from anonymip.warm_up import run_for_kernels
from tests import profiles
from tests.brute_force import Column
from tests.by_hand import diverse, table_of
from tests.hard_losses import FALLING
from tests.random_problems import LOSSES, Case


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile what the time limits of these tests leave no time for."""
    for name in ("reassign", "freeform-mip"):
        run_for_kernels(name, Budget())


def line(n: int, loss: str = "gcp") -> Problem:
    """Return the records 0, 1, 4, 9, ... of one attribute, k = 2."""
    column = Column(tuple(float(value * value) for value in range(n)))
    case = Case((column,), 2, FALLING if loss == "falling" else LOSSES[loss])
    return case.problem()


@pytest.mark.parametrize("n", [2, 12, 40, 300])
def test_some_hundred_records_are_solved_to_optimality(n: int) -> None:
    """Column generation runs, and the solution says why."""
    solution = solve(line(n))
    assert solution.method == "column-generation"
    assert solution.is_optimal
    assert solution.trace[0] == f"auto picked column-generation: {n} records, k = 2: provable"


def test_larger_tables_get_local_search() -> None:
    """What is proven depends on the effort."""
    problem = line(800)
    solution = solve(problem)
    assert solution.method == "local-search"
    reason = "auto picked local-search: more than 100,000 possible classes"
    assert solution.trace[0].startswith(reason)
    picked = {effort: selection._pick(problem, effort)[0][0].name for effort in EFFORTS}
    assert picked["thorough"] == "column-generation"


def test_objectives_that_are_not_monotone_are_solved_too() -> None:
    """Set partitioning takes any loss."""
    solution = solve(line(5, "falling"))
    assert solution.method == "equivalence-mip"
    assert solution.is_optimal
    classes = model_size(solution.problem, "set-partition")
    reason = f"auto picked equivalence-mip: {classes:,} possible classes: provable"
    assert solution.trace[0] == reason


def test_settings_reach_the_method_that_takes_them() -> None:
    """The solver asked for is the one used; local search takes none."""
    assert str(solve(line(5, "falling"), solver="cbc").solver).startswith("CBC")
    assert auto(Problem(census(800, 3, seed=0), 3), solver="cbc", gap=0.1).solver is None


@pytest.mark.parametrize(
    ("n", "k", "method"),
    [(14, 3, "column-generation"), (300, 2, "freeform-mip"), (300, 4, "column-generation")],
)
def test_freeform_by_size(n: int, k: int, method: str) -> None:
    """Pairs are an assignment problem; covers of some hundred records are proven."""
    solution = solve(Problem(census(n, 3, seed=0), k, Freeform()))
    assert solution.method == method
    assert solution.is_optimal
    assert solution.trace[0].startswith(f"auto picked {method}: ")


@pytest.mark.parametrize(
    ("n", "k", "effort", "method", "part"),
    [
        (900, 5, "normal", "reassign", None),
        (3_000, 5, "normal", "reassign", 1_000),
        (3_000, 5, "thorough", "reassign", 1_500),
        (3_000, 30, "quick", "hungarian", 1_000),
        (100_000, 5, "normal", "hungarian", 1_000),
        (100_000, 5, "quick", "hungarian", 480),
        (100_000, 100, "normal", "ring", None),
    ],
)
def test_freeform_by_effort(n: int, k: int, effort: str, method: str, part: int | None) -> None:
    """Parts are solved with as much work as the effort allows, rings take hardly any."""
    problem = Problem(census(n, 8, seed=0), k, Freeform())
    (choice,), _ = selection._pick(problem, effort)
    assert (choice.name, choice.options.get("part")) == (method, part)


def test_reciprocal_covers_by_effort() -> None:
    """They have no parts: the whole table is improved where that ends in time, else rings serve."""
    problem = Problem(census(7_500, 3, seed=0), 5, Freeform(reciprocal=True))
    picked = {effort: selection._pick(problem, effort)[0][0].name for effort in EFFORTS}
    assert picked == {"quick": "ring", "normal": "ring", "thorough": "reassign"}
    few = problem.replace(microdata=census(7_000, 3, seed=0))
    assert selection._pick(few, "normal")[0][0].name == "reassign"


@pytest.mark.crossed
@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform(), KConcealment()])
def test_no_clock_decides_what_an_effort_finds(recoding: Recoding, effort: str) -> None:
    """A time limit far away changes nothing, whatever is picked; the options name the effort."""
    problem = Problem(census(60 if profiles.NAME == "thorough" else 30, 5, seed=2), 4, recoding)
    free, timed = solve(problem, effort=effort), solve(problem, effort=effort, time_limit=900)
    assert free.description.lower.tolist() == timed.description.lower.tolist()
    assert free.description.upper.tolist() == timed.description.upper.tolist()
    assert (free.trace, dict(free.options)) == (timed.trace, dict(timed.options))
    assert free.options.get("effort", effort) == effort


@pytest.mark.thorough
def test_a_weaker_notion_loses_no_more_than_covers() -> None:
    """What promises more is a release too: k-concealment takes it where it is better."""
    problem = Problem(census(80, 6, seed=1), 5, KConcealment())
    own, covers = solve(problem, "k-concealment"), problem.replace(recoding=Freeform())
    most = min(own.objective, solve(covers).objective)
    assert solve(problem).objective <= most * (1 + 1e-12)


@pytest.mark.parametrize("notion", [*profiles.thorough("k-concealment"), "one-k"])
def test_more_effort_for_a_weaker_notion(notion: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best cover is proven only where sets of the notion's own do not lose less than covers."""
    problem = Problem(census(40, 8, seed=1, mixed=True), 5, notion)
    asked: list[str] = []
    whole = selection._cover_or_own

    def seen(one: Problem, fits: bool, budget: Any, settings: Any, effort: str) -> Solution:
        asked.append(effort)
        return whole(one, fits, budget, settings, effort)

    monkeypatch.setattr(selection, "_cover_or_own", seen)
    normal, thorough = (solve(problem, effort=effort) for effort in ("normal", "thorough"))
    assert thorough.objective <= normal.objective * (1 + 1e-12)
    assert asked == ["normal", "normal"]
    cover = solve(problem.replace(recoding=Freeform()), effort="thorough")
    monkeypatch.setattr(selection, "_run", no_sets(selection._run))
    assert solve(problem, effort="thorough").objective <= cover.objective * (1 + 1e-12)
    assert asked[-1] == "thorough"


def no_sets(run: Any) -> Any:
    """Return a runner of methods that finds no sets of a notion's own."""

    def runs(choice: Any, *given: Any) -> Solution:
        if choice is selection._OWN:
            raise NoSolution("none", remedy="none")
        found: Solution = run(choice, *given)
        return found

    return runs


def test_models_begin_with_improved_classes() -> None:
    """What a model may not get to, local search has found before."""
    problem = Problem(census(15, 5, seed=3), 4, objective=Bottleneck())
    found = solve(problem)
    best = solve(problem, "local-search")
    assert found.method == "equivalence-mip"
    assert any(line.endswith("by local-search") for line in found.trace)
    assert found.objective <= best.objective * (1 + 1e-12)


def test_limits_that_exchanges_cannot_keep_are_kept_by_the_model() -> None:
    """A reciprocal cover with a cap is there, which the assignment in rounds does not find."""
    table = table_of({"a": list("xxyzxy")})
    problem = Problem(table, 3, Freeform(reciprocal=True), limits=(Cap("a", 2),))
    with pytest.raises(NoSolution):
        solve(problem, "reassign", options={"from_method": "hungarian"})
    assert solve(problem).objective == pytest.approx(1.5)


def test_who_cannot_be_paired_under_a_cap_is_left_out() -> None:
    """Of five records two pairs keep the cap, though no reciprocal cover of all of them does."""
    data = table_of({"a": [0, 0, 9, 9, 9], "b": [*"xxyyz"]})
    recoding = Freeform(reciprocal=True, suppression=True, most_suppressed=3)
    problem = Problem(data, 2, recoding, limits=(Cap("a", 0),))
    solution = solve(problem)
    assert solution.assignment.suppressed == 1
    assert solution.objective == pytest.approx(problem.compiled.suppression_price)
    assert solution.is_optimal


def test_classes_of_large_tables_are_improved() -> None:
    """Local search ends by effort, so that its table may be large."""
    problem = Problem(census(120_000, 8, seed=0), 5)
    (choice,), _ = selection._pick(problem, "quick")
    assert (choice.name, dict(choice.options)) == ("local-search", {})


@pytest.mark.thorough("general", "tables")
@pytest.mark.parametrize("case", ["tables", "pairs", "general", "general cover"])
def test_auto_is_no_worse_than_any_heuristic(case: str) -> None:
    """Where a single start is as much as a fifth above another's, several are made."""
    data = load_instance("census:30,4,1" if "general" in case else "census:60,4,1")
    chosen = FunctionObjective(_crossed, monotone=True) if "general" in case else GCP()
    recoding = Freeform() if case == "general cover" else EquivalenceClasses()
    problem = Problem(data, 2 if case == "pairs" else 5, recoding, chosen)
    losses = {}
    for name, spec in METHODS.items():
        if spec.role != "heuristic" or recoding.name not in (spec.recoding, *spec.also):
            continue
        try:
            losses[name] = solve(problem, name, bound=False).objective
        except AnonymipError:
            continue
    assert len(losses) >= 6
    assert solve(problem).objective <= min(losses.values()) * (1 + 1e-9)


def _crossed(record: Any) -> Any:
    names = list(record.spread)
    pairs = zip(names, names[1:] + names[:1], strict=True)
    return sum(record.spread[a] * (1 + record.spread[b]) for a, b in pairs)


def _tried(problem: Problem) -> list[str]:
    """Return what `auto` says of the release kept, and of the one that it was compared with."""
    found = solve(problem)
    picked = f"auto picked {found.trace[-1].split()[0]}"
    return [*found.trace, picked]


def test_concealment_by_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its own heuristic needs more than the effort allows a freeform cover is made."""
    n = 150 if profiles.NAME == "thorough" else 60
    problem = Problem(census(n, 3, seed=1), 3, KConcealment())
    assert any(line.startswith("auto picked k-concealment") for line in _tried(problem))
    monkeypatch.setitem(REACH, "quick", replace(REACH["quick"], concealed=float(n) ** 2))
    quick = solve(problem, effort="quick")
    assert quick.trace[0] == "a freeform cover is a k-concealment cover too"
    assert quick.options["effort"] == "quick"


def test_freeform_that_heuristics_refuse() -> None:
    """Rings keep a diversity, and take losses of any tier; within classes they lose less."""
    problem = diverse(Problem(census(60, 3, seed=1), 4, Freeform()), "abcdef" * 10)
    found = solve(problem)
    assert found.method == "local-search"
    assert found.objective < solve(problem, "nh").objective
    worst = Problem(census(300, 3, seed=0), 4, Freeform(), Bottleneck(GCP()))
    found = solve(worst)
    assert found.method == "local-search"
    assert found.objective < solve(worst, "ring").objective


@pytest.mark.parametrize("n", [9, 40])
def test_degrees_of_their_own(n: int) -> None:
    """Few records are proven; of more a heuristic that takes degrees is picked."""
    degrees = (4, *[3] * (n - 1))
    solution = solve(Problem(census(n, 2, seed=1), 3, Freeform(degrees=degrees)), time_limit=30)
    assert solution.method == ("freeform-mip" if n == 9 else "sort-greedy")
    assert solution.assignment.sizes.tolist() == list(degrees)  # type: ignore[union-attr]


@pytest.mark.thorough("60")
@pytest.mark.parametrize("n", [12, 60])
def test_concealment_with_a_diversity_is_published(n: int) -> None:
    """A freeform cover has what is asked for, and one that can be published is found."""
    problem = diverse(Problem(census(n, 3, seed=1), 4, KConcealment()), ("abcdef" * 10)[:n])
    release = publish(solve(problem, time_limit=30))
    assert release.manifest["recoding"] == "k-concealment"
    assert release.verify().problems == ()


@pytest.mark.crossed
@pytest.mark.parametrize("recoding", [OneK(), KOne(), KK(), KConcealment()])
@pytest.mark.parametrize("n", [8, 60])
def test_weaker_notions_are_solved(recoding: Recoding, n: int) -> None:
    """Small tables are proven, for larger ones a cover that has more than is asked for is taken."""
    solution = solve(Problem(census(n, 3, seed=1), 3, recoding), time_limit=30)
    assert solution.bound is not None
    assert solution.is_optimal or n > 8
    if n == 8:
        freeform = solve(Problem(census(n, 3, seed=1), 3, Freeform()), time_limit=30)
        assert solution.objective <= freeform.objective + 1e-9


@pytest.mark.crossed
@pytest.mark.parametrize("recoding", [OneK(), KOne(), KK(), KConcealment()])
@pytest.mark.parametrize(
    ("n", "loss"),
    [
        *[(8, "sse"), (14, "sse"), (8, "falling")],
        pytest.param(14, "falling", marks=pytest.mark.thorough),
    ],
)
def test_weaker_notions_take_any_loss(recoding: Recoding, n: int, loss: str) -> None:
    """Where neither model nor heuristics read the loss a freeform cover serves, of any size."""
    plain = line(n, "falling") if loss == "falling" else Problem(census(n, 4), 2, objective="sse")
    problem = plain.replace(recoding=recoding)
    assert solve(problem).objective <= solve(plain.replace(recoding=Freeform())).objective


@pytest.mark.parametrize("seed", [0, 1])
def test_covers_lose_no_more_than_classes_for_the_worst_record(seed: int) -> None:
    """A class holds a ring of sets of k, whose worst record loses no more; proven near the best."""
    classes = Problem(census(50, 8, seed, mixed=True), 3, objective=Bottleneck())
    found = solve(classes.replace(recoding=Freeform()))
    assert found.objective <= solve(classes).objective
    assert found.gap is not None
    assert found.gap < 0.05
    assert set(found.assignment.sizes.tolist()) == {3}


@pytest.mark.thorough("2-diversity2-recoding2", "2-diversity0-recoding0")
@pytest.mark.thorough("3-diversity4-recoding4", "3-diversity5-recoding5")
@pytest.mark.parametrize(
    ("k", "diversity", "recoding"),
    [
        (2, Diversity(2), Freeform()),
        (3, Diversity(2), Freeform()),
        (2, Diversity(2), Freeform(reciprocal=True)),
        pytest.param(3, Diversity(2), Freeform(reciprocal=True), marks=pytest.mark.thorough),
        (3, Diversity(distinct=2), Freeform()),
        (3, Diversity(1.5), KConcealment()),
    ],
)
def test_diverse_covers_lie_in_classes(k: int, diversity: Diversity, recoding: Recoding) -> None:
    """Rings in diverse classes lose less than those of partitions, and are published diverse."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": np.exp(rng.normal(size=60)), "y": rng.integers(0, 9, 60)})
    frame["s"] = rng.choice(list("abcd"), 60, p=[0.4, 0.3, 0.2, 0.1])
    data = table_of(frame, "s")
    problem = Problem(data, k, recoding, diversity=diversity)
    losses = [solve(problem, effort=effort).objective for effort in EFFORTS[:2]]
    parts = Problem(data, k, Freeform(getattr(recoding, "reciprocal", False)), diversity=diversity)
    assert losses[1] <= losses[0] < solve(parts, "nh").objective
    assert publish(solve(problem)).verify().ok


def test_diverse_covers_where_such_classes_cannot_be() -> None:
    """A value too frequent for classes of k leaves the next size of sets."""
    data = table_of({"x": range(20), "s": list("aabab" * 4)}, "s")
    solution = solve(Problem(data, 3, Freeform(), diversity=Diversity(1.6)))
    assert isinstance(solution.assignment, Cover)
    assert solution.assignment.sizes.min() > 3


@pytest.mark.thorough("1")
@pytest.mark.parametrize("seed", [1, 2, *profiles.thorough(0, 3)])
def test_a_cover_loses_no_more_than_classes(seed: int) -> None:
    """Classes are covers too: each holds a ring of sets."""
    data = census(150, 3, seed=seed)
    cover = solve(Problem(data, 5, Freeform()), effort="normal").objective
    assert cover <= solve(Problem(data, 5), effort="normal").objective + 1e-9


def test_a_diversity_of_missing_values_is_pointed_out() -> None:
    """A value and none are as diverse as two values, and tell nearly as much as one."""
    frame = pd.DataFrame({"age": [30, 30, 40, 40], "hiv": ["pos", "", "pos", "neg"]})
    for values, warned in ((frame, True), (frame.replace({"hiv": {"": "neg"}}), False)):
        data = table_of(values, "hiv")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            solve(Problem(data, 2, diversity=Diversity(distinct=2)))
        assert any("no value in 1 rows" in str(one.message) for one in seen) is warned


@pytest.mark.parametrize(
    "given", [{"gap": "x"}, {"gap": True}, {"time_limit": "5"}, {"time_limit": True}]
)
def test_settings_are_numbers(given: dict[str, Any]) -> None:
    """What is no number is refused by name."""
    with pytest.raises(InputError, match=r"relative_gap|time_limit"):
        solve(Problem(census(10, 2, seed=1), 2), **given)


def test_limits_that_no_freeform_cover_obeys() -> None:
    """The records between two far ones serve both in (k,1), whatever the loss, and nowhere else."""
    table = table_of({"q": [0.0, 4.0, 4.0, 6.0], "r": [1.0, 1.0, 2.0, 1.0]})

    @objective
    def largest(record: Any) -> Any:
        return np.maximum(record.spread["q"], record.spread["r"])

    limits: dict[str, Any] = {"limits": [Cap("q", 4.0)]}
    for loss, least in ((GCP(), 17 / 3), (largest, 4.0)):
        found = solve(Problem(table, 3, KOne(), loss, **limits))
        assert found.objective == pytest.approx(least)
        for notion in (OneK(), KK(), Freeform()):
            with pytest.raises(NoSolution):
                solve(Problem(table, 3, notion, loss, **limits))
