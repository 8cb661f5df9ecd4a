"""A chain from where it stands to its end, or as far as the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable

from anonymip.exact.classes.small.kernels import compiles
from anonymip.exact.split_carry.classes.carrying import carry_rule
from anonymip.exact.split_carry.classes.links import LinkSolver
from anonymip.exact.split_carry.classes.loop import CompiledLoop
from anonymip.exact.split_carry.classes.windows import Plan
from anonymip.exact.split_carry.clock import ChainClock
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.state import LINKS, LOSS, Chain
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

#: Seconds between two looks at the clock.
_SECONDS_A_STEP = 0.1
_FIRST = 10


def drive_chain(
    problem: Problem,
    chain: Chain,
    options: ChainOptions,
    budget: Budget,
    *,
    after: Callable[[Chain], None] | None = None,
    compiled: bool = True,
    seed: int = 0,
) -> Stopped | None:
    """Solve the links of a chain that has not ended, and return why it stopped early, if it did.

    Parameters
    ----------
    problem
        With equivalence classes.
    chain
        Goes on in place.
    options
        How.
    budget
        Of these links. Its time is shared out among those that are expected.
    after
        Called with the chain between links, every tenth of a second or after each longer one.
    compiled
        Whether the compiled loop is used where it can be. The classes are the same.
    seed
        Of the sub-solver.

    Raises
    ------
    InputError
        If the sub-solver cannot take a sub-problem.
    """
    k = problem.k
    rule = carry_rule(
        problem,
        chain.records,
        boundary=options.boundary_of(k),
        least=options.carry == "least",
        accepted=options.accepted_of(k),
        cheapest=options.prefer == "loss",
    )
    plan = Plan(k, options.S * k, options.fixed)
    single = LinkSolver(problem, chain, rule, plan, options, seed)
    engine: LinkSolver | CompiledLoop = single
    if compiled and options.subsolver == EXACT and compiles(problem):
        engine = CompiledLoop(problem, chain, rule, plan, single)
    links = options.links_of(chain.n, k)
    clock = ChainClock(chain, links, budget, options.pass_time, options.link_time)
    amount = _FIRST
    while not chain.done:
        reason = budget.stop_reason()
        if reason is not None:
            return reason
        start, before = time.perf_counter(), int(chain.cursor[LINKS])
        engine.advance(clock, amount)
        seconds = max(time.perf_counter() - start, 1e-6)
        done = int(chain.cursor[LINKS])
        amount = max(1, min(int((done - before) / seconds * _SECONDS_A_STEP), 4 * amount))
        if after is not None:
            after(chain)
        loss = float(chain.sums[LOSS])
        budget.report("solving links", done=done, total=max(links, done), incumbent=loss)
    return None
