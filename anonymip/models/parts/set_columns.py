"""The columns of set partitioning: which sets a model needs, and how many there may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.bounds.nearest_neighbour import nearest_neighbour_terms
from anonymip.enumeration import ClusterSets, enumerate_sets
from anonymip.errors import InputError, argument
from anonymip.models.parts.equivalence_context import refuse_unsolved
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.arrays import Floats, Ints
from anonymip.tolerances import LOSS_RELATIVE

#: Sets beyond which the model is not built.
MAX_COLUMNS = 500_000
#: Counts of sets go no higher.
_MOST_COUNTED = 1e18


def set_partition_size(problem: Problem) -> int:
    """Return about how many sets the model has without an upper bound, at most 10**18.

    The number of multisets of row types of k to the largest size needed; diversity and limits may
    leave fewer. Raises InputError if the recoding is another one.
    """
    refuse_other_recodings(problem)
    counts = np.ones(problem.n, np.int64)
    if problem.compiled.tier != "members":
        counts = problem.microdata.row_types().counts
    limit = problem.recoding.max_size(problem).size
    largest = problem.n if limit is None else min(limit, problem.n)
    # From far more sets than any model holds, more need not be counted.
    largest = min(largest, problem.k + 40)
    return int(min(count_multisets(counts, largest)[problem.k :].sum(), _MOST_COUNTED))


def count_multisets(counts: Ints, largest: int) -> Floats:
    """Return (largest + 1,) how many multisets of each size there are, at most 10**18 each.

    Each type may be in one as often as `counts` (types,) says.
    """
    # Coefficients of the product of 1 + x + ... + x^m over the types.
    multisets = np.zeros(largest + 1)
    multisets[0] = 1.0
    for count in counts:
        shifted = multisets.copy()
        for copies in range(1, min(int(count), largest) + 1):
            shifted[copies:] += multisets[: largest + 1 - copies]
        multisets = np.minimum(shifted, _MOST_COUNTED)
    return multisets


def refuse_other_recodings(problem: Problem) -> None:
    """Raise the error of a recoding that publishes no classes."""
    if not isinstance(problem.recoding, EquivalenceClasses):
        raise InputError(
            f"the set-partition model does not model the recoding {problem.recoding.name}",
            remedy=f"Use {argument('recoding', 'classes')}",
        )


def priced_columns(
    problem: Problem, upper_bound: float | None, max_sets: int, merge: bool
) -> ClusterSets:
    """Return the sets that a release as good as `upper_bound` may need as classes.

    They are incomplete if there are more than `max_sets`. Raises InputError if the bound is no
    finite number.
    """
    compiled = problem.compiled
    prices, threshold = None, np.inf
    if upper_bound is not None:
        if not np.isfinite(upper_bound):
            raise InputError(
                f"upper_bound is {upper_bound!r}", remedy="Give the loss of a release, or None"
            )
        if compiled.monotone and compiled.aggregate == "sum":
            # Every record pays its price in every release; a set that costs more beyond its
            # records' prices than the known release does in all is in no better one.
            prices = nearest_neighbour_terms(problem)
            threshold = upper_bound - prices.sum()
            scale = abs(upper_bound) + np.abs(prices).sum()
            threshold += LOSS_RELATIVE * scale + edge(problem)
    return enumerate_sets(problem, prices, threshold, max_sets=max_sets, merge=merge)


def often_at_most(sets: ClusterSets, times: int = 1) -> Ints:
    """Return (c,) how often each set may be taken if every row is covered so many times."""
    if not len(sets):
        return np.empty(0, np.int64)
    often = times * sets.rows.counts[sets.types] // sets.counts
    return np.asarray(np.minimum.reduceat(often, sets.offsets[:-1]), np.int64)


def terms_of_type(
    model: Any, matrix: csr_array, first: int, of_suppressed: float
) -> tuple[list[float], list[Any]]:
    """Return coefficients and variables of a type, named by its first record.

    Of its sets by a (t, c) matrix, and of its suppressed rows, where the model has these.
    """
    row = model.context.sets.rows.type_of[first]
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    coefficients = matrix.data[part].tolist()
    variables = [model.chosen[c] for c in matrix.indices[part]]
    if model.component("suppress") is not None:
        return [*coefficients, of_suppressed], [*variables, model.suppress[first]]
    return coefficients, variables


def set_chosen(model: Any, groups: Sequence[NDArray[np.integer]]) -> Ints | None:
    """Let a model by sets take those of some records, and return (c,) how often it takes each.

    None if one of the groups is no set of the model.
    """
    sets: ClusterSets = model.context.sets
    members = np.split(np.repeat(sets.types, sets.counts), np.cumsum(sets.sizes)[:-1])
    number = {tuple(own.tolist()): c for c, own in enumerate(members[: len(sets)])}
    chosen = np.zeros(len(sets), np.int64)
    for group in groups:
        c = number.get(tuple(np.sort(sets.rows.type_of[group]).tolist()))
        if c is None:
            return None
        chosen[c] += 1
    for c, variable in model.chosen.items():
        variable.set_value(int(chosen[c]))
    return chosen


def read_chosen(model: Any) -> Ints:
    """Return the sets that a solved model takes, as often as it does; InputError if unsolved."""
    refuse_unsolved(model.chosen.values())
    values = [variable.value for variable in model.chosen.values()]
    often = np.rint(np.array(values, np.float64)).astype(np.int64)
    return np.repeat(np.arange(len(often)), np.maximum(often, 0))


def edge(problem: Problem) -> float:
    """Return by how much a set may exceed what a release may lose, and still be let in.

    The sums of large and small losses are rounded; where a release loses nothing there is nothing
    else to measure by. Never 0: sets on the edge itself must get in.
    """
    size = abs(problem.whole) + abs(problem.unavoidable)
    return LOSS_RELATIVE * (size / problem.n if size else 1.0)


def refusal_of_sets(name: str, max_sets: int, possible: int, remedy: str) -> InputError:
    """Return the refusal of a model by sets that has more than are allowed."""
    return InputError(
        f"the {name} model has more than the {max_sets:,} sets that are allowed; about "
        f"{possible:,} are possible",
        remedy=remedy,
    )
