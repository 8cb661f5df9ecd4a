"""Tests of loss tables: their proof of monotonicity, their limits, and huge numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import GCP, Attribute, Hierarchy, HierarchyLoss, LiangGCP, Microdata, objective
from anonymip.errors import UnsupportedObjective
from anonymip.objectives import CellBatch, CompiledObjective, LossTables
from anonymip.objectives.kernels.class_loss import (
    ends_loss,
    join_class,
    joined_loss,
    kernel_rows,
    new_state,
    open_class,
    record_loss,
)
from anonymip.objectives.language import tables as language_tables
from anonymip.objectives.language.tables import (
    LARGEST_PAIR_TABLE,
    effects_of_cells,
    exact_losses,
    least_step,
    square_losses,
    whole_loss,
)
from tests.by_hand import table_of

Function = Callable[[Any], Any]

AGES = (1, 2, 5)
JOBS = ("a", "b", "c")
DATA = Microdata(
    pd.DataFrame({"age": AGES, "job": JOBS}),
    (Attribute("age", integer=True), Attribute("job", "categorical")),
)


def subsets(values: Sequence[Any]) -> list[frozenset[Any]]:
    """Return all non-empty subsets."""
    sizes = range(1, len(values) + 1)
    return list(map(frozenset, chain.from_iterable(combinations(values, s) for s in sizes)))


COVERED = [(ages, jobs) for ages in subsets(AGES) for jobs in subsets(JOBS)]
CELLS = CellBatch(
    np.array([[min(ages), np.nan] for ages, _ in COVERED]),
    np.array([[max(ages), np.nan] for ages, _ in COVERED]),
    np.array([[len(ages), len(jobs)] for ages, jobs in COVERED]),
    np.zeros((len(COVERED), 2), np.bool_),
)
NESTED = np.array([[a <= c and b <= d for c, d in COVERED] for a, b in COVERED])
SAME_AGES = np.array([[a == c for c, _ in COVERED] for a, _ in COVERED])
SAME_JOBS = np.array([[b == d for _, d in COVERED] for _, b in COVERED])


def decreases(compiled: CompiledObjective) -> np.ndarray[Any, Any]:
    """Return, for all pairs of nested sets of values, whether the larger one loses less."""
    losses = compiled.record_losses(CELLS)
    return NESTED & (losses[None, :] < losses[:, None])


@st.composite
def functions(draw: st.DrawFn) -> Function:
    """Draw an objective with whole numbers, on which arithmetic is exact.

    Linear in ends and count, plus terms looked up by the ends and by the count.
    """
    number = st.integers(-2, 2)
    low, high, slope = draw(number), draw(number), draw(number)
    ends = [(p, q) for p in AGES for q in AGES if p <= q]
    by_ends = draw(st.dictionaries(st.sampled_from(ends), number, max_size=4))
    by_count = draw(st.dictionaries(st.sampled_from([1, 2, 3]), number, max_size=2))

    def loss(record: Any) -> Any:
        lower, upper, count = record.lower["age"], record.upper["age"], record.distinct["job"]
        total = low * lower + high * upper + slope * count
        for (p, q), value in by_ends.items():
            total = total + np.where((lower == p) & (upper == q), float(value), 0.0)
        for c, value in by_count.items():
            total = total + np.where(count == c, float(value), 0.0)
        return total

    return loss


@given(functions())
def test_the_proof_of_monotonicity_is_right_both_ways(function: Function) -> None:
    """An objective is proven monotone exactly if no larger one of all nested sets loses less."""
    compiled = objective(function).compile(DATA)
    falls = decreases(compiled)
    assert compiled.monotone == (not falls.any())
    if compiled.decreasing == "age":
        assert (falls & SAME_JOBS).any()
    if compiled.decreasing == "job":
        assert (falls & SAME_AGES).any()


@pytest.mark.parametrize("built_in", [GCP(), LiangGCP()])
def test_certainty_penalties_are_monotone(built_in: GCP | LiangGCP) -> None:
    """The penalties of the literature are proven monotone, as full enumeration confirms."""
    compiled = built_in.compile(DATA)
    assert compiled.monotone
    assert not decreases(compiled).any()


def test_constant_columns_cannot_decrease() -> None:
    """Where a column has one value there is nothing to cover more of."""
    data = Microdata(pd.DataFrame({"age": [7, 7], "job": ["a", "a"]}), DATA.attributes)
    compiled = objective(lambda r: -3 * r.upper["age"] - r.distinct["job"]).compile(data)
    assert compiled.monotone
    assert record_losses(data, compiled, [[0, 1]]) == [-22.0]


def record_losses(
    data: Microdata, compiled: CompiledObjective, groups: Sequence[Sequence[int]]
) -> list[float]:
    """Return the record loss of each group by the kernels."""
    rows = kernel_rows(data, compiled.tables, np.arange(data.n))
    state = new_state(compiled.tables, 4)
    losses = []
    for first, *others in groups:
        open_class(rows, state, first)
        for row in others:
            join_class(rows, state, row)
        losses.append(float(record_loss(compiled.tables, state)))
    return losses


@given(
    st.sampled_from([0, 1, -1, 10**6, -(10**9), 10**12, -(10**12), 10**15]),
    st.lists(st.integers(0, 40), min_size=4, max_size=4),
)
def test_small_ranges_of_huge_numbers_keep_all_digits(base: int, offsets: list[int]) -> None:
    """Losses do not depend on where on the line the values lie, neither affine nor curved."""
    span = max(offsets) - min(offsets)
    data = table_of({"x": [base + offset for offset in offsets]})
    expected = (max(offsets[:3]) - min(offsets[:3])) / span if span else 0.0
    (affine,) = record_losses(data, GCP().compile(data), [[0, 1, 2]])
    assert affine == pytest.approx(expected, rel=1e-12, abs=1e-15)
    root = objective(lambda record: np.sqrt(record.width["x"])).compile(data)
    (curved,) = record_losses(data, root, [[0, 1, 2]])
    assert curved == pytest.approx(expected**0.5, rel=1e-12, abs=1e-15)
    assert root.monotone


@given(
    st.sampled_from([1e-250, 1e-9, 1.0, 1e100, 1e290]),
    st.lists(st.integers(-9, 9), min_size=3, max_size=3),
)
def test_tiny_and_huge_units_do_not_matter(unit: float, multiples: list[int]) -> None:
    """Losses do not depend on the unit of a column."""
    data = table_of({"x": [unit * i for i in multiples]})
    span = max(multiples) - min(multiples)
    expected = abs(multiples[0] - multiples[1]) / span if span else 0.0
    (loss,) = record_losses(data, GCP().compile(data), [[0, 1]])
    assert loss == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_joining_and_having_joined_lose_the_same_bits() -> None:
    """The cost of joining is computed exactly as the cost of the joined class."""
    data = table_of({"x": [0.1, 0.2, 0.7, 1.3]})
    tables = GCP().compile(data).tables
    rows, state = kernel_rows(data, tables, np.arange(4)), new_state(tables, 4)
    open_class(rows, state, 2)
    for row in (1, 3, 0):
        announced = joined_loss(rows, state, row)
        join_class(rows, state, row)
        assert record_loss(tables, state) == announced


def test_tables_are_frozen() -> None:
    """No kernel can change the losses."""
    tables = objective(lambda r: r.width["age"] ** 2 + r.distinct["job"]).compile(DATA).tables
    assert all(not array.flags.writeable for array in list(tables)[1:])


def test_linear_losses_have_one_coefficient_an_end() -> None:
    """Of a width ends are taken as they are; counts are looked up."""
    tables: LossTables = GCP().compile(DATA).tables
    assert tables.range_origin.tolist() == [0.0]
    assert tables.range_high.tolist() == [0.25]
    assert tables.range_low.tolist() == [-0.25]
    assert tables.constant + tables.set_losses[1:] == pytest.approx([0.0, 0.5, 1.0])
    assert len(tables.pair_columns) == 0


def test_ranges_with_too_many_values_have_no_tables() -> None:
    """A curved loss of a range needs a table of all pairs of values, which has a limit."""
    size = int(LARGEST_PAIR_TABLE**0.5) + 1
    data = table_of({"x": np.arange(size)})
    assert objective(lambda record: record.width["x"] ** 2).compile(data).tier == "general"
    assert GCP().compile(data).tier == "affine"


def test_range_and_count_of_one_attribute_in_one_term_have_no_table() -> None:
    """For a numeric attribute published as a set, ends and count are no function of each other."""
    data = Microdata(DATA.frame[["age"]], (Attribute("age", publish="set"),))
    product = objective(lambda r: r.width["age"] * r.distinct["age"]).compile(data)
    assert product.tier == "general"
    summed = objective(lambda r: r.width["age"] + r.distinct["age"]).compile(data)
    assert summed.monotone


def curved(record: Any) -> Any:
    """Charge a curved part of the width."""
    return np.sqrt(record.spread["age"])


@pytest.mark.parametrize(
    "charged", [HierarchyLoss(), objective(curved)], ids=lambda charged: charged.name
)
def test_a_wide_domain_hides_no_distance(charged: Any) -> None:
    """Beside -1e12 the numbers 0 and 1e-12 are two, to tables as to the loss itself."""
    ages = [-1e12, 0.0, 1e-12, 1.0]
    data = table_of({"age": ages})
    compiled = charged.compile(data)
    for i, j in combinations(range(4), 2):
        ends = np.array([ages[i]]), np.array([ages[j]])
        batch = CellBatch(*(end[:, None] for end in ends), np.array([[2]]), np.array([[False]]))
        expected = float(compiled.record_losses(batch)[0])
        (loss,) = record_losses(data, compiled, [[i, j]])
        assert loss == pytest.approx(expected, rel=1e-9, abs=0)


@st.composite
def paths_of_trees(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Draw the paths of a hierarchy, some of which skip a level."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=4, max_size=9))
    width = draw(st.integers(1, 4))
    paths = []
    for group, size in enumerate(sizes):
        above = f"g{group // width}"
        middle = draw(st.booleans())
        for value in range(size):
            own = (f"{group}-{value}",)
            paths.append((*own, f"b{group}", above, "*") if middle else (*own, above, "*"))
    return draw(st.permutations(paths))


def naive_node_loss(paths: list[tuple[str, ...]], charged: str, one: str, other: str) -> float:
    """Return what the lowest label on two paths costs, by leaves or by levels."""
    by_value = {path[0]: path for path in paths}
    label = next(label for label in by_value[one] if label in by_value[other])
    if charged == "leaves":
        return (sum(label in path for path in paths) - 1) / (len(paths) - 1)
    level = max(path.index(label) for path in paths if label in path)
    return level / max(len(path) - 1 for path in paths)


@pytest.mark.parametrize("charged", ["leaves", "levels"])
@given(paths=paths_of_trees(), data=st.data())
def test_neighbours_tell_what_every_node_costs(
    charged: str, paths: list[tuple[str, ...]], data: st.DataObject
) -> None:
    """Largest losses of neighbours are those of the tree, and of the table of all pairs."""
    names = sorted(path[0] for path in paths)
    values = data.draw(st.lists(st.sampled_from(names), min_size=4, unique=True))
    given = Microdata(
        pd.DataFrame({"place": values}),
        (Attribute("place", "hierarchical", hierarchy=Hierarchy(paths)),),
    )
    loss = GCP() if charged == "leaves" else HierarchyLoss()
    tables = []
    for largest in (0, LARGEST_PAIR_TABLE):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(language_tables, "LARGEST_NODE_TABLE", largest)
            tables.append(loss.compile(given).tables)
    few, all_pairs = tables
    assert few.pair_strides.tolist() == [0]
    assert all_pairs.pair_strides.tolist() == [len(values)]
    levels = given.levels[0].tolist()
    for low in range(len(levels)):
        for high in range(low, len(levels)):
            found = few.constant + ends_loss(few, 0, low, high)
            assert found == all_pairs.constant + ends_loss(all_pairs, 0, low, high)
            expected = naive_node_loss(paths, charged, levels[low], levels[high])
            assert found == pytest.approx(expected, abs=1e-12)
    assert (square_losses(few, 0) == square_losses(all_pairs, 0)).all()
    assert whole_loss(few, 0) == whole_loss(all_pairs, 0)
    assert (exact_losses(few, 0) == exact_losses(all_pairs, 0)).all()
    assert effects_of_cells(few, given) == effects_of_cells(all_pairs, given)
    assert least_step(few, given) <= least_step(all_pairs, given)


def test_losses_of_large_hierarchies_are_tables_where_they_rise() -> None:
    """A loss that falls towards the root, or a table of all pairs, is refused beyond its limit."""
    size = int(LARGEST_PAIR_TABLE**0.5) + 1
    hierarchy = Hierarchy.from_bands(range(size), (10, 100))
    data = Microdata(
        pd.DataFrame({"x": np.arange(size).astype(str)}),
        (Attribute("x", "hierarchical", hierarchy=hierarchy),),
    )
    assert objective(lambda record: -record.level["x"]).compile(data).tier == "general"
    compiled = GCP().compile(data)
    assert compiled.monotone
    assert whole_loss(compiled.tables, 0) == 1.0
    with pytest.raises(UnsupportedObjective, match="tables of all pairs"):
        square_losses(compiled.tables, 0)
