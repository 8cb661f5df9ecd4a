"""Loss tables: an affine or separable objective as arrays that models and kernels read.

They tell how much one cell can add to the loss of a record, attribute by attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.hierarchies.tree import Tree
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.expression import Expression, Nonlinear
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.packed import Packed

#: Share of the largest of some numbers that their own rounding may leave of a sum of 0.
_RESIDUE = 1e-15
#: Largest table of a non-linear term on ranges: all pairs of values of one attribute.
LARGEST_PAIR_TABLE = 4_000_000
#: Largest table of nodes over all pairs; beyond it they are found by largest losses of neighbours.
LARGEST_NODE_TABLE = LARGEST_PAIR_TABLE
#: Up to so many values all pairs take no more room than the largest losses of neighbours do.
_FEW_LEVELS = 3
CAPPED = -2  # stride of the losses of ranges beside missing values, see :class:`LossTables`


class NotSeparable(UnsupportedObjective):
    """A loss that is no sum of terms that look at one attribute each."""


class LossTables(Packed, read_only=True):
    """The loss of a published record as a sum of terms that look at one attribute each.

    loss = constant + sum over r of (low_loss lower + high_loss upper), ends counted from the
    origin, + sum over s of set_losses[count] + sum over p of
    pair_losses[rank of lower, rank of upper]. What all exact cells of an attribute cost lies in the
    constant and not in the losses by count or pair: next to it, small losses of others would be
    lost in rounding.
    """

    constant: float  # float64
    #: (r,) attribute, what its ends are counted from (0 where the two coefficients cancel),
    #: coefficients of lower and upper end.
    range_columns: Ints
    range_origin: Floats
    range_low: Floats
    range_high: Floats
    #: (s,) attribute, number of observed levels, offset into the flat losses by count 0, 1, ...
    set_columns: Ints
    set_sizes: Ints
    set_start: Ints
    set_losses: Floats
    #: (p,) attribute, number of observed levels L, stride, offset into the flat losses. Curved
    #: losses of ranges, and all losses of hierarchical attributes: the levels follow the leaves of
    #: the tree, so the lowest and the highest fix the node. With the stride L the losses are those
    #: of all pairs, at [lower * L + upper]. With the stride 0, of large hierarchies whose loss
    #: rises towards the root, they are lines of L: what exact cells cost, then in line 1 + j the
    #: largest loss of a node over two neighbouring levels among the 2^j pairs of neighbours from a
    #: level on. The node over a range is the highest of those over its neighbours, so two
    #: overlapping entries of a line tell its loss (Bender & Farach-Colton 2000, Section 3). With
    #: the stride -1, of limits that some kernels are handed as terms, they are the highest rank
    #: allowed from each rank on: beyond, the loss is infinite. With the stride -2, of many numbers
    #: beside missing values, they are the L numbers, what a unit of width costs, and what the loss
    #: of a range is at most.
    pair_columns: Ints
    pair_sizes: Ints
    pair_strides: Ints
    pair_start: Ints
    pair_losses: Floats

    @property
    def columns(self) -> list[int]:
        """The attributes that the loss looks at, ascending."""
        read = {*self.range_columns, *self.set_columns, *self.pair_columns}
        return sorted(int(a) for a in read)

    @property
    def term_counts(self) -> tuple[int, int, int]:
        """How many terms look at ranges, at counts of values, and at pairs of ends."""
        return len(self.range_columns), len(self.set_columns), len(self.pair_columns)


#: Attribute, number of levels, stride and losses of a term by lowest and highest rank.
_PairTerm = tuple[int, int, int, Floats]


class _Part(NamedTuple):
    """What a loss charges for the cell of one attribute."""

    attribute: int
    name: str
    linear: dict[str, float]  # coefficients of what a cell shows
    terms: list[Nonlinear]

    def losses(self, linear: Sequence[str], **values: Floats) -> Floats:
        """Return the losses of cells that show some values, of which some count linearly."""
        losses = reduce(np.add, (self.linear.get(kind, 0.0) * values[kind] for kind in linear))
        basis = {(self.attribute, kind): numbers for kind, numbers in values.items()}
        for term in self.terms:
            losses = losses + term.evaluate(basis)
        return losses


def tabulate(expression: Expression, domains: Domains, microdata: Microdata) -> LossTables:
    """Return the tables of the loss of a record.

    Raises NotSeparable if a term looks at several attributes, at range and count of one attribute,
    or at the range or node of an attribute with too many values for a table. UnsupportedObjective
    if the loss is infinite or undefined.
    """
    nonlinear: dict[int, list[Nonlinear]] = {}
    constants = [expression.constant]
    for term in expression.terms:
        attributes = {attribute for attribute, _ in term.basis()}
        if not attributes:
            constants.append(float(term.evaluate({})))
        elif len(attributes) > 1:
            names = ", ".join(domains.names[a] for a in sorted(attributes))
            raise NotSeparable(
                f"the objective combines several attributes in one non-linear term ({names})",
                remedy="Accepted are sums of terms that look at one attribute each",
            )
        else:
            nonlinear.setdefault(attributes.pop(), []).append(term)
    ranges: list[tuple[int, float, float, float]] = []
    sets: list[tuple[int, Floats]] = []
    pairs: list[_PairTerm] = []
    for attribute in range(domains.m):
        terms, name = nonlinear.get(attribute, []), domains.names[attribute]
        linear = {kind: slope for (a, kind), slope in expression.linear.items() if a == attribute}
        part = _Part(attribute, name, linear, terms)
        low, high, slope = (linear.get(kind, 0.0) for kind in ("lower", "upper", "count"))
        read = {kind for term in terms for _, kind in term.basis()}
        level, origin = microdata.levels[attribute], float(domains.origin[attribute])
        tree, size = domains.trees[attribute], len(level)
        if tree is not None:
            leaf = microdata.leaves(attribute)
            large = size**2 > LARGEST_NODE_TABLE and size > _FEW_LEVELS
            if large:
                losses = _neighbour_losses(part, tree, leaf)
            else:
                # Of the lowest node over the levels from the first to the second.
                nodes = tree.common_ancestors(leaf[:, None], leaf[None, :])
                losses = _losses_of_nodes(part, tree, nodes)
            exact = _shared_exact(losses[0] if large else np.diagonal(losses))
            constants.append(exact)
            if (losses != exact).any():
                pairs.append((attribute, size, 0 if large else size, losses - exact))
            continue
        capped = None
        if domains.beyond[attribute] < np.inf:
            capped = _capped_widths(part, level.astype(np.float64))
        if capped is not None:
            pairs.append((attribute, size, CAPPED, capped))
            continue
        if "count" in read and len(read) > 1:
            raise NotSeparable(
                f"a non-linear term looks at range and number of values of {name!r} together",
                remedy="Use either the range or the number of values",
            )
        if terms and "count" not in read:
            losses = _pair_losses(part, level.astype(np.float64), origin)
            exact = _shared_exact(np.diagonal(losses))
            constants.append(exact)
            pairs.append((attribute, size, size, np.triu(losses - exact)))
        elif (low or high) and size > 1:
            # Where only the width counts, values are left as they are: they are exact.
            ranges.append((attribute, 0.0 if low + high == 0 else origin, low, high))
        elif low or high:
            constants.append((low + high) * (float(level[0]) - origin))
        if slope or "count" in read:
            counts = np.arange(size + 1, dtype=np.float64)
            losses = part.losses(["count"], count=counts) if "count" in read else slope * counts
            losses[0] = 0.0  # no cell is empty
            _refuse_undefined(losses, name)
            constants.append(float(losses[1]))
            losses[1:] -= losses[1]
            sets.append((attribute, losses))
    # Where only rounding is left of the sum of constants, it is 0.
    constant = fsum(constants)
    constant = 0.0 if abs(constant) <= _RESIDUE * max(map(abs, constants)) else constant
    return pack(constant, ranges, sets, pairs)


def _shared_exact(exact: Floats) -> float:
    """Return what all exact cells cost; 0 where it differs."""
    return 0.0 if len(exact) == 0 or (exact != exact[0]).any() else float(exact[0])


def _pair_losses(part: _Part, numbers: Floats, origin: float) -> Floats:
    if len(numbers) ** 2 > LARGEST_PAIR_TABLE:
        raise NotSeparable(
            f"the objective is non-linear in the range of {part.name!r}, which has "
            f"{len(numbers)} distinct values; tables hold at most {int(LARGEST_PAIR_TABLE**0.5)}",
            remedy="Use a linear term, or fewer values",
        )
    lower, upper = np.meshgrid(numbers - origin, numbers - origin, indexing="ij")
    width = numbers[None, :] - numbers[:, None]
    losses = part.losses(["lower", "upper"], lower=lower, upper=upper, width=width)
    # Below the diagonal there is no range; those cells must not decide anything.
    losses = np.where(lower <= upper, losses, 0.0)
    _refuse_undefined(losses, part.name)
    return losses


def _capped_widths(part: _Part, numbers: Floats) -> Floats | None:
    """Return the numbers of an attribute, what a unit of width costs, and what a range at most.

    None where there are few numbers, or where the loss is no multiple of the width, and of numbers
    and missing values together the most.
    """
    many = len(numbers) ** 2 > LARGEST_NODE_TABLE and len(numbers) > _FEW_LEVELS
    if not many or len(part.terms) != 1 or any(part.linear.values()):
        return None
    (term,), ends = part.terms, ((part.attribute, "lower"), (part.attribute, "upper"))
    width: Any = term.arguments[0]
    if term.function is not np.minimum or not isinstance(width, Expression) or width.terms:
        return None
    slope, most = width.linear.get(ends[1], 0.0), term.arguments[1]
    if dict(width.linear) != {ends[0]: -slope, ends[1]: slope} or width.constant:
        return None
    apart = slope * (numbers[-1] - numbers[-2])
    if isinstance(most, Expression) or term.factor < 0 or not 0 < most <= apart:
        return None
    return np.array([*numbers, term.factor * slope, term.factor * most])


def _neighbour_losses(part: _Part, tree: Tree, leaf: Ints) -> Floats:
    """Return (lines, L) losses of exact levels, then largest losses of neighbours.

    Raises NotSeparable if the loss of some node is below that of one under it: the highest node of
    a range is then not the dearest. Complexity: O(L log L) time and memory, O(nodes height) time.
    """
    between = tree.common_ancestors(leaf[:-1], leaf[1:])
    nodes = np.unique(np.concatenate([leaf, between]))
    by_node = np.full(len(tree.labels), np.nan)
    by_node[nodes] = _losses_of_nodes(part, tree, nodes)
    # The lowest node above each that is over some of the levels alone, too.
    above = tree.parent[nodes]
    while (other := (above >= 0) & np.isnan(by_node[above])).any():
        above[other] = tree.parent[above[other]]
    if (by_node[above[above >= 0]] < by_node[nodes[above >= 0]]).any():
        raise NotSeparable(
            f"the objective can fall towards the root of {part.name!r}, which has {len(leaf)} "
            f"distinct values; tables of such losses hold at most {int(LARGEST_NODE_TABLE**0.5)}",
            remedy="Use a loss that rises towards the root, or fewer values",
        )
    lines = [by_node[leaf], by_node[between]]
    while (ahead := 2 ** (len(lines) - 1)) < len(leaf):
        last = lines[-1]
        lines.append(np.maximum(last[: -ahead // 2], last[ahead // 2 :]))
    return np.stack([np.pad(line, (0, len(leaf) - len(line)), "edge") for line in lines])


def _losses_of_nodes(part: _Part, tree: Tree, nodes: NDArray[np.integer]) -> Floats:
    level, leaves = (of[nodes].astype(np.float64) for of in (tree.level, tree.leaves_below))
    losses = part.losses(["level", "leaves"], level=level, leaves=leaves)
    _refuse_undefined(losses, part.name)
    return losses


def _refuse_undefined(losses: Floats, name: str) -> None:
    if not np.isfinite(losses).all():
        raise UnsupportedObjective(
            f"the objective is infinite or undefined for some cell of {name!r}",
            remedy="Keep logarithms, roots and divisions away from 0",
        )


def pack(
    constant: float,
    ranges: list[tuple[int, float, float, float]],
    sets: list[tuple[int, Floats]],
    pairs: list[_PairTerm],
) -> LossTables:
    """Return the tables of terms by ranges, by counts of values, and by pairs of ends.

    Of each the attribute, then for ranges the origin and the two coefficients, for sets the losses
    by count, for pairs the number of levels, the stride and the losses.
    """

    def flat(tables: list[Floats]) -> tuple[Ints, Floats]:
        starts = np.cumsum([0, *(table.size for table in tables)], dtype=np.int64)[:-1]
        return starts, np.concatenate([np.empty(0), *(table.ravel() for table in tables)])

    columns, *ends = np.array(ranges, np.float64).reshape(-1, 4).T.copy()
    sized = np.array([(a, len(losses) - 1) for a, losses in sets], np.int64).reshape(-1, 2)
    paired = np.array([pair[:3] for pair in pairs], np.int64).reshape(-1, 3)
    tables: list[Any] = [
        *(columns.astype(np.int64), *ends),
        *(*sized.T.copy(), *flat([losses for _, losses in sets])),
        *(*paired.T.copy(), *flat([losses for *_, losses in pairs])),
    ]
    for table in tables:
        table.setflags(write=False)
    return LossTables(float(constant), *tables)


def losses_of_pairs(tables: LossTables, p: int) -> Floats:
    """Return the flat losses of a term by lowest and highest rank, in the order they lie in."""
    ends = np.append(tables.pair_start, len(tables.pair_losses))
    return tables.pair_losses[ends[p] : ends[p + 1]]


def exact_losses(tables: LossTables, p: int) -> Floats:
    """Return (L,) what a term by lowest and highest rank charges for exact cells."""
    size, stride = int(tables.pair_sizes[p]), int(tables.pair_strides[p])
    if stride == CAPPED:
        return np.zeros(size)
    return losses_of_pairs(tables, p)[:: stride + 1][:size]


def whole_loss(tables: LossTables, p: int) -> float:
    """Return what such a term charges for a cell over all ranks."""
    losses, size = losses_of_pairs(tables, p), int(tables.pair_sizes[p])
    if tables.pair_strides[p] == CAPPED:
        return float(losses[-1])
    return float(losses[size - 1] if tables.pair_strides[p] else losses[-size:].max())


def square_losses(tables: LossTables, p: int) -> Floats:
    """Return (L, L) the losses of such a term by lowest and highest rank, if L is not too many."""
    size, losses = int(tables.pair_sizes[p]), losses_of_pairs(tables, p)
    if tables.pair_strides[p] > 0:
        return losses.reshape(size, size)
    if size**2 > LARGEST_PAIR_TABLE:
        raise UnsupportedObjective(
            f"an attribute has {size} distinct values; tables of all pairs hold at most "
            f"{int(LARGEST_PAIR_TABLE**0.5)}",
            remedy="Use a method that needs none: local-search, greedy-search, reassign",
        )
    if tables.pair_strides[p] == CAPPED:
        widths = losses[-2] * np.abs(losses[:size, None] - losses[:size])
        return np.asarray(np.minimum(np.triu(widths), losses[-1]), np.float64)
    square = np.diag(losses[:size])
    # The node over a range is the highest of those over its neighbours.
    for low in range(size - 1):
        square[low, low + 1 :] = np.maximum.accumulate(losses[size + low : 2 * size - 1])
    return np.where(np.tri(size, k=-1, dtype=np.bool_), square.T, square)


def first_decrease(tables: LossTables) -> int | None:
    """Return an attribute whose loss can fall when the cell covers more, or None.

    None proves the record loss monotone in set inclusion: lower ends fall, upper ends and counts
    rise when a set grows.
    """
    for r, column in enumerate(tables.range_columns):
        if tables.range_low[r] > 0 or tables.range_high[r] < 0:
            return int(column)
    for s, column in enumerate(tables.set_columns):
        start, size = tables.set_start[s], tables.set_sizes[s]
        if np.any(np.diff(tables.set_losses[start + 1 : start + size + 1]) < 0):
            return int(column)
    for p, column in enumerate(tables.pair_columns):
        if tables.pair_strides[p] <= 0:
            continue  # only rising losses are kept this way
        losses, ranges = square_losses(tables, p), np.triu_indices(int(tables.pair_sizes[p]) - 1)
        wider_up, falls_down = np.diff(losses, axis=1), np.diff(losses, axis=0)[:, 1:]
        if np.any(wider_up[ranges] < 0) or np.any(falls_down[ranges] > 0):
            return int(column)
    return None


_ROUNDING = 1e-11  # steps below this share of the largest effect are rounding


def least_step(tables: LossTables, microdata: Microdata) -> float:
    """Return the least that a cell which takes in one more value costs more; infinite if nothing.

    What rounding makes of equal losses does not count, nor steps as small.
    """
    steps = [np.empty(0)]
    for r, column in enumerate(tables.range_columns):
        gaps = np.diff(microdata.levels[column].astype(float))
        steps += [abs(slope) * gaps for slope in (tables.range_low[r], tables.range_high[r])]
    for s in range(len(tables.set_columns)):
        first = tables.set_start[s] + 1
        steps.append(np.abs(np.diff(tables.set_losses[first : first + tables.set_sizes[s]])))
    for p in range(len(tables.pair_columns)):
        if tables.pair_strides[p] == 0:
            # No two losses of nodes lie closer together; which of them lie in a line is not asked.
            steps.append(np.diff(np.unique(losses_of_pairs(tables, p))))
            continue
        if tables.pair_strides[p] == CAPPED:
            *numbers, slope, most = losses_of_pairs(tables, p).tolist()
            steps.append(slope * np.diff(numbers[:-1]))
            steps.append(np.array([most, most - slope * (numbers[-2] - numbers[0])]))
            continue
        losses, size = square_losses(tables, p), int(tables.pair_sizes[p])
        # Ranges from row to column, and what one more value at either end adds.
        wider = np.triu_indices(size, 1)
        whole = losses[wider]
        steps.append(np.abs(whole - losses[wider[0], wider[1] - 1]))
        steps.append(np.abs(whole - losses[wider[0] + 1, wider[1]]))
    every = np.concatenate(steps)
    every = every[every > _ROUNDING * effects_of_cells(tables, microdata).max(initial=0.0)]
    return float(every.min(initial=np.inf))


def effects_of_cells(tables: LossTables, microdata: Microdata) -> Floats:
    """Return (m,) the most that a cell of each attribute can add to the loss of a record."""
    effects = np.zeros(microdata.m)
    for r, column in enumerate(tables.range_columns):
        levels = microdata.levels[column].astype(float)
        slope = max(abs(tables.range_low[r]), abs(tables.range_high[r]))
        effects[column] = max(effects[column], slope * (levels[-1] - levels[0]))
    for s, column in enumerate(tables.set_columns):
        first = tables.set_start[s] + 1
        losses = tables.set_losses[first : first + tables.set_sizes[s]]
        effects[column] = max(effects[column], losses.max() - losses.min())
    for p, column in enumerate(tables.pair_columns):
        losses = losses_of_pairs(tables, p)
        if tables.pair_strides[p] == CAPPED:
            losses = np.array([0.0, losses[-1]])
        effects[column] = max(effects[column], losses.max() - losses.min())
    return effects


def size_of_exact(tables: LossTables, microdata: Microdata) -> float:
    """Return how large the terms are that the loss of an exactly published record is summed of.

    They may cancel, and what a record loses beyond them may be tiny; rounding follows their size.
    """
    size = abs(tables.constant)
    for r, column in enumerate(tables.range_columns):
        largest = float(np.abs(microdata.values[:, column] - tables.range_origin[r]).max())
        size += abs(float(tables.range_low[r] + tables.range_high[r])) * largest
    for s, start in enumerate(tables.set_start):
        size += abs(float(tables.set_losses[start + min(1, tables.set_sizes[s])]))
    for p in range(len(tables.pair_columns)):
        size += float(np.abs(exact_losses(tables, p)).max(initial=0.0))
    return size
