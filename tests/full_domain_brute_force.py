"""Optimal full-domain generalizations of small tables by full enumeration, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from anonymip import FullDomain, Problem, objective
from tests.brute_force import Cell, Column, Rules, level_of, published, starred
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.random_problems import LOSSES, Case, Loss, cases

STAR = "a star"


@objective
def liking_stars(record: Any) -> Any:
    """Charge a star less than some nodes, and nearly all of them together: no sum of terms."""
    together: Any = 0.9
    for name in record.attributes:
        together = together * record.suppressed[name]
    spread = sum(record.spread[name] - 0.7 * record.suppressed[name] for name in record.attributes)
    return spread + together


def naive_liking_stars(cells: Sequence[Cell]) -> float:
    """Return the same as `liking_stars`."""
    together = 0.9 if all(cell.starred for cell in cells) else 0.0
    return sum(cell.spread - 0.7 * cell.starred for cell in cells) + together


LIKING_STARS = Loss(liking_stars, naive_liking_stars)


@dataclass(frozen=True)
class FullDomainCase:
    """A small table, and what of full-domain generalization is asked for."""

    case: Case  # table, k, objective, and a diversity among its rules
    recoding: FullDomain  # says how many may be suppressed
    most: int  # the same as a number

    def problem(self) -> Problem:
        """Return the problem for the package."""
        # Suppression, so that the table of a case may lack the diversity; then the recoding asked.
        return replace(self.case, suppression=True).problem().replace(recoding=self.recoding)

    def heights(self) -> list[int]:
        """Return the highest level of each attribute."""
        return [max((len(path) - 1 for path in c.paths), default=1) for c in self.case.columns]

    def labels(self, levels: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return what each record shows, none suppressed."""
        columns = [_labels(c, at) for c, at in zip(self.case.columns, levels, strict=True)]
        return list(zip(*columns, strict=True))

    def outliers(self, levels: Sequence[int]) -> list[bool]:
        """Return whether each record looks like too few others, or like others too alike."""
        shown = self.labels(levels)
        rules = Rules() if self.case.rules is None else self.case.rules
        broken = []
        for own in shown:
            alike = [record for record, other in enumerate(shown) if other == own]
            met = len(alike) >= self.case.k and rules.met_by(self.case.columns, alike)
            broken.append(not met)
        return broken

    def loss(self, levels: Sequence[int]) -> float:
        """Return the loss of a release; infinite if too many records are suppressed."""
        broken = self.outliers(levels)
        if sum(broken) > self.most:
            return math.inf
        losses = [
            self.case.loss.naive(self._cells(shown, left_out))
            for shown, left_out in zip(self.labels(levels), broken, strict=True)
        ]
        return max(losses) if self.case.worst else sum(losses)

    def everything(self) -> Iterator[tuple[int, ...]]:
        """Yield all combinations of levels."""
        yield from product(*(range(height + 1) for height in self.heights()))

    def optimum(self) -> float:
        """Return the least loss of all levels; infinite if none are allowed."""
        return min(map(self.loss, self.everything()))

    def _cells(self, shown: tuple[Any, ...], left_out: bool) -> list[Cell]:
        return [
            starred(column) if left_out or label == STAR else _cell(column, label)
            for column, label in zip(self.case.columns, shown, strict=True)
        ]


def _labels(column: Column, level: int) -> list[Any]:
    if column.paths:
        paths = {path[0]: path for path in column.paths}
        return [paths[value][min(level, len(paths[value]) - 1)] for value in column.values]
    return [STAR] * len(column.values) if level else list(column.values)


def _cell(column: Column, label: Any) -> Cell:
    if not column.paths:
        return published(column, [column.values.index(label)])
    below = [path for path in column.paths if label in path]
    height = level_of(column, column.paths[0][-1])
    size, level = len(column.paths), level_of(column, label)
    return Cell(False, column.weight, size, 0.0, 0.0, len(below), 0.0, False, level, height)


@st.composite
def full_domain_cases(draw: st.DrawFn, largest: int = 8) -> FullDomainCase:
    """Draw tables of every kind with every loss, limit and diversity; none may be possible."""
    case = draw(cases(largest=largest, losses=tuple(LOSSES)))
    loss = draw(st.sampled_from([case.loss, case.loss, PRODUCT, SWINGING, FALLING, LIKING_STARS]))
    rules = None
    if draw(st.integers(0, 2)) == 0:
        texts = st.lists(st.sampled_from("xyz"), min_size=case.n, max_size=case.n).map(tuple)
        rules = Rules((draw(texts),), distinct=2)
    n, worst = case.n, draw(st.integers(0, 4)) == 0
    if rules is not None and draw(st.booleans()):
        rules = Rules(rules.sensitive, l=draw(st.sampled_from([1.5, 2])))  # type: ignore[arg-type]
    most = draw(st.sampled_from([None, 1, 2, 0.3]))
    recoding = FullDomain(suppression=True, most_suppressed=most)
    allowed = n if most is None else int(most) if most >= 1 else (3 * n) // 10
    if draw(st.booleans()) and _is_diverse(case, rules):
        recoding, allowed = FullDomain(), 0
    given = Case(case.columns, case.k, loss, False, rules, worst)
    return FullDomainCase(given, recoding, allowed)


def _is_diverse(case: Case, rules: Rules | None) -> bool:
    """Return whether the whole table keeps the rules: others are refused at once."""
    return rules is None or rules.met_by(case.columns, range(case.n))
