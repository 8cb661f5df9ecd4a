"""Masks: which cells of a record may be suppressed together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from anonymip.errors import InputError, is_number
from anonymip.instances.columns import unknown_column
from anonymip.runtime.arrays import Flags

MAX_PATTERNS = 1_000_000  # patterns that a mask may have: more cannot be looked at one by one


@dataclass(frozen=True)
class Mask:
    """A set of patterns, as a user thinks of it; a pattern names the columns that are stars.

    Without any rule all patterns are allowed. Rules add up: a pattern keeps all of them.

    Parameters
    ----------
    suppress_at_most
        Most stars of a pattern.
    never
        Columns that are always published.
    together
        Groups of columns that are suppressed together or not at all.
    at_most_one
        Groups of columns of which a pattern suppresses one at most.
    allow_all_stars
        Whether the pattern of stars only is allowed too, whatever the rules say: for outliers.
    patterns
        The patterns themselves, each the columns that it suppresses; then no rule is given.

    Raises
    ------
    InputError
        If the rules contradict each other, or name a column twice.

    Examples
    --------
    >>> from anonymip import Mask
    >>> mask = Mask(suppress_at_most=2, never=("sex",), together=(("zip", "town"),))
    >>> stars = mask.stars(("age", "sex", "zip", "town"))
    >>> stars.astype(int).tolist()
    [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1]]
    """

    suppress_at_most: int | None = None
    never: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    at_most_one: tuple[tuple[str, ...], ...] = ()
    allow_all_stars: bool = False
    patterns: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        most = self.suppress_at_most
        if most is not None and not is_number(most, 0, kind=Integral):
            raise InputError(
                f"suppress_at_most is {most!r}", remedy="Give a whole number of at least 0"
            )
        object.__setattr__(self, "never", _names("never", self.never))
        for rule in ("together", "at_most_one"):
            groups = tuple(_names(rule, group) for group in _groups(rule, getattr(self, rule)))
            for group in groups:
                if len(group) < 2:
                    raise InputError(
                        f"a group of {rule} names {len(group)} columns",
                        remedy="Name at least two columns",
                    )
            object.__setattr__(self, rule, groups)
        if self.patterns is not None:
            if self.rules():
                raise InputError(
                    "a mask has patterns and rules", remedy="Give either patterns, or rules"
                )
            listed = tuple(_names("patterns", one) for one in _groups("patterns", self.patterns))
            if not listed and not self.allow_all_stars:
                raise InputError(
                    "a mask without patterns allows no release",
                    remedy="Name at least one pattern; [] is the one without stars",
                )
            object.__setattr__(self, "patterns", listed)
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        for group in self.together:
            never = set(group) & set(self.never)
            if never and not set(group) <= set(self.never):
                raise InputError(
                    f"{sorted(never)[0]!r} is never suppressed, but together with others",
                    remedy="Add the others to never, or leave the group out",
                )
            for single in self.at_most_one:
                if len(set(group) & set(single)) > 1:
                    pair = sorted(set(group) & set(single))[:2]
                    raise InputError(
                        f"{pair[0]!r} and {pair[1]!r} are to be suppressed together, and at most "
                        "one of them",
                        remedy="Leave one of the two rules out",
                    )
            if self.suppress_at_most is not None and 0 < self.suppress_at_most < len(group):
                raise InputError(
                    f"{len(group)} columns are to be suppressed together, and "
                    f"{self.suppress_at_most} at most",
                    remedy="Allow more stars, or leave the group out",
                )

    def rules(self) -> dict[str, Any]:
        """Return the rules that are given, for manifests and texts."""
        given: dict[str, Any] = {}
        if self.suppress_at_most is not None:
            given["suppress_at_most"] = int(self.suppress_at_most)
        if self.never:
            given["never"] = list(self.never)
        for rule in ("together", "at_most_one"):
            if getattr(self, rule):
                given[rule] = [list(group) for group in getattr(self, rule)]
        return given

    def stars(self, names: Sequence[str]) -> Flags:
        """Return the (p, m) patterns over the given columns, true for stars.

        Patterns with fewer stars come first; among equals the ones whose first stars stand left.
        `names`: the m quasi-identifiers. Raises InputError if the mask names another column, or has
        too many patterns. Complexity: O(p m), and O(p m log p) for the order.
        """
        self._refuse_unknown(names)
        place = {name: at for at, name in enumerate(names)}
        m = len(names)
        if self.patterns is not None:
            rows = np.zeros((len(self.patterns), m), np.bool_)
            for at, pattern in enumerate(self.patterns):
                rows[at, [place[name] for name in pattern]] = True
        else:
            rows = self._grown(place, m)
        if self.allow_all_stars:
            rows = np.concatenate([rows, np.ones((1, m), np.bool_)])
        rows = np.unique(rows, axis=0)
        # The first column weighs most among patterns of as many stars.
        order = np.lexsort((*(~rows.T[::-1]), rows.sum(axis=1)))
        stars = np.ascontiguousarray(rows[order])
        stars.setflags(write=False)
        return stars

    def _grown(self, place: Mapping[str, int], m: int) -> Flags:
        """Return the patterns that keep the rules, grown by one group of columns after another."""
        most = m if self.suppress_at_most is None else min(int(self.suppress_at_most), m)
        singles = np.zeros((len(self.at_most_one), m), np.int64)
        for at, group in enumerate(self.at_most_one):
            singles[at, [place[name] for name in group]] = 1
        rows = np.zeros((1, m), np.bool_)
        for block in self._blocks(place, m):
            grown = rows.copy()
            grown[:, block] = True
            counts = grown.astype(np.int64)
            keep = (counts.sum(axis=1) <= most) & ((counts @ singles.T) <= 1).all(axis=1)
            rows = np.concatenate([rows, grown[keep]])
            if len(rows) > MAX_PATTERNS:
                raise InputError(
                    f"the mask has more than {MAX_PATTERNS:,} patterns",
                    remedy="Give suppress_at_most, or name columns in never or together",
                )
        return rows

    def _blocks(self, place: Mapping[str, int], m: int) -> list[list[int]]:
        """Return the columns that may be suppressed, as groups that are suppressed together."""
        group_of = list(range(m))
        for group in self.together:
            merged = {group_of[place[name]] for name in group}
            group_of = [min(merged) if label in merged else label for label in group_of]
        fixed = {group_of[place[name]] for name in self.never}
        labels = [label for label in dict.fromkeys(group_of) if label not in fixed]
        return [[a for a in range(m) if group_of[a] == label] for label in labels]

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        named = (self.never, *self.together, *self.at_most_one, *(self.patterns or ()))
        for group in named:
            for name in group:
                if name not in names:
                    raise unknown_column(name, "column of the mask", list(names))

    def __str__(self) -> str:
        if self.patterns is not None:
            described = [f"{len(self.patterns)} patterns"]
        else:
            described = [
                f"{rule.replace('_', ' ')} {_text(value)}" for rule, value in self.rules().items()
            ]
        if self.allow_all_stars:
            described.append("all stars")
        return "; ".join(described) or "all patterns"


def _text(value: Any) -> str:
    if isinstance(value, list):
        inner = [", ".join(one) if isinstance(one, list) else str(one) for one in value]
        return (" / " if any(isinstance(one, list) for one in value) else ", ").join(inner)
    return str(value)


def _groups(rule: str, given: object) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{rule} is {given!r:.40}", remedy="Give a list of lists of columns")
    groups = tuple(given)
    if any(isinstance(group, str) for group in groups):
        raise InputError(
            f"{rule} is a list of names", remedy="Give a list of lists of columns, one a group"
        )
    return groups


def _names(rule: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{rule} is {given!r:.40}", remedy="Give a list of columns")
    names = tuple(str(name) for name in given)
    if len(set(names)) < len(names):
        raise InputError(f"{rule} names a column twice", remedy="Name each column once")
    return names
