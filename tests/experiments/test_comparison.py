"""Tests of comparisons: what each loss is measured against, and how rows are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    METHODS,
    SSE,
    Bottleneck,
    Bound,
    Budget,
    Cap,
    Classes,
    Diversity,
    EquivalenceClasses,
    Freeform,
    HierarchyLoss,
    InputError,
    MethodOption,
    Problem,
    Progress,
    Solution,
    UnsupportedObjective,
    census,
    compare,
    load_instance,
    lower_bound,
    objective,
    register_method,
)
from anonymip.experiments.comparison import COLUMNS
from anonymip.experiments.running.runs import COLUMNS as TIDY
from anonymip.methods import registry
from tests.by_hand import table_of

HEURISTICS = [
    spec.name
    for spec in METHODS.values()
    if spec.role == "heuristic"
    and spec.solves("classes")
    and not {"diversity", "numeric"} & set(spec.needs)
    and spec.solves_for(3)
]


@pytest.mark.parametrize(
    "ks", [2, np.int64(2), [2], (2,), range(2, 3), np.array([2]), pd.Series([2]), iter([2]), None]
)
def test_one_k_or_several(ks: Any) -> None:
    """A number alone is one k, anything to go through several, and nothing the problem's own."""
    table = compare(Problem(load_instance("health-records"), 2), ks, "mondrian")
    assert [(row.solution.problem.k, row.solution.method) for row in table.rows] == [
        (2, "mondrian")
    ]


@pytest.mark.parametrize("ks", ["2-6", 2.5, []])
def test_other_values_of_k_are_refused(ks: Any) -> None:
    """The command line's texts, fractions and nothing at all are no values of k."""
    with pytest.raises(InputError, match=r"^ks (is|holds)"):
        compare(Problem(load_instance("health-records"), 2), ks, "mondrian")


@pytest.fixture
def own_methods() -> Iterator[None]:
    """Forget methods that a test registers."""
    before = dict(registry._methods)
    yield
    registry._methods.clear()
    registry._methods.update(before)


def health(k: int = 3) -> Problem:
    """Return the health records, 7 rows."""
    return Problem(load_instance("health-records"), k=k)


def test_gaps_to_the_optimum() -> None:
    """Where a method proves the optimum, all losses of that k are measured against it."""
    table = compare(health(), [2, 3], ["initial", "mondrian"], exact=True)
    assert [(row.solution.problem.k, row.solution.method) for row in table.rows] == [
        (k, method) for k in (2, 3) for method in ("initial", "mondrian", "column-generation")
    ]
    for k in (2, 3):
        rows = [row for row in table.rows if row.solution.problem.k == k]
        optimum = rows[-1].solution
        assert optimum.is_optimal
        for row in rows:
            loss = row.solution.objective
            assert row.against == "optimum"
            assert row.reference == optimum.objective
            assert row.gap == pytest.approx((loss - optimum.objective) / loss)
            # A heuristic that meets the optimum is optimal by the other's proof, no other is.
            assert row.solution.is_optimal == (row.gap == 0)
    assert table.rows[0].gap > 0.5  # type: ignore[operator]
    assert table.rows[1].gap == 0


def test_gaps_to_the_best_bound() -> None:
    """Where no optimum is proven, losses are measured against the best bound, and it is said."""
    problem = Problem(census(60, 4, 1), k=3)
    table = compare(problem, [3], ["mondrian", "k-member"])
    bound = lower_bound(problem)
    assert bound is not None
    for row in table.rows:
        loss = row.solution.objective
        assert row.against == "bound"
        # The linear program starts from other sets, and ends at the same value but for rounding.
        assert row.reference == pytest.approx(bound.value)
        assert row.solution.bound is not None
        assert row.solution.bound.value == row.reference
        assert row.gap == pytest.approx((loss - bound.value) / loss)
        assert not row.solution.is_optimal


def test_a_better_bound_serves_all_rows(own_methods: None) -> None:
    """A bound that one method proves is shared by all, and beats the one without a solver."""
    problem = Problem(census(60, 4, 1), k=3)
    weaker = lower_bound(problem)
    assert weaker is not None
    better = weaker.value * 1.01

    @register_method("prover")
    def prover(problem: Problem, *, budget: Any = None, seed: int = 0) -> Solution:
        one_class = Classes(np.zeros(problem.n, np.int64))
        bound = Bound(better, "prover", "argument")
        return Solution.of(problem, one_class, method="prover", bound=bound)

    table = compare(problem, [3], ["mondrian", "prover"])
    assert [row.reference for row in table.rows] == [better, better]
    assert [row.against for row in table.rows] == ["bound", "bound"]


def test_a_bound_that_is_met_is_an_optimum() -> None:
    """Duplicates throughout cost nothing: the bound 0 is met, and the gap is 0, not undefined."""
    data = table_of({"age": [1, 1, 5, 5], "sex": ["F", "F", "M", "M"]})
    (row,) = compare(Problem(data, k=2), [2], ["mondrian"]).rows
    assert (row.solution.objective, row.reference, row.gap) == (0.0, 0.0, 0.0)
    assert row.against == "optimum"
    assert row.solution.is_optimal


def test_nothing_to_measure_against() -> None:
    """Without a bound the gap is unknown, in numbers and in words."""

    @objective
    def falling(record: Any) -> Any:
        return -record.spread["Age"]

    problem = Problem(load_instance("health-records"), k=3, objective=falling)
    table = compare(problem, [3], ["mondrian"])
    (row,) = table.rows
    assert (row.reference, row.gap, row.against) == (None, None, "nothing")
    (text,) = table.texts()
    shown = dict(zip(COLUMNS, text, strict=True))
    assert (shown["bound"], shown["gap"], shown["to"]) == ("unknown", "unknown", "nothing")
    assert pd.isna(table.to_frame()["bound"][0])
    measured, _ = compare(problem, [3], ["mondrian"], exact=True).rows
    assert measured.against == "optimum"


def test_all_heuristics_by_default() -> None:
    """Without names the heuristics of the recoding run, each once, in the registry's order."""
    methods = [row.solution.method for row in compare(health(), [3]).rows]
    assert methods == HEURISTICS
    exact = [row.solution.method for row in compare(health(), [3], exact=True).rows]
    assert exact == [*HEURISTICS, "column-generation"]
    twice = compare(health(), [3], ["mondrian", "column-generation", "mondrian"], exact=True)
    assert [row.solution.method for row in twice.rows] == ["mondrian", "column-generation"]


def test_a_method_from_outside_is_compared(own_methods: None) -> None:
    """A registered heuristic runs with the others and gets its options."""

    @register_method("one-class", options=(MethodOption("label", 0, "its label"),))
    def one_class(
        problem: Problem, *, budget: Any = None, seed: int = 0, label: int = 0
    ) -> Solution:
        labels = np.full(problem.n, label)
        return Solution.of(problem, Classes(labels), method="one-class", options={"label": label})

    table = compare(health(), [3], options={"one-class": {"label": "5"}})
    last = table.rows[-1].solution
    assert last.method == "one-class"
    assert last.options["label"] == 5
    assert last.gcp == 1.0


def test_bad_arguments_stop_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown method, an idle option or a k above n is refused before any method runs."""

    def never(*arguments: Any, **settings: Any) -> None:
        raise AssertionError("a method ran")

    monkeypatch.setattr("anonymip.experiments.comparison.solve", never)
    with pytest.raises(InputError, match="unknown method 'simplex'"):
        compare(health(), [3], ["mondrian", "simplex"])
    with pytest.raises(InputError, match="'k-member', which is not compared"):
        compare(health(), [3], ["mondrian"], options={"k-member": {"search": "scan"}})
    with pytest.raises(InputError, match="k is 8, but the table has 7"):
        compare(health(), [2, 8], ["mondrian"])


def test_what_one_method_refuses_is_a_row() -> None:
    """A method that does not take the problem has its reason for a row; if all refuse, an error."""
    table = compare(health(), [3], ["mondrian", "anatomy"])
    assert [row.solution.method for row in table.rows] == ["mondrian"]
    assert table.complete
    ((k, method, reason),) = table.failures
    assert (k, method) == (3, "anatomy")
    assert "needs a diversity" in reason
    assert table.to_frame()["status"][1] == reason
    record = table.to_records()[1]
    assert (record["method"], record["n"], record["k"]) == ("anatomy", 7, 3)
    assert (record["status"], record["reason"]) == ("no-solution", reason)
    assert record["loss"] is record["objective"] is None
    with pytest.raises(UnsupportedObjective, match="needs a diversity"):
        compare(health(), [3], ["anatomy"])


def test_the_frame() -> None:
    """The frame has one row per k and method, with numbers as they are."""
    table = compare(health(), [2, 3], ["mondrian", "initial"], exact=True)
    frame = table.to_frame()
    before = [
        *("k", "method", "objective", "gcp", "bound", "gap", "to", "seconds", "classes"),
        *("smallest", "largest", "suppressed", "status"),
    ]
    assert list(frame.columns) == [*before, *(name for name in TIDY if name not in before)]
    assert frame["loss"].tolist() == frame["objective"].tolist()
    assert set(frame["objective_name"]) == {"gcp"}
    assert frame["k"].tolist() == [2, 2, 2, 3, 3, 3]
    assert frame["objective"].tolist() == [row.solution.objective for row in table.rows]
    assert frame["gap"].tolist() == [row.gap for row in table.rows]
    assert (frame["smallest"] >= frame["k"]).all()
    assert frame["suppressed"].tolist() == [0] * 6
    assert frame["gcp"].tolist() == pytest.approx((frame["objective"] / 21).tolist())


def test_texts_say_optimal_only_with_a_proof() -> None:
    """The word optimal stands in the rows that are proven optimal and in no others."""
    table = compare(health(), [2, 3], exact=True)
    proven = [row.solution.is_optimal for row in table.rows]
    assert [("optimal" in " ".join(text)) for text in table.texts()] == proven
    assert any(proven)
    assert not all(proven)


def test_markdown_is_a_table_of_the_texts() -> None:
    """The Markdown has a header, a rule and one line per row, with the same cells."""
    table = compare(health(), [3], ["mondrian", "initial"])
    lines = table.to_markdown().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == list(COLUMNS)
    assert set(lines[1]) == {"|", "-"}
    assert cells[2:] == table.texts()


def test_a_time_limit_holds_for_each_run() -> None:
    """An exact method that is cut short leaves a bound for all, and nothing is called optimal."""
    # A bound takes less than the limit on a busy machine too, and a proof far more on any.
    problem = Problem(census(100, 8, 1), k=5)
    table = compare(problem, [5], ["mondrian"], exact=True, time_limit=1.0)
    assert {row.against for row in table.rows} == {"bound"}
    assert table.rows[1].solution.status.stopped.value == "time-limit"
    assert not any(row.solution.is_optimal for row in table.rows)


def test_an_interrupted_comparison_says_so() -> None:
    """Ctrl-C ends the whole comparison, also if the running method ends by itself."""

    @register_method("impatient", source="test")
    def impatient(problem: Problem, *, budget: Budget, seed: int) -> Solution:
        budget.interrupt()
        return Solution.of(problem, Classes(np.zeros(problem.n, int)), method="impatient")

    problem = Problem(load_instance("health-records"), 3)
    try:
        found = compare(problem, [2, 3], ["impatient", "mondrian"])
    finally:
        registry._methods.pop("impatient")
    assert not found.complete
    assert [row.solution.method for row in found.rows] == ["impatient"]
    assert found.rows[0].solution.bound is not None
    assert compare(problem, [3], ["mondrian"]).complete


@objective
def together(record: Any) -> Any:
    """Charge what two attributes lose together: general."""
    return record.spread["Age"] * record.spread["Town"] + record.spread["Job"]


@pytest.mark.parametrize("loss", [HierarchyLoss(), Bottleneck(), together])
def test_hierarchies_rules_and_every_tier(loss: Any) -> None:
    """Without names those heuristics run that accept the objective; all rows obey the rules."""
    problem = Problem(
        load_instance("clinic-12"),
        3,
        objective=loss,
        diversity=Diversity(distinct=2),
        limits=(Cap("Town", 2),),
    )
    table = compare(problem, [3], instance="clinic-12")
    fitting = [
        spec.name
        for spec in METHODS.values()
        if spec.role == "heuristic"
        and spec.recoding == "classes"
        and spec.solves_for(3)
        and spec.obstacle(problem) is None
    ]
    assert [row.solution.method for row in table.rows] == fitting
    for row in table.rows:
        solution = row.solution
        assert solution.problem.diversity == problem.diversity
        assert solution.problem.limits == problem.limits
        assert solution.bound is None or solution.bound.value <= solution.objective
        assert set(solution.to_frame()["Town"]) & {"*"} == set()
    assert len(table.to_frame()) == len(fitting)


def test_a_bound_that_is_no_nearest_neighbour() -> None:
    """Squared errors are measured against a bound of their own."""
    problem = Problem(census(30, 3, 1), 3, objective=SSE())
    rows = compare(problem, [3]).rows
    assert {row.against for row in rows} == {"bound"}
    assert all(0 < (row.reference or 0) <= row.solution.objective for row in rows)


def test_no_exact_method_fits() -> None:
    """Who asks for the optimum learns why it cannot be had, instead of getting none."""
    exact = [spec for spec in METHODS.values() if spec.role == "exact"]
    problem = Problem(load_instance("clinic-12"), 3, objective=together)
    fitting = [spec for spec in exact if spec.recoding == "classes" and not spec.obstacle(problem)]
    if fitting:
        names = [row.solution.method for row in compare(problem, [3], ["initial"], exact=True).rows]
        assert names == ["initial", fitting[0].name]
    else:
        with pytest.raises(UnsupportedObjective, match="together"):
            compare(problem, [3], ["initial"], exact=True)


class OwnErrors(SSE):
    """Squared errors that no search knows: what a subclass charges may be something else."""


@pytest.mark.thorough
def test_an_exact_method_that_takes_no_such_loss() -> None:
    """Its rows say why, whether it refuses at once or in the end; the other rows are there."""
    heuristic, method, reason = "initial", "column-generation", "lists the possible sets"
    problem = Problem(census(60, 3, 1), 3, EquivalenceClasses(), OwnErrors())
    table = compare(problem, [3, 4], [heuristic], exact=True)
    assert [row.solution.method for row in table.rows] == [heuristic] * 2
    assert table.complete
    assert [(k, name) for k, name, _ in table.failures] == [(3, method), (4, method)]
    shown = table.texts()
    assert [row[:2] for row in shown] == [
        *(["3", heuristic], ["3", method]),
        *(["4", heuristic], ["4", method]),
    ]
    assert reason in shown[1][-1]
    assert reason in shown[3][-1]
    assert reason in table.to_frame()["status"][1]
    assert reason in table.to_markdown()


def test_an_exact_method_alone_that_takes_no_such_loss() -> None:
    """Where nothing else ran the refusal is the answer, as it is of a method that is named."""
    problem = Problem(census(60, 3, 1), 3, Freeform(), SSE())
    with pytest.raises(UnsupportedObjective, match="looks at the members"):
        compare(problem, [3], ["freeform-mip"], exact=True)


def test_the_time_left_of_a_comparison_is_that_of_all_its_runs() -> None:
    """With a limit for each run the listener hears what all to come may take: it only falls."""
    heard: list[Progress] = []
    problem = Problem(census(300, 4, seed=0), 3)
    compare(problem, [2, 3], ["mondrian", "k-member"], time_limit=100, progress=heard.append)
    left = [message.remaining or 0.0 for message in heard]
    assert 500 < left[0] <= 600
    assert 0 < left[-1] <= 100
    assert left == sorted(left, reverse=True)
