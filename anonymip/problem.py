"""What is asked: a table, k, a recoding and an objective."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

from anonymip.errors import InputError
from anonymip.instances.microdata import Microdata
from anonymip.objectives import GCP, CompiledObjective, Objective
from anonymip.recodings import EquivalenceClasses, Recoding


@dataclass(frozen=True, eq=False)
class Problem:
    """Make a table k-anonymous with the least loss.

    Parameters
    ----------
    microdata
        The table, n records.
    k
        Records that must be indistinguishable, 2 to n; NumPy's integers are accepted.
    recoding
        Which releases are allowed.
    objective
        What is lost; the sum over the records is minimised.

    Raises
    ------
    InputError
        If k does not fit the table, or the objective cannot be used on it.
    """

    microdata: Microdata
    k: int
    recoding: Recoding = field(default_factory=EquivalenceClasses)
    objective: Objective = field(default_factory=GCP)

    def __post_init__(self) -> None:
        if not isinstance(self.microdata, Microdata):
            raise InputError(
                f"microdata is a {type(self.microdata).__name__}",
                remedy="Give Microdata(frame, attributes), or use anonymize() for a data frame",
            )
        k: object = self.k
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise InputError(f"k is {k!r}", remedy="Give a whole number of at least 2")
        object.__setattr__(self, "k", int(k))
        if self.k < 2:
            raise InputError(
                f"k is {self.k}", remedy="Give at least 2: one record alone is not hidden"
            )
        if self.k > self.microdata.n:
            raise InputError(
                f"k is {self.k}, but the table has {self.microdata.n} records",
                remedy="Give a smaller k or more records",
            )
        for attribute in self.microdata.attributes:
            if attribute.kind == "hierarchical":
                raise InputError(
                    f"attribute {attribute.name!r} is hierarchical, which no recoding of this "
                    "version generalizes",
                    remedy="Declare it categorical: its values are then published as sets",
                )
        if not isinstance(self.objective, Objective):
            raise InputError(
                f"objective is a {type(self.objective).__name__}",
                remedy="Decorate the function with @anonymip.objective",
            )
        _ = self.compiled

    @cached_property
    def compiled(self) -> CompiledObjective:
        """The objective, traced on the table."""
        return self.objective.compile(self)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.microdata.n

    @property
    def m(self) -> int:
        """Number of quasi-identifiers."""
        return self.microdata.m

    def replace(self, **changes: Any) -> Problem:
        """Return a problem with some parts replaced, validated anew."""
        return dataclasses.replace(self, **changes)
