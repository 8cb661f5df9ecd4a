"""Rounds of moves and windows over a pool of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.borrowing.borrowing import (
    BorrowingWork,
    borrowing_step,
    new_borrowing_work,
)
from anonymip.heuristics.local_search.borrowing.listed_work import MOST_ROWS
from anonymip.heuristics.local_search.move_work import new_move_work
from anonymip.heuristics.local_search.moves import sweep_step
from anonymip.heuristics.local_search.neighbours import centres_of, embedding, nearest_classes
from anonymip.heuristics.local_search.pool import CLASSES, CLOCK, SUPPRESSED_COPIES
from anonymip.heuristics.local_search.stars import suppress_costly, take_in
from anonymip.heuristics.local_search.state import PooledClasses
from anonymip.heuristics.local_search.windows import WindowsWork, new_windows_work, windows_step
from anonymip.heuristics.local_search.work_limits import LIMITS, most_steps
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
#: Steps of the search for the classes of a window: at first, since most is gained by the first
#: ones, and when that gains little.
_FEW_NODES, _MAX_NODES = 1_000, 20_000
#: Sets of rows that a window with borrowed copies looks at.
_MAX_SETS = 20_000
#: After a round that gains less than this share of the loss more is tried.
_DULL = 1e-3
#: Steps that finding one neighbour of a class takes for each coordinate, as it was measured.
_STEPS_A_NEIGHBOUR = 12


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
    effort
        What else ends it.
    """

    window: int
    near: int
    patience: int
    effort: str


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
    return found, stopped, rounds.remark()


class _Rounds:
    """Moves alone while they gain much, then moves and windows, at last of other neighbours.

    On tables of all shapes moves gain ten times as much a second as windows do at first.
    """

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
        self._stopped: Stopped | None = None
        self._gains: list[float] = []
        self._nodes = _FEW_NODES
        self._random = np.random.default_rng(seed)
        self._points = embedding(self.state.tables, self.state.rows)
        numbers = len(self.state.pool.sizes)
        tables, rules = self.state.tables, self.state.rules
        self._work = new_move_work(tables, rules, problem.n, numbers)
        self._work.steps[1] = most_steps(settings.effort, problem.n)
        self._borrowing = new_borrowing_work(tables, rules, numbers) if rules.borrows else None
        regroups = rules.monotone and settings.window >= 2 * rules.k
        self._windows = (
            new_windows_work(tables, rules, settings.window, numbers) if regroups else None
        )

    @property
    def changed(self) -> bool:
        """Whether anything was done: rows of one type are not distinguished for nothing."""
        return int(self.state.pool.cursor[CLOCK]) > self._started

    @property
    def _spent(self) -> bool:
        """Whether the effort allows no more steps."""
        return bool(self._work.steps[0] >= self._work.steps[1])

    def run(self) -> Stopped | None:
        """Improve until nothing more is gained; return why it stopped early, if it did.

        What a round does depends on what was gained before, and on the effort only by its end.
        """
        dull, idle, deep = 0, 0, self._windows is None and self._borrowing is None
        self._stopped = self._budget.stop_reason()
        loss = self._loss()
        while self._stopped is None and not self._spent and idle < self._settings.patience:
            self._stopped = self._round(first=dull == 0, deep=deep)
            self.done += 1
            before, loss = loss, self._loss()
            self._budget.report("improving classes", done=self.done, incumbent=loss)
            gain = (before - loss) / abs(before) if before else 0.0
            self._gains.append(gain)
            if gain <= _DULL and not deep:
                dull, idle, deep = 0, 0, True
                continue
            if gain <= _DULL and self._windows is not None and self._nodes < _MAX_NODES:
                # All windows are looked at again, longer.
                dull, idle, self._nodes = 0, 0, _MAX_NODES
                self._windows.checked[:] = -1
                continue
            dull = 0 if gain > _DULL else dull + 1
            idle = 0 if gain > LIMITS[self._settings.effort].idle else idle + 1
        return self._stopped

    def remark(self) -> str:
        """Return what was done and what ended it, in words."""
        effort, last = self._settings.effort, self._gains[-1] if self._gains else 0.0
        if self._stopped is not None:
            return f"{self.done} rounds, then {self._stopped.value}"
        if not self._spent:
            patience = self._settings.patience
            if max(self._gains[-patience:], default=0.0) == 0.0:
                return f"{self.done} rounds: nothing more gained"
            found = f"{self.done} rounds: each of the last {patience} gained less"
            more = "" if effort == "thorough" else "; thorough may gain more"
            return f"{found} than {LIMITS[effort].idle:.2%}{more}"
        if effort == "thorough":
            return f"stopped by effort thorough after {self.done} rounds"
        return (
            f"stopped by effort {effort} after {self.done} rounds; thorough may gain more: "
            f"the last round gained {last:.2%}"
        )

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

    def _round(self, first: bool, deep: bool) -> Stopped | None:
        """Do moves and windows once; not the first time with neighbours drawn at random.

        Parameters
        ----------
        first
            Whether the windows are of nearest neighbours; else they are drawn among the near ones.
        deep
            Whether there are windows in this round.
        """
        near = self._neighbours(self.state.living(), _NEIGHBOURS)
        self._work.checked[:] = -1
        self._weigh_stars()
        for _ in range(_SWEEPS):
            before = self._work.gain[0]
            stopped = self._sweep(near)
            if stopped is not None or self._spent or self._work.gain[0] == before:
                break
        if not deep or stopped is not None or self._spent:
            return stopped
        near = self._window_neighbours(first)
        if self._windows is not None:
            stopped = self._regroup(self._windows, near, first)
        if self._borrowing is not None and stopped is None and not self._spent:
            stopped = self._borrow(self._borrowing, near, first)
        return stopped

    def _neighbours(self, living: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
        """Return (class numbers, wanted) nearest among some classes; -1 for none."""
        near = np.full((len(self.state.pool.sizes), wanted), -1, np.int64)
        centres = centres_of(self._points, self.state.pool, living)
        found = nearest_classes(centres, living, centres, wanted + 1)
        self._work.steps[0] += _STEPS_A_NEIGHBOUR * found.size * centres.shape[1]
        # A class is mostly the first of its own neighbours; twins may come before it.
        own = found == living[:, None]
        own[~own.any(axis=1), -1] = True
        near[living] = found[~own].reshape(len(living), wanted)
        return near

    def _sweep(self, near: NDArray[np.int64]) -> Stopped | None:
        state, cursor = self.state, np.zeros(1, np.int64)

        def step(amount: int) -> int:
            return self._done(
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

    def _done(self, labels: int) -> int:
        """Return how many classes a kernel has looked at; all where it may do no more."""
        return int(self.state.pool.cursor[CLASSES]) if self._spent else int(labels)

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

    def _borrow(
        self, window: BorrowingWork, near: NDArray[np.int64], first: bool
    ) -> Stopped | None:
        """Solve windows whose rows may borrow copies, if there are any to spare."""
        state, pool = self.state, self.state.pool
        surpluses = np.unique(pool.surplus[pool.surplus >= 0])
        surpluses = surpluses[pool.sizes[surpluses] > state.rules.k]
        surpluses = surpluses[pool.following[pool.head[surpluses]] < 0]
        if not len(surpluses):
            return None
        row_types = pool.types[pool.head[surpluses]]
        donors = nearest_classes(self._points[row_types], row_types, self._points, _DONORS)
        known = window.checked.copy()
        if not first:
            window.checked[:] = -1
        cursor = np.zeros(1, np.int64)

        def step(amount: int) -> int:
            return self._done(
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

        total = int(pool.cursor[CLASSES])
        stopped = run_in_steps(step, total, self._budget, "borrowing records")
        if not first:
            # What was solved with other neighbours does not tell of the nearest ones.
            window.checked[:] = known
        return stopped

    def _regroup(
        self, windows: WindowsWork, near: NDArray[np.int64], first: bool
    ) -> Stopped | None:
        """Make neighbouring classes again."""
        state = self.state
        known = windows.checked.copy()
        if not first:
            windows.checked[:] = -1
        cursor = np.zeros(1, np.int64)

        def step(amount: int) -> int:
            return self._done(
                windows_step(
                    state.tables,
                    state.rows,
                    state.rules,
                    state.pool,
                    self._work,
                    windows,
                    near,
                    self._settings.near,
                    self._nodes if first else _FEW_NODES,
                    cursor,
                    amount,
                )
            )

        total = int(state.pool.cursor[CLASSES])
        stopped = run_in_steps(step, total, self._budget, "making classes again")
        if not first:
            windows.checked[:] = known
        return stopped
