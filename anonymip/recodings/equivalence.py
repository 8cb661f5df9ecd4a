"""Equivalence classes: the blocks of a partition, each of at least k records."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Assignment, CellSets, Classes, Description
from anonymip.errors import InputError, InvalidAssignment, argument
from anonymip.recodings.recoding import ProblemView, SizeLimit
from anonymip.recodings.rows import describe_sets
from anonymip.recodings.rules.diversity import Units
from anonymip.recodings.rules.limits import check_limits
from anonymip.recodings.suppression import MaySuppress, check_suppressed


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
        problem.diversity.check(problem.microdata.counted_codes, classes)
        problem.diversity.check_closeness(problem.microdata, classes)


@dataclass(frozen=True)
class EquivalenceClasses(MaySuppress):
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

    suppression_price: float | None = None

    #: The check asks for t-closeness.
    keeps_closeness: ClassVar[bool] = True

    def __repr__(self) -> str:
        """Return the arguments that are not left out: results are known by this text."""
        given = [f"suppression={self.suppression}"]
        for name in ("most_suppressed", "suppression_price"):
            value = getattr(self, name)
            given += [] if value is None else [f"{name}={value!r}"]
        return f"EquivalenceClasses({', '.join(given)})"

    def __post_init__(self) -> None:
        super().__post_init__()
        price: Any = self.suppression_price
        if price is None:
            return
        if isinstance(price, bool) or not isinstance(price, Real) or not 0 <= float(price) < np.inf:
            raise InputError(
                f"{argument('suppression_price')} is {price!r}",
                remedy="Give the loss of a suppressed record, 0 or more",
            )
        object.__setattr__(self, "suppression", True)
        object.__setattr__(self, "suppression_price", float(price))

    @property
    def name(self) -> str:
        """Name in results and on the command line."""
        return "classes"

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the classes: a partition, k records each, diverse, within the limits.

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
        check_suppressed(self, labels == SUPPRESSED)
        check_classes(problem, assignment, "lies in a class of {} records")
        if problem.limits:
            check_limits(problem.microdata, problem.limits, self.describe(problem, assignment))

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: the tight range, set or node of each class.

        Complexity: O(m n log n).
        """
        if not isinstance(assignment, Classes):
            raise InvalidAssignment(None, f"is no partition but {type(assignment).__name__}")
        labels = assignment.labels
        order = np.argsort(labels, kind="stable")[assignment.suppressed :]
        start = np.concatenate([[0], np.cumsum(assignment.sizes)])
        cells = describe_sets(problem.microdata, start, order)
        n, m = problem.microdata.codes.shape
        kept = labels != SUPPRESSED

        def spread(of_classes: NDArray[Any], star: Any) -> NDArray[Any]:
            of_records = np.full((n, m), star, of_classes.dtype)
            of_records[kept] = of_classes[labels[kept]]
            return of_records

        return Description(
            spread(cells.lower, np.nan),
            spread(cells.upper, np.nan),
            CellSets(
                spread(cells.members.start, 0), spread(cells.members.stop, 0), cells.members.codes
            ),
            spread(cells.nodes, -1),
            np.repeat(~kept[:, None], m, axis=1),
        )

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return 2k - 1 if the class loss is superadditive and there is no diversity.

        A class of 2k or more records can then be cut into two of at least k without loss; limits
        that its cells keep are kept by the parts. Of units :meth:`Units.largest` says the same.
        """
        compiled = problem.compiled
        units = problem.diversity if isinstance(problem.diversity, Units) else None
        if problem.diversity is not None and units is None:
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
