"""The least loss of releases by patterns and by levels of whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

from tests.fuzzing.judge.losses import Loss
from tests.fuzzing.judge.rules import Rules
from tests.fuzzing.judge.table import STAR, Cell, Table

Stars = tuple[bool, ...]


@dataclass(frozen=True)
class Mask:
    """Which columns may be stars together; as ``docs/format.md`` defines it."""

    suppress_at_most: int | None = None
    never: tuple[int, ...] = ()
    together: tuple[tuple[int, ...], ...] = ()
    at_most_one: tuple[tuple[int, ...], ...] = ()
    allow_all_stars: bool = False
    patterns: tuple[tuple[int, ...], ...] | None = None

    def allows(self, stars: Stars) -> bool:
        """Return whether a pattern keeps all rules."""
        if self.allow_all_stars and all(stars):
            return True
        starred = {a for a, star in enumerate(stars) if star}
        if self.patterns is not None:
            return any(set(pattern) == starred for pattern in self.patterns)
        return (
            (self.suppress_at_most is None or len(starred) <= self.suppress_at_most)
            and not starred & set(self.never)
            and all(not starred & set(one) or starred >= set(one) for one in self.together)
            and all(len(starred & set(one)) <= 1 for one in self.at_most_one)
        )

    def all(self, m: int) -> list[Stars]:
        """Return all patterns of m columns that keep the rules."""
        return [stars for stars in product((False, True), repeat=m) if self.allows(stars)]


def starred(table: Table, record: int, stars: Stars) -> tuple[Cell, ...]:
    """Return the cells of a record under a pattern."""
    exact = table.cells_of([record])
    return tuple(STAR if star else cell for cell, star in zip(exact, stars, strict=True))


def best_patterns(
    table: Table,
    loss: Loss,
    rules: Rules,
    k: int,
    mask: Mask,
    *,
    single_use: bool,
    most_suppressed: int,
) -> Fraction | None:
    """Return the least loss; None if nothing is allowed.

    Every output row in turn takes a set of the records that fit it.
    """
    n = table.n
    options: list[list[tuple[int, Fraction]]] = []
    for stars in mask.all(len(table.columns)):
        rows: dict[tuple[Cell, ...], list[int]] = {}
        for record in range(n):
            rows.setdefault(starred(table, record, stars), []).append(record)
        choices = [
            [
                (sum(1 << one for one in chosen), loss.record(table, cells) * size)
                for size in range(k, len(fitting) + 1)
                for chosen in combinations(fitting, size)
                if all(
                    rules.allow_values([values[one] for one in chosen], values)
                    for _, values in table.sensitive
                )
            ]
            for cells, fitting in rows.items()
        ]
        options += [[one for row in choices for one in row]] if single_use else choices
    options = [choices for choices in options if choices]
    price = loss.suppressed(table)

    @cache
    def best(at: int, rest: int) -> Fraction | None:
        if at == len(options):
            if not rest:
                return Fraction(0)
            return price * rest.bit_count() if rest.bit_count() <= most_suppressed else None
        found = [best(at + 1, rest)]
        for chosen, cost in options[at]:
            if chosen & rest == chosen:
                after = best(at + 1, rest ^ chosen)
                if after is not None:
                    found.append(after + cost)
        return min((one for one in found if one is not None), default=None)

    return best(0, (1 << n) - 1)


def levels_loss(
    table: Table, loss: Loss, rules: Rules, k: int, levels: Sequence[int]
) -> tuple[Fraction, list[int]]:
    """Return the loss of levels, and the records in classes that break a rule."""
    rows = [
        tuple(c.at_level(record, level) for c, level in zip(table.columns, levels, strict=True))
        for record in range(table.n)
    ]
    left_out = []
    for record, row in enumerate(rows):
        alike = [other for other, one in enumerate(rows) if one == row]
        diverse = all(
            rules.allow_values([values[one] for one in alike], values)
            for _, values in table.sensitive
        )
        if len(alike) < k or not diverse:
            left_out.append(record)
    losses = [
        loss.record(table, table.stars if record in left_out else row)
        for record, row in enumerate(rows)
    ]
    return loss.total(losses), left_out


def group_on_levels(table: Table, loss: Loss, mask: Mask, group: Sequence[int]) -> Fraction | None:
    """Return the least loss of a class that shows every column on a level; None if none is allowed.

    A column on its highest level is a star to the mask.
    """
    columns = table.columns
    heights = [column.height if column.paths else 1 for column in columns]
    found = []
    for levels in product(*(range(height + 1) for height in heights)):
        stars = tuple(level == height for level, height in zip(levels, heights, strict=True))
        if not mask.allows(stars) or (all(stars) and not any(column.paths for column in columns)):
            continue
        rows = {
            tuple(c.at_level(record, level) for c, level in zip(columns, levels, strict=True))
            for record in group
        }
        if len(rows) == 1:
            found.append(loss.record(table, rows.pop()) * len(group))
    return min(found, default=None)


def best_levels(
    table: Table, loss: Loss, rules: Rules, k: int, most_suppressed: int
) -> Fraction | None:
    """Return the least loss of one level for every column; None if nothing is allowed."""
    heights = [range((column.height if column.paths else 1) + 1) for column in table.columns]
    found = [
        cost
        for levels in product(*heights)
        for cost, left_out in [levels_loss(table, loss, rules, k, levels)]
        if len(left_out) <= most_suppressed
    ]
    return min(found, default=None)
