"""What is asked of a release, and the least loss that any has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from tests.fuzzing.judge.losses import Loss
from tests.fuzzing.judge.optima import (
    Sets,
    best_classes,
    best_concealment,
    best_freeform,
    best_of_some,
    best_reciprocal,
    best_regular,
    best_weaker,
    effective,
)
from tests.fuzzing.judge.rules import Rules
from tests.fuzzing.judge.stars import (
    Mask,
    best_levels,
    best_patterns,
    group_on_levels,
    levels_loss,
    starred,
)
from tests.fuzzing.judge.table import Table

WEAKER = ("one-k", "k-one", "k-k", "k-concealment")
COVERS = ("freeform", *WEAKER)


@dataclass(frozen=True)
class Asked:
    """A problem as the judge understands it."""

    table: Table
    k: int
    recoding: str = "classes"
    loss: Loss = field(default_factory=Loss)
    rules: Rules = field(default_factory=Rules)
    suppression: bool = False
    most_suppressed: int | None = None
    mask: Mask = field(default_factory=Mask)
    single_use: bool = False
    reciprocal: bool = False
    degrees: tuple[int, ...] = ()

    @property
    def shown(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Columns that a release shows untouched, with their values."""
        return (*self.table.sensitive[self.rules.unit > 0 :], *self.table.kept)

    def optimum(self) -> tuple[bool, Fraction | None]:
        """Return whether the optimum is known, and what it is; None if nothing is allowed."""
        if self.recoding == "pattern":
            found = best_patterns(
                self.table,
                self.loss,
                self.rules,
                self.k,
                self.mask,
                single_use=self.single_use,
                most_suppressed=self._most(),
            )
            return True, found
        if self.recoding == "full-domain":
            return True, best_levels(self.table, self.loss, self.rules, self.k, self._most())
        return self._optimum_of(Sets(self.table, self.loss, self.rules, self._charge))

    def _charge(self, records: Sequence[int]) -> Fraction | None:
        """Return what a set of records loses."""
        if self.recoding == "pattern-levels":
            return group_on_levels(self.table, self.loss, self.mask, records)
        if self.recoding == "classes":
            return self.loss.group(self.table, records)
        return self.loss.set(self.table, records)

    def _optimum_of(self, sets: Sets) -> tuple[bool, Fraction | None]:
        if self.recoding in ("classes", "pattern-levels"):
            return True, sets.fraction(best_classes(sets, self.k, self._most()))
        if self.degrees:
            # Beside a diversity larger sets are not a matter of degrees.
            return True, sets.fraction(best_regular(sets, self.degrees))
        if self.recoding == "freeform":
            least = partial(best_freeform, k=self.k, larger=self.rules.diverse)
            if self.reciprocal:
                least = partial(best_reciprocal, k=self.k)
            if self.suppression:
                return True, sets.fraction(best_of_some(sets, self._most(), least))
            return True, sets.fraction(least(sets))
        if self.recoding == "k-concealment":
            known, found = best_concealment(sets, self.k)
            return known, sets.fraction(found)
        return True, sets.fraction(best_weaker(sets, self.k, self.recoding))

    def _most(self) -> int:
        """Return how many records may be suppressed."""
        if not self.suppression:
            return 0
        return self.table.n if self.most_suppressed is None else self.most_suppressed

    def judge_classes(self, labels: Sequence[int]) -> tuple[Fraction, list[str]]:
        """Return the loss of classes and what is wrong with them; -1 is a suppressed record."""
        groups = [
            [record for record, own in enumerate(labels) if own == label]
            for label in sorted(set(labels) - {-1})
        ]
        wrong = [f"a class of {len(group)} records" for group in groups if len(group) < self.k]
        if not all(self.rules.allow(self.table, group) for group in groups):
            wrong.append("a class that breaks a rule")
        left_out = list(labels).count(-1)
        if left_out > self._most():
            wrong.append("too many records are suppressed")
        charged = [self._charge(group) for group in groups]
        losses = [one for one in charged if one is not None]
        if len(losses) < len(charged):
            wrong.append("a class that looks alike under no pattern of the mask")
        if left_out:
            losses += [self.loss.suppressed(self.table)] * left_out
        return self.loss.total(losses), wrong

    def judge_cover(self, sets: Sequence[Sequence[int]]) -> tuple[Fraction, list[str]]:
        """Return the loss of a cover and what is wrong with it."""
        n = self.table.n
        kept = [record for record in range(n) if len(sets[record]) or not self.suppression]
        wrong = [f"record {i} is not in its set" for i in kept if i not in sets[i]]
        if n - len(kept) > self._most():
            wrong.append("too many records are suppressed")
        degrees = [sum(record in one for one in sets) for record in range(n)]
        sizes = [len(set(one)) for one in sets]
        if self.recoding == "freeform":
            wanted = list(self.degrees) or [max(self.k, *sizes)] * n
            wanted = [wanted[record] if record in kept else 0 for record in range(n)]
            if sizes != wanted or degrees != wanted:
                wrong.append("a cover that is not regular")
            if self.reciprocal and any(i not in sets[j] for i in range(n) for j in sets[i]):
                wrong.append("a cover that is not reciprocal")
        elif self.recoding == "k-concealment":
            bits = [sum(1 << int(one) for one in held) for held in sets]
            if min(effective(bits)) < self.k:
                wrong.append("a record with too few effective matches")
        else:
            if self.recoding in ("k-one", "k-k") and min(sizes) < self.k:
                wrong.append("a set that is too small")
            if self.recoding in ("one-k", "k-k") and min(degrees) < self.k:
                wrong.append("a record in too few sets")
        if not all(self.rules.allow(self.table, sets[record]) for record in kept):
            wrong.append("a set that breaks a rule")
        losses = [self.loss.set(self.table, sets[record]) for record in kept]
        losses += [self.loss.suppressed(self.table)] * (n - len(kept))
        return self.loss.total(losses), wrong

    def judge_patterns(
        self, given: Sequence[tuple[bool, ...] | None]
    ) -> tuple[Fraction, list[str]]:
        """Return the loss of patterns and what is wrong with them; None is a suppressed record."""
        table, wrong = self.table, []
        rows = [
            None if stars is None else starred(table, record, stars)
            for record, stars in enumerate(given)
        ]
        if any(stars is not None and not self.mask.allows(stars) for stars in given):
            wrong.append("a pattern that is not of the mask")
        if rows.count(None) > self._most():
            wrong.append("suppressed records")
        for row in set(rows) - {None}:
            alike = [record for record, one in enumerate(rows) if one == row]
            if len(alike) < self.k:
                wrong.append(f"a row of {len(alike)} records")
            if not all(
                self.rules.allow_values([values[one] for one in alike], values)
                for _, values in table.sensitive
            ):
                wrong.append("a row without the diversity")
        if self.single_use:
            used = {(given[record], row) for record, row in enumerate(rows) if row is not None}
            if len({stars for stars, _ in used}) < len(used):
                wrong.append("a pattern used twice")
        loss = self.loss.total(
            self.loss.record(table, table.stars if row is None else row) for row in rows
        )
        return loss, wrong

    def judge_levels(
        self, levels: Sequence[int], left_out: Sequence[int]
    ) -> tuple[Fraction, list[str]]:
        """Return the loss of levels and what is wrong with them."""
        loss, expected = levels_loss(self.table, self.loss, self.rules, self.k, levels)
        wrong = [] if list(left_out) == expected else ["other records are suppressed"]
        if len(expected) > self._most():
            wrong.append("too many records are suppressed")
        return loss, wrong
