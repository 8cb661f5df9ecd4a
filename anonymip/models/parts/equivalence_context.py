"""Context of the models by cells: scaling, nodes that cost, sizes, refusals."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from anonymip.errors import InputError, UnsupportedObjective
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.tables import LossTables, effects_of_cells, square_losses
from anonymip.problem import Problem
from anonymip.recodings import Cap
from anonymip.recodings.rules.limits import conflicts
from anonymip.runtime.arrays import Codes, Flags, Floats

#: Ends of at most this magnitude, in columns at least as wide as the second number, are measured
#: as they are. Solvers let a row be violated by 1e-6 to 1e-7 whatever its unit: on timestamps that
#: is less than a digit, on a column 1e-6 wide it is more than the column.
_LARGEST_END = 1e5
_NARROWEST = 1.0
#: A step of 1 that costs less than this share of the largest effect of a cell is measured in spans:
#: presolve of HiGHS 1.15 substitutes by rows with coefficients of 1e-8 beside 1, and loses optima.
_SMALLEST_STEP = 1e-4
#: Values nearer to each other than this share of the span are told apart by their ranks.
_NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class Context:
    """What the parts of the model share; kept on the model as ``context``."""

    problem: Problem
    #: Attributes with ends and with value indicators.
    ranges: tuple[int, ...]
    sets: tuple[int, ...]
    ancestors: tuple[Ancestors, ...]  # of the hierarchical attributes
    #: Whether ends of integer attributes are integer variables, eq. (27).
    integer_ends: bool
    scaling: Scaling  # units of the variables for ends

    @classmethod
    def of(cls, problem: Problem, integer_ends: bool = True) -> Context:
        """Return the context of a problem whose objective has tables."""
        tables, microdata = problem.compiled.tables, problem.microdata
        ancestors = tuple(
            Ancestors.of(microdata, attribute, square_losses(tables, p))
            for p, attribute in enumerate(map(int, tables.pair_columns))
            if microdata.attributes[attribute].hierarchy is not None
        )
        nodes = {one.attribute for one in ancestors}
        ranges = {int(a) for a in (*tables.range_columns, *tables.pair_columns)} - nodes
        capped = {
            microdata.names.index(limit.attribute)
            for limit in problem.limits
            if isinstance(limit, Cap)
        }
        sets = {a for a in capped if microdata.attributes[a].publish == "set"}
        sets |= {int(a) for a in tables.set_columns}
        return cls(
            problem,
            tuple(sorted(ranges)),
            tuple(sorted(sets)),
            ancestors,
            integer_ends,
            Scaling.of(microdata, problem.compiled.tables),
        )

    @cached_property
    def observed(self) -> Floats:
        """(n, m) the values of the table as the variables measure them."""
        return self.scaling.scaled(self.problem.microdata.values)

    @cached_property
    def conflicts(self) -> Flags:
        """(n, n) whether the limits keep two records apart."""
        problem = self.problem
        return conflicts(problem.microdata, problem.limits, np.arange(problem.n))

    @property
    def needs_transitivity(self) -> bool:
        """Whether equivalence through others is not enough.

        Shared ends pass along a chain of pairs; numbers of members, and which records are in one
        class, do not.
        """
        return self.problem.diversity is not None or bool(self.conflicts.any())

    @property
    def tables(self) -> LossTables:
        """The objective's tables."""
        return self.problem.compiled.tables

    @property
    def pairs(self) -> int:
        """Number of unordered pairs of records."""
        return self.problem.n * (self.problem.n - 1) // 2

    @property
    def triples(self) -> int:
        """Number of unordered triples of records."""
        return self.pairs * (self.problem.n - 2) // 3


def linear(constant: float, coefficients: list[float], variables: list[Any]) -> Any:
    """Return a linear expression the fast way."""
    # Imported late: methods that take no more than names from here need no Pyomo.
    from pyomo.core.expr import LinearExpression

    return LinearExpression(constant=constant, linear_coefs=coefficients, linear_vars=variables)


def total(variables: list[Any]) -> Any:
    """Return the sum of variables."""
    return linear(0.0, [1.0] * len(variables), variables)


def at_most_one(*variables: Any) -> tuple[None, Any, float]:
    """Return the row that says that of some variables one at most is 1."""
    return (None, total([*variables]), 1.0)


def no_less(first: Any, second: Any) -> tuple[float, Any, None]:
    """Return the row first >= second of two variables."""
    return (0.0, linear(0.0, [1.0, -1.0], [first, second]), None)


def refuse_unsolved(variables: Iterable[Any]) -> None:
    """Refuse to read a model some of whose variables have no value."""
    if any(variable.value is None for variable in variables):
        raise InputError(
            "the model has no values to read", remedy="Solve it, and load the solution"
        )


@dataclass(frozen=True, eq=False)
class Ancestors:
    """The ancestors of the values of one hierarchical attribute that matter to the loss.

    A cell that covers a value publishes the value or one of its ancestors, a chain. An ancestor
    matters if it is the lowest common one with another value of the table and costs more than the
    nodes below it in the chain. A monotone loss never falls along a chain.

    Two values have the same ancestors that matter strictly above their lowest common one, at the
    same steps of the loss: both chains go through the common node and agree from there on.
    """

    attribute: int  # index of the attribute
    common: Codes  # (L, L) lowest common node of two values, by their ranks
    #: For each value its ancestors that matter, from the lowest on: their numbers, in post-order,
    #: rise.
    chains: tuple[tuple[int, ...], ...]
    alone: Floats  # (L,) loss of publishing each value itself
    #: For each value the rise of the loss at each node of its chain.
    steps: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, microdata: Microdata, attribute: int, losses: Floats) -> Ancestors:
        """Return the ancestors of an attribute, given (L, L) losses of the lowest node over two."""
        hierarchy = microdata.attributes[attribute].hierarchy
        assert hierarchy is not None
        tree, leaf = hierarchy.tree, microdata.leaves(attribute)
        common = tree.common_ancestors(leaf[:, None], leaf[None, :])
        ranks = np.arange(len(leaf))
        both = losses[np.minimum.outer(ranks, ranks), np.maximum.outer(ranks, ranks)]
        chains: list[tuple[int, ...]] = []
        steps: list[tuple[float, ...]] = []
        for rank in ranks:
            # Common nodes on the way to the root cover more and more leaves.
            _, first = np.unique(tree.leaves_below[common[rank]], return_index=True)
            rises = np.diff(both[rank][first])
            rising = np.flatnonzero(rises > 0)
            chains.append(tuple(common[rank][first][rising + 1].tolist()))
            steps.append(tuple(rises[rising].tolist()))
        return cls(attribute, common, tuple(chains), np.diagonal(both).copy(), tuple(steps))

    @property
    def longest(self) -> int:
        """Number of nodes of the longest chain."""
        return max(map(len, self.chains))

    def reached(self, value: int, other: int) -> int | None:
        """Return the highest node of a value's chain that a cell with another value reaches."""
        top = bisect_right(self.chains[value], int(self.common[value, other]))
        return None if top == 0 else self.chains[value][top - 1]

    def above(self, value: int, other: int) -> tuple[int, ...]:
        """Return the nodes of both values' chains above their lowest common node."""
        chain = self.chains[value]
        return chain[bisect_right(chain, int(self.common[value, other])) :]


@dataclass(frozen=True, eq=False)
class Scaling:
    """An end is origin + unit * variable; in ranked columns, the level of this rank.

    `origin, unit`: (m,) float64, in the unit of each attribute. `whole`: (m,) bool, whether whole
    numbers stay whole. `ranked`: for each ranked column its levels, ascending.
    """

    origin: Floats
    unit: Floats
    whole: Flags
    ranked: Mapping[int, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, microdata: Microdata, tables: LossTables) -> Scaling:
        """Return the scaling of a table: none, from the lowest value on, or to 0 to 1."""
        low, high = microdata.values.min(axis=0), microdata.values.max(axis=0)
        span = high - low
        whole = np.array([attribute.is_whole for attribute in microdata.attributes])
        plain = np.maximum(np.abs(low), np.abs(high)) <= _LARGEST_END
        plain &= (span >= _NARROWEST) | (span == 0)
        shifted = whole & (span <= _LARGEST_END)
        # Whether a range wider by 1 costs a visible share of the largest effect.
        smallest = _SMALLEST_STEP * float(effects_of_cells(tables, microdata).max(initial=0.0))
        coarse = np.ones(microdata.m, np.bool_)
        for r, column in enumerate(tables.range_columns):
            coarse[column] = max(abs(tables.range_low[r]), abs(tables.range_high[r])) >= smallest
        plain, shifted = plain & coarse, shifted & coarse
        ranked = _ranked(microdata, tables)
        counted = np.isin(np.arange(microdata.m), list(ranked))
        return cls(
            np.where(plain | counted, 0.0, low),
            np.where(plain | shifted | counted | (span == 0), 1.0, span),
            whole & (plain | shifted) & ~counted,
            ranked,
        )

    def scaled(self, ends: Floats) -> Floats:
        """Return (n, m) values of variables for (n, m) ends."""
        scaled: Floats = (ends - self.origin) / self.unit
        for column, levels in self.ranked.items():
            scaled[:, column] = np.searchsorted(levels, ends[:, column])
        return scaled

    def levels(self, microdata: Microdata, column: int) -> Floats:
        """Return (levels,) values of variables for the levels of a column of numbers."""
        levels = microdata.levels[column].astype(np.float64)
        if column in self.ranked:
            return np.arange(len(levels), dtype=np.float64)
        return np.asarray((levels - self.origin[column]) / self.unit[column], np.float64)


def _ranked(microdata: Microdata, tables: LossTables) -> dict[int, Floats]:
    """Return the levels of the columns whose ends are counted in ranks."""
    linear = set(map(int, tables.range_columns))
    ranked = {}
    for column in map(int, tables.pair_columns):
        attribute = microdata.attributes[column]
        if column in linear or attribute.hierarchy is not None:
            continue
        levels = microdata.levels[column].astype(np.float64)
        if len(levels) > 1 and np.diff(levels).min() < _NEAR * (levels[-1] - levels[0]):
            ranked[column] = levels
    return ranked


def refuse_unfit_objective(problem: Problem, model: str, remedy: str) -> None:
    """Refuse losses that are no sum of monotone terms of one attribute each.

    Where it is not proven monotone, the model could publish more than a record needs to cover.
    Raises UnsupportedObjective.
    """
    compiled = problem.compiled
    if not compiled.has_tables:
        raise UnsupportedObjective(
            f"the {model} model needs an objective that is a sum of terms of one attribute each; "
            f"{problem.objective.name!r} is of the {compiled.tier} tier",
            remedy=remedy,
        )
    if not compiled.monotone:
        raise UnsupportedObjective(
            f"the {model} model needs a monotone objective, and {problem.objective.name!r} is "
            f"none: {compiled.obstacle}",
            remedy=remedy,
        )


#: Constraints beyond which building takes minutes and solving does not end.
LARGEST_MODEL = 3_000_000


def refuse_large(name: str, records: int, size: int, heuristics: str = "a heuristic") -> None:
    """Refuse a model with too many constraints and choices, naming what to use in place of it."""
    if size > LARGEST_MODEL:
        raise InputError(
            f"the {name} model of {records} records has about {size:,} constraints and choices; "
            f"the limit is {LARGEST_MODEL:,}",
            remedy=f"Use {heuristics} with its bound, or fewer records",
        )
