"""Random small pattern problems with an oracle that tries every way to give out the patterns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations_with_replacement, product

import pandas as pd
from hypothesis import strategies as st

from anonymip import Attribute, Diversity, Mask, Microdata, PatternGuided, Problem, Suppressions

NAMES = "abcd"


@dataclass(frozen=True)
class PatternCase:
    """A table of texts, a mask, and what is asked."""

    rows: tuple[tuple[str, ...], ...]  # the records
    sensitive: tuple[str, ...]  # a sensitive value for each
    k: int  # records that must look alike
    mask: Mask  # the patterns
    costs: tuple[float, ...]  # cost of a star by column
    #: As in the recoding and the problem.
    single_use: bool = False
    suppression: bool = False
    diversity: Diversity | None = None
    most: int | None = None  # records that may be suppressed at most
    price: float | None = None  # what each of them costs; None for a row of stars

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quasi-identifiers."""
        return tuple(NAMES[: len(self.rows[0])])

    def problem(self) -> Problem:
        """Return the problem."""
        frame = pd.DataFrame(list(self.rows), columns=list(self.names))
        frame["s"] = list(self.sensitive)
        data = Microdata(
            frame, tuple(Attribute(name, "categorical") for name in self.names), sensitive=("s",)
        )
        return Problem(
            data,
            self.k,
            PatternGuided(self.mask, self.single_use, self.suppression, self.most, self.price),
            Suppressions(dict(zip(self.names, map(float, self.costs), strict=True))),
            self.diversity,
        )

    @cached_property
    def patterns(self) -> tuple[tuple[bool, ...], ...]:
        """The patterns, tried one by one."""
        listed = []
        for stars in product((False, True), repeat=len(self.names)):
            chosen = {name for name, star in zip(self.names, stars, strict=True) if star}
            if self._keeps_rules(chosen) or (self.mask.allow_all_stars and all(stars)):
                listed.append(stars)
        return tuple(listed)

    def _keeps_rules(self, chosen: set[str]) -> bool:
        mask = self.mask
        if mask.patterns is not None:
            return any(chosen == set(pattern) for pattern in mask.patterns)
        most = len(self.names) if mask.suppress_at_most is None else mask.suppress_at_most
        return (
            len(chosen) <= most
            and not chosen & set(mask.never)
            and all(len(chosen & set(group)) in (0, len(group)) for group in mask.together)
            and all(len(chosen & set(group)) <= 1 for group in mask.at_most_one)
        )

    def allows(self, given: Sequence[tuple[bool, ...] | None]) -> bool:
        """Return whether a pattern for each record, None for a suppressed one, is allowed."""
        if self.most is not None and sum(stars is None for stars in given) > self.most:
            return False
        shown: Counter[tuple[str, ...]] = Counter()
        values: dict[tuple[str, ...], Counter[str]] = {}
        serves: dict[tuple[bool, ...], set[tuple[str, ...]]] = {}
        for row, secret, stars in zip(self.rows, self.sensitive, given, strict=True):
            if stars is None:
                if not self.suppression:
                    return False
                continue
            cells = tuple("*" if star else cell for cell, star in zip(row, stars, strict=True))
            shown[cells] += 1
            values.setdefault(cells, Counter())[secret] += 1
            serves.setdefault(stars, set()).add(cells)
        if any(count < self.k for count in shown.values()):
            return False
        if self.single_use and any(len(cells) > 1 for cells in serves.values()):
            return False
        if self.diversity is None:
            return True
        share = Fraction(1) / Fraction(self.diversity.l)
        return all(
            max(own.values()) <= share * sum(own.values())
            and len(own) >= self.diversity.distinct
            and (self.diversity.t is None or self.distance(own) <= Fraction(str(self.diversity.t)))
            for own in values.values()
        )

    def distance(self, own: Counter[str]) -> Fraction:
        """Return how far the shares of sensitive values are from those of the table."""
        asked = self.diversity
        assert asked is not None
        table = Counter(self.sensitive)
        numbers = all(value.isdigit() for value in table)
        apart = [
            Fraction(own[value], sum(own.values())) - Fraction(table[value], len(self.rows))
            for value in sorted(table)
        ]
        if asked.ordered and numbers:
            moved = [abs(sum(apart[: at + 1], Fraction(0))) for at in range(len(apart))]
            return sum(moved, Fraction(0)) / max(1, len(table) - 1)
        return sum(map(abs, apart), Fraction(0)) / 2

    def loss(self, given: Sequence[tuple[bool, ...] | None]) -> float:
        """Return what the stars cost."""
        whole = float(sum(self.costs)) if self.price is None else self.price
        return sum(
            whole
            if stars is None
            else float(sum(cost for cost, star in zip(self.costs, stars, strict=True) if star))
            for stars in given
        )

    def optimum(self) -> float | None:
        """Return the least loss; None if nothing is allowed."""
        return min(map(self.loss, self.releases()), default=None)

    def releases(self) -> Iterator[list[tuple[bool, ...] | None]]:
        """Try every assignment, but for those that only exchange records that are alike."""
        choices = [*self.patterns, *([None] if self.suppression else [])]
        alike: dict[object, list[int]] = {}
        for at, record in enumerate(zip(self.rows, self.sensitive, strict=True)):
            alike.setdefault(record, []).append(at)
        order = [*chain(*alike.values())]
        places = sorted(range(len(order)), key=order.__getitem__)
        tried = product(
            *(combinations_with_replacement(choices, len(group)) for group in alike.values())
        )
        assignments = ([*chain(*parts)] for parts in tried)
        in_order = ([given[place] for place in places] for given in assignments)
        return (given for given in in_order if self.allows(given))


@st.composite
def masks(draw: st.DrawFn, names: Sequence[str]) -> Mask:
    """Return masks, by rules or by listed patterns, that do not contradict themselves."""
    allow_all_stars = draw(st.booleans())
    subsets = st.lists(st.sampled_from(list(names)), unique=True).map(sorted).map(tuple)
    if draw(st.booleans()):
        listed = draw(st.lists(subsets, min_size=1, max_size=4, unique=True))
        return Mask(patterns=tuple(listed), allow_all_stars=allow_all_stars)
    groups = draw(st.permutations(list(names)))
    pair = (tuple(sorted(groups[:2])),)
    together = pair if draw(st.booleans()) else ()
    most = draw(st.sampled_from([None, 0, 2, 3]) if together else st.sampled_from([None, 0, 1, 2]))
    return Mask(
        suppress_at_most=most,
        never=tuple(groups[2:3]) if draw(st.booleans()) else (),
        together=together,
        at_most_one=pair if not together and draw(st.booleans()) else (),
        allow_all_stars=allow_all_stars,
    )


@st.composite
def pattern_cases(
    draw: st.DrawFn,
    *,
    most_records: int = 6,
    most_columns: int = 3,
    most_patterns: int = 4,
    ruled: bool = False,
    close: bool = False,
) -> PatternCase:
    """Return small cases whose optimum an oracle can still find.

    `draw`: hypothesis's. `most_records, most_columns, most_patterns`: sizes; patterns to the power
    of records assignments are tried. `ruled`: whether single use, suppression and diversity occur.
    `close`: whether every case asks for t-closeness, of texts or of numbers.
    """
    m = draw(st.integers(2, most_columns))
    n = draw(st.integers(2, most_records))
    row = st.tuples(*[st.sampled_from("xy" if a else "xyz") for a in range(m)])
    rows = tuple(draw(st.lists(row, min_size=n, max_size=n)))
    case = PatternCase(
        rows,
        tuple(draw(st.lists(st.sampled_from("pq"), min_size=n, max_size=n))),
        draw(st.integers(2, min(n, 3))),
        draw(masks(NAMES[:m])),
        tuple(draw(st.lists(st.integers(1, 3), min_size=m, max_size=m))),
        single_use=ruled and draw(st.booleans()),
        suppression=ruled and draw(st.booleans()),
    )
    if len(case.patterns) > most_patterns:
        chosen = draw(st.permutations(list(case.patterns)))[:most_patterns]
        named = tuple(
            tuple(name for name, star in zip(case.names, stars, strict=True) if star)
            for stars in chosen
        )
        case = replace(case, mask=Mask(patterns=named))
    if ruled and case.suppression and draw(st.booleans()):
        asked = draw(st.sampled_from([Diversity(l=2), Diversity(distinct=2), Diversity(l=1.5)]))
        case = replace(case, diversity=asked)
    if close:
        t = draw(st.sampled_from([0, 0.1, 0.25, 0.5]))
        asked = Diversity(t=t, ordered=draw(st.booleans()))
        digits = draw(st.lists(st.sampled_from("123"), min_size=n, max_size=n))
        values = tuple(digits) if draw(st.booleans()) else case.sensitive
        case = replace(case, sensitive=values, diversity=asked)
    return case


#: Cases without rules, with those of patterns, and with closeness.
every_case = st.one_of(
    pattern_cases(), pattern_cases(ruled=True), pattern_cases(ruled=True, close=True)
)
