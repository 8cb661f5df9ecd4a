"""Rounds of an ascent that is guided by a linear program, and teaches it the sets it lacks.

The program knows some sets and says how high each dual may best be. The ascent raises the duals to
there, in an order in which all sets are looked at that could be violated; where one keeps a dual
from its aim, the program learns that set. Each ascent ends with feasible duals, so the rounds may
end anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymip.bounds.near_pricing import NearPricing
from anonymip.bounds.record_duals import RecordDuals
from anonymip.bounds.set_program import SetProgram
from anonymip.runtime.budget import Budget

#: Times what the duals were where sets are sought first.
_FIRST = 1.15
#: Times its k-set term a dual becomes at most, types listed as the nearest of each, partial sets
#: looked at for each, and rounds, which end when the new sets are fewer than a share of the types.
_STAGES = ((3.0, 60, 200, 4), (8.0, 200, 1_000, 7), (8.0, 600, 8_000, 3))
#: Losses that the search for one type may compute: of a few far from all others the search is long,
#: and who is not raised leaves the others no room.
_EACH = 5_000_000
#: Share of the losses that are left to compute for the rounds of pricing.
_PRICING = 0.4
_MANY = 0.02
#: How far around each type to look, in what it aims at.
_MARGIN = 1.25
#: Steps of the program in each round.
_STEPS = 200
#: Costs less duals that are about 0, in units; a gain that is none, as a share of the value.
_NEGATIVE, _GAIN = 1e-3, 5e-4


def guided_ascent(duals: RecordDuals, budget: Budget) -> Iterator[bool]:
    """Raise the duals round by round; yield after each, whether it has looked at all records.

    Parameters
    ----------
    duals
        To be raised, from their k-set terms on.
    budget
        Ends the rounds.
    """
    floors = duals.floors
    lowest, highest = np.fmin(floors, 0.0), duals.highest(_STAGES[0][0])
    unit = float(np.abs(duals.duals).mean())
    if unit == 0.0:
        return
    k, ending = duals.k, (1.0 - _PRICING) * duals.left
    program = SetProgram(duals.counts, k, unit)
    pricing = NearPricing(duals.problem, duals.types, duals.search)
    aims = np.clip(_FIRST * duals.duals, lowest, highest)
    for factor, nearest, nodes, rounds in _STAGES:
        if duals.left <= ending:
            break
        highest = duals.highest(factor)
        radii = np.fmin(highest, _MARGIN * aims)
        pricing.look_near(floors, radii, aims, nearest, budget)
        for _ in range(rounds):
            if duals.left <= ending or budget.stop_reason() is not None:
                break
            found = pricing.undercutting(aims, -_NEGATIVE * unit, nodes, budget)
            added = program.add(*found)
            aims = program.improved(aims, lowest, highest, _STEPS, budget)
            if added < _MANY * len(floors):
                break
    best, taken, charged = -np.inf, 0.0, unit * int(duals.counts.sum())
    # A round that is cut short is in vain.
    while duals.left > taken and budget.stop_reason() is None:
        before = duals.left
        complete, members = duals.ascend_to(aims, _EACH)
        yield complete
        # Duals of both signs may add up to nothing, which no gain is a share of.
        least = _GAIN * max(abs(best), charged) if np.isfinite(best) else 0.0
        if not complete or duals.value < best + least:
            return
        best, taken = duals.value, before - duals.left
        program.add(members, duals.costs(members))
        aims = program.improved(aims, lowest, highest, _STEPS, budget)
