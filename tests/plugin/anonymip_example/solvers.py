"""A solver: HiGHS by another name, which says that it was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anonymip.solvers.adapters.highs import HighsSolver


class Borrowed(HighsSolver):
    """HiGHS, under the name of another."""

    name = "Borrowed"

    def solve(self, form: Any, start: Any, options: Any, budget: Any) -> Any:
        """Solve with HiGHS, and say so."""
        return replace(super().solve(form, start, options, budget), solver="Borrowed 1.0")
