"""All numerical tolerances, in one place.

Values are chosen for losses of order 1 to 1e6 in double precision; solvers work with
feasibility tolerances of about 1e-6 to 1e-7.
"""

from __future__ import annotations

#: Two losses of one assignment, computed in two ways, agree up to this relative difference.
LOSS_RELATIVE = 1e-9
#: ... or up to this absolute one, for losses near zero.
LOSS_ABSOLUTE = 1e-9

#: A bound this close to the objective (relative) proves optimality: solvers stop within it.
OPTIMALITY_RELATIVE = 1e-6
#: The same in absolute terms: rounding only, since a loss may be small as a whole.
OPTIMALITY_ABSOLUTE = 1e-12

#: What a solver claims and what its point gives agree up to this, for costs of order 1.
CLAIM_ABSOLUTE = 1e-6
#: Points of solvers may break rows by their tolerances, and so may their bounds be off, by this
#: share of the largest effect of one cell on the loss.
SOLVER_RESOLUTION = 1e-5
#: Losses below this share of the largest effect are too fine for a solver's word to prove.
FINE_LOSS = 1e-2

#: An attribute with less than this share of the largest effect is lost in a solver's tolerances
#: where a model adds up the losses of cells.
FINE_EFFECT = 1e-3

#: A point of a solver may violate a row by this much, scaled by the row's largest coefficient.
FEASIBILITY = 1e-5
#: An integer variable may lie this far from an integer.
INTEGRALITY = 1e-5


def same_loss(first: float, second: float) -> bool:
    """Return whether two computations of one loss agree."""
    scale = max(abs(first), abs(second))
    return abs(first - second) <= max(LOSS_ABSOLUTE, LOSS_RELATIVE * scale)


def contradicts(objective: float, bound: float) -> bool:
    """Return whether `bound` lies above `objective` (minimised) by more than rounding."""
    slack = max(OPTIMALITY_ABSOLUTE, OPTIMALITY_RELATIVE * abs(objective))
    return bound - objective > slack


def equals_bound(objective: float, bound: float) -> bool:
    """Return whether an objective (minimised) and a lower bound differ by no more than rounding."""
    return objective - bound <= max(OPTIMALITY_ABSOLUTE, 2 * LOSS_RELATIVE * abs(objective))


def closes_gap(objective: float, bound: float, unavoidable: float = 0.0) -> bool:
    """Return whether `bound` proves that `objective` (minimised) is optimal.

    Parameters
    ----------
    objective, bound
        Of one release, and of all.
    unavoidable
        The part of the objective that no release can change: a large constant must not make
        different losses look alike.
    """
    changeable = OPTIMALITY_RELATIVE * abs(objective - unavoidable)
    rounding = 2 * LOSS_RELATIVE * abs(objective)
    return objective - bound <= max(OPTIMALITY_ABSOLUTE, changeable, rounding)
