"""Diversity of sensitive values within equivalence classes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InputError, InvalidAssignment


@dataclass(frozen=True)
class Diversity:
    """What every class must hold of each sensitive column.

    With such a rule classes of more than 2k - 1 records may be needed: the class a a a b b b with
    k = 3 and no value above one half cannot be cut.

    Parameters
    ----------
    l
        No sensitive value makes up more than 1/l of a class (l-diversity as in Wong et al.,
        Def. 9); 1 asks for nothing.
    distinct
        A class has at least so many sensitive values; 1 asks for nothing.

    Raises
    ------
    InputError
        If a number is below 1, or both ask for nothing.
    """

    l: float = 1  # noqa: E741 - the field's own name
    distinct: int = 1

    def __post_init__(self) -> None:
        given: Any = self.l
        if isinstance(given, bool) or not isinstance(given, Real) or not 1 <= float(given) < np.inf:
            raise InputError(f"l of the diversity is {self.l!r}", remedy="Give a number above 1")
        count: Any = self.distinct
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise InputError(
                f"distinct of the diversity is {self.distinct!r}",
                remedy="Give a whole number of at least 2",
            )
        if self.ratio == (1, 1) and self.distinct == 1:
            raise InputError(
                "the diversity asks for nothing", remedy="Give l above 1, or distinct of at least 2"
            )

    @property
    def ratio(self) -> tuple[int, int]:
        """L as a fraction of whole numbers, so that the rule is checked without rounding."""
        return Fraction(self.l).limit_denominator(10**6).as_integer_ratio()

    def met_by(self, sensitive: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return (B,) whether the classes of the given sensitive codes are diverse.

        Parameters
        ----------
        sensitive
            (B, s, columns) codes of the members.
        """
        numerator, denominator = self.ratio
        batch, size, columns = sensitive.shape
        met = np.ones(batch, np.bool_)
        for column in range(columns):
            codes = np.sort(sensitive[:, :, column], axis=1)
            new = np.ones((batch, size), np.bool_)
            new[:, 1:] = codes[:, 1:] != codes[:, :-1]
            met &= new.sum(axis=1) >= self.distinct
            begins = np.maximum.accumulate(np.where(new, np.arange(size), 0), axis=1)
            most = (np.arange(size) - begins + 1).max(axis=1)
            met &= most * numerator <= size * denominator
        return met

    def violation(self, sensitive: NDArray[np.integer], classes: Classes) -> int | None:
        """Return a record of a class that is not diverse, or None.

        Parameters
        ----------
        sensitive
            (n, columns) codes of all records.
        classes
            Of the records; suppressed ones are in none.

        Notes
        -----
        Complexity: O(n log n) for each column.
        """
        labels = classes.labels
        kept = labels != SUPPRESSED
        numerator, denominator = self.ratio
        for column in range(sensitive.shape[1]):
            width = int(sensitive[:, column].max()) + 1
            pairs, counts = np.unique(
                labels[kept].astype(np.int64) * width + sensitive[kept, column], return_counts=True
            )
            label = pairs // width
            kinds = np.bincount(label, minlength=classes.count)
            most = np.zeros(classes.count, np.int64)
            np.maximum.at(most, label, counts)
            bad = (kinds < self.distinct) | (most * numerator > classes.sizes * denominator)
            if bad.any():
                return int(np.argmax(labels == int(bad.argmax())))
        return None

    def lacking(self, sensitive: NDArray[np.integer]) -> tuple[int, str] | None:
        """Return the column of a whole table that is not diverse, and why; None if all are.

        What a table lacks every partition of it lacks somewhere, and every regular cover: its sets
        hold each value as often, for their size, as the table does. The reason tells how many
        records share a value, and not which.

        Parameters
        ----------
        sensitive
            (n, columns) codes of all records.
        """
        numerator, denominator = self.ratio
        n = len(sensitive)
        for column in range(sensitive.shape[1]):
            counts = np.bincount(sensitive[:, column])
            most, kinds = int(counts.max()), int(np.count_nonzero(counts))
            if most * numerator > n * denominator:
                return column, (
                    f"{most} of {n} records share a value, at most n / l = "
                    f"{n * denominator // numerator} may"
                )
            if kinds < self.distinct:
                return column, f"there are {kinds} values"
        return None

    def check(self, sensitive: NDArray[np.integer], classes: Classes) -> None:
        """Raise if a class is not diverse.

        Raises
        ------
        InvalidAssignment
            Naming a record of the class.
        """
        record = self.violation(sensitive, classes)
        if record is not None:
            raise InvalidAssignment(record, f"lies in a class without the {self}")

    def __str__(self) -> str:
        parts = []
        if self.l > 1:
            parts.append(f"l = {self.l:g}")
        if self.distinct > 1:
            parts.append(f"{self.distinct} distinct sensitive values")
        return f"diversity {' and '.join(parts)}"
