"""The terms of a loss and of limits, as the kernels of growing sets read them.

A limit of generalization is a term whose loss is infinite where the limit is broken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.class_cells import cells_of_sets
from anonymip.objectives.language.tables import LARGEST_PAIR_TABLE, LossTables
from anonymip.problem import Problem
from anonymip.recodings.rules.limits import Apart, Cap, Limit, met_by_sets
from anonymip.runtime.packed import Packed
from anonymip.tolerances import LOSS_RELATIVE


class SetTerms(Packed):
    """The n records as the kernels read them, term by term, and what each term costs.

    Parameters
    ----------
    constant
        Loss of every published record whatever it covers.
    range_values
        (r, n) float64, values from the domain's lower end.
    range_down, range_up
        (r,) cost of a unit by which the lower end falls, by which the upper end rises.
    range_cap
        (r,) widest range allowed.
    set_codes
        (s, n) int32, ranks in the levels.
    set_sizes, set_start, set_losses
        (s,) number of levels, offset into the flat losses by count 0, 1, ...
    pair_codes
        (p, n) int32, ranks.
    pair_sizes, pair_start, pair_losses
        (p,) number of ranks L, offset into the flat losses [lowest * L + highest].
    table_start
        (s + p + 1,) where the penalties of each set and pair term begin in a table of one record.
    """

    constant: float
    range_values: NDArray[np.float64]
    range_down: NDArray[np.float64]
    range_up: NDArray[np.float64]
    range_cap: NDArray[np.float64]
    set_codes: NDArray[np.int32]
    set_sizes: NDArray[np.int64]
    set_start: NDArray[np.int64]
    set_losses: NDArray[np.float64]
    pair_codes: NDArray[np.int32]
    pair_sizes: NDArray[np.int64]
    pair_start: NDArray[np.int64]
    pair_losses: NDArray[np.float64]
    table_start: NDArray[np.int64]


def set_terms(problem: Problem, order: NDArray[np.int64] | None = None) -> SetTerms:
    """Return the terms of a problem's loss and limits.

    Parameters
    ----------
    problem
        Its objective has tables.
    order
        (n,) records in the order in which the kernels number them; None keeps that of the table.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables.
    InputError
        If a limit looks at an attribute with too many values for a table.
    """
    microdata, tables = problem.microdata, problem.compiled.tables
    records = np.arange(problem.n) if order is None else order
    ranges = [
        (
            microdata.values[records, column] - tables.range_origin[r],
            -tables.range_low[r],
            tables.range_high[r],
            np.inf,
        )
        for r, column in enumerate(tables.range_columns)
    ]
    sets = [_set_term(microdata, tables, records, s) for s in range(len(tables.set_columns))]
    pairs = [_pair_term(microdata, tables, records, p) for p in range(len(tables.pair_columns))]
    for limit in problem.limits:
        a = microdata.names.index(limit.attribute)
        attribute = microdata.attributes[a]
        if attribute.hierarchy is not None:
            pairs.append(_limited_nodes(microdata, limit, records, a))
        elif isinstance(limit, Apart):
            pairs.append(_disjoint_values(microdata, limit, records, a))
        elif attribute.publish == "range":
            most = limit.most + LOSS_RELATIVE * abs(limit.most)
            ranges.append((microdata.values[records, a], 0.0, 0.0, most))
        else:
            sets.append(_limited_count(microdata, limit, records, a))
    return _pack(tables.constant, problem.n, ranges, sets, pairs)


_RangeTerm = tuple[NDArray[np.float64], float, float, float]
_CodeTerm = tuple[NDArray[np.int32], int, NDArray[np.float64]]


def _set_term(
    microdata: Microdata, tables: LossTables, records: NDArray[np.int64], s: int
) -> _CodeTerm:
    start, size = tables.set_start[s], int(tables.set_sizes[s])
    codes = microdata.codes[records, tables.set_columns[s]]
    return codes, size, tables.set_losses[start : start + size + 1]


def _pair_term(
    microdata: Microdata, tables: LossTables, records: NDArray[np.int64], p: int
) -> _CodeTerm:
    start, size = tables.pair_start[p], int(tables.pair_sizes[p])
    codes = microdata.codes[records, tables.pair_columns[p]]
    return codes, size, tables.pair_losses[start : start + size * size]


def _limited_count(
    microdata: Microdata, limit: Cap, records: NDArray[np.int64], a: int
) -> _CodeTerm:
    size = len(microdata.levels[a])
    losses = np.where(np.arange(size + 1) <= limit.most, 0.0, np.inf)
    return microdata.codes[records, a], size, losses


def _disjoint_values(
    microdata: Microdata, limit: Apart, records: NDArray[np.int64], a: int
) -> _CodeTerm:
    """Rank one value 0, the other 2, all else 1: a set with 0 and 2 in it covers both."""
    codes = np.ones(microdata.n, np.int32)
    if microdata.attributes[a].publish == "range":
        low, high = sorted((float(str(limit.one)), float(str(limit.other))))
        codes[microdata.values[:, a] <= low] = 0
        codes[microdata.values[:, a] >= high] = 2
    else:
        pair = limit.codes(microdata)
        if pair is not None:
            codes[microdata.codes[:, a] == pair[0]] = 0
            codes[microdata.codes[:, a] == pair[1]] = 2
    losses = np.zeros(9)
    losses[2] = np.inf
    return codes[records], 3, losses


def _limited_nodes(
    microdata: Microdata, limit: Limit, records: NDArray[np.int64], a: int
) -> _CodeTerm:
    """Ask the limit about the node over every two values."""
    size = len(microdata.levels[a])
    if size**2 > LARGEST_PAIR_TABLE:
        raise InputError(
            f"the {limit} looks at {size} distinct values; tables hold at most "
            f"{int(LARGEST_PAIR_TABLE**0.5)}",
            remedy="Leave the limit out, or use a method that works without tables: ring",
        )
    codes = microdata.codes[:, a]
    # A part of a table need not hold all of its values.
    held, first = np.unique(codes, return_index=True)
    losses = np.zeros((size, size))
    for low, row in zip(held, first, strict=True):
        rows = np.stack([np.full(len(held), row), first], axis=1)
        met = met_by_sets(microdata, [limit], rows, cells_of_sets(microdata, rows))
        losses[low, held] = np.where(met, 0.0, np.inf)
    return codes[records], size, losses.ravel()


def _pack(
    constant: float,
    n: int,
    ranges: list[_RangeTerm],
    sets: list[_CodeTerm],
    pairs: list[_CodeTerm],
) -> SetTerms:
    def codes(terms: list[_CodeTerm]) -> NDArray[np.int32]:
        rows = np.empty((len(terms), n), np.int32)
        for at, (column, _, _) in enumerate(terms):
            rows[at] = column
        return rows

    def flat(terms: list[_CodeTerm]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        lengths = [len(losses) for _, _, losses in terms]
        starts = np.cumsum([0, *lengths])[:-1].astype(np.int64)
        return starts, np.concatenate([np.empty(0), *(losses for _, _, losses in terms)])

    values = np.empty((len(ranges), n))
    for at, (column, _, _, _) in enumerate(ranges):
        values[at] = column
    sizes = [size for _, size, _ in (*sets, *pairs)]
    terms = SetTerms(
        constant,
        values,
        np.array([down for _, down, _, _ in ranges], np.float64),
        np.array([up for _, _, up, _ in ranges], np.float64),
        np.array([cap for _, _, _, cap in ranges], np.float64),
        codes(sets),
        np.array([size for _, size, _ in sets], np.int64),
        *flat(sets),
        codes(pairs),
        np.array([size for _, size, _ in pairs], np.int64),
        *flat(pairs),
        np.cumsum([0, *sizes]).astype(np.int64),
    )
    for array in list(terms)[1:]:
        array.setflags(write=False)
    return terms
