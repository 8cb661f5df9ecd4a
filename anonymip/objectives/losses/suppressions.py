"""The number of suppressed cells, or what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from anonymip.errors import InputError
from anonymip.instances.columns import unknown_column
from anonymip.objectives.language.protocol import Objective
from anonymip.objectives.language.record import Record

#: Sums of costs stay numbers up to here.
_DEAREST = 1e100


@dataclass(frozen=True)
class Suppressions(Objective):
    """Cells that are not published exactly, each at the cost of its column [1]_.

    Parameters
    ----------
    costs
        Cost of a star by column, 1 where nothing is said.
    patterns
        Cost of a whole pattern by the columns that it suppresses, in place of the sum of theirs.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013.

    Raises
    ------
    InputError
        If a cost is no number of at least 0, or a pattern names a column twice or has two costs.

    Examples
    --------
    >>> import anonymip
    >>> anonymip.Suppressions({"age": 2.0}, {("age", "zip"): 2.5}).name
    'suppressions'
    """

    costs: Mapping[str, float] = field(default_factory=dict)
    patterns: Mapping[tuple[str, ...], float] = field(default_factory=dict)

    #: Which cells are exact is all that it looks at.
    by_pattern: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, cost in (*self.costs.items(), *self.patterns.items()):
            given: Any = cost
            if isinstance(given, bool) or not isinstance(given, int | float | np.number):
                raise InputError(f"the cost of {name!r} is {cost!r}", remedy="Give a number")
            if not 0 <= given <= _DEAREST:
                raise InputError(
                    f"the cost of {name!r} is {cost!r}",
                    remedy="Give a number of at least 0 and at most 1e100",
                )
        object.__setattr__(self, "costs", dict(self.costs))
        # Whoever names the columns of a pattern has no order in mind.
        patterns = {tuple(sorted(names)): float(cost) for names, cost in self.patterns.items()}
        if len(patterns) < len(self.patterns):
            raise InputError("a pattern has two costs", remedy="Give each pattern one cost")
        for names in patterns:
            if len(set(names)) < len(names):
                raise InputError(
                    f"the pattern {', '.join(names)} with a cost names a column twice",
                    remedy="Name each column once",
                )
        object.__setattr__(self, "patterns", patterns)

    @property
    def name(self) -> str:
        """Name in results."""
        return "suppressions"

    def loss(self, record: Record) -> Any:
        """Return what the record's lossy cells cost."""
        for name in (*self.costs, *(one for pattern in self.patterns for one in pattern)):
            if name not in record.attributes:
                raise unknown_column(name, "column with a cost", list(record.attributes))
        lossy = {a: np.where(record.spread[a] > 0, 1.0, 0.0) for a in record.attributes}
        total = sum(float(self.costs.get(a, 1.0)) * lossy[a] for a in record.attributes)
        # Nothing is subtracted: a costly column must not blur a cheap pattern.
        priced: Any = 0.0
        other: Any = 1.0
        for pattern, cost in self.patterns.items():
            exactly: Any = 1.0
            for a in record.attributes:
                exactly = exactly * (lossy[a] if a in pattern else 1.0 - lossy[a])
            priced = priced + cost * exactly
            other = other * (1.0 - exactly)
        return priced + other * total if self.patterns else total
