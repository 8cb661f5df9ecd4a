"""Masks, which say what cells of a record may be suppressed together, and releases by them.

Every record is published through a pattern of a mask. Masks are read from settings, too: the keys
of the section ``[mask]`` of a schema file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Description, Patterns
from anonymip.errors import InputError, InvalidAssignment, argument, is_number
from anonymip.instances.columns import unknown_column
from anonymip.objectives.losses.penalties import Suppressions
from anonymip.recodings.equivalence import check_classes
from anonymip.recodings.recoding import (
    PricedSuppression,
    ProblemView,
    SizeLimit,
    as_kind,
    check_suppressed,
)
from anonymip.recodings.rows import describe_levels, equal_rows, level_maps
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


@dataclass(frozen=True)
class _Masked:
    """The fields of :class:`PatternGuided` that come before those of suppression."""

    mask: Mask = field(default_factory=Mask)
    single_use: bool = False


@dataclass(frozen=True, repr=False)
class PatternGuided(PricedSuppression, _Masked):
    """Every record shows exact values and stars, by a pattern of the mask; k rows look alike [1]_.

    Parameters
    ----------
    mask
        The patterns that are allowed.
    single_use
        Whether all records of one pattern must look alike: a pattern serves one output row only,
        as in the earlier model [2]_.
    suppression, most_suppressed, suppression_price
        Whether records may be suppressed as a whole without k - 1 companions, how many at most, and
        at which price: see :class:`~anonymip.EquivalenceClasses`. Then whoever finds a person in no
        class knows that she is among them.

    Raises
    ------
    InputError
        If a limit or a price is none.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Definition 2.
    .. [2] R. Bredereck, A. Nichterlein, R. Niedermeier, G. Philip: Pattern-Guided Data
       Anonymization and Clustering, MFCS 2011.
    """

    keeps_closeness: ClassVar[bool] = True  # the check asks for t-closeness
    name = "pattern"

    def stars(self, problem: ProblemView) -> Flags:
        """Return the (p, m) patterns, true for stars."""
        return self.mask.stars(problem.microdata.names)

    def refuse_unfit(self, problem: ProblemView) -> None:
        """Refuse masks and losses that do not fit the table.

        Raises InputError if the mask names another column, there are limits, or a suppressed record
        has a price of its own where rows of stars only are no suppressed records.
        """
        stars = self.stars(problem)
        if self.suppression_price is not None and stars.all(axis=1).any():
            raise InputError(
                f"{argument('suppression_price')} would be charged for rows of stars only too, "
                "which the mask allows",
                remedy="Leave the price out, or the rows of stars only",
            )
        if problem.limits:
            raise InputError(
                "limits of generalization have no meaning where cells are exact or stars",
                remedy="Use the rules of the mask, such as never",
            )

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the patterns: of the mask, k rows that look alike, diverse.

        Raises InvalidAssignment naming a record and the rule that it breaks.
        """
        classes = self.classes(problem, assignment)
        assert isinstance(assignment, Patterns)
        check_suppressed(self, assignment.index == SUPPRESSED)
        check_classes(problem, classes, "looks like {} records, itself included")
        if self.single_use:
            kept = assignment.index != SUPPRESSED
            pairs = np.unique(
                np.stack([assignment.index[kept], classes.labels[kept]], axis=1), axis=0
            )
            twice = np.flatnonzero(np.diff(pairs[:, 0]) == 0)
            if len(twice):
                raise InvalidAssignment(
                    int(np.argmax(classes.labels == pairs[twice[0], 1])),
                    "has a pattern that serves two different rows, and each may serve one",
                )

    def classes(self, problem: ProblemView, assignment: Assignment) -> Classes:
        """Return the classes of records that look alike; suppressed ones are in none.

        Raises InvalidAssignment if the assignment is none of patterns of the mask for the table's
        records.
        """
        hidden = self._hidden(problem, assignment)
        assert isinstance(assignment, Patterns)
        cells = np.where(hidden, -1, problem.microdata.codes)
        return equal_rows(cells, assignment.index == SUPPRESSED)

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: exact values and stars."""
        hidden, microdata = self._hidden(problem, assignment), problem.microdata
        cells = [each.cells[:1] for each in level_maps(microdata)]
        return describe_levels(microdata, cells, np.zeros(hidden.shape, np.int64), hidden)

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return no limit: rows that look alike anyway are one class."""
        return SizeLimit(None, "all records that look alike are one class")

    def _hidden(self, problem: ProblemView, assignment: Assignment) -> Flags:
        """Return (n, m) the cells that are stars."""
        index = as_kind(Patterns, assignment, problem.microdata).index
        stars = self.stars(problem)
        if len(index) and index.max() >= len(stars):
            raise InvalidAssignment(
                int(index.argmax()), f"has pattern {index.max()} of a mask of {len(stars)}"
            )
        return np.concatenate([stars, np.ones((1, stars.shape[1]), np.bool_)])[index]


class MaskSection(NamedTuple):
    """What a section asks for."""

    recoding: PatternGuided
    objective: Suppressions | None  # what stars cost; None if nothing is said


def read_mask_section(given: Mapping[str, Any], **suppression: Any) -> MaskSection:
    """Return the patterns and costs of a section ``[mask]``.

    `given`: any of ``suppress_at_most``, ``never``, ``together``, ``at_most_one``,
    ``allow_all_stars``, ``patterns``, as :class:`Mask` takes them; ``single_use``; and ``costs``:
    by column, or by the columns of a pattern with commas between them. A name that holds a comma
    stands in double quotes. `suppression`: what :class:`PatternGuided` takes of suppression. Raises
    InputError if a rule contradicts another, a cost is none, or a key is unknown.

    >>> from anonymip.recodings.patterns import read_mask_section
    >>> asked = read_mask_section({"never": "sex", "costs": {"age": 2, "age,zip": 2.5}})
    >>> print(asked.recoding.mask, asked.objective.patterns)
    never sex {('age', 'zip'): 2.5}
    """
    rules = dict(given)
    costs = rules.pop("costs", {})
    single_use = rules.pop("single_use", False)
    if isinstance(rules.get("never"), str):
        # A single text is a list of one, as everywhere in a schema.
        rules["never"] = [rules["never"]]
    try:
        mask = Mask(**rules)
    except TypeError:
        known = (*Mask.__dataclass_fields__, "single_use", "costs")
        raise InputError(
            f"a mask has no {next(key for key in rules if key not in known)!r}",
            remedy=f"Known are {', '.join(known)}",
        ) from None
    return MaskSection(PatternGuided(mask, bool(single_use), **suppression), _suppressions(costs))


def listed_columns(text: str) -> tuple[str, ...]:
    """Return the columns that a text lists with commas; a name with a comma stands in quotes."""
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        names = []
    if not names or not all(names):
        raise InputError(
            f"{text!r} is no list of columns",
            remedy="Write age,sex; a name that holds a comma in double quotes",
        )
    return tuple(names)


def _suppressions(costs: Mapping[str, Any]) -> Suppressions | None:
    if not costs:
        return None
    named = {listed_columns(text): cost for text, cost in costs.items()}
    columns = {names[0]: cost for names, cost in named.items() if len(names) == 1}
    return Suppressions(columns, {names: named[names] for names in named if len(names) > 1})
