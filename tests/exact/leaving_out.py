"""What a method owes that may leave out so many records."""

from __future__ import annotations

from hypothesis import strategies as st

from anonymip import Solution
from tests.random_problems import Case

#: Prices of a record that is left out; None for what the loss says.
PRICES = st.sampled_from([None, 0.0, 0.1, 0.4, 1.0])


def check_left_out(found: Solution, case: Case, most: int, best: float) -> None:
    """Check: never more than asked, never below the optimum, and no bound above it."""
    slack = case.slack(best)
    assert found.assignment.suppressed <= most
    assert found.objective >= best - slack
    assert found.bound is None or found.bound.value <= best + slack
    assert not found.is_optimal or found.objective <= best + 1e-6 * max(1.0, abs(best))
