"""Pattern-guided suppression: every record is published through a pattern of a mask.

With the masks of settings: the keys of the section ``[mask]`` of a schema file.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Description, Patterns
from anonymip.errors import InputError, InvalidAssignment, argument
from anonymip.objectives.losses.penalties import Suppressions
from anonymip.recodings.equivalence import check_classes
from anonymip.recodings.masks import Mask
from anonymip.recodings.recoding import ProblemView, SizeLimit, as_kind
from anonymip.recodings.rows import describe_levels, equal_rows
from anonymip.recodings.suppression import PricedSuppression, check_suppressed
from anonymip.runtime.arrays import Flags


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
        exact = [
            np.arange(len(level)) if attribute.hierarchy is None else microdata.leaves(a)
            for a, (attribute, level) in enumerate(
                zip(microdata.attributes, microdata.levels, strict=True)
            )
        ]
        cells = [values.astype(np.int32)[None] for values in exact]
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
    """What a section asks for.

    `objective`: what stars cost; None if nothing is said.
    """

    recoding: PatternGuided
    objective: Suppressions | None


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
    """Return the columns that a text lists with commas; a name with a comma stands in quotes.

    Raises InputError if quotes are not closed, or a name is empty.
    """
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
