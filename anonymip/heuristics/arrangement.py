"""Rows in an order, identical rows merged, ready for the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.class_loss import KernelRows, kernel_rows
from anonymip.problem import Problem


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Row types in the order of their first rows.

    Parameters
    ----------
    rows
        The t types as the kernels read them.
    counts
        (t,) int64, rows of each type.
    records
        (n,) int64, original records: type by type, in the given order within a type.
    """

    rows: KernelRows
    counts: NDArray[np.int64]
    records: NDArray[np.int64]

    @property
    def types(self) -> int:
        """Number of row types."""
        return len(self.counts)

    def labels(self, picked: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (n,) labels of the original records.

        Parameters
        ----------
        picked, classes
            (n,) a type and the class that one of its rows goes to; each type occurs as often as
            it has rows.
        """
        labels = np.empty(len(self.records), np.int64)
        labels[self.records] = classes[np.argsort(picked, kind="stable")]
        return labels


def arrange(problem: Problem, order: NDArray[np.int64]) -> Arrangement:
    """Merge rows that the loss cannot tell apart and put the types in order.

    Parameters
    ----------
    problem
        Gives table and loss.
    order
        (n,) permutation of the records.
    """
    tables = problem.compiled.tables
    columns = sorted({*tables.range_columns, *tables.set_columns, *tables.pair_columns})
    inverse = problem.microdata.row_types([int(a) for a in columns]).inverse[order]
    _, first, inverse, counts = np.unique(
        inverse, return_index=True, return_inverse=True, return_counts=True
    )
    by_place = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[by_place] = np.arange(len(first))
    types = rank[inverse.ravel()]
    return Arrangement(
        kernel_rows(problem.microdata, tables, order[first[by_place]]),
        counts[by_place].astype(np.int64),
        order[np.argsort(types, kind="stable")],
    )
