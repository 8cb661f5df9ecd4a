"""Rings are regular, stay within their parts and lose no more than one class a part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Classes, Problem, SetGCP
from anonymip.assignments import Cover
from anonymip.heuristics.freeform.rings import ring_sets
from anonymip.recodings import Freeform
from tests.brute_force import Column
from tests.random_problems import LOSSES, Case, cases, microdata


@st.composite
def rings(draw: st.DrawFn) -> tuple[list[list[int]], int, bool]:
    """Draw parts of a shuffled table, a size of sets that fits all, and whether reciprocal."""
    reciprocal = draw(st.booleans())
    degree = draw(st.integers(2, 7))
    sizes = draw(st.lists(st.integers(degree, 3 * degree + 1), min_size=1, max_size=4))
    if reciprocal and degree % 2 == 0:
        sizes = [size + size % 2 for size in sizes]
    records = draw(st.permutations(range(sum(sizes))))
    ends = np.cumsum(sizes)
    return (
        [list(records[end - size : end]) for size, end in zip(sizes, ends, strict=True)],
        (degree),
        reciprocal,
    )


def _cover(parts: list[list[int]], degree: int, reciprocal: bool) -> Cover:
    starts = np.cumsum([0, *(len(part) for part in parts)])[:-1]
    return Cover.of(ring_sets(np.concatenate(parts), starts, degree, reciprocal))


@given(rings())
def test_a_ring_is_a_record_and_the_next_ones_of_its_part(
    drawn: tuple[list[list[int]], int, bool],
) -> None:
    """Equal to a plain walk around each part."""
    parts, degree, _ = drawn
    cover = _cover(parts, degree, False)
    for part in parts:
        for place, record in enumerate(part):
            following = [part[(place + step) % len(part)] for step in range(degree)]
            assert cover.of_record(record).tolist() == sorted(following)


@given(rings())
def test_rings_are_regular_and_reciprocal_if_asked_for(
    drawn: tuple[list[list[int]], int, bool],
) -> None:
    """Each record lies in as many sets as its set has records, all of its own part."""
    parts, degree, reciprocal = drawn
    cover = _cover(parts, degree, reciprocal)
    assert set(cover.sizes.tolist()) == set(cover.degrees.tolist()) == {degree}
    for part in parts:
        for record in part:
            assert record in cover.of_record(record)
            assert set(cover.of_record(record).tolist()) <= set(part)
    if reciprocal:
        pairs = set(zip(cover.owners.tolist(), cover.members.tolist(), strict=True))
        assert pairs == {(other, one) for one, other in pairs}


@settings(max_examples=60)
@given(cases(smallest=4, largest=9), st.randoms(use_true_random=False))
def test_a_ring_loses_no_more_than_one_class_on_every_partition(case: Case, random: object) -> None:
    """Wong Lemma 2: each cell lies within the cell of the class, and so does the loss."""
    problem = case.problem().replace(recoding=Freeform())
    records = list(range(case.n))
    random.shuffle(records)  # type: ignore[attr-defined]
    cut = case.n // 2 if case.n >= 2 * case.k else case.n
    parts = [part for part in (records[:cut], records[cut:]) if part]
    inner = _cover(parts, case.k, False)
    outer = Cover.of_classes(Classes.from_groups(parts, case.n))
    for record in range(case.n):
        assert set(inner.of_record(record).tolist()) <= set(outer.of_record(record).tolist())
    losses = [
        problem.compiled.losses_of(problem.recoding.describe(problem, cover), cover)
        for cover in (inner, outer)
    ]
    assert (losses[0] <= losses[1] + case.slack(float(losses[1].max()))).all()


def test_wong_section_5_3_example() -> None:
    """Four records in two classes lose 8 / (|A| - 1), one ring of them loses 6 / (|A| - 1)."""
    rows = [(1, 1, 1), (1, 1, 2), (2, 1, 2), (1, 2, 1)]
    columns = tuple(
        Column(tuple(values), integer=True, as_set=True, domain=(1, 5))
        for values in zip(*rows, strict=True)
    )
    data = microdata(columns)
    problem = Problem(data, 2, Freeform(), SetGCP())
    losses = []
    for parts in ([[0, 1], [2, 3]], [[0, 1, 2, 3]]):
        cover = _cover(parts, 2, False)
        losses.append(problem.compiled.total(problem.recoding.describe(problem, cover), cover))
    assert losses == pytest.approx([8 / 4, 6 / 4])


def test_the_loss_of_a_ring_by_hand() -> None:
    """Values 0, 1, 2, 3 with k = 2 in this order: ranges 1, 1, 1 and, closing the ring, 3."""
    case = Case((Column((0, 1, 2, 3)),), 2, LOSSES["gcp"])
    problem = case.problem().replace(recoding=Freeform())
    cover = _cover([[0, 1, 2, 3]], 2, False)
    total = problem.compiled.total(problem.recoding.describe(problem, cover), cover)
    assert total == pytest.approx(6 / 3)
