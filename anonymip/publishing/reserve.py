"""The time that publishing takes, which a time limit keeps for it.

A time limit is what a user's clock shows: it holds for reading, solving, publishing, writing and
verifying. What comes after solving is known in advance from the size of the table.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

from anonymip.errors import ReleaseWarning
from anonymip.problem import Problem
from anonymip.recodings.registry import COVERS, published_form
from anonymip.runtime.budget import Budget, MachineClock

#: Share of a time limit that solving has where reading and publishing would leave it nothing.
LEAST_SHARE = 0.1


@dataclass(frozen=True)
class PublishingCosts:
    """Processor seconds of publishing, writing, reading back and verifying a release.

    Chosen by ``python -m benchmarks publishing``, whose tables take nine tenths of it at most.

    Parameters
    ----------
    release
        Of any.
    column
        Of a quasi-identifier, whatever it holds.
    cell
        Of a cell.
    text
        Of a value that stands in the original, or a text that stands in the release.
    match
        Of a record in a set of a cover.
    """

    release: float = 0.3
    column: float = 0.9e-3
    cell: float = 5e-6
    text: float = 9e-6
    match: float = 7e-6

    def seconds(self, problem: Problem) -> float:
        """Return the seconds that a release of a problem takes at most."""
        n, m = problem.n, problem.m
        covers = published_form(problem.recoding) in COVERS
        sets = n if covers else n // problem.k
        texts = 0
        for attribute, levels in zip(
            problem.microdata.attributes, problem.microdata.levels, strict=True
        ):
            values = len(levels)
            pairs = values * (values + 1) // 2
            subsets = 2 ** min(values, 40)
            texts += values + min(sets, subsets if attribute.publish == "set" else pairs)
        matches = n * problem.k if covers else 0
        return (
            self.release
            + self.column * m
            + self.cell * n * m
            + self.text * texts
            + self.match * matches
        )


COSTS = PublishingCosts()


def before_publishing(problem: Problem, whole: Budget, clock: MachineClock) -> Budget:
    """Return the part of a budget that solving has.

    Parameters
    ----------
    problem
        What will be published.
    whole
        What reading, solving and publishing have together.
    clock
        Since the time limit began: has seen how busy the machine is.

    Warns
    -----
    ReleaseWarning
        If reading and publishing leave solving less than a tenth of the time limit, which it then
        has all the same.
    """
    if whole.deadline is None:
        return whole
    limit = whole.deadline - clock.began
    reserve = clock.slowness * COSTS.seconds(problem)
    passed = time.monotonic() - clock.began
    least = LEAST_SHARE * limit
    if limit - passed - reserve < least:
        warnings.warn(
            f"of the time limit of {limit:.3g} s, reading took {passed:.1f} s, "
            f"and publishing and verifying take about {reserve:.1f} s: {least:.1f} s are left for "
            "solving, and the release may lose more than it has to",
            ReleaseWarning,
            stacklevel=3,
        )
    return whole.leaving(reserve, least=least)
