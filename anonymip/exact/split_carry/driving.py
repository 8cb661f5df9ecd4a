"""The engine of all chains: link after link to the end, or as far as the time goes."""

from __future__ import annotations

import time
from typing import Protocol

from anonymip.exact.split_carry.clock import ChainClock
from anonymip.exact.split_carry.keeping import Keeper
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

#: Seconds between two looks at the clock.
_SECONDS_A_STEP = 0.1
_FIRST = 10


class Links(Protocol):
    """The sub-problems of a chain: what they ask, what solves them, what is carried over."""

    @property
    def done(self) -> bool:
        """Whether all records are fixed."""
        ...

    @property
    def solved(self) -> int:
        """Number of links solved so far."""
        ...

    @property
    def expected(self) -> int:
        """Number of links that are expected in all."""
        ...

    def advance(self, clock: ChainClock, amount: int) -> None:
        """Solve the next links: up to so many, one that takes long, or none if time ends.

        Raises
        ------
        InputError
            If a sub-problem cannot be solved.
        NoSolution
            If there is no release.
        """
        ...


def drive_chain(
    links: Links, options: ChainOptions, budget: Budget, keeper: Keeper
) -> Stopped | None:
    """Solve the links of a chain that has not ended, and return why it stopped early, if it did.

    Parameters
    ----------
    links
        Go on in place.
    options
        Of the chain.
    budget
        Of these links. Its time is shared out among those that are expected.
    keeper
        Called between links, every tenth of a second or after each longer one.

    Raises
    ------
    InputError, NoSolution
        As the links do.
    """
    clock = ChainClock(links.expected - links.solved, budget, options.pass_time, options.link_time)
    amount, stopped = _FIRST, None
    while not links.done and stopped is None:
        stopped = budget.stop_reason()
        if stopped is not None:
            break
        start, before = time.perf_counter(), links.solved
        links.advance(clock, amount)
        seconds = max(time.perf_counter() - start, 1e-6)
        done = links.solved
        # As many links at a time as take a tenth of a second.
        amount = max(1, min(int((done - before) / seconds * _SECONDS_A_STEP), 4 * amount))
        keeper.notice()
        if done > before:
            total = max(links.expected, done)
            budget.report("solving links", done=done, total=total)
    keeper.keep()
    return stopped
