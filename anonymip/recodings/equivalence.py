"""Equivalence classes: the blocks of a partition, each of at least k records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Description
from anonymip.errors import InvalidAssignment
from anonymip.recodings.recoding import (
    PricedSuppression,
    ProblemView,
    SizeLimit,
    as_kind,
    check_suppressed,
)
from anonymip.recodings.rows import describe_sets, starred_elsewhere
from anonymip.recodings.rules.diversity import Units
from anonymip.recodings.rules.limits import check_limits


def check_classes(problem: ProblemView, classes: Classes, told: str) -> None:
    """Raise InvalidAssignment, of a record in a small class `told`, or the diversity is broken."""
    small = classes.sizes < problem.k
    if small.any():
        label = int(np.argmax(small))
        raise InvalidAssignment(
            int(np.argmax(classes.labels == label)),
            f"{told.format(classes.sizes[label])}, fewer than k = {problem.k}",
        )
    if problem.diversity is not None:
        record = problem.diversity.violation(problem.microdata.counted_codes, classes)
        if record is not None:
            raise InvalidAssignment(record, f"lies in a class without the {problem.diversity}")
        problem.diversity.check_closeness(problem.microdata, classes)


@dataclass(frozen=True, repr=False)
class EquivalenceClasses(PricedSuppression):
    """Every record is published with the description of its class of at least k records.

    Parameters
    ----------
    suppression
        Whether whole records may be suppressed instead. A suppressed record needs no companions.
    most_suppressed
        Records that may be suppressed at most: a whole number, or a share of the table below 1;
        None: any number where suppression is allowed. A limit allows suppression.
    suppression_price
        Loss of a suppressed record; None for what the objective charges for a row of stars. A
        price allows suppression.

    Raises
    ------
    InputError
        If limit or price is none.

    Examples
    --------
    >>> import anonymip
    >>> anonymip.EquivalenceClasses(most_suppressed=0.01).limit(5000)
    50
    """

    keeps_closeness: ClassVar[bool] = True  # the check asks for t-closeness
    name = "classes"

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the classes: a partition, k records each, diverse, within the limits.

        Raises InvalidAssignment naming a record and the rule that it breaks.
        """
        classes = as_kind(Classes, assignment, problem.microdata)
        check_suppressed(self, classes.labels == SUPPRESSED)
        check_classes(problem, classes, "lies in a class of {} records")
        if problem.limits:
            check_limits(problem.microdata, problem.limits, self.describe(problem, assignment))

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: the tight range, set or node of each class.

        Complexity: O(m n log n).
        """
        classes = as_kind(Classes, assignment, problem.microdata)
        order = np.argsort(classes.labels, kind="stable")[classes.suppressed :]
        start = np.concatenate([[0], np.cumsum(classes.sizes)])
        return starred_elsewhere(describe_sets(problem.microdata, start, order), classes.labels)

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return 2k - 1 if the class loss is superadditive and there is no diversity.

        A class of 2k or more records can then be cut into two of at least k without loss; limits
        that its cells keep are kept by the parts. Of units :meth:`Units.largest` says the same.
        """
        compiled = problem.compiled
        units = problem.diversity if isinstance(problem.diversity, Units) else None
        if problem.diversity is not None and (units is None or units.beside is not None):
            return SizeLimit(None, "under a diversity a larger class may be needed")
        if not compiled.superadditive:
            return SizeLimit(None, f"the class loss is not superadditive: {compiled.obstacle}")
        why = "the class loss is superadditive"
        if compiled.monotone:
            why = "the record loss is monotone, so |S| c(S) is superadditive"
        if compiled.aggregate == "max":
            why = "the record loss is monotone, so parts of a class have no worse record"
        if compiled.assumed:
            why += f" (assumed: {', '.join(compiled.assumed)})"
        if units is not None:
            return SizeLimit(units.largest(problem.microdata.counted_codes), why)
        return SizeLimit(2 * problem.k - 1, why)
