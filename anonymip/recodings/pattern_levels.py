"""Patterns with hierarchies: instead of a star a cell may show a node of its hierarchy."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar

import numpy as np

from anonymip.assignments import Assignment, Classes, Description
from anonymip.errors import InputError, InvalidAssignment
from anonymip.instances.microdata import Microdata
from anonymip.objectives.star_costs import level_costs
from anonymip.recodings.equivalence import EquivalenceClasses
from anonymip.recodings.patterns import Mask
from anonymip.recodings.recoding import ProblemView, SizeLimit, as_kind
from anonymip.recodings.rows import LevelMap, describe_levels, level_maps
from anonymip.runtime.arrays import Codes, Flags, Ints

MAX_LEVEL_PATTERNS = 20_000  # patterns of levels that can be listed one by one


@dataclass(frozen=True)
class PatternLevels:
    """Every record shows each attribute on a level of its hierarchy, by a pattern of the mask [1]_.

    The outlook of the paper (Section 5) asks for hierarchies in patterns. Here a pattern gives each
    attribute a level: 0 is the exact value, the highest is the root, which tells as little as a
    star. An attribute without a hierarchy has the levels 0 and star. A pattern is allowed if the
    attributes on their highest levels are those that a pattern of the mask suppresses. The records
    of a class have one pattern and one row; of the allowed patterns that make its records look
    alike the class shows the cheapest.

    Parameters
    ----------
    mask
        Which attributes may be hidden together.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013.
    """

    mask: Mask = field(default_factory=Mask)

    #: Its releases are classes of rows that look alike, and verified as such.
    form: ClassVar[str] = "classes"
    name = "pattern-levels"

    def refuse_unfit(self, problem: ProblemView) -> None:
        """Refuse tables, losses and limits that do not fit.

        Raises InputError if the levels of a hierarchy do not nest, the mask names another column,
        or there are limits.
        """
        microdata = problem.microdata
        for name, levels in zip(microdata.names, level_maps(microdata), strict=True):
            if not levels.nested:
                raise InputError(
                    f"the levels of the hierarchy of {name!r} do not nest",
                    remedy="Give all values paths of one length, each group on one level",
                )
        if problem.limits:
            raise InputError(
                "limits of generalization are not for patterns of levels",
                remedy="Use the rules of the mask, or leave levels out of the hierarchy",
            )
        self.stars(microdata)

    def stars(self, microdata: Microdata) -> Flags:
        """Return the (p, m) sets of attributes that may be on their highest levels together.

        A row of stars only would count as suppressed. Where some attribute has a hierarchy its root
        stands in such a row; elsewhere there is none.
        """
        stars = self.mask.stars(microdata.names)
        if any(attribute.hierarchy is not None for attribute in microdata.attributes):
            return stars
        return stars[~stars.all(axis=1)]

    def patterns(self, problem: ProblemView) -> Ints:
        """Return the (p, m) allowed patterns: a level for each attribute.

        Raises InputError if there are too many.
        """
        heights = [levels.height for levels in level_maps(problem.microdata)]
        count = int(np.prod([height + 1.0 for height in heights]))
        if count > MAX_LEVEL_PATTERNS:
            raise InputError(
                f"{count:,} combinations of levels are more than {MAX_LEVEL_PATTERNS:,}",
                remedy="Leave levels out of the hierarchies, or use the recoding full-domain",
            )
        listed = np.array(list(product(*(range(height + 1) for height in heights))), np.int64)
        hidden = {tuple(row) for row in self.stars(problem.microdata).tolist()}
        allowed = [tuple(row) in hidden for row in (listed == np.array(heights)).tolist()]
        return listed[np.array(allowed, np.bool_)]

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the classes: k records each, diverse, alike under some allowed pattern.

        Raises InvalidAssignment naming a record and the rule that it breaks.
        """
        EquivalenceClasses().check(problem, assignment)
        self._levels(problem, as_kind(Classes, assignment, problem.microdata))

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: nodes on their levels, exact values, stars."""
        microdata, maps = problem.microdata, level_maps(problem.microdata)
        classes = as_kind(Classes, assignment, microdata)
        levels = self._levels(problem, classes)[classes.labels]
        exact = np.array([attribute.hierarchy is None for attribute in microdata.attributes])
        return describe_levels(
            microdata, [each.cells for each in maps], levels, exact & (levels > 0)
        )

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return no limit: records of one pattern that look alike are one class."""
        return SizeLimit(None, "all records of a pattern that look alike are one class")

    def _levels(self, problem: ProblemView, classes: Classes) -> Ints:
        """Return (classes, m) the cheapest allowed levels on which the records look alike."""
        microdata, maps = problem.microdata, level_maps(problem.microdata)
        lowest = np.stack(
            [_common_level(each, microdata.codes[:, a], classes) for a, each in enumerate(maps)],
            axis=1,
        )
        heights = np.array([each.height for each in maps])
        costs = level_costs(problem.compiled, [each.cells for each in maps])
        paid = np.stack([cost[lowest[:, a]] for a, cost in enumerate(costs)], axis=1)
        more = np.array([cost[-1] for cost in costs]) - paid
        stars = self.stars(microdata)
        chosen = lowest.copy()
        for label, (top, extra) in enumerate(zip(lowest == heights, more, strict=True)):
            possible = stars[~(top & ~stars).any(axis=1)]
            if not len(possible):
                raise InvalidAssignment(
                    int(np.argmax(classes.labels == label)),
                    "lies in a class that looks alike under no pattern of the mask",
                )
            hidden = possible[int(np.argmin((possible & ~top) @ extra))]
            chosen[label, hidden] = heights[hidden]
        return chosen


def _common_level(levels: LevelMap, codes: Codes, classes: Classes) -> Ints:
    """Return (classes,) the lowest level on which the records of each class have one cell."""
    first = np.zeros(classes.count, np.int64)
    first[classes.labels[::-1]] = np.arange(len(codes))[::-1]
    found = np.full(classes.count, levels.height)
    for level in range(levels.height, -1, -1):
        cells = levels.cells[level][codes]
        unlike = np.zeros(classes.count, np.bool_)
        unlike[classes.labels[cells != cells[first][classes.labels]]] = True
        found[~unlike] = level
    return found
