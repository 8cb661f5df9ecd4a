"""Rounds of moves and windows over a pool of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.borrowing import borrowing_step, new_borrowing_work
from anonymip.heuristics.local_search.listed_work import MOST_ROWS
from anonymip.heuristics.local_search.move_work import new_move_work
from anonymip.heuristics.local_search.moves import sweep_step
from anonymip.heuristics.local_search.neighbours import centres_of, embedding, nearest_classes
from anonymip.heuristics.local_search.pool import CLASSES, CLOCK, SUPPRESSED_COPIES
from anonymip.heuristics.local_search.stars import suppress_costly, take_in
from anonymip.heuristics.local_search.state import PooledClasses
from anonymip.heuristics.local_search.windows import new_windows_work, windows_step
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

#: Neighbours of a class: for moves, and for windows.
_NEIGHBOURS, _WINDOW_NEIGHBOURS = 10, 16
#: Types near a type that may donate copies to it.
_DONORS = 8
#: Sweeps of moves before the neighbours are looked up again.
_SWEEPS = 6
#: Steps of the search for the classes of a window.
_MAX_NODES = 20_000
#: Sets of rows that a window with borrowed copies looks at.
_MAX_SETS = 100_000
#: A round that gains less than this share of the loss is idle.
_IDLE = 1e-3


@dataclass(frozen=True)
class Settings:
    """What the rounds do.

    Parameters
    ----------
    window
        Rows of the windows that are made again; 0 for none.
    near
        Neighbours of a class that are in a window with it, alone and two at a time.
    patience
        Idle rounds in a row that end the work.
    """

    window: int
    near: int
    patience: int


def improve_pool(
    problem: Problem,
    labels: NDArray[np.integer],
    settings: Settings,
    budget: Budget,
    seed: int,
) -> tuple[NDArray[np.int64], Stopped | None, str]:
    """Return labels that are no worse, why the work stopped early, and a remark."""
    rounds = _Rounds(problem, labels, settings, budget, seed)
    stopped = rounds.run()
    found = rounds.state.labels() if rounds.changed else np.asarray(labels, np.int64)
    return found, stopped, f"{rounds.done} rounds"


class _Rounds:
    """Moves until none gains, then windows, then both with other neighbours."""

    def __init__(
        self,
        problem: Problem,
        labels: NDArray[np.integer],
        settings: Settings,
        budget: Budget,
        seed: int,
    ) -> None:
        self.state = PooledClasses.of(problem, labels)
        self.done = 0
        self._started = int(self.state.pool.cursor[CLOCK])
        self._settings = settings
        self._budget = budget
        self._random = np.random.default_rng(seed)
        self._points = embedding(self.state.tables, self.state.rows)
        numbers = len(self.state.pool.sizes)
        tables, rules = self.state.tables, self.state.rules
        self._work = new_move_work(tables, rules, problem.n, numbers)
        self._borrowing = new_borrowing_work(tables, rules, numbers) if rules.borrows else None
        regroups = rules.monotone and settings.window >= 2 * rules.k
        self._windows = (
            new_windows_work(tables, rules, settings.window, numbers) if regroups else None
        )

    @property
    def changed(self) -> bool:
        """Whether anything was done: rows of one type are not distinguished for nothing."""
        return int(self.state.pool.cursor[CLOCK]) > self._started

    def run(self) -> Stopped | None:
        """Improve until nothing more is gained; return why it stopped early, if it did."""
        idle, stopped = 0, self._budget.stop_reason()
        loss = self._loss()
        while stopped is None and idle < self._settings.patience:
            stopped = self._round(first=self.done == 0 or idle == 0)
            self.done += 1
            before, loss = loss, self._loss()
            self._budget.report("improving classes", done=self.done, incumbent=loss)
            idle = 0 if before - loss > _IDLE * abs(before) else idle + 1
        return stopped

    def _loss(self) -> float:
        """Return the loss as the pool knows it: for telling whether a round was idle."""
        pool, rules = self.state.pool, self.state.rules
        living = self.state.living()
        losses = pool.losses[living]
        if not rules.summed:
            # Smaller losses are worth gaining on as well.
            return float(losses.max(initial=0.0) + 1e-3 * losses.sum() / max(1, len(losses)))
        stars = pool.cursor[SUPPRESSED_COPIES]
        price = rules.suppression_price * stars if stars else 0.0
        return float((pool.sizes[living] * losses).sum() + price)

    def _round(self, first: bool) -> Stopped | None:
        """Do moves and windows once; not the first time with neighbours drawn at random."""
        near = self._neighbours(self.state.living(), _NEIGHBOURS)
        self._work.checked[:] = -1
        self._weigh_stars()
        for _ in range(_SWEEPS):
            before = self._work.gain[0]
            stopped = self._sweep(near)
            if stopped is not None or self._work.gain[0] == before:
                break
        if stopped is None and self._borrowing is not None:
            stopped = self._borrow(first)
        if stopped is None and self._windows is not None:
            stopped = self._regroup(first)
        return stopped

    def _neighbours(self, living: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
        """Return (class numbers, wanted) nearest among some classes; -1 for none."""
        near = np.full((len(self.state.pool.sizes), wanted), -1, np.int64)
        centres = centres_of(self._points, self.state.pool, living)
        found = nearest_classes(centres, living, centres, wanted + 1)
        # A class is mostly the first of its own neighbours; twins may come before it.
        own = found == living[:, None]
        own[~own.any(axis=1), -1] = True
        near[living] = found[~own].reshape(len(living), wanted)
        return near

    def _sweep(self, near: NDArray[np.int64]) -> Stopped | None:
        state, cursor = self.state, np.zeros(1, np.int64)

        def step(amount: int) -> int:
            return int(
                sweep_step(
                    state.tables,
                    state.rows,
                    state.rules,
                    state.pool,
                    self._work,
                    near,
                    cursor,
                    amount,
                )
            )

        return run_in_steps(
            step, int(state.pool.cursor[CLASSES]), self._budget, "moving records", first=100
        )

    def _weigh_stars(self) -> None:
        """Suppress records that cost more than stars; let others join the classes near them."""
        state = self.state
        if not state.rules.summed or np.isinf(state.rules.suppression_price):
            return
        suppress_costly(state.tables, state.rows, state.rules, state.pool, self._work)
        row_types = np.flatnonzero(state.pool.suppressed)
        living = state.living()
        centres = centres_of(self._points, state.pool, living)
        near = nearest_classes(centres, living, self._points[row_types], _NEIGHBOURS)
        take_in(state.tables, state.rows, state.rules, state.pool, self._work, row_types, near)

    def _window_neighbours(self, first: bool) -> NDArray[np.int64]:
        """Return neighbours among the classes that are small enough for a window."""
        pool, living = self.state.pool, self.state.living()
        mixed = pool.following[pool.head[living]] >= 0
        small = pool.sizes[living] < 2 * self.state.rules.k - 1
        near = self._neighbours(living[mixed | small], _WINDOW_NEIGHBOURS)
        return near if first else self._random.permuted(near, axis=1)

    def _borrow(self, first: bool) -> Stopped | None:
        """Solve windows whose rows may borrow copies, if there are any to spare."""
        state, pool = self.state, self.state.pool
        surpluses = np.unique(pool.surplus[pool.surplus >= 0])
        surpluses = surpluses[pool.sizes[surpluses] > state.rules.k]
        surpluses = surpluses[pool.following[pool.head[surpluses]] < 0]
        if not len(surpluses):
            return None
        window = self._borrowing
        assert window is not None
        row_types = pool.types[pool.head[surpluses]]
        donors = nearest_classes(self._points[row_types], row_types, self._points, _DONORS)
        near = self._window_neighbours(first)
        window.checked[:] = -1
        cursor = np.zeros(1, np.int64)

        def step(amount: int) -> int:
            return int(
                borrowing_step(
                    state.tables,
                    state.rows,
                    state.rules,
                    pool,
                    self._work,
                    window,
                    near,
                    donors,
                    MOST_ROWS,
                    _MAX_SETS,
                    cursor,
                    amount,
                )
            )

        return run_in_steps(step, int(pool.cursor[CLASSES]), self._budget, "borrowing records")

    def _regroup(self, first: bool) -> Stopped | None:
        """Make neighbouring classes again."""
        state, windows = self.state, self._windows
        assert windows is not None
        near = self._window_neighbours(first)
        if not first:
            windows.checked[:] = -1
        cursor = np.zeros(1, np.int64)

        def step(amount: int) -> int:
            return int(
                windows_step(
                    state.tables,
                    state.rows,
                    state.rules,
                    state.pool,
                    self._work,
                    windows,
                    near,
                    self._settings.near,
                    _MAX_NODES,
                    cursor,
                    amount,
                )
            )

        return run_in_steps(
            step, int(state.pool.cursor[CLASSES]), self._budget, "making classes again"
        )
