"""Rounds of an ascent that is guided by a linear program, and teaches it the sets it lacks.

The program knows some sets and says how high each dual may best be. The ascent raises the duals to
there, in an order in which all sets are looked at that could be violated; where one keeps a dual
from its aim, the program learns that set. Each ascent ends with feasible duals, so the rounds may
end anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymip.bounds.near_program import NearProgram
from anonymip.bounds.record_duals import RecordDuals
from anonymip.runtime.budget import Budget

#: Losses that the search for one type may compute: of a few far from all others the search is long,
#: and who is not raised leaves the others no room.
_EACH = 5_000_000
#: Share of the losses that are left to compute for the rounds of pricing.
_PRICING = 0.4
#: A gain that is none, as a share of the value.
_GAIN = 5e-4


def guided_ascent(duals: RecordDuals, budget: Budget) -> Iterator[bool]:
    """Raise the duals round by round; yield after each, whether it has looked at all records.

    Parameters
    ----------
    duals
        To be raised, from their k-set terms on.
    budget
        Ends the rounds.
    """
    unit = float(np.abs(duals.duals).mean())
    if unit == 0.0:
        return
    program = NearProgram(duals, budget)
    program.solve((1.0 - _PRICING) * duals.left)
    best, taken, charged = -np.inf, 0.0, unit * int(duals.counts.sum())
    # A round that is cut short is in vain.
    while duals.left > taken and budget.stop_reason() is None:
        before = duals.left
        complete, members = duals.ascend_to(program.aims, _EACH)
        yield complete
        # Duals of both signs may add up to nothing, which no gain is a share of.
        least = _GAIN * max(abs(best), charged) if np.isfinite(best) else 0.0
        if not complete or duals.value < best + least:
            return
        best, taken = duals.value, before - duals.left
        program.sets.add(members, duals.costs(members))
        program.improve()
