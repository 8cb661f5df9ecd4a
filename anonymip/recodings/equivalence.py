"""Equivalence classes: the blocks of a partition, each of at least k records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Assignment, CellSets, Classes, Description
from anonymip.errors import InvalidAssignment
from anonymip.recodings.recoding import ProblemView, SizeLimit


@dataclass(frozen=True)
class EquivalenceClasses:
    """Every record is published with the description of its class of at least k records.

    Parameters
    ----------
    suppression
        Whether whole records may be suppressed instead. A suppressed record needs no companions
        and costs what the objective charges for a record of stars.
    """

    suppression: bool = False

    @property
    def name(self) -> str:
        """Name in results and on the command line."""
        return "classes"

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check that the classes partition the records and have k records each.

        Raises
        ------
        InvalidAssignment
            Naming a record and the rule that it breaks.
        """
        if not isinstance(assignment, Classes):
            raise InvalidAssignment(None, f"is no partition but {type(assignment).__name__}")
        if assignment.n != problem.microdata.n:
            raise InvalidAssignment(
                None, f"labels {assignment.n} records, the table has {problem.microdata.n}"
            )
        labels = assignment.labels
        if not self.suppression and assignment.suppressed:
            raise InvalidAssignment(
                int(np.argmax(labels == SUPPRESSED)), "is suppressed, which is not allowed"
            )
        small = assignment.sizes < problem.k
        if small.any():
            label = int(np.argmax(small))
            raise InvalidAssignment(
                int(np.argmax(labels == label)),
                f"lies in a class of {assignment.sizes[label]} records, fewer than k = {problem.k}",
            )

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: the tight range or set of each class.

        Complexity: O(m n log n).
        """
        microdata = problem.microdata
        n, m = microdata.codes.shape
        labels = assignment.labels
        order = np.argsort(labels, kind="stable")[assignment.suppressed :]
        lower, upper = np.full((n, m), np.nan), np.full((n, m), np.nan)
        start, stop = np.zeros((n, m), np.int64), np.zeros((n, m), np.int64)
        flat: list[NDArray[np.int32]] = []
        offset = 0
        if assignment.count:
            firsts = np.concatenate([[0], np.cumsum(assignment.sizes)[:-1]])
            sorted_labels = labels[order]
            for a, attribute in enumerate(microdata.attributes):
                if attribute.is_numeric:
                    column = microdata.values[order, a]
                    lower[order, a] = np.minimum.reduceat(column, firsts)[sorted_labels]
                    upper[order, a] = np.maximum.reduceat(column, firsts)[sorted_labels]
                width = len(microdata.levels[a])
                pairs = np.unique(
                    sorted_labels.astype(np.int64) * width + microdata.codes[order, a]
                )
                ends = offset + np.cumsum(np.bincount(pairs // width, minlength=assignment.count))
                stop[order, a] = ends[sorted_labels]
                start[order, a] = np.concatenate([[offset], ends[:-1]])[sorted_labels]
                flat.append((pairs % width).astype(np.int32))
                offset += len(pairs)
        suppressed = np.repeat((labels == SUPPRESSED)[:, None], m, axis=1)
        return Description(
            lower,
            upper,
            CellSets(start, stop, np.concatenate([np.empty(0, np.int32), *flat])),
            np.full((n, m), -1, np.int32),
            suppressed,
        )

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return 2k - 1 if the class loss is proven superadditive, else no limit.

        A class of 2k or more records can then be cut into two of at least k without loss.
        """
        if problem.compiled.monotone:
            return SizeLimit(
                2 * problem.k - 1,
                "the record loss is monotone, so |S| c(S) is superadditive",
            )
        return SizeLimit(
            None, f"the loss can fall in {problem.compiled.decreasing!r} when a cell covers more"
        )
