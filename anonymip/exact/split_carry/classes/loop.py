"""Split & Carry in large steps: the compiled loop, and one link at a time where it is stuck."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.kernels import compiles, new_small_work, small_rules
from anonymip.exact.split_carry.classes.carrying import new_outcome
from anonymip.exact.split_carry.classes.kernels import STUCK, advance_links
from anonymip.exact.split_carry.classes.links import Answer, ClassLinks
from anonymip.exact.split_carry.classes.windows import window_size
from anonymip.exact.split_carry.clock import ChainClock
from anonymip.exact.split_carry.options import EXACT, LINK_NODES, ChainOptions
from anonymip.exact.split_carry.state import LINKS, SECONDS, Chain
from anonymip.objectives.kernels.class_loss import kernel_rows, new_state
from anonymip.problem import Problem
from anonymip.runtime.kernels import Stopwatch

#: Rows of a window that the compiled loop takes.
_MOST = 64


class CompiledLinks(ClassLinks):
    """Solves many links in one call of a kernel, and one by one those that are too hard for it.

    Parameters
    ----------
    problem
        That the solver of small sub-problems compiles.
    chain, options, seed
        As for all links of classes.
    """

    def __init__(self, problem: Problem, chain: Chain, options: ChainOptions, seed: int) -> None:
        super().__init__(problem, chain, options, seed)
        self._tables = problem.compiled.tables
        self._rows = kernel_rows(problem.microdata, self._tables, chain.records)
        rules = small_rules(problem)
        self._rules = rules._replace(diversity=rules.diversity.of_rows(chain.records))
        most = min(chain.n, _MOST)
        self._places, self._row_losses = np.zeros(most, np.int64), np.zeros(most)
        self._work = new_small_work(self._tables, self._rules, most)
        self._outcome = new_outcome(self._rule, most)
        self._state = new_state(self._tables, 1)

    def advance(self, clock: ChainClock, amount: int) -> None:
        """Solve the next links, up to `amount` of them or one that takes long."""
        watch, chain = Stopwatch(), self._chain
        before = int(chain.cursor[LINKS])
        self._work.result[:] = np.nan
        code = advance_links(
            self._tables,
            self._rows,
            self._rules,
            self._work,
            self._state,
            self._rule,
            self._plan,
            chain,
            self._outcome,
            self._places,
            self._row_losses,
            LINK_NODES,
            amount,
        )
        solved = int(chain.cursor[LINKS]) - before
        seconds = watch.seconds
        if solved:
            chain.table[before : before + solved, SECONDS] = seconds / solved
        clock.spend(solved, seconds)
        if code == STUCK:
            self.solve_next(clock, self._incumbent())

    def _incumbent(self) -> Answer | None:
        """Return what the loop found for the window at which it is stuck."""
        size = int(window_size(self._plan, self._chain, 1))
        if size > len(self._places) or not np.isfinite(self._work.result[0]):
            return None
        labels: NDArray[np.int64] = self._work.labels[:size].copy()
        loss, bound = self._work.result.tolist()
        return Answer(labels, loss, bound, reason="cap")


def links_of_classes(
    problem: Problem, chain: Chain, options: ChainOptions, seed: int, *, compiled: bool = True
) -> ClassLinks:
    """Return the links of a chain of classes, by what solves them.

    Parameters
    ----------
    problem
        With equivalence classes.
    chain, options, seed
        Goes on in place; how; of the sub-solver.
    compiled
        Whether the compiled loop is used where it can be. The classes are the same.
    """
    by_loop = compiled and options.subsolver == EXACT and compiles(problem)
    return (CompiledLinks if by_loop else ClassLinks)(problem, chain, options, seed)
