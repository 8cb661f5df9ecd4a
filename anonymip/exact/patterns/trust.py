"""How far a solver's numbers can be relied on for models of patterns."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import NoSolution
from anonymip.exact.trust import TOO_HIGH, refuse_contradiction
from anonymip.models.patterns.pattern_columns import PatternColumns
from anonymip.recodings.rows.output_rows import grid_of
from anonymip.solution import Solution
from anonymip.solvers import SolverResult
from anonymip.tolerances import FINE_EFFECT, FINE_LOSS, FINE_STEP, SOLVER_RESOLUTION


@dataclass(frozen=True, eq=False)
class TrustOfPatterns:
    """How far models of patterns can be relied on; costs of patterns are known, not declared.

    Parameters
    ----------
    columns
        What the model was built from.
    """

    columns: PatternColumns
    needs_assumptions: bool = False

    def no_release(self, solver: str) -> NoSolution | None:
        """Return that mask and rules leave no release."""
        return NoSolution(
            f"no release keeps the mask and the rules, says {solver}",
            remedy="Allow more patterns, such as the one of stars only, or suppression",
        )

    def compare(self, result: SolverResult, found: Solution) -> None:
        """Refuse an objective below the loss; the tolerances of all records may add up."""
        refuse_contradiction(result, found, self.slack, "patterns")

    @property
    def slack(self) -> float:
        """What the tolerances of all records together may lift a bound by."""
        return slack_of(self._losses, self.columns.problem.n)

    def bound(self, claimed: float, objective: float) -> tuple[float | None, list[str]]:
        """Return what of a bound can be relied on, and remarks."""
        trusted = trusted_bound(self._losses, claimed, objective)
        return trusted, [] if trusted is not None else [TOO_HIGH]

    @property
    def _losses(self) -> NDArray[np.float64]:
        """The losses that a record can have."""
        price = [self.columns.price] if np.isfinite(self.columns.price) else []
        return np.concatenate([self.columns.costs, price])


def slack_of(losses: NDArray[np.float64], records: int) -> float:
    """Return what tolerances may lift a bound by, of records that have one of some losses each."""
    return records * _resolution_of(losses)


def trusted_bound(losses: NDArray[np.float64], claimed: float, objective: float) -> float | None:
    """Return what of a solver's bound on releases by patterns can be relied on; None if nothing.

    A loss much below that of the costliest pattern, or one that much cheaper patterns add to,
    is finer than the solver's tolerances resolve: the bound is lowered by them, and so it is where
    no release says how fine the loss is. Where all losses are multiples of a number of few
    decimals, a bound between two of them is raised to the next.

    Parameters
    ----------
    losses
        That a record can have.
    claimed
        The solver's bound.
    objective
        Loss of the best release that is known; infinite without one.
    """
    resolution = _resolution_of(losses)
    if claimed - objective > resolution:
        return None
    effect = float(losses.max(initial=0.0))
    steps = np.diff(np.sort(losses))
    finest = float(losses[losses > 0].min(initial=np.inf))
    step = float(steps[steps > 4.0 * np.finfo(float).eps * effect].min(initial=np.inf))
    fine = np.isinf(objective) or abs(objective) < FINE_LOSS * effect
    fine |= finest < FINE_EFFECT * effect or step < FINE_STEP * effect
    value = claimed - resolution if fine else claimed
    if grid := grid_of(losses):
        value = max(value, ceil((claimed - resolution) * grid) / grid)
    return min(value, objective)


def _resolution_of(losses: NDArray[np.float64]) -> float:
    return SOLVER_RESOLUTION * float(np.abs(losses).max(initial=0.0))
