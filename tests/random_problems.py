"""Random small tables and objectives, each with its naive counterpart in `tests.brute_force`.

One file, since all that is drawn fits together: tables, objectives on them, and their counterparts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import assume, note
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Apart,
    Attribute,
    Bottleneck,
    Cap,
    Classes,
    Diversity,
    EquivalenceClasses,
    Hierarchy,
    HierarchyLoss,
    LeafLoss,
    LiangGCP,
    Microdata,
    Objective,
    Problem,
    SetGCP,
    WeightedLoss,
    objective,
)
from tests import brute_force
from tests.brute_force import Cell, Column, Groups, NaiveLoss, Rules, starred
from tests.cover_brute_force import regular_optimum


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
    "hierarchy": Loss(HierarchyLoss(), brute_force.hierarchy_loss),
    "leaf": Loss(LeafLoss(), brute_force.gcp),
}


@dataclass(frozen=True)
class Case:
    """A small problem, for the package and for brute force."""

    columns: tuple[Column, ...]  # the table
    k: int  # the privacy parameter
    loss: Loss  # the objective
    suppression: bool = False  # whether records may be suppressed
    rules: Rules | None = None  # diversity and limits; None for none
    worst: bool = False  # whether the largest loss of a record counts, instead of the sum

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.columns[0].values)

    def problem(self) -> Problem:
        """Return the problem for the package."""
        recoding = EquivalenceClasses(suppression=self.suppression)
        rules = Rules() if self.rules is None else self.rules
        data = microdata(self.columns, rules.sensitive)
        if rules.units:
            data = replace(data, frame=data.frame.assign(unit=rules.units), unit="unit")
        lost = Bottleneck(self.loss.objective) if self.worst else self.loss.objective
        diversity = None
        if rules.l > 1 or rules.distinct > 1:
            diversity = Diversity(l=float(rules.l), distinct=rules.distinct)
        limits: list[Cap | Apart] = [Cap(data.names[a], most) for a, most in rules.caps]
        limits += [Apart(data.names[a], one, other) for a, one, other in rules.apart]
        return Problem(data, self.k, recoding, lost, diversity, tuple(limits))

    @lru_cache(maxsize=256)  # noqa: B019 - solvers and formulations ask the same of one case
    def optimum(self) -> float:
        """Return the optimum by enumeration; infinite if no release obeys the rules."""
        return brute_force.optimum(
            self.columns, self.k, self.loss.naive, self.suppression, self.rules, self.worst
        )

    def releases(self) -> list[Groups]:
        """Return all releases that are allowed."""
        rules = Rules() if self.rules is None else self.rules
        return [
            groups
            for groups in brute_force.partitions(self.n, self.k, self.suppression)
            if all(rules.met_by(self.columns, group) for group in groups)
        ]

    def release_loss(self, groups: Groups) -> float:
        """Return the loss of a release."""
        if self.worst:
            losses = [
                brute_force.record_loss(self.columns, self.loss.naive, group) for group in groups
            ]
            if sum(map(len, groups)) < self.n:
                losses.append(self.loss.naive([starred(column) for column in self.columns]))
            return max(losses)
        return brute_force.release_loss(self.columns, self.loss.naive, groups)

    def cover_optimum(self, degrees: Sequence[int] | None = None) -> float:
        """Return the freeform optimum by dynamic programming; infinite if rules forbid all."""
        wanted = [self.k] * self.n if degrees is None else list(degrees)
        try:
            return regular_optimum(self.n, wanted, self.set_loss, self.worst)[0]
        except KeyError:
            return math.inf

    def set_loss(self, records: Sequence[int]) -> float:
        """Return the loss of a record published with a set; infinite if a rule forbids it."""
        if self.rules is not None and not self.rules.met_by(self.columns, records):
            return math.inf
        return brute_force.record_loss(self.columns, self.loss.naive, records)

    def slack(self, value: float) -> float:
        """Return how far two computations of a loss near `value` may differ."""
        return 1e-9 * max(1.0, abs(value))


def microdata(columns: Sequence[Column], sensitive: Sequence[Sequence[Any]] = ()) -> Microdata:
    """Return a table for the package; its attributes are a, b, c, ..., sensitive ones s0, ..."""
    names = [chr(ord("a") + at) for at in range(len(columns))]
    attributes = [
        Attribute(
            name,
            column.kind,  # type: ignore[arg-type]
            column.domain,
            weight=column.weight,
            integer=column.integer,
            hierarchy=Hierarchy(column.paths) if column.paths else None,
            publish="set" if column.as_set and not column.paths else None,
        )
        for name, column in zip(names, columns, strict=True)
    ]
    frame = pd.DataFrame(
        {
            **{name: list(column.values) for name, column in zip(names, columns, strict=True)},
            **{f"s{at}": list(values) for at, values in enumerate(sensitive)},
        }
    )
    roles = tuple(f"s{at}" for at in range(len(sensitive)))
    return Microdata(frame, tuple(attributes), sensitive=roles)


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


#: Hierarchies of every shape: balanced, flat, uneven, padded, with values that no record has.
TREES: dict[str, tuple[tuple[str, ...], ...]] = {
    "balanced": (("p", "pq", "*"), ("q", "pq", "*"), ("r", "rs", "*"), ("s", "rs", "*")),
    "flat": (("p", "*"), ("q", "*"), ("r", "*")),
    "uneven": (("p", "*"), ("q", "qr", "qrs", "*"), ("r", "qr", "qrs", "*"), ("s", "qrs", "*")),
    "padded": (
        ("p", "X", "X", "*"),
        ("q", "Y", "X", "*"),
        ("r", "Y", "X", "*"),
        ("s", "s", "s", "*"),
    ),
    "chain": (("p", "P", "*"), ("q", "P", "*")),
}


@st.composite
def hierarchical_columns(draw: st.DrawFn, n: int) -> Column:
    """Draw a hierarchical column whose paths come in any order."""
    paths = draw(st.permutations(TREES[draw(st.sampled_from(sorted(TREES)))]))
    values = draw(_listed(st.sampled_from(sorted(path[0] for path in paths)), n))
    return Column(values, False, as_set=True, weight=draw(_WEIGHTS), paths=tuple(paths))


@st.composite
def tables(
    draw: st.DrawFn, smallest: int = 4, largest: int = 7, attributes: int = 3
) -> tuple[Column, ...]:
    """Draw a table; one in four repeats each of its rows."""
    n = draw(st.integers(smallest, largest))
    repeats = draw(st.integers(0, 3)) == 0
    drawn = (n + 1) // 2 if repeats else n
    kinds = (numeric_columns, categorical_columns, hierarchical_columns)
    columns = tuple(
        draw(draw(st.sampled_from(kinds))(drawn)) for _ in range(draw(st.integers(1, attributes)))
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


@st.composite
def rules(draw: st.DrawFn, columns: Sequence[Column]) -> Rules:
    """Draw a diversity, limits, or both; they may be impossible to meet."""
    n = len(columns[0].values)
    sensitive: tuple[tuple[str, ...], ...] = ()
    l, distinct = Fraction(1), 1  # noqa: E741
    kind = draw(st.sampled_from(["diversity", "limits", "both"]))
    if kind != "limits":
        count = draw(st.integers(1, 2))
        sensitive = tuple(draw(_listed(st.sampled_from("xyz"), n)) for _ in range(count))
        l = draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2)]))  # noqa: E741
        distinct = draw(st.integers(2 if l == 1 else 1, 2))
    caps: list[tuple[int, float]] = []
    apart: list[tuple[int, Any, Any]] = []
    if kind != "diversity":
        for a in draw(st.sets(st.integers(0, len(columns) - 1), min_size=1, max_size=2)):
            column = columns[a]
            permissible = sorted(path[0] for path in column.paths) or sorted(set(column.values))
            if len(permissible) > 1 and draw(st.booleans()):
                one, other = draw(st.permutations(permissible))[:2]
                apart.append((a, one, other))
            elif column.numeric and not column.as_set:
                width = float(max(column.values)) - float(min(column.values))
                caps.append((a, draw(st.sampled_from([0.5, 0.9])) * width))
            else:
                caps.append((a, draw(st.integers(1, 3))))
    return Rules(sensitive, l, distinct, tuple(caps), tuple(apart))


@st.composite
def ruled_cases(draw: st.DrawFn, *sizes: int, **asked: Any) -> Case:
    """Draw one of `cases` with diversity or limits, or of the largest loss, that has a release."""
    case = draw(cases(*sizes, **asked))
    drawn = draw(st.one_of(st.none(), rules(case.columns)))
    ruled = replace(case, rules=drawn, worst=drawn is None or draw(st.booleans()))
    assume(ruled.optimum() < math.inf)
    assume(_table_is_diverse(ruled))
    return ruled


@st.composite
def unit_cases(draw: st.DrawFn, largest: int = 8, *, diverse: bool = False) -> Case:
    """Draw a case of k units a class, of one to several records each, that has a release.

    The rows may have to be diverse beside, if asked for.
    """
    case = draw(cases(5, largest, attributes=2))
    k = draw(st.integers(2, 3))
    units = draw(_listed(st.sampled_from("ABCDEF"), case.n))
    limits = draw(st.one_of(st.just(Rules()), rules(case.columns)))
    if not diverse:
        limits = Rules(caps=limits.caps, apart=limits.apart)
    asked = replace(limits, units=units, of_units=k)
    ruled = replace(case, k=k, rules=asked, worst=draw(st.booleans()))
    assume(len(set(units)) >= k and ruled.optimum() < math.inf)
    assume(_table_is_diverse(ruled))
    return ruled


def without_diversity(case: Case) -> Case:
    """Return the case with its limits alone, for recodings that keep no diversity."""
    if case.rules is None:
        return case
    return replace(case, rules=Rules(caps=case.rules.caps, apart=case.rules.apart))


def _table_is_diverse(case: Case) -> bool:
    """Return whether a problem is accepted: what the whole table lacks, no release can have."""
    if case.rules is None or case.suppression:
        return True
    only = replace(case.rules, caps=(), apart=())
    return only.met_by(case.columns, range(case.n))


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


#: Losses with tables that never fall: ranges, sets, trees, own losses, curves.
RISING = ("gcp", "weighted-binary", "leaning", "curved")


@st.composite
def larger_problems(
    draw: st.DrawFn,
    smallest: int,
    largest: int,
    most_k: int = 5,
    losses: Sequence[str] = RISING,
) -> Problem:
    """Draw a problem of a table as `larger_microdata` makes it, with k from 2 to the most."""
    seed, n = draw(st.integers(0, 10**6)), draw(st.integers(smallest, largest))
    k, name = draw(st.integers(2, most_k)), draw(st.sampled_from(losses))
    note(f"larger_microdata({seed}, {n}), k = {k}, {name}")
    return Problem(larger_microdata(seed, n), k, objective=LOSSES[name].objective)
