"""Small problems whose loss is one of the members of a class, and what it is by definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anonymip import SSE, Cap, Problem, class_objective
from tests.brute_force import Column, Rules, least_cost_of_classes
from tests.random_problems import microdata


@class_objective(superadditive=True)
def pay_gap(members: Any) -> Any:
    """Charge each member the largest difference within the class."""
    values = members.value["a"]
    return values.shape[1] * (values.max(axis=1) - values.min(axis=1))


@dataclass(frozen=True)
class MemberCase:
    """Points with squared errors or a gap as the loss, for the package and for brute force."""

    points: Sequence[tuple[int, int]]
    k: int  # the privacy parameter
    squared: bool  # whether squared errors are lost, or the gap
    rules: Rules  # caps, or none

    @property
    def columns(self) -> tuple[Column, ...]:
        """The points as columns."""
        return tuple(Column(tuple(map(float, one))) for one in zip(*self.points, strict=True))

    def problem(self) -> Problem:
        """Return the problem for the package."""
        limits = tuple(Cap("ab"[a], most) for a, most in self.rules.caps)
        objective = SSE("none") if self.squared else pay_gap
        return Problem(microdata(self.columns), self.k, objective=objective, limits=limits)

    def cost(self, group: Sequence[int]) -> float:
        """Return the loss of all records of a class."""
        members = np.array(self.points, np.float64)[list(group)]
        if self.squared:
            return float(((members - members.mean(axis=0)) ** 2).sum())
        return len(group) * float(np.ptp(members[:, 0]))

    def optimum(self) -> float:
        """Return the optimum by enumeration."""
        n = len(self.points)
        return least_cost_of_classes(n, self.k, self.cost, self.rules, self.columns)


def member_cases(*far: int, rules: Sequence[Rules] = (Rules(),)) -> st.SearchStrategy[MemberCase]:
    """Draw four to seven points, some as far away as asked for, a loss, k and rules."""
    second = st.integers(-5, 5) | st.sampled_from(far) if far else st.integers(-5, 5)
    points = st.lists(st.tuples(st.integers(0, 9), second), min_size=4, max_size=7)
    return st.builds(MemberCase, points, st.integers(2, 3), st.booleans(), st.sampled_from(rules))
