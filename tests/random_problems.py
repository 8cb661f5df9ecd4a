"""Random small tables and objectives, each with its naive counterpart in `tests.brute_force`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import assume
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Attribute,
    Classes,
    EquivalenceClasses,
    LiangGCP,
    Microdata,
    Objective,
    Problem,
    SetGCP,
    WeightedLoss,
    objective,
)
from tests import brute_force
from tests.brute_force import Cell, Column, Groups, NaiveLoss


@objective
def leaning(record: Any) -> Any:
    """Charge ranges by both ends differently, sets by their values, stars extra: affine."""
    total = 0.25
    for name in record.attributes:
        total = total + 0.5 * record.spread[name] + 2.0 * record.suppressed[name]
        if record.kind[name] == "numeric":
            total = total + 0.03 * record.upper[name] - 0.01 * record.lower[name]
    return total


def naive_leaning(cells: Sequence[Cell]) -> float:
    """Return the same as `leaning`."""
    total = 0.25
    for cell in cells:
        total += 0.5 * cell.spread + 2.0 * cell.starred
        if cell.numeric:
            total += 0.03 * cell.upper - 0.01 * cell.lower
    return total


@objective
def curved(record: Any) -> Any:
    """Charge the square of ranges and the root of sets: separable."""
    total: Any = 0.0
    for name in record.attributes:
        if record.kind[name] == "numeric":
            total = total + record.width[name] ** 2
        else:
            total = total + np.sqrt(record.distinct[name])
    return total


def naive_curved(cells: Sequence[Cell]) -> float:
    """Return the same as `curved`."""
    total = 0.0
    for cell in cells:
        total += cell.width**2 if cell.numeric else math.sqrt(cell.distinct or 0)
    return total


@objective
def falling(record: Any) -> Any:
    """Reward wide ranges and large sets: not monotone."""
    return sum(1.0 - record.spread[name] for name in record.attributes)


def naive_falling(cells: Sequence[Cell]) -> float:
    """Return the same as `falling`."""
    return sum(1.0 - cell.spread for cell in cells)


class Loss(NamedTuple):
    """An objective of the package and its naive counterpart."""

    objective: Objective
    naive: NaiveLoss


LOSSES = {
    "gcp": Loss(GCP(), brute_force.gcp),
    "set-gcp": Loss(SetGCP(), brute_force.set_gcp),
    "liang-gcp": Loss(LiangGCP(), brute_force.liang_gcp),
    "weighted": Loss(WeightedLoss(), brute_force.weighted_loss),
    "weighted-binary": Loss(WeightedLoss("binary"), brute_force.weighted_loss_binary),
    "leaning": Loss(leaning, naive_leaning),
    "curved": Loss(curved, naive_curved),
}
FALLING = Loss(falling, naive_falling)


@dataclass(frozen=True)
class Case:
    """A small problem, for the package and for brute force.

    Parameters
    ----------
    columns
        The table.
    k
        The privacy parameter.
    loss
        The objective.
    suppression
        Whether records may be suppressed.
    """

    columns: tuple[Column, ...]
    k: int
    loss: Loss
    suppression: bool = False

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.columns[0].values)

    def problem(self) -> Problem:
        """Return the problem for the package."""
        recoding = EquivalenceClasses(suppression=self.suppression)
        return Problem(microdata(self.columns), self.k, recoding, self.loss.objective)

    def optimum(self) -> float:
        """Return the optimum by enumeration."""
        return brute_force.optimum(self.columns, self.k, self.loss.naive, self.suppression)

    def releases(self) -> list[Groups]:
        """Return all releases that are allowed."""
        return list(brute_force.partitions(self.n, self.k, self.suppression))

    def release_loss(self, groups: Groups) -> float:
        """Return the loss of a release."""
        return brute_force.release_loss(self.columns, self.loss.naive, groups)

    def slack(self, value: float) -> float:
        """Return how far two computations of a loss near `value` may differ."""
        return 1e-9 * max(1.0, abs(value))


def microdata(columns: Sequence[Column]) -> Microdata:
    """Return a table for the package; its attributes are a, b, c, ..."""
    names = [chr(ord("a") + at) for at in range(len(columns))]
    attributes = [
        Attribute(
            name,
            "numeric" if column.numeric else "categorical",
            column.domain,
            weight=column.weight,
            integer=column.integer,
            publish="set" if column.as_set else None,
        )
        for name, column in zip(names, columns, strict=True)
    ]
    frame = pd.DataFrame(
        {name: list(column.values) for name, column in zip(names, columns, strict=True)}
    )
    return Microdata(frame, tuple(attributes))


def groups_of(classes: Classes) -> Groups:
    """Return the groups of the classes as brute force writes them."""
    return tuple(tuple(group.tolist()) for group in classes.groups())


_WEIGHTS = st.sampled_from([1.0, 0.05, 0.8, 3.0])
_TEXTS = ("p", "q", "r", "s", "t")


def _listed(values: st.SearchStrategy[Any], n: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, min_size=n, max_size=n).map(tuple)


@st.composite
def numeric_columns(draw: st.DrawFn, n: int) -> Column:
    """Draw a numeric column: ties, few values, constants, negative, tiny or huge numbers."""
    kind = draw(st.sampled_from(["tied", "wide", "real", "set", "huge", "far", "tiny", "constant"]))
    weight = draw(_WEIGHTS)
    if kind == "tied":
        values = draw(_listed(st.integers(-2, 2), n))
        domain = draw(st.sampled_from([None, (-3, 7)]))
        return Column(values, domain=domain, integer=True, weight=weight)
    if kind == "wide":
        values = draw(_listed(st.integers(-50, 99), n))
        return Column(values, domain=(-60, 120), integer=True, weight=weight)
    if kind == "real":
        values = draw(_listed(st.sampled_from([-7.5, -0.1, 0.0, 0.3, 2.25, 12.0]), n))
        return Column(values, weight=weight)
    if kind == "set":
        values = draw(_listed(st.integers(0, 4), n))
        return Column(values, as_set=True, weight=weight)
    if kind == "huge":
        values = draw(_listed(st.sampled_from([-4e9, -1e3, 0.0, 5e8, 7e9]), n))
        return Column(values, weight=weight)
    if kind == "far":
        values = draw(_listed(st.integers(1_700_000_000, 1_700_000_040), n))
        return Column(values, integer=True, weight=weight)
    if kind == "tiny":
        values = draw(_listed(st.sampled_from([0.0, 1e-7, 3e-7, 1e-6]), n))
        return Column(values, weight=weight)
    return Column((3.0,) * n, weight=weight)


@st.composite
def categorical_columns(draw: st.DrawFn, n: int) -> Column:
    """Draw a categorical column: even, one heavy category, or constant."""
    kind = draw(st.sampled_from(["even", "heavy", "constant"]))
    pool = {"even": _TEXTS, "heavy": ("p",) * 5 + ("q", "r"), "constant": ("p",)}[kind]
    values = draw(_listed(st.sampled_from(pool), n))
    domain = draw(st.sampled_from([None, (*_TEXTS, "u")]))
    return Column(values, numeric=False, domain=domain, as_set=True, weight=draw(_WEIGHTS))


@st.composite
def tables(
    draw: st.DrawFn, smallest: int = 4, largest: int = 7, attributes: int = 3
) -> tuple[Column, ...]:
    """Draw a table; one in four repeats each of its rows."""
    n = draw(st.integers(smallest, largest))
    repeats = draw(st.integers(0, 3)) == 0
    drawn = (n + 1) // 2 if repeats else n
    columns = tuple(
        draw(numeric_columns(drawn) if draw(st.booleans()) else categorical_columns(drawn))
        for _ in range(draw(st.integers(1, attributes)))
    )
    return tuple(_repeated(column, n) for column in columns)


def _repeated(column: Column, n: int) -> Column:
    """Return the column with its values repeated until there are n."""
    return replace(column, values=tuple(islice(cycle(column.values), n)))


def _suits(name: str, columns: Sequence[Column]) -> bool:
    """Return whether an objective can be used: only whole numbers can be counted in a range."""
    if name == "leaning":  # on numbers of 1e9 its value is no loss of order 1 any more
        return all(
            not column.numeric or max(map(abs, map(float, column.values))) < 1e3
            for column in columns
        )
    return name != "set-gcp" or all(
        column.as_set or column.integer or not column.numeric for column in columns
    )


@st.composite
def cases(
    draw: st.DrawFn,
    smallest: int = 4,
    largest: int = 7,
    attributes: int = 3,
    losses: Sequence[str] = tuple(LOSSES),
    suppression: bool | None = None,
) -> Case:
    """Draw a table, k and an objective; k = n and n = 2k - 1 occur often in tables this small."""
    columns = draw(tables(smallest, largest, attributes))
    n = len(columns[0].values)
    k = draw(st.one_of(st.integers(2, min(3, n)), st.sampled_from([max(2, (n + 1) // 2), n])))
    fitting = [name for name in losses if _suits(name, columns)]
    assume(fitting)
    loss = LOSSES[draw(st.sampled_from(fitting))]
    allowed = draw(st.booleans()) if suppression is None else suppression
    return Case(columns, k, loss, allowed)


def larger_microdata(seed: int, n: int) -> Microdata:
    """Return a seeded table: real and whole numbers, ties, a heavy category, repeated rows."""
    rng = np.random.default_rng(seed)
    drawn = (n + 1) // 2 if rng.random() < 0.3 else n
    heavy = np.array(["p", "q", "r", "s", "t", "u"])
    even = np.array([f"v{value}" for value in range(12)])
    pool = [
        Column(tuple(np.round(rng.normal(size=drawn), 2).tolist()), weight=0.5),
        Column(tuple(rng.integers(-20, 60, drawn).tolist()), integer=True),
        Column(tuple(rng.integers(0, 3, drawn).tolist()), integer=True, weight=2.0),
        Column(tuple(rng.integers(0, 9, drawn).tolist()), as_set=True, integer=True),
        Column(tuple(even[rng.integers(0, 12, drawn)].tolist()), False, as_set=True),
        Column(
            tuple(heavy[np.minimum(rng.geometric(0.6, drawn) - 1, 5)].tolist()), False, as_set=True
        ),
    ]
    picked = rng.permutation(len(pool))[: int(rng.integers(1, len(pool) + 1))]
    columns = [pool[at] for at in picked]
    return microdata([_repeated(column, n) for column in columns])
