"""The time of a chain, shared out among its links."""

from __future__ import annotations

from math import inf

from anonymip.runtime.budget import Budget

#: Less than this is no time for a solver, in seconds.
_LEAST = 1e-3


class ChainClock:
    """What each link may spend: the time divided by the links that are expected.

    Parameters
    ----------
    links
        Links that are expected to come.
    budget
        Of the links that are still to come.
    pass_time
        Whether a link may use what the links before it left; what one overdrew, the next ones lack.
    link_time
        Seconds that a link has at most; 0 for no such limit.
    """

    def __init__(self, links: int, budget: Budget, pass_time: bool, link_time: float = 0.0) -> None:
        self._budget, self._pass = budget, pass_time
        self._most = link_time or None
        left = budget.remaining()
        self._share = None if left is None else left / max(1, links)
        self.unused = 0.0

    def allowance(self) -> float | None:
        """Return the seconds of the next link; None without any limit, 0 if there is no time."""
        if self._share is None:
            return self._most
        seconds = self._share
        if self._pass:
            seconds += self.unused
        seconds = min(seconds, self._budget.remaining() or 0.0, self._most or inf)
        return seconds if seconds >= _LEAST else 0.0

    def spend(self, links: int, seconds: float) -> None:
        """Account for links that were solved."""
        if self._share is not None:
            self.unused += links * self._share - seconds

    def budget_of_link(self, least: float = 0.0) -> Budget | None:
        """Return the budget of the next link, silent; None if there is no time for a solver.

        Parameters
        ----------
        least
            Seconds that a link gets in any case.
        """
        seconds = self.allowance()
        if seconds == 0.0:
            if not least:
                return None
            seconds = least
        budget = self._budget.renewed(seconds)
        budget.progress = None
        return budget
