"""Rounds of moves and trials over current classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from anonymip.effort import EFFORTS, MAY_GAIN
from anonymip.heuristics.local_search.annealing import (
    ANNEALING,
    AnnealingWork,
    anneal_step,
    near_types,
)
from anonymip.heuristics.local_search.current_classes import (
    CLASSES,
    CLOCK,
    SUPPRESSED_COPIES,
    CurrentClasses,
    CurrentRelease,
)
from anonymip.heuristics.local_search.iterated import ITERATED, cycles
from anonymip.heuristics.local_search.moves import (
    new_move_work,
    suppress_costly,
    sweep_step,
    take_in,
)
from anonymip.heuristics.local_search.trials import TrialsWork, hand_over, trials_step, weight_of
from anonymip.objectives.kernels.class_loss import KernelRows, kernel_rows
from anonymip.objectives.language.tables import LossTables, exact_losses, whole_loss
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

#: Steps that efforts take a share of: for any table, and for each record up to a number.
_STEPS, _STEPS_A_RECORD, _MANY = 300_000_000, 36_000, 150_000
#: So many fewer for each record beyond, since steps take longer where less of the table is in the
#: processor's cache (8 ns with 200,000 records, 19 ns with a million), and the start takes 21 s.
_STEPS_LESS = 4_600


#: What ends the search of each effort: steps, as a multiple of those above. Those that `normal`
#: leaves out gain 0.5 % on Adult with k = 5, in a third of the time.
_SHARES = MappingProxyType({"quick": 0.2, "normal": 0.7, "thorough": 60.0})
#: A round that gains less than this share of the loss is idle.
_IDLE = MappingProxyType({"quick": 1e-3, "normal": 1e-3, "thorough": 2e-4})
#: Neighbours of a class that moves look at, and sweeps of moves before they are looked up again.
_NEIGHBOURS, _SWEEPS = 10, 6
#: Steps that finding one neighbour of a class takes for each coordinate, as it was measured.
_STEPS_A_NEIGHBOUR = 12


def most_steps(effort: str, n: int) -> int:
    """Return the steps that the search of n records may take."""
    few = min(n, _MANY)
    steps = few * _STEPS_A_RECORD - (n - few) * _STEPS_LESS
    return int(_SHARES[effort] * (_STEPS + max(0, steps)))


#: Values of a set attribute share so many coordinates: a tree is no help in hundreds of them.
_COORDINATES = 8


def embedding(tables: LossTables, rows: KernelRows) -> Floats:
    """Return (t, d) points of the row types whose city-block distance is about their loss.

    A value of a range, and a rank among the leaves of a hierarchy or of a curved loss, is a
    coordinate, in units of what a range as wide loses. A value of a set is a unit vector scaled so
    that two values lie as far apart as a second value costs; beyond eight values some share a
    coordinate. What lies near is only proposed by this: the loss itself decides.
    """
    values = rows.range_values - rows.range_values.min(axis=0, initial=np.inf)
    parts = [values * (np.abs(tables.range_low) + np.abs(tables.range_high)) / 2]
    for s in range(len(tables.set_columns)):
        start, size = int(tables.set_start[s]), int(tables.set_sizes[s])
        if size < 2:
            continue
        second = abs(tables.set_losses[start + 2] - tables.set_losses[start + 1])
        used = min(size, _COORDINATES)
        point = np.zeros((len(rows.set_codes), used))
        point[np.arange(len(point)), rows.set_codes[:, s] % used] = second / 2
        parts.append(point)
    for p in range(len(tables.pair_columns)):
        widest = abs(whole_loss(tables, p) - exact_losses(tables, p)[0])
        parts.append(rows.pair_codes[:, [p]] * (widest / max(int(tables.pair_sizes[p]) - 1, 1)))
    if not sum(part.shape[1] for part in parts):
        return np.zeros((len(rows.range_values), 1))  # a loss that looks at nothing
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def centres_of(points: Floats, current: CurrentClasses, labels: Ints) -> Floats:
    """Return (classes, d) means of the points of the given classes' rows."""
    centres = np.zeros((len(labels), points.shape[1]))
    _add_up(points, current, labels, centres)
    return centres


def nearest_classes(centres: Floats, labels: Ints, points: Floats, wanted: int) -> Ints:
    """Return (points, wanted) labels of the classes nearest to each point; -1 where there are less.

    Complexity: O(q log c) for q points and c classes in few dimensions.
    """
    near = np.full((len(points), wanted), -1, np.int64)
    count = min(wanted, len(labels))
    if count and len(points):
        at = cKDTree(centres).query(points, k=count, p=1)[1].reshape(len(points), count)
        near[:, :count] = labels[at]
    return near


@kernel
def _add_up(points: Floats, current: CurrentClasses, labels: Ints, centres: Floats) -> None:
    for at in range(len(labels)):
        entry = current.head[labels[at]]
        size = current.sizes[labels[at]]
        while entry >= 0:
            share = current.copies[entry] / size
            for d in range(points.shape[1]):
                centres[at, d] += share * points[current.types[entry], d]
            entry = current.following[entry]


def improve_classes(
    problem: Problem,
    labels: NDArray[np.integer],
    effort: str,
    budget: Budget,
    seed: int,
    *,
    trials: int = 0,
) -> tuple[Ints, Stopped | None, str]:
    """Return labels that are no worse, why the work stopped early, and a remark.

    `effort`: what ends the moves. `trials`: steps of the trials that follow.
    """
    rounds = _Rounds(problem, labels, budget, seed)
    clock = rounds.state.current.cursor[CLOCK]
    stopped, remark = rounds.move(effort)
    found = np.asarray(labels, np.int64)
    if rounds.state.current.cursor[CLOCK] > clock:
        # Rows of one type are not distinguished for nothing.
        found = rounds.state.labels()
    if trials and stopped is None:
        found, stopped, told = iterate_classes(
            problem, found, steps=trials, budget=budget, seed=seed
        )
        remark = f"{remark}; {told}"
    return found, stopped, remark


def iterate_classes(
    problem: Problem,
    labels: NDArray[np.integer],
    *,
    steps: int,
    budget: Budget,
    seed: int,
    visited: dict[bytes, Ints] | None = None,
    anneals: bool = True,
) -> tuple[Ints, Stopped | None, str]:
    """Return labels that are no worse, why the work stopped early, and a remark.

    `problem`: with loss tables, which allows the classes. `steps`: losses of an attribute that may
    be worked out. `visited`: gets the records of the classes that were visited last; copies of a
    row are one record. `anneals`: whether annealing has a share of the steps, where the losses are
    summed and no classes visited are wanted. Complexity: about 5,000 to 50,000 steps a trial, see
    :mod:`~anonymip.heuristics.local_search.iterated`.
    """
    best = np.asarray(labels, np.int64)
    start = lowest = (0.0, 0.0)
    made, annealed, stopped = 0, 0, budget.stop_reason()
    for cycle, (length, heat) in enumerate(cycles(steps, problem.n)):
        rounds = _Rounds(problem, best, budget, seed + cycle)
        before = lowest if cycle else rounds.standing
        start = start if cycle else before
        many = ITERATED.idle * (len(rounds.state.living()) + ITERATED.most)
        # Trials and annealing share a cycle, unless the classes visited are wanted.
        part = int(ANNEALING.share * length)
        worth = part >= ANNEALING.least * problem.n and rounds.state.rules.summed
        part = part if anneals and visited is None and worth and rounds.state.types > 1 else 0
        best, lowest, stopped = rounds.iterate(best, length - part, heat, visited)
        made += rounds.done
        idle = lowest >= before and rounds.done >= many
        if stopped is not None or not rounds.done or idle:
            break
        if part:
            rounds = _Rounds(problem, best, budget, seed + cycle)
            best, lowest, stopped = rounds.anneal(best, lowest, part)
            annealed += rounds.done
            if stopped is not None:
                break
    gain = (start[0] - lowest[0]) / abs(start[0]) if start[0] else 0.0
    ended = "" if stopped is None else f", then {stopped.value}"
    changes = f" and {annealed} annealed changes" if annealed else ""
    return best, stopped, f"{made} trials{changes} gained {gain:.2%}{ended}"


class _Rounds:
    """Moves while they gain much, or trials, over the classes of a release."""

    def __init__(
        self, problem: Problem, labels: NDArray[np.integer], budget: Budget, seed: int
    ) -> None:
        self.state = CurrentRelease.of(problem, labels)
        self.done = 0
        self._n = problem.n
        self._budget = budget
        self._stopped: Stopped | None = None
        self._random = np.random.default_rng(seed)
        # Limits have no part in the points of the row types.
        tables, first = problem.compiled.tables, self.state.records[self.state.first[:-1]]
        self._points = embedding(tables, kernel_rows(problem.microdata, tables, first))
        self._work = new_move_work(self.state.rules, self.state.current, problem.n)

    @property
    def _spent(self) -> bool:
        """Whether the effort allows no more steps."""
        return bool(self._work.steps[0] >= self._work.steps[1])

    def move(self, effort: str) -> tuple[Stopped | None, str]:
        """Make moves until a round gains little; return why they stopped early, and a remark."""
        self._work.steps[1] = most_steps(effort, self._n)
        idle, gain = _IDLE[effort], np.inf
        self._stopped = self._budget.stop_reason()
        loss = self.loss
        while self._stopped is None and not self._spent and gain > idle:
            self._stopped = self._round()
            self.done += 1
            before, loss = loss, self.loss
            self._budget.report("improving classes", done=self.done, incumbent=loss)
            gain = (before - loss) / abs(before) if before else 0.0
        more = "" if effort == EFFORTS[-1] else MAY_GAIN
        if self._stopped is not None:
            return self._stopped, f"{self.done} rounds, then {self._stopped.value}"
        if self._spent:
            end = f"stopped by effort {effort} after {self.done} rounds{more}"
            return None, f"{end}: the last round gained {gain:.2%}" if more else end
        if gain == 0.0:
            return None, f"{self.done} rounds: nothing more gained"
        return None, f"{self.done} rounds: the last one gained less than {idle:.2%}{more}"

    def iterate(
        self, given: Ints, steps: int, heat: float, visited: dict[bytes, Ints] | None
    ) -> tuple[Ints, tuple[float, float], Stopped | None]:
        """Make the trials of a cycle; return the best labels, their standing, why it stopped early.

        What a trial may lose falls with the steps that are left, so that the last ones only gain.
        """
        # Changes of the classes are noted, so that they can be taken back.
        room = ITERATED.changes + ITERATED.changes_a_record * len(given)
        current = self.state.current._replace(
            notes=np.zeros((room, 4), np.int64), old_losses=np.zeros(room)
        )
        self.state = replace(self.state, current=current)
        self._work = self._work._replace(current=current)
        random = self._random
        widest = ITERATED.widest * self.state.rules.k
        room_visited = 0 if visited is None else ITERATED.visited
        labels, best, largest = given, self.standing, 0.0
        mean, made = best[0] / max(1, len(self.state.living())), 1
        if not self.state.rules.summed:
            losses, largest = self.state.current.losses[self.state.living()], best[0]
            if not len(losses) or largest == 0.0:
                return labels, best, None
            mean = float(np.mean([weight_of(loss, largest) for loss in losses]))
        self._work.steps[1] = steps
        self._stopped = self._budget.stop_reason()
        while self._stopped is None and not self._spent and made:
            self._weigh_stars()
            middles = self._small(widest)
            lenders = self._lenders()
            if len(middles) < (1 if lenders.shape[1] else 2):
                break
            # Those that hold copies of one row to lend are neighbours too, though they are not
            # taken apart.
            among, current = middles, self.state.current
            if self.state.rules.borrows:
                living = self.state.living()
                among = np.union1d(middles, living[current.following[current.head[living]] < 0])
            near = self._neighbours(among, ITERATED.neighbours)
            count, d = max(ITERATED.trials, len(middles)), self._points.shape[1]
            drawn = random.normal(size=(count, d)), random.random((count, 3))
            trials = TrialsWork.of_sizes(
                rows=ITERATED.most * widest,
                widest=widest,
                room=room_visited,
                points=self._points,
                neighbours=near,
                middles=middles,
                largest=largest,
                lenders=lenders,
                draws=np.concatenate(drawn, axis=1),
                most=ITERATED.most,
            )
            left = 1.0 - self._work.steps[0] / steps
            self._stopped = self._in_steps(
                *(trials_step, trials, widest, heat * mean * left),
                total=count,
                phase="trials",
                first=10,
            )
            made = int(trials.counts[0])
            self.done += made
            if self.standing < best:
                best, labels = self.standing, self.state.labels()
            if visited is not None:
                hand_over(trials, self.state, visited)
        return labels, best, self._stopped

    def anneal(
        self, given: Ints, lowest: tuple[float, float], steps: int
    ) -> tuple[Ints, tuple[float, float], Stopped | None]:
        """Anneal for so many steps; return the better labels, their standing, why it stopped early.

        `given, lowest`: labels of the classes, and their standing. Moves come last.
        """
        state, points = self.state, self._points
        # A class that holds a copy of each type; -1 for none.
        near, home = near_types(points), state.labels()[state.records[state.first[:-1]]]
        self._work.steps[0] += _STEPS_A_NEIGHBOUR * near.size * points.shape[1]
        self._work.steps[1] = int(ANNEALING.changes * steps)
        self._stopped = self._budget.stop_reason()
        while self._stopped is None and not self._spent:
            draws = self._random.random((ANNEALING.pairs, 4))
            annealing = AnnealingWork.of_sizes(near=near, home=home, draws=draws)
            widest = ITERATED.widest * state.rules.k
            self._stopped = self._in_steps(
                *(anneal_step, annealing, widest, (ANNEALING.hot, ANNEALING.cold)),
                total=len(draws),
                phase="annealing",
                first=100,
            )
            self.done += int(annealing.made[0])
        self._work.steps[1] = steps
        gain = np.inf
        while self._stopped is None and not self._spent and gain > _IDLE[EFFORTS[-1]]:
            before = self.loss
            self._stopped = self._round()
            gain = (before - self.loss) / abs(before) if before else 0.0
        if self.standing < lowest:
            return state.labels(), self.standing, self._stopped
        return given, lowest, self._stopped

    def _in_steps(
        self, kernel: Callable[..., int], *work: Any, total: int, phase: str, first: int
    ) -> Stopped | None:
        """Run a kernel on the classes until all is done, the effort spent or the time over."""
        cursor = np.zeros(1, np.int64)

        def step(amount: int) -> int:
            done = kernel(self._work, *work, cursor, amount)
            return total if self._spent else int(done)

        return run_in_steps(step, total, self._budget, phase, first=first)

    def _small(self, widest: int) -> Ints:
        """Return the classes of up to so many rows, without those that hold copies to lend."""
        current, living = self.state.current, self.state.living()
        mixed = current.following[current.head[living]] >= 0
        few = current.sizes[living] < 2 * self.state.rules.k - 1
        small = living[(mixed | few) & (current.sizes[living] <= widest)]
        if not self.state.rules.summed:
            small = small[np.argsort(-current.losses[small], kind="stable")]
        return small

    @property
    def loss(self) -> float:
        """Return the loss as the classes tell it: for telling whether a round was idle."""
        current, rules = self.state.current, self.state.rules
        living = self.state.living()
        losses = current.losses[living]
        if not rules.summed:
            # Smaller losses are worth gaining on as well.
            return float(losses.max(initial=0.0) + 1e-3 * losses.sum() / max(1, len(losses)))
        stars = current.cursor[SUPPRESSED_COPIES]
        price = rules.suppression_price * stars if stars else 0.0
        return float((current.sizes[living] * losses).sum() + price)

    @property
    def standing(self) -> tuple[float, float]:
        """Return what a better release has less of: the loss; the largest one, then the sum."""
        if self.state.rules.summed:
            return self.loss, 0.0
        losses = self.state.current.losses[self.state.living()]
        return float(losses.max()) if len(losses) else 0.0, float(losses.sum())

    def _round(self) -> Stopped | None:
        """Look up the neighbours, and sweep over all classes while that gains."""
        near = self._neighbours(self.state.living(), _NEIGHBOURS)
        self._work.checked[:] = -1
        self._weigh_stars()
        for _ in range(_SWEEPS):
            before = self._work.gain[0]
            classes = int(self.state.current.cursor[CLASSES])
            stopped = self._in_steps(
                sweep_step, near, total=classes, phase="moving records", first=100
            )
            if stopped is not None or self._spent or self._work.gain[0] == before:
                break
        return stopped

    def _neighbours(self, living: Ints, wanted: int) -> Ints:
        """Return (class numbers, wanted) nearest among some classes; -1 for none."""
        near = np.full((len(self.state.current.sizes), wanted), -1, np.int64)
        centres = centres_of(self._points, self.state.current, living)
        found = nearest_classes(centres, living, centres, wanted + 1)
        self._work.steps[0] += _STEPS_A_NEIGHBOUR * found.size * centres.shape[1]
        # A class is mostly the first of its own neighbours; twins may come before it.
        own = found == living[:, None]
        own[~own.any(axis=1), -1] = True
        near[living] = found[~own].reshape(len(living), wanted)
        return near

    def _weigh_stars(self) -> None:
        """Suppress records that cost more than stars; let others join the classes near them."""
        state = self.state
        if not state.rules.summed or np.isinf(state.rules.suppression_price):
            return
        suppress_costly(self._work)
        row_types = np.flatnonzero(state.current.suppressed)
        living = state.living()
        centres = centres_of(self._points, state.current, living)
        near = nearest_classes(centres, living, self._points[row_types], _NEIGHBOURS)
        take_in(self._work, row_types, near)

    def _lenders(self) -> Ints:
        """Return (types, d) types with a surplus near each type; -1 for none."""
        current, points = self.state.current, self._points
        surpluses = np.unique(current.surplus[current.surplus >= 0])
        surpluses = surpluses[current.sizes[surpluses] > self.state.rules.k]
        surpluses = surpluses[current.following[current.head[surpluses]] < 0]
        if not self.state.rules.borrows or not len(surpluses):
            return np.full((len(points), 0), -1, np.int64)
        row_types = current.types[current.head[surpluses]]
        return nearest_classes(points[row_types], row_types, points, ITERATED.lenders)
