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
SEARCH_ROUNDING = 4e-12  # searches and sums of losses are sure up to this share of the loss
#: ... and up to this share of all dual values that they use, which may be large and cancel.
DUAL_ROUNDING = 3e-14
#: A search proves nothing where what it does not look for is a larger share of the loss.
VISIBLE_SLACK = LOSS_RELATIVE

#: What a solver claims and what its point gives agree up to this, for costs of order 1.
CLAIM_ABSOLUTE = 1e-6
#: Points of solvers may break rows by their tolerances, and so may their bounds be off, by this
#: share of the largest effect of one cell on the loss.
SOLVER_RESOLUTION = 1e-5
#: Losses below this share of the largest effect are too fine to be proven by what a solver reports.
FINE_LOSS = 1e-2

#: Costs of patterns that differ by less than this share of the largest look alike to a solver.
#: Its bound may be off by the second share where nobody knows how near losses lie to each other:
#: HiGHS looks for nothing better by less than 1e-6, of costs that are scaled to 0.7 to 1.4.
FINE_STEP, SOLVER_BLUR = 1e-6, 2e-6

#: An attribute with less than this share of the largest effect is lost in a solver's tolerances
#: where a model adds up the losses of cells.
FINE_EFFECT = 1e-3

#: A point of a solver may violate a row by this much, scaled by the row's largest coefficient.
FEASIBILITY = 1e-5
INTEGRALITY = 1e-5  # an integer variable may lie this far from an integer


def same_loss(first: float, second: float, scale: float = 0.0) -> bool:
    """Return whether two computations of one loss agree.

    `first, second`: the losses. `scale`: of what they are sums, where terms of both signs may leave
    less.
    """
    return abs(first - second) <= LOSS_RELATIVE * max(abs(first), abs(second), scale)


def contradicts(objective: float, bound: float, rounding: float = 0.0) -> bool:
    """Return whether `bound` lies above `objective` (minimised) by more than rounding."""
    return bound - objective > OPTIMALITY_RELATIVE * abs(objective) + rounding


def equals_bound(objective: float, bound: float) -> bool:
    """Return whether an objective (minimised) and a lower bound differ by no more than rounding."""
    return objective - bound <= 2 * LOSS_RELATIVE * abs(objective)


def closes_gap(objective: float, bound: float) -> bool:
    """Return whether `bound` leaves a gap of `objective` (minimised) that solvers stop within.

    It is relative to the objective alone: a loss that is small as a whole has no smaller gap.
    """
    if objective <= bound:
        return True
    return objective != 0 and (objective - bound) / abs(objective) <= OPTIMALITY_RELATIVE
