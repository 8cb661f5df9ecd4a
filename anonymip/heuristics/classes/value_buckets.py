"""Records by their sensitive values, from which groups of different values are taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.problem import Problem


def different_values(problem: Problem, method: str) -> int:
    """Return how many records of different sensitive values make a diverse group.

    Raises
    ------
    InputError
        If the problem asks for no diversity.
    """
    diversity = problem.diversity
    if diversity is None:
        raise InputError(
            f"method {method} makes classes diverse, and no diversity is asked for",
            remedy="Give the problem a Diversity, or use another method",
        )
    numerator, denominator = diversity.ratio
    return max(-(-numerator // denominator), diversity.distinct)


class ValueBuckets:
    """A bucket of records for each combination of sensitive values.

    Parameters
    ----------
    problem
        With sensitive columns.
    order
        All records; those of a bucket are taken in this order.
    """

    def __init__(self, problem: Problem, order: NDArray[np.int64]) -> None:
        codes = problem.microdata.sensitive_codes[order]
        self.values, kind = np.unique(codes, axis=0, return_inverse=True)
        by_kind = np.argsort(kind.ravel(), kind="stable")
        #: (buckets,) records left in each.
        self.left = np.bincount(kind.ravel())
        self._places = by_kind
        self._ends = np.cumsum(self.left)
        self._order = order

    def heads(self) -> NDArray[np.int64]:
        """Return (buckets,) the place in the order of the next record of each; n if empty."""
        places = np.full(len(self.left), len(self._order), np.int64)
        filled = self.left > 0
        places[filled] = self._places[(self._ends - self.left)[filled]]
        return places

    def take(self, preference: NDArray[np.int64], count: int) -> list[int]:
        """Take the next records of so many buckets whose values differ in every column.

        Parameters
        ----------
        preference
            (buckets,) numbers of the buckets; the first ones are taken that differ.
        count
            How many. Where there are fewer, nothing is taken and the list is empty.
        """
        chosen: list[int] = []
        for bucket in preference.tolist():
            if self.left[bucket] == 0:
                continue
            if (self.values[chosen] == self.values[bucket]).any():
                continue
            chosen.append(bucket)
            if len(chosen) == count:
                break
        if len(chosen) < count:
            return []
        heads = self.heads()[chosen]
        self.left[chosen] -= 1
        return [int(record) for record in self._order[heads]]

    def rest(self) -> list[int]:
        """Return the records that are left, in their order."""
        places = [
            self._places[end - left : end] for end, left in zip(self._ends, self.left, strict=True)
        ]
        return [int(record) for record in self._order[np.sort(np.concatenate(places))]]


def joined_groups(groups: list[list[int]], size: int) -> list[list[int]]:
    """Return groups of so many records or more, made of groups that follow each other.

    Fewer at the end join those before, or are in no group if there are none. The share of a value
    in groups that are joined is at most its largest share in one of them.
    """
    joined: list[list[int]] = []
    open_group: list[int] = []
    for group in groups:
        open_group = open_group + group
        if len(open_group) >= size:
            joined.append(open_group)
            open_group = []
    if open_group and joined:
        joined[-1] = joined[-1] + open_group
    return joined


def labels_of(groups: list[list[int]], n: int) -> NDArray[np.int64]:
    """Return (n,) the number of the group of each record; -1 for records in none."""
    labels = np.full(n, -1, np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels
