"""The recoding of fixed-size microaggregation: all classes have k records, but one."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonymip import EquivalenceClasses
from anonymip.errors import InvalidAssignment


class FixedSize:
    """Classes of exactly k records, but for one that takes the remainder, of at most 2k - 1."""

    name = "fixed-size"
    #: What is published are equivalence classes, and is verified as such.
    form = "classes"

    def __init__(self) -> None:
        self._classes = EquivalenceClasses()

    def check(self, problem: Any, assignment: Any) -> None:
        """Check the sizes, and that the classes partition the records."""
        self._classes.check(problem, assignment)
        others = np.flatnonzero(assignment.sizes != problem.k)
        if len(others) > 1:
            record = int(np.argmax(assignment.labels == others[1]))
            raise InvalidAssignment(record, f"lies in a second class of other than {problem.k}")

    def describe(self, problem: Any, assignment: Any) -> Any:
        """Return the tight range or set of each class."""
        return self._classes.describe(problem, assignment)

    def max_size(self, problem: Any) -> Any:
        """Return the limit of equivalence classes."""
        return self._classes.max_size(problem)
