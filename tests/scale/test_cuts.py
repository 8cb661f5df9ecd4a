"""Cuts of a table: where rows go, and what no class across a cut costs less."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import GCP, LiangGCP, Problem, Schema, SetGCP, TableFormat, WeightedLoss
from anonymip.objectives.language.record import cells_of_sets
from anonymip.scale.cuts import (
    Cut,
    Sample,
    choose_cuts,
    digest,
    keys_of,
    losses_across,
    part_numbers,
    pruned,
    way_to,
)

SCHEMA = Schema().with_roles(["age:numeric", "sex:categorical", "town:categorical"])


@st.composite
def frames(draw: st.DrawFn, least: int = 6, most: int = 30) -> pd.DataFrame:
    """Return tables of a number and two categories, with repeated rows."""
    n = draw(st.integers(least, most))
    columns = {
        "age": st.integers(0, 12).map(lambda value: value * 5),
        "sex": st.sampled_from("fm"),
        "town": st.sampled_from(["Bonn", "Köln", "Trier", "Ulm"]),
    }
    return pd.DataFrame(
        {name: draw(st.lists(one, min_size=n, max_size=n)) for name, one in columns.items()}
    )


def cut_up(frame: pd.DataFrame, rows: int) -> tuple[Cut | int, np.ndarray]:
    """Return cuts of a whole table into parts of so many rows, and the part of each row."""
    data = SCHEMA.apply(frame)
    keys = keys_of(frame, data.attributes, TableFormat())
    levels = tuple(np.unique(column) for column in keys.T)
    sample = Sample(data.attributes, keys, np.ones(len(keys)), levels, frozenset())
    tree, parts = choose_cuts(sample, rows)
    numbers = part_numbers(keys, tree)
    assert set(numbers) == set(range(parts))
    return tree, numbers


@given(frames(), st.integers(2, 12))
@settings(max_examples=60)
def test_rows_that_are_alike_stay_together(frame: pd.DataFrame, rows: int) -> None:
    """Every row goes to one part, rows alike to the same, and no side of a cut is small."""
    _, numbers = cut_up(frame, rows)
    by_row = pd.Series(numbers).groupby([frame[name] for name in frame]).nunique()
    assert (by_row == 1).all()
    sizes = np.bincount(numbers)
    assert sizes.sum() == len(frame)
    if len(sizes) > 1:
        assert sizes.max() < len(frame)


@pytest.mark.parametrize("loss", [GCP(), SetGCP(), LiangGCP(), WeightedLoss()], ids=str)
@given(frames(), st.integers(2, 8))
@settings(max_examples=40)
def test_no_pair_across_a_cut_costs_less(loss: GCP, frame: pd.DataFrame, rows: int) -> None:
    """What a record loses across the cuts is at most what it loses with anybody of another part."""
    tree, numbers = cut_up(frame, rows)
    problem = Problem(SCHEMA.apply(frame), 2, objective=loss)
    across = np.empty(len(frame))
    for part in range(numbers.max() + 1):
        way = way_to(tree, part)
        here = np.flatnonzero(numbers == part)
        inner = Problem(problem.microdata.take(here), 2, objective=loss) if len(here) > 1 else None
        across[here] = losses_across(inner, way) if inner is not None else -np.inf
    pairs = [
        (i, j) for i, j in itertools.permutations(range(len(frame)), 2) if numbers[i] != numbers[j]
    ]
    if not pairs:
        return
    cells = cells_of_sets(problem.microdata, np.array(pairs))
    together = problem.compiled.record_losses(cells)
    assert (across[[i for i, _ in pairs]] <= together).all()


def test_a_single_cut_is_exact() -> None:
    """Beyond one cut of the ages, the nearest age of the other side is what counts."""
    frame = pd.DataFrame({"age": [10, 20, 30, 60, 70, 80]})
    data = Schema().with_roles(["age:numeric"]).apply(frame)
    way = [(Cut(0, 45.0, 0, 1, 30.0, 60.0), True)]
    found = losses_across(Problem(data.take(np.arange(3)), 2), way)
    assert found == pytest.approx([50 / 70, 40 / 70, 30 / 70])


def test_men_and_women_are_parted_before_the_ages() -> None:
    """A cut that costs no class anything comes before one through the middle of a range."""
    frame = pd.DataFrame({"age": range(40), "sex": ["f", "m"] * 20, "town": "Ulm"})
    tree, numbers = cut_up(frame, 20)
    assert isinstance(tree, Cut)
    assert tree.attribute == 1
    assert np.bincount(numbers).tolist() == [20, 20]
    assert tree.at_most not in {digest("f"), digest("m")}


def test_small_sides_are_joined() -> None:
    """A cut that leaves a side fewer rows than a class needs is taken back."""
    tree = Cut(0, 1.0, 0, Cut(0, 2.0, 1, 2))
    kept, members = pruned(tree, np.array([9, 1, 8]), 3)
    assert members == [[0], [1, 2]]
    assert isinstance(kept, Cut)
    assert (kept.lower, kept.higher) == (0, 1)
    assert pruned(tree, np.array([1, 1, 1]), 3) == (0, [[0, 1, 2]])


def test_missing_values_go_to_the_higher_side() -> None:
    """What is missing has no place in an order, and one place among the parts."""
    frame = pd.DataFrame({"age": ["3", "", "5"], "sex": ["f", "", "m"], "town": "Ulm"})
    data = SCHEMA.apply(frame[frame["age"] != ""])
    keys = keys_of(frame, data.attributes, TableFormat())
    assert np.isinf(keys[1, :2]).all()
    assert part_numbers(keys, Cut(0, 5.0, 0, 1)).tolist() == [0, 1, 0]
