"""Every row that records may be published as under a mask, and who may be published as it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.instances.microdata import RowTypes
from anonymip.objectives.kernels.star_costs import pattern_costs
from anonymip.recodings.patterns import PatternGuided
from anonymip.recodings.recoding import ProblemView, Recoding
from anonymip.runtime.kernels import kernel

#: Row types times patterns that are held at once.
MAX_PAIRS = 50_000_000


class AskedProblem(ProblemView, Protocol):
    """A problem with its recoding."""

    @property
    def recoding(self) -> Recoding:
        """Which releases are allowed."""


@dataclass(frozen=True, eq=False)
class OutputRows:
    """The output rows of a problem under a mask.

    Parameters
    ----------
    types
        The t row types with multiplicities.
    stars
        (p, m) bool, the patterns.
    costs
        (p,) float64, loss of one record under each pattern.
    row_of
        (t, p) int32, output row of each type under each pattern; -1 where fewer than k records
        share it.
    pattern_of
        (r,) int32, pattern of each output row; rows of one pattern follow each other.
    sizes
        (r,) int64, records that may be published as each.
    """

    types: RowTypes
    stars: NDArray[np.bool_]
    costs: NDArray[np.float64]
    row_of: NDArray[np.int32]
    pattern_of: NDArray[np.int32]
    sizes: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of output rows r."""
        return len(self.pattern_of)


def recoding_of(problem: AskedProblem) -> PatternGuided:
    """Return the problem's recoding, which must be one of patterns.

    Raises
    ------
    InputError
        If it is another.
    """
    recoding = problem.recoding
    if not isinstance(recoding, PatternGuided):
        raise InputError(
            f"the problem asks for {recoding.name}, not for patterns",
            remedy="Use PatternGuided(mask) as the recoding",
        )
    return recoding


def output_rows(problem: AskedProblem, *, least: int | None = None) -> OutputRows:
    """Return all output rows that at least k records may be published as.

    Parameters
    ----------
    problem
        With patterns as its recoding.
    least
        Another number than k.

    Notes
    -----
    Complexity: O(t p m) time, O(t p) memory.

    Raises
    ------
    InputError
        If the problem asks for another recoding, or types times patterns are too many.
    UnsupportedObjective
        If the loss of a pattern depends on the record.
    """
    recoding, microdata = recoding_of(problem), problem.microdata
    stars = recoding.stars(problem)
    costs = pattern_costs(problem.compiled, stars)
    types = microdata.row_types()
    t, p = len(types.first), len(stars)
    if t * p > MAX_PAIRS:
        raise InputError(
            f"{t:,} row types under {p:,} patterns are more than {MAX_PAIRS:,} pairs",
            remedy="Use pattern-greedy, or a mask with fewer patterns",
        )
    codes = np.ascontiguousarray(microdata.codes[types.first])
    row_of = np.empty((t, p), np.int32)
    pattern_of: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    sizes: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    found, least = 0, problem.k if least is None else least
    for j in range(p):
        labels, count = rows_alike(codes, stars[j])
        held = np.bincount(labels, weights=types.counts, minlength=count).astype(np.int64)
        shared = held >= least
        number = np.where(shared, found + np.cumsum(shared) - 1, -1)
        row_of[:, j] = number[labels]
        added = int(shared.sum())
        pattern_of.append(np.full(added, j, np.int32))
        sizes.append(held[shared])
        found += added
    return OutputRows(
        types, stars, costs, row_of, np.concatenate(pattern_of), np.concatenate(sizes)
    )


def rows_alike(codes: NDArray[np.int32], stars: NDArray[np.bool_]) -> tuple[NDArray[np.int64], int]:
    """Return which rows look alike through a pattern.

    Parameters
    ----------
    codes
        (t, m) int32, C-contiguous.
    stars
        (m,) bool, columns that do not count.

    Returns
    -------
    labels
        (t,) int64, equal exactly for rows that look alike, numbered by first appearance.
    count
        How many labels there are.
    """
    labels = np.empty(len(codes), np.int64)
    size = 1 << max(4, int(2 * len(codes)).bit_length())
    table = np.full(size, -1, np.int64)
    shown = np.flatnonzero(~stars).astype(np.int64)
    return labels, int(_label(codes, shown, table, labels))


@kernel
def _label(
    codes: NDArray[np.int32],
    shown: NDArray[np.int64],
    table: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> int:
    """Write numbers of the rows by what they show; the table holds the first row of each kind."""
    mask = np.uint64(len(table) - 1)
    count = 0
    for row in range(len(codes)):
        mixed = np.uint64(14695981039346656037)
        for a in shown:
            mixed = (mixed ^ np.uint64(codes[row, a])) * np.uint64(1099511628211)
            mixed ^= mixed >> np.uint64(29)
        place = mixed & mask
        while True:
            first = table[place]
            if first < 0:
                table[place] = row
                labels[row] = count
                count += 1
                break
            alike = True
            for a in shown:
                if codes[row, a] != codes[first, a]:
                    alike = False
                    break
            if alike:
                labels[row] = labels[first]
                break
            place = (place + np.uint64(1)) & mask
    return count
