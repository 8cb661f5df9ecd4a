"""Tests of the penalties of the literature, by hand and against their definitions."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    SSE,
    Attribute,
    Bottleneck,
    Classes,
    EquivalenceClasses,
    Hierarchy,
    HierarchyLoss,
    InputError,
    InputWarning,
    LiangGCP,
    Microdata,
    Objective,
    Problem,
    SetGCP,
    Solution,
    Suppressions,
    UnsupportedObjective,
    WeightedLoss,
    build,
    compare,
    lower_bound,
    objective,
    publish,
    set_start,
    solve,
)
from anonymip.objectives import OBJECTIVES, CellBatch
from anonymip.objectives.language.protocol import declares
from anonymip.privacy import read_release
from anonymip.publishing.checking import loss_of_table
from anonymip.publishing.manifest import revealing_columns
from tests.by_hand import table_of
from tests.random_problems import LOSSES, Case, cases
from tests.test_project import REPOSITORY

#: Classes {0, 1, 2} and {3, 4} of the table below.
CLASSES = Classes(np.array([0, 0, 0, 1, 1]))


def table(**weights: float) -> Microdata:
    """Return five records: an integer of 0 to 100, four of five jobs, a constant town."""
    frame = pd.DataFrame(
        {"age": [20, 25, 40, 50, 70], "job": list("abcdd"), "town": ["x"] * 5, "year": [7] * 5}
    )
    return Microdata(
        frame,
        (
            Attribute("age", integer=True, domain=[0, 100], weight=weights.get("age", 1)),
            Attribute("job", "categorical", domain=list("abcde"), weight=weights.get("job", 1)),
            Attribute("town", "categorical", weight=weights.get("town", 1)),
            Attribute("year", weight=weights.get("year", 1)),
        ),
    )


def loss(
    objective: Objective,
    microdata: Microdata | None = None,
    classes: Classes = CLASSES,
    suppression: bool = False,
) -> float:
    """Return the loss of the classes."""
    recoding = EquivalenceClasses(suppression)
    problem = Problem(table() if microdata is None else microdata, 2, recoding, objective)
    return problem.compiled.total(recoding.describe(problem, classes))


def test_gcp_by_hand() -> None:
    """Doka et al., eqs. (1)-(3): widths 20 of 100; 3 values of 5 cost 2/4; constants nothing."""
    assert loss(GCP()) == pytest.approx(3 * (20 / 100 + 2 / 4) + 2 * (20 / 100))


def test_set_gcp_by_hand() -> None:
    """Wong et al., Def. 8: ranges of whole numbers count every number, here 21 of 101."""
    data = Microdata(table().frame, table().attributes[:3], drop=("year",))
    assert loss(SetGCP(), data) == pytest.approx(3 * (20 / 100 + 2 / 4) + 2 * (20 / 100))


def test_liang_gcp_by_hand() -> None:
    """Liang & Samavi, Defs. 8, 9, eq. (40): (3 - 1) / 5 for three of five values."""
    assert loss(LiangGCP()) == pytest.approx(3 * (20 / 100 + 2 / 5) + 2 * (20 / 100))


def test_weighted_loss_by_hand() -> None:
    """Liang & Samavi, eqs. (34), (35): weights are scaled to sum 1."""
    data = table(age=6, job=3, town=1, year=0)
    expected = 3 * (0.6 * 20 / 100 + 0.3 * 2 / 4) + 2 * 0.6 * 20 / 100
    assert loss(WeightedLoss(), data) == pytest.approx(expected)
    scaled = table(age=0.6, job=0.3, town=0.1, year=0)
    assert loss(WeightedLoss(), scaled) == pytest.approx(expected)


def test_section_2_5_splits_categories_into_binaries() -> None:
    """Each of the three published values costs 1/5, an exact one nothing."""
    data = table(age=0, job=1, town=0, year=0)
    assert loss(WeightedLoss("binary"), data) == pytest.approx(3 * (3 / 5))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_the_binary_split_is_no_equal_of_liang_gcp(count: int) -> None:
    """Section 2.5 gives count/|A| from two values on, eq. (40) (count - 1)/|A|: never equal."""
    data = table_of({"job": list("abcde")[:count] + list("abcde")})
    rest = np.arange(5) + 1 if count > 1 else np.array([0, 1, 2, 3, 4])
    classes = Classes(np.concatenate([np.zeros(count, np.int64), rest]))
    cells = EquivalenceClasses().describe(Problem(data, 2), classes)
    binary = WeightedLoss("binary").compile(data).total(cells)
    liang = LiangGCP().compile(data).total(cells)
    assert liang == pytest.approx(count * (count - 1) / 5)
    assert binary == pytest.approx(count * (count / 5 if count > 1 else 0.0))
    assert (binary == liang) == (count == 1)


#: Losses of what is published; SSE looks at members, and at numbers only.
PUBLISHED = {name: built for name, built in OBJECTIVES.items() if name != "sse"}


@pytest.mark.parametrize("built_in", PUBLISHED.values(), ids=list(PUBLISHED))
def test_constant_columns_cost_nothing(built_in: Objective) -> None:
    """0/0 is 0: a column of one value cannot lose anything."""
    constant = pd.DataFrame({"town": ["x"] * 4, "year": [7] * 4})
    data = Microdata(constant, (Attribute("town", "categorical"), Attribute("year", integer=True)))
    assert loss(built_in, data, Classes(np.zeros(4, np.int64))) == 0.0
    declared = (Attribute("town", "categorical"), Attribute("year", domain=[7, 7], integer=True))
    assert loss(built_in, Microdata(constant, declared), Classes(np.zeros(4, np.int64))) == 0.0


@pytest.mark.parametrize("built_in", PUBLISHED.values(), ids=list(PUBLISHED))
def test_records_published_exactly_cost_nothing(built_in: Objective) -> None:
    """Classes of equal records lose nothing under any penalty."""
    frame = pd.DataFrame({"age": [3, 3, 9, 9], "job": ["a", "a", "b", "b"]})
    data = Microdata(frame, (Attribute("age", integer=True), Attribute("job", "categorical")))
    assert loss(built_in, data, Classes(np.array([0, 0, 1, 1]))) == 0.0


def test_suppressed_records_cost_the_whole_domain() -> None:
    """A record of stars costs m under GCP; under the others what publishing all values costs."""
    suppressed = Classes(np.array([0, 0, 0, -1, -1]))
    kept = 3 * (20 / 100 + 2 / 4)
    assert loss(GCP(), classes=suppressed, suppression=True) == pytest.approx(kept + 2 * 4)
    weights = table(age=6, job=3, town=0, year=1)
    assert WeightedLoss().compile(weights).suppression_price == pytest.approx(1.0)
    assert LiangGCP().compile(table()).suppression_price == pytest.approx(1 + 4 / 5 + 0 + 1)


def test_gcp_ignores_weights() -> None:
    """Only WeightedLoss reads the weights."""
    assert loss(GCP(), table(age=0, job=99)) == loss(GCP())
    assert loss(LiangGCP(), table(age=0, job=99)) == loss(LiangGCP())


def test_weights_that_are_all_zero_are_refused() -> None:
    """Nothing would be lost whatever is published; the message says what to do."""
    nothing = table(age=0, job=0, town=0, year=0)
    with pytest.raises(UnsupportedObjective, match="all attribute weights are 0") as caught:
        Problem(nothing, 2, objective=WeightedLoss())
    assert caught.value.remedy
    assert Problem(nothing, 2).compiled.monotone


def test_unknown_treatments_of_categories_are_refused() -> None:
    """WeightedLoss knows two treatments and names them."""
    with pytest.raises(InputError, match="'split'") as caught:
        WeightedLoss("split")
    assert caught.value.remedy == "Use whole or binary"


def test_set_gcp_refuses_ranges_of_real_numbers() -> None:
    """Real numbers in a range cannot be counted; published as a set they can."""
    frame = pd.DataFrame({"pay": [1.5, 2.5, 2.5]})
    with pytest.raises(UnsupportedObjective, match="counts the values of 'pay'") as caught:
        SetGCP().compile(Microdata(frame, (Attribute("pay"),)))
    assert "publish = 'set'" in (caught.value.remedy or "")
    assert SetGCP().compile(Microdata(frame, (Attribute("pay", publish="set"),))).monotone


def test_names_are_those_of_the_registry() -> None:
    """Every built-in objective is found under its own name."""
    assert [built.name for built in OBJECTIVES.values()] == list(OBJECTIVES)


#: Losses that are compared with slow versions by tests of their own: a maximum, one of members,
#: and one of stars.
OF_THEIR_OWN = {"bottleneck-gcp", "sse", "suppressions"}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_built_in_losses_are_compared_with_brute_force_and_described(name: str) -> None:
    """A loss that is not in LOSSES would be in no test of models, heuristics and bounds."""
    compared = {getattr(loss.objective, "name", "") for loss in LOSSES.values()}
    missing = "give it a naive version in tests/brute_force.py, and both a key in LOSSES of"
    assert name in compared | OF_THEIR_OWN, f"{missing} tests/random_problems.py"
    page = (REPOSITORY / "docs" / "objectives.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page, "describe it in docs/objectives.md"


#: Losses of which something is true of the records below alone: two divide the nodes between
#: leaves and stars by the size of the domain, and one counts the worst record of a table.
NOT_IN_GENERAL = {
    "additive": {"bottleneck-gcp"},
    "blind_to_domains": {"set-gcp", "weighted-loss-binary", "bottleneck-gcp"},
}


def record_losses(each: Objective, size: int) -> np.ndarray:
    """Return (2, 2, 2) the loss of a record whose age, job and town are exact (0) or a star (1).

    `size`: of each domain.
    """
    frame = pd.DataFrame({"age": [0, 1], "job": list("ab"), "town": list("xy")})
    towns = Hierarchy.from_groups({"north": ["x"], "south": ["y"]})
    microdata = Microdata(
        frame,
        (
            Attribute("age", integer=True, domain=[0, size - 1]),
            Attribute("job", "categorical", domain=list("abcdefgh")[:size]),
            Attribute("town", "hierarchical", hierarchy=towns),
        ),
    )
    stars = np.array(list(product([False, True], repeat=3)))
    ends = np.where(stars, np.nan, 0.0)
    nodes = np.full(stars.shape, -1, np.int32)
    nodes[:, 2] = np.where(stars[:, 2], -1, microdata.leaves(2)[0])
    batch = CellBatch(ends, ends, np.where(stars, 0, 1), stars, nodes)
    return each.compile(microdata).record_losses(batch).reshape(2, 2, 2)


def test_losses_are_what_they_declare() -> None:
    """Sums of one attribute each, stars included; stars whose cost no domain changes.

    A new loss has its place in the sets at the end, or in those of losses that only look so here.
    """
    stated: dict[str, set[str]] = {
        "additive": set(),
        "blind_to_domains": set(),
        "by_pattern": set(),
    }
    dear = Suppressions({"age": 3}, {("age", "job"): 3.5})
    for each in (*OBJECTIVES.values(), dear):
        if not isinstance(each, Objective):
            continue
        losses, wide = (record_losses(each, size) for size in (3, 8))
        for says, names in stated.items():
            if declares(each, says):
                names.add("dear" if each is dear else each.name)
        terms, exact = [losses[1, 0, 0], losses[0, 1, 0], losses[0, 0, 1]], losses[0, 0, 0]
        sums = [
            sum(on * (term - exact) for on, term in zip(stars, terms, strict=True))
            for stars in product([0, 1], repeat=3)
        ]
        found = {
            "additive": (losses - exact).ravel() == pytest.approx(sums),
            "blind_to_domains": exact == 0 and bool((losses == wide).all()),
        }
        for says, true in found.items():
            undeclared = each is not dear and each.name in NOT_IN_GENERAL[says]
            assert declares(each, says) == (true and not undeclared), f"{each.name}: {says}"
    blind = {"gcp", "hierarchy-loss", "leaf-loss", "weighted-loss", "suppressions"}
    counted = {"set-gcp", "liang-gcp", "weighted-loss-binary"}
    named = "a loss of both belongs into `blind`, one that is only additive into `counted`"
    assert stated["additive"] == blind | counted, named
    assert stated["blind_to_domains"] == blind | {"dear"}
    assert stated["by_pattern"] == {"suppressions", "dear"}


def test_declarations_are_not_inherited() -> None:
    """A subclass may charge what it likes, and says itself what is true of it."""

    class Silent(GCP):
        def loss(self, record: Any) -> Any:
            return super().loss(record) ** 2

    class Saying(GCP):
        additive = True

    assert declares(Saying(), "additive")
    for each in (Silent(), SSE(), Saying()):
        assert not declares(each, "blind_to_domains")
        assert isinstance(each, Saying) or not declares(each, "additive")


@pytest.mark.parametrize("name", LOSSES)
@given(data=st.data())
@settings(max_examples=25)
def test_one_function_one_number_everywhere(name: str, data: st.DataObject) -> None:
    """NumPy, the variables of the Pyomo model, the published table and plain Python agree."""
    case: Case = data.draw(cases(smallest=4, largest=6, losses=[name]))
    problem = case.problem()
    groups = data.draw(st.sampled_from(case.releases()))
    solution = Solution.of(problem, Classes.from_groups(groups, case.n), method="test")
    naive = case.release_loss(groups)
    for number in (
        solution.objective,
        model_loss(problem, solution),
        *(table_loss(problem, solution, layout) for layout in ("cells", "columns")),
    ):
        assert abs(number - naive) <= case.slack(naive)


def model_loss(problem: Problem, solution: Solution) -> float:
    """Return the loss that the variables of the model have."""
    model = build(problem)
    set_start(model, solution.assignment)
    value: Any = pyo.value(model.loss)
    return float(value)


def table_loss(problem: Problem, solution: Solution, layout: str) -> float:
    """Return the loss of the published table, read back cell by cell."""
    if revealing_columns(solution):
        with pytest.raises(InputError, match="Declare the domain"):
            publish(solution, layout=layout, keep_order=True)
        return solution.objective
    if solution.assignment.suppressed == problem.n:
        with pytest.raises(InputError, match="nothing is left to publish"):
            publish(solution, layout=layout, keep_order=True)
        return solution.objective
    release = publish(solution, layout=layout, keep_order=True)
    trees = {
        attribute.name: attribute.hierarchy.paths
        for attribute in problem.microdata.attributes
        if attribute.hierarchy is not None
    }
    read = read_release(release.frame, release.manifest, hierarchies=trees)
    return loss_of_table(problem, read)


def test_levels_are_weighted() -> None:
    """Aggarwal et al. 2005, end of Section 4: what an attribute contributes times its weight."""
    towns = Hierarchy.from_groups({"North": ["a", "b"], "South": ["c", "d"]})
    frame = pd.DataFrame({"town": list("abcd"), "job": list("xxyy")})

    def released(town: float, job: float) -> float:
        attributes = (
            Attribute("town", "hierarchical", hierarchy=towns, weight=town),
            Attribute("job", "categorical", weight=job),
        )
        return loss(HierarchyLoss(), Microdata(frame, attributes), Classes(np.array([0, 0, 1, 0])))

    # Records 0, 1 and 3 show the root and two jobs, record 2 what it is.
    assert released(1, 1) == pytest.approx(3 * (1 + 1))
    assert released(3, 0.5) == pytest.approx(3 * (3 + 0.5))
    with pytest.raises(UnsupportedObjective, match="all attribute weights are 0"):
        released(0, 0)


@objective
def weighted_by_hand(record: Any) -> Any:
    """Return a loss of the user's that reads weights."""
    return record.weight["age"] * record.spread["age"]


@pytest.mark.parametrize(
    ("given_objective", "reads"),
    [
        *((GCP(), False), (LiangGCP(), False), (SetGCP(), False), (SSE(), False)),
        *((Bottleneck(), False), (Bottleneck(WeightedLoss()), True), (WeightedLoss(), True)),
        *((WeightedLoss("binary"), True), (HierarchyLoss(), True), (weighted_by_hand, True)),
    ],
)
def test_weights_that_are_not_read_bring_a_warning(given_objective: Any, reads: bool) -> None:
    """Different weights beside a loss that does not read them are told, with losses that do."""
    data = table(age=4)
    if isinstance(given_objective, SSE | SetGCP):
        numbers = (data.attributes[0], Attribute("year", integer=True))
        data = Microdata(data.frame[["age", "year"]], numbers)
    problem = Problem(data, 2, objective=given_objective)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        solve(problem, "initial")
        lower_bound(problem)
        compare(problem, [2], ["initial"])
    said = [str(one.message) for one in told if issubclass(one.category, InputWarning)]
    assert len(said) == (0 if reads else 3)
    assert all("weighted-loss" in text and "hierarchy-loss" in text for text in said)


def test_equal_weights_bring_no_warning() -> None:
    """Only ratios count."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        solve(Problem(table(age=2, job=2, town=2, year=2), 2), "initial")


def test_sse_of_a_narrow_range_of_huge_numbers() -> None:
    """The deviation is as exact as the distances: a column costs the same wherever it lies."""
    steps = (6, 3, 1, 6, 4, 0)
    values = [1e6 + step * 1e-9 for step in steps]
    exact = [Fraction(value) for value in values]

    def around_mean(members: list[Fraction]) -> Fraction:
        mean = sum(members) / len(members)
        return sum(((member - mean) ** 2 for member in members), Fraction(0))

    groups = ([0, 3, 4], [1, 2, 5])
    expected = sum(around_mean([exact[i] for i in group]) for group in groups)
    expected /= around_mean(exact) / len(exact)
    data = table_of({"a": values})
    problem = Problem(data, 2, objective=SSE())
    solution = Solution.of(problem, Classes.from_groups(groups, 6), method="test")
    assert solution.objective == pytest.approx(float(expected), rel=1e-9)
