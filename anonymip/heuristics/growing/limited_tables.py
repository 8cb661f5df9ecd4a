"""Loss tables with terms that cost nothing within a limit of generalization, and beyond all."""

from __future__ import annotations

import numpy as np

from anonymip.enumeration.merging import capped_tables
from anonymip.instances.microdata import Microdata
from anonymip.objectives.kernels.class_loss import KernelRows, kernel_rows
from anonymip.objectives.language.record import cells_of_sets
from anonymip.problem import Problem
from anonymip.recodings.rules.limits import Apart, Limit, met_by_sets
from anonymip.runtime.arrays import Codes, Floats, Ints


def limited_tables(problem: Problem, first: Ints) -> KernelRows:
    """Return the tables of a problem's loss and limits, and the given records as these read them.

    A cap on a set makes the losses of larger sets infinite. All other limits forbid cells from a
    lowest to a highest rank, and with a cell every wider one, so that a term holds the highest rank
    that is allowed from each rank on.

    Complexity: O(L m log L) for L values of each limited attribute.
    """
    microdata, tables = problem.microdata, capped_tables(problem)
    rows = kernel_rows(microdata, tables, first)
    pair_codes = [rows.pair_codes]
    for limit in problem.limits:
        a = microdata.names.index(limit.attribute)
        if microdata.attributes[a].publish != "set":
            codes, highest = microdata.codes[:, a], _highest_ranks(microdata, limit, a)
        elif isinstance(limit, Apart):
            codes, highest = _disjoint_values(microdata, limit, a)
        else:
            continue
        tables = tables._replace(
            pair_columns=np.append(tables.pair_columns, a),
            pair_sizes=np.append(tables.pair_sizes, len(highest)),
            pair_strides=np.append(tables.pair_strides, -1),
            pair_start=np.append(tables.pair_start, len(tables.pair_losses)),
            pair_losses=np.append(tables.pair_losses, highest),
        )
        pair_codes.append(codes[first, None])
    rows = rows._replace(tables=tables, pair_codes=np.hstack(pair_codes))
    for array in (*list(tables)[1:], *list(rows)[1:]):
        array.setflags(write=False)
    return rows


def _highest_ranks(microdata: Microdata, limit: Limit, a: int) -> Floats:
    """Return (L,) the highest rank that a cell from each rank on may reach, by bisection."""
    # A part of a table need not hold all of its values.
    held, first = np.unique(microdata.codes[:, a], return_index=True)
    low, high = np.arange(len(held)), np.full(len(held), len(held) - 1)
    while (low < high).any():
        middle = (low + high + 1) // 2
        rows = np.stack([first, first[middle]], axis=1)
        met = met_by_sets(microdata, [limit], rows, cells_of_sets(microdata, rows))
        low, high = np.where(met, middle, low), np.where(met, high, middle - 1)
    highest = np.zeros(len(microdata.levels[a]))
    highest[held] = held[low]
    return highest


def _disjoint_values(microdata: Microdata, limit: Apart, a: int) -> tuple[Codes, Floats]:
    """Rank one value of a set 0, the other 2, all else 1: from 0 on no set may reach 2."""
    codes = np.ones(microdata.n, np.int32)
    for rank, code in zip((0, 2), limit.codes(microdata) or (), strict=False):
        codes[microdata.codes[:, a] == code] = rank
    return codes, np.array([1.0, 2.0, 2.0])
