"""Repair of classes that break a rule.

Records move out, classes merge, or records are left out.

What the heuristics hand in has classes of at least k records, but they may break limits or lack
the diversity, and records may be without a class. What leaves here keeps every rule.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from anonymip.assignments import Classes
from anonymip.errors import NoSolution
from anonymip.heuristics.growing.batch_growth import group_records
from anonymip.heuristics.growing.groups import (
    SensitiveMix,
    groups_by_size,
    joining_losses,
    labels_of,
    needed_by_sets,
    pick_companion,
)
from anonymip.orders.orders import variance_order
from anonymip.problem import Problem, has_rules, named_rules, within_limits
from anonymip.recodings.rules.limits import conflicts
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget, compilation_seconds


@dataclass(frozen=True)
class RepairNumbers:
    """The numbers that steer the repair: as few searches as leave next to no record alone."""

    classes: int = 400  # tried when a record looks for one: those nearest in the variance order
    fewer_classes: int = 40  # the same where outliers have left many records without a class
    refresh: int = 200  # the list of living classes is renewed every so many looks at it
    dissolved: int = 30  # classes dissolved, one after the other, for companions of one record
    restarted: int = 3_000  # records up to which it starts again with those that fit the fewest
    grace: float = 2.0  # seconds beyond the budget: without a repair there is no release at all


NUMBERS = RepairNumbers()


def repaired(problem: Problem, labels: Ints, method: str, budget: Budget) -> Ints:
    """Return (n,) labels of classes that keep all rules; -1 for suppressed records.

    A search that may fail where limits leave few releases; it then starts once more from the
    records with the fewest possible companions, in tables of up to 3000 records.

    `labels`: (n,) classes of at least k records; -1 for records without a class. `method`: named if
    it fails. `budget`: may be overdrawn by two seconds, and by those in which kernels are compiled
    or loaded. Raises NoSolution if some records fit no class and cannot be suppressed.
    """
    if not has_rules(problem) and (labels >= 0).all():
        return labels
    try:
        return _Repair(problem, labels, method, budget).labels()
    except NoSolution:
        if not problem.limits or problem.n > NUMBERS.restarted or budget.stop_reason() is not None:
            raise
    conflicting = conflicts(problem.microdata, problem.limits, np.arange(problem.n)).sum(axis=1)
    groups, _ = group_records(problem, np.argsort(-conflicting, kind="stable"), budget)
    return _Repair(problem, labels_of(groups, problem.n), method, budget).labels()


def rehomed(problem: Problem, labels: Ints, budget: Budget) -> Ints:
    """Return labels with the records without a class in those whose loss rises least by them.

    `problem`: gives the rules; nobody may be suppressed. `labels`: (n,) classes that keep them; -1
    for records without. Raises NoSolution if some records fit no class.
    """
    work = _Repair(problem, labels, "leaving out outliers", budget)
    work.near = NUMBERS.fewer_classes
    work.join_each()
    work.near = NUMBERS.classes
    return work.labels()


class _Grace(Budget):
    """What the repair may overdraw; seconds in which kernels are made ready do not count.

    It ends the grace behind the budget given, or behind an interrupt of that if this is sooner.
    """

    def __init__(self, given: Budget) -> None:
        super().__init__(None, given.progress)
        self._given, self._is_heard, self._ready = given, False, 0.0
        left = given.remaining()
        if left is not None:
            self._begin(left + NUMBERS.grace)

    def _begin(self, seconds: float) -> None:
        """Let it end so many seconds from now."""
        self.deadline, self._ready = time.monotonic() + seconds, compilation_seconds()

    def remaining(self) -> float | None:
        """Return the seconds left, at least 0, or None without a limit."""
        if self._given.is_interrupted and not self._is_heard:
            self._is_heard = True
            left = self.remaining()
            if left is None or left > NUMBERS.grace:
                self._begin(NUMBERS.grace)
        if self.deadline is None:
            return None
        added = compilation_seconds() - self._ready
        return max(0.0, self.deadline + added - time.monotonic())


class _Repair:
    """Classes under repair, dead ones being empty, and the records without a class."""

    def __init__(self, problem: Problem, labels: Ints, method: str, budget: Budget) -> None:
        self._problem = problem
        self._method = method
        self._may_suppress = problem.may_suppress
        self._budget = _Grace(budget)
        self.groups: list[list[int]] = [g.tolist() for g in Classes(np.asarray(labels)).groups()]
        self.unassigned: list[int] = np.flatnonzero(labels < 0).tolist()
        self._living, self._anchors = np.empty(0, np.int64), np.empty(0, np.int64)
        self._looked_up = 0
        self.near = NUMBERS.classes
        self._rank = np.argsort(variance_order(problem, budget))

    def _break_up(self) -> None:
        """Take out of each class that breaks a limit the records that do not fit the others."""
        if not self._problem.limits:
            return
        broken: list[int] = []
        for at_size, rows in groups_by_size(self.groups):
            broken += at_size[~within_limits(self._problem, rows)].tolist()
        for at in sorted(broken):
            kept: list[int] = []
            for record in self._by_rank(self.groups[at]):
                if within_limits(self._problem, np.array([[*kept, record]]))[0]:
                    kept.append(record)
                else:
                    self.unassigned.append(record)
            self.groups[at] = kept
            if len(kept) < self._problem.k:
                self.unassigned += kept
                self.groups[at] = []

    def join_each(self) -> None:
        """Put the records without a class into old classes, as far as they fit."""
        if any(self.groups):
            self.unassigned = [r for r in self._by_rank(self.unassigned) if not self._join(r)]

    def labels(self) -> Ints:
        """Return (n,) labels once all records have a class, or none, and classes are diverse."""
        self._break_up()
        self._assign()
        self._diversify()
        return labels_of([group for group in self.groups if group], self._problem.n)

    def _assign(self) -> None:
        """Find a class for every record without one: a new class, an old one, or none."""
        grown, left = group_records(
            self._problem, np.array(self._by_rank(self.unassigned), np.int64), self._budget
        )
        self.groups += grown
        self.unassigned = []
        for at, record in enumerate(left):
            self._budget.report("finding classes for records", done=at, total=len(left))
            if self._is_late() or not (
                self._join(record) or self._found(record) or self._found_from_class(record)
            ):
                self._leave_out(record)

    def _diversify(self) -> None:
        """Mend each class that is not diverse: merge it, thin it out, or scatter its members."""
        if self._problem.diversity is None:
            return
        to_mend: list[int] = []
        for at_size, rows in groups_by_size(self.groups):
            to_mend += at_size[needed_by_sets(self._problem, rows) > 0].tolist()
        to_mend, total = sorted(to_mend), len(to_mend)
        while to_mend:
            self._budget.report("mending classes", done=max(0, total - len(to_mend)), total=total)
            if self._is_late():
                self._end_quickly(to_mend)
                return
            at = to_mend.pop()
            if not self.groups[at] or self._good(self.groups[at]):
                continue
            partner = self._partner(at)
            thinned = self._thinned(self.groups[at]) if self._may_suppress else None
            if thinned is not None and (partner is None or thinned[1] < partner[1]):
                self.groups[at] = thinned[0]
            elif partner is not None:
                other = partner[0]
                self.groups[at] = self.groups[at] + self.groups[other]
                self.groups[other] = []
                to_mend.append(at)
            else:
                # Its members go to other classes, one by one.
                group, self.groups[at] = self.groups[at], []
                for record in group:
                    if not (self._join(record) or self._found(record)):
                        raise self._failure(record)

    def _end_quickly(self, to_mend: list[int]) -> None:
        """Suppress the classes that are not diverse, or make one of them and of what it takes."""
        bad = [at for at in to_mend if self.groups[at] and not self._good(self.groups[at])]
        if self._problem.limits and bad and not self._may_suppress:
            raise self._failure(self.groups[bad[0]][0])
        merged: list[int] = []
        for at in bad:
            merged += self.groups[at]
            self.groups[at] = []
        if self._may_suppress or not merged:
            return
        mix = SensitiveMix(self._problem, np.array(merged))
        for at, group in enumerate(self.groups):
            # In the end all records are one class, which is diverse.
            if mix.needed() == 0:
                break
            for record in group:
                mix.add(record)
            merged += group
            self.groups[at] = []
        self.groups.append(merged)

    def _is_late(self) -> bool:
        return self._budget.remaining() == 0.0

    def _by_rank(self, records: Iterable[int]) -> list[int]:
        return sorted(records, key=lambda record: int(self._rank[record]))

    def _good(self, group: list[int]) -> bool:
        """Return whether a class is large enough and diverse."""
        return bool(needed_by_sets(self._problem, np.array([group]))[0] == 0)

    def _near(self, record: int) -> list[int]:
        """Return the living classes nearest to a record in the variance order."""
        if self._looked_up % NUMBERS.refresh == 0 or len(self._living) <= 2 * self.near:
            self._living = np.flatnonzero([bool(group) for group in self.groups])
            first = [self.groups[at][0] for at in self._living]
            self._anchors = self._rank[np.array(first, np.int64)]
        self._looked_up += 1
        nearest = np.argsort(np.abs(self._anchors - self._rank[record]), kind="stable")
        near = [at for at in self._living[nearest[: 2 * self.near]].tolist() if self.groups[at]]
        return sorted(near[: self.near])

    def _join(self, record: int) -> bool:
        """Put a record into the class whose loss rises least, if that costs no more than a star."""
        near = self._near(record)
        losses = joining_losses(
            self._problem, [self.groups[at] for at in near], [record], by_increase=True
        )
        if not len(losses) or losses.min() == np.inf:
            return False
        if self._may_suppress and losses.min() > self._problem.compiled.suppression_price:
            return False
        self.groups[near[int(losses.argmin())]].append(record)
        return True

    def _found(self, record: int) -> bool:
        """Found a class for a record, of records that their classes can spare."""
        return not self._may_suppress and self._grow_from(record, [])

    def _grow_from(self, record: int, free: list[int]) -> bool:
        """Grow a class from a record by free ones and by what large classes can spare."""
        problem = self._problem
        class_of = {member: at for at in self._near(record) for member in self.groups[at]}
        members = [record]
        mix = SensitiveMix(problem, np.array(members))
        spare = {at: list(self.groups[at]) for at in set(class_of.values())}
        while mix.needed() > 0:
            candidates = [r for r in free if r not in members]
            for group in spare.values():
                if len(group) > problem.k:
                    able = SensitiveMix(problem, np.array(group)).diverse_without(np.array(group))
                    candidates += [r for r, can in zip(group, able, strict=True) if can]
            if not candidates:
                return False
            picked = pick_companion(problem, members, mix, np.array(candidates))
            if picked < 0:
                return False
            joined = candidates[picked]
            members.append(joined)
            mix.add(joined)
            if joined in class_of:
                spare[class_of[joined]].remove(joined)
        for at, group in spare.items():
            self.groups[at] = group
        self.groups.append(members)
        return True

    def _found_from_class(self, record: int) -> bool:
        """Found a class with members of another one, whose other members find room elsewhere."""
        if self._may_suppress:
            return False
        near = self._near(record)
        pairs = [
            within_limits(self._problem, np.array([[record, r] for r in self.groups[at]]))
            for at in near
        ]
        fitting = np.array([fits.sum() for fits in pairs])
        for place in np.argsort(-fitting, kind="stable")[: NUMBERS.dissolved]:
            if fitting[place] == 0:
                break
            before = [list(group) for group in self.groups]
            free, self.groups[near[place]] = self.groups[near[place]], []
            if self._grow_from(record, free):
                others = [r for r in free if r not in self.groups[-1]]
                if all(self._join(other) for other in others):
                    return True
            self.groups = before
        return False

    def _leave_out(self, record: int) -> None:
        if self._problem.diversity is not None:
            # Alone it is no class yet, but merged with another one it may be part of one.
            self.groups.append([record])
        elif not self._may_suppress:
            raise self._failure(record)

    def _failure(self, record: int) -> NoSolution:
        rules = named_rules(self._problem) or "their size"
        if self._is_late():
            return NoSolution(
                f"{self._method}: the time ended before all classes kept {rules}",
                remedy="Give it more time, or allow suppression",
            )
        row = self._problem.microdata.rows[record]
        return NoSolution(
            f"{self._method} finds no class of at least {self._problem.k} records for record "
            f"{row} that keeps {rules}, which does not prove that there is none",
            remedy="Use an exact method, loosen the rules, or allow suppression",
        )

    def _partner(self, at: int) -> tuple[int, float] | None:
        """Return the class to merge with and the cost: the cheapest that makes both diverse.

        If none does, where nothing may be suppressed, the one that leaves least to be desired.
        """
        problem, group = self._problem, self.groups[at]
        others = [other for other in self._near(group[0]) if other != at]
        losses = joining_losses(
            problem,
            [self.groups[other] for other in others],
            group,
            by_increase=True,
            keep_diverse=False,
        )
        allowed = np.isfinite(losses)
        if not allowed.any():
            return None
        merged = [self.groups[other] + group for other in others]
        together = np.full(len(others), np.iinfo(np.int64).max)
        for at_size, rows in groups_by_size(merged):
            together[at_size] = needed_by_sets(problem, rows)
        together[~allowed] = np.iinfo(np.int64).max
        if self._may_suppress and together.min() > 0:
            return None
        best = int(np.lexsort((losses, together))[0])
        own = 0.0
        if problem.compiled.aggregate == "sum":
            own = float(problem.compiled.class_losses(np.array([group]))[0])
        return others[best], float(losses[best]) - own

    def _thinned(self, group: list[int]) -> tuple[list[int], float]:
        """Return what is left of a class when records are suppressed until it is allowed."""
        problem = self._problem
        kept = list(group)
        while kept and not self._good(kept):
            if len(kept) <= problem.k:
                kept = []
                continue
            rests = np.array([kept[:at] + kept[at + 1 :] for at in range(len(kept))])
            losses = problem.compiled.class_losses(rests)
            kept = rests[np.lexsort((losses, needed_by_sets(problem, rests)))[0]].tolist()
        price = problem.compiled.suppression_price
        if problem.compiled.aggregate == "max":
            return kept, price
        cost = price * (len(group) - len(kept))
        cost -= float(problem.compiled.class_losses(np.array([group]))[0])
        if kept:
            cost += float(problem.compiled.class_losses(np.array([kept]))[0])
        return kept, cost
