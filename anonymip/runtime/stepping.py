"""Long kernels run in steps, so that time limits, Ctrl-C and progress work."""

from __future__ import annotations

import time
from collections.abc import Callable

from anonymip.runtime.budget import Budget, compilation_seconds
from anonymip.runtime.compilation import CompilationStopped
from anonymip.status import Stopped

_SECONDS_A_STEP = 0.1
#: What a step may take if its units cost as much as the costliest so far, of which a little is
#: forgotten at every step.
_LONGEST, _REMEMBERED = 0.5, 0.99


def run_in_steps(
    step: Callable[[int], int], total: int, budget: Budget, phase: str, *, first: int = 1
) -> Stopped | None:
    """Call `step` until its work is done or the budget is spent.

    `step`: does up to the given amount of work and returns all the work done so far. If the budget
    ends while its kernel is compiled, none is done. `total`: the work in all. `budget`: asked
    between steps; hears of the progress. `first`: work of the first step; later ones are sized to
    take about 0.1 s, and half a second where units become as costly again as they were before.
    Returns: None if the work is done.
    """
    amount, done, costliest = first, 0, 0.0
    while done < total:
        reason = budget.stop_reason()
        if reason is not None:
            return reason
        start, compiled = time.perf_counter(), compilation_seconds()
        before = done
        try:
            # How much a step takes depends on the clock, what is done in all does not.
            done = step(min(amount, total - done))
        except CompilationStopped:
            reason = budget.stop_reason()
            # Whoever gave this budget more time than there is does not expect a stop.
            if reason is None:
                raise
            return reason
        if done < 0:  # by which kernels say that they failed: the caller has to look
            raise RuntimeError(f"{phase} failed")
        seconds = time.perf_counter() - start - (compilation_seconds() - compiled)
        cost = max(seconds, 1e-6) / max(done - before, 1)
        costliest = max(cost, _REMEMBERED * costliest)
        affordable = min(_SECONDS_A_STEP / cost, _LONGEST / costliest)
        amount = max(1, min(int(affordable), 4 * amount))
        budget.report(phase, done=done, total=total)
    return None


def run_over(
    step: Callable[[int, int], object], total: int, budget: Budget, phase: str, *, first: int = 1
) -> Stopped | None:
    """Call `step(first, end)` for one range of `total` units after another, as `run_in_steps`."""
    done = 0

    def further(amount: int) -> int:
        nonlocal done
        step(done, done + amount)
        done += amount
        return done

    return run_in_steps(further, total, budget, phase, first=first)
