"""Orders of the records in which neighbours are alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType

import numpy as np

from anonymip.errors import unknown_name
from anonymip.objectives import GCP
from anonymip.objectives.kernels.box_tree import (
    BoxTree,
    build_tree,
    cheapest_row,
    delete_row,
    new_tree,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    kernel_rows,
    new_state,
    open_class,
    pair_loss,
)
from anonymip.orders.arrangement import arrange
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.tolerances import LOSS_RELATIVE


@kernel
def stable_order(keys: Floats) -> Ints:
    """Return the places of the keys by rising keys; equal ones keep their order.

    Runs of 1, 2, 4, ... places are merged. Complexity: O(n log n) time.
    """
    n = len(keys)
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for at in range(n):
        order[at] = at
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            left, right = begin, middle
            for at in range(begin, end):
                if right == end or (left < middle and keys[order[left]] <= keys[order[right]]):
                    merged[at] = order[left]
                    left += 1
                else:
                    merged[at] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


def with_surrogate_loss(problem: Problem) -> Problem:
    """Return the problem, with GCP as its objective if its own has no tables.

    Raises UnsupportedObjective when tables are read, if an attribute has too many nodes or values
    even for those of GCP.
    """
    if problem.compiled.has_tables:
        return problem
    return Problem(problem.microdata, problem.k, objective=GCP())


#: Bits a dimension: finer than the differences that matter for a loss.
_BITS = 12
#: Dimensions that fit one word of a key.
_WORD = 62
#: Most places between the ends of a reversed segment.
_TWO_OPT_WINDOW = 50
_TWO_OPT_PASSES = 10


def variance_ranks(problem: Problem) -> Ints:
    """Return the attributes by ascending raw variance over the squared weight.

    As Liang & Samavi 2020, Section 2.3 and eq. (36). Raw means not normalised by the domain:
    normalising makes the order many times worse. A categorical attribute counts by the variance of
    its codes; weight 0 sorts last.
    """
    weight = problem.compiled.domains.weight
    variance = problem.microdata.values.var(axis=0)
    scaled = np.full(len(weight), np.inf)
    np.divide(variance, weight**2, out=scaled, where=weight > 0)
    return np.argsort(scaled, kind="stable")


def cardinality_ranks(problem: Problem) -> Ints:
    """Return the attributes by ascending number of observed values (Doka et al. 2015)."""
    return np.argsort([len(level) for level in problem.microdata.levels], kind="stable")


def _lexicographic(problem: Problem, attributes: Ints) -> Ints:
    codes = problem.microdata.codes[:, attributes]
    return np.lexsort(codes.T[::-1])


def variance_order(problem: Problem, budget: Budget) -> Ints:
    """Return the records sorted by the attributes in ascending variance."""
    return _lexicographic(problem, variance_ranks(problem))


def cardinality_order(problem: Problem, budget: Budget) -> Ints:
    """Return the records sorted by the attributes in ascending cardinality."""
    return _lexicographic(problem, cardinality_ranks(problem))


def snake_order(problem: Problem, budget: Budget) -> Ints:
    """Return the order of ascending variance with alternating directions.

    Each attribute runs upwards and downwards in turn, so that it does not jump back where the
    attributes before it change.
    """
    microdata = problem.microdata
    prefix = np.zeros(microdata.n, np.int64)
    for attribute in variance_ranks(problem):
        codes = microdata.codes[:, attribute].astype(np.int64)
        top = len(microdata.levels[attribute]) - 1
        reflected = np.where(prefix % 2 == 1, top - codes, codes)
        _, inverse = np.unique(prefix * (top + 1) + reflected, return_inverse=True)
        prefix = inverse.ravel().astype(np.int64)
    return np.argsort(prefix, kind="stable")


def hilbert_order(problem: Problem, budget: Budget) -> Ints:
    """Return the records along a Hilbert curve through the normalised attribute space."""
    microdata, domains = problem.microdata, problem.compiled.domains
    numeric = np.array([kind == "numeric" for kind in domains.kinds])
    levels = np.array([len(level) - 1.0 for level in microdata.levels])
    span = np.where(numeric, domains.high - domains.low, levels)
    offset = np.where(numeric, microdata.values - domains.low, microdata.codes)
    # What stands for missing numbers lies outside the domain.
    unit = np.zeros((microdata.n, microdata.m))
    np.divide(np.minimum(offset, span), span, out=unit, where=span > 0)
    return np.lexsort(hilbert_keys(unit).T[::-1])


def neighbour_order(problem: Problem, budget: Budget) -> Ints:
    """Return a chain: from each record to the cheapest neighbour not yet visited.

    It starts at the first record of the variance order. If the budget ends, the records left keep
    that order. For an objective without tables neighbours are those under GCP.
    """
    problem = with_surrogate_loss(problem)
    start = variance_order(problem, budget)
    arranged = arrange(problem, start)
    tables, rows = problem.compiled.tables, arranged.rows
    state = new_state(tables, 2)
    alive = np.ones(arranged.types, np.int64)
    chain = np.zeros(arranged.types, np.int64)
    cursor = np.zeros(3, np.int64)
    tree = new_tree(tables, arranged.types, split=problem.compiled.monotone)
    step = partial(_chain_step, rows, tree, state, alive, chain, cursor)
    run_in_steps(step, arranged.types, budget, "nearest-neighbour chain", first=100)
    visited = int(cursor[0])
    chain[visited:] = np.flatnonzero(alive)
    ends = np.cumsum(arranged.counts)
    return np.concatenate([arranged.records[ends[t] - arranged.counts[t] : ends[t]] for t in chain])


@kernel
def _chain_step(
    rows: KernelRows,
    tree: BoxTree,
    state: ClassState,
    alive: Ints,
    chain: Ints,
    cursor: Ints,
    amount: int,
) -> int:
    """Visit up to `amount` further types; cursor holds visited, size of the tree when built."""
    total = len(alive)
    for _ in range(amount):
        visited = cursor[0]
        if visited == total:
            break
        # The first row, or the cheapest neighbour of the last one.
        row = 0
        if visited > 0:
            open_class(rows, state, chain[visited - 1])
            row = cheapest_row(tree, rows, state, alive)
        # A tree with less than half of its rows is rebuilt.
        if visited == 0 or 2 * tree.alive[0] < cursor[1]:
            build_tree(tree, rows, alive)
            cursor[1] = tree.alive[0]
        chain[visited] = row
        alive[row] = 0
        cursor[0] += 1
        delete_row(tree, row)
    return cursor[0]


def two_opt(problem: Problem, order: Ints, budget: Budget) -> Ints:
    """Return a shorter path: reverse segments while that lowers the losses between neighbours.

    Segments of up to 50 records are tried, in up to 10 passes. For an objective without tables
    the losses are those of GCP.
    """
    tables = with_surrogate_loss(problem).compiled.tables
    rows = kernel_rows(problem.microdata, tables, order)
    path = np.arange(len(order))
    cursor = np.zeros(2, np.int64)
    total = _TWO_OPT_PASSES * len(order)
    step = partial(_two_opt_step, rows, path, cursor, total)
    run_in_steps(step, total, budget, "2-opt", first=1000)
    return order[path]


@kernel
def _two_opt_step(rows: KernelRows, path: Ints, cursor: Ints, total: int, amount: int) -> int:
    """Try the segments after `amount` places; cursor holds places tried and moves of the pass."""
    n = len(path)
    for _ in range(amount):
        i = cursor[0] % n
        # A pass without a move is the last.
        if i == 0 and cursor[0] > 0:
            if cursor[1] == 0:
                cursor[0] = total
            cursor[1] = 0
        if cursor[0] >= total:
            break
        cursor[0] += 1
        if i + 2 >= n:
            continue
        here = pair_loss(rows, path[i], path[i + 1])
        for j in range(i + 2, min(i + _TWO_OPT_WINDOW, n)):
            # Reversing i + 1 to j replaces the edges at both ends; the last place has but one.
            after = j + 1 < n
            gain = here - pair_loss(rows, path[i], path[j])
            if after:
                gain += pair_loss(rows, path[j], path[j + 1])
                gain -= pair_loss(rows, path[i + 1], path[j + 1])
            if gain > LOSS_RELATIVE * abs(here):
                low, high = i + 1, j
                while low < high:
                    path[low], path[high] = path[high], path[low]
                    low += 1
                    high -= 1
                cursor[1] += 1
                here = pair_loss(rows, path[i], path[i + 1])
    return cursor[0]


#: All orders by name.
ORDERS: MappingProxyType[str, Callable[[Problem, Budget], Ints]] = MappingProxyType(
    {
        "variance": variance_order,
        "cardinality": cardinality_order,
        "snake": snake_order,
        "hilbert": hilbert_order,
        "neighbour": neighbour_order,
    }
)


def find_order(problem: Problem, name: str, budget: Budget) -> Ints:
    """Return the (n,) records in the order of a name; ``+2opt`` behind it improves the path.

    Raises InputError if there is no order of that name.
    """
    base, plus, improvement = name.partition("+")
    if base not in ORDERS or (plus and improvement != "2opt"):
        raise unknown_name("order", name, ORDERS, more=", each with +2opt behind it if wanted")
    order = ORDERS[base](problem, budget).astype(np.int64)
    return two_opt(problem, order, budget) if plus else order


def hilbert_keys(points: Floats) -> Ints:
    """Return (n, words) keys of (n, m) points from 0 to 1, in lexicographic order along the curve.

    The bit transposition of J. Skilling: Programming the Hilbert curve, AIP Conference Proceedings
    707, 2004, doi:10.1063/1.1751381. Complexity: O(n m bits).
    """
    top = 2**_BITS - 1
    grid = np.ascontiguousarray(np.rint(np.clip(points, 0.0, 1.0) * top).astype(np.int64))
    _to_transpose(grid)
    n, m = grid.shape
    words = []
    for bit in range(_BITS - 1, -1, -1):
        for begin in range(0, m, _WORD):
            word = np.zeros(n, np.int64)
            for dimension in range(begin, min(begin + _WORD, m)):
                word = 2 * word + ((grid[:, dimension] >> bit) & 1)
            words.append(word)
    return np.stack(words, axis=1)


@kernel
def _to_transpose(grid: Ints) -> None:
    """Replace the coordinates of each point by the bits of its position, in place."""
    n, m = grid.shape
    for i in range(n):
        q = 1 << (_BITS - 1)
        while q > 1:
            p = q - 1
            for d in range(m):
                if grid[i, d] & q:
                    grid[i, 0] ^= p
                else:
                    t = (grid[i, 0] ^ grid[i, d]) & p
                    grid[i, 0] ^= t
                    grid[i, d] ^= t
            q >>= 1
        for d in range(1, m):
            grid[i, d] ^= grid[i, d - 1]
        t = 0
        q = 1 << (_BITS - 1)
        while q > 1:
            if grid[i, m - 1] & q:
                t ^= q - 1
            q >>= 1
        for d in range(m):
            grid[i, d] ^= t
