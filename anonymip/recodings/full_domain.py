"""Full-domain generalization: one level of generalization for each attribute of the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Assignment, Classes, Description, Levels
from anonymip.errors import InputError, InvalidAssignment, UnsupportedObjective
from anonymip.instances.microdata import Microdata
from anonymip.recodings.recoding import (
    MaySuppress,
    ProblemView,
    SizeLimit,
    as_kind,
    check_suppressed,
)
from anonymip.recodings.rows import STAR, describe_levels, equal_rows, level_maps
from anonymip.runtime.arrays import Codes, Flags


@dataclass(frozen=True)
class FullDomain(MaySuppress):
    """Every attribute is published at one level for all records, outliers suppressed [1]_ [2]_.

    Records that look alike at the chosen levels make a class. Classes of fewer than k records, or
    without the diversity asked for, are suppressed as a whole, and no others are: the levels alone
    say who is suppressed.

    Parameters
    ----------
    suppression
        Whether classes that break a rule may be suppressed; else the levels must leave none.
    most_suppressed
        Records that may be suppressed at most: a whole number, or a share of the table below 1;
        None: any number, at what the objective charges for a record of stars. A limit allows
        suppression.

    Raises
    ------
    InputError
        If the limit is neither.

    Notes
    -----
    Level l of a value is the l-th label of its path in the hierarchy, as the path is given; 0 is
    the value itself. A path that is too short ends in the root. An attribute without a hierarchy
    has two levels: exact, and a star.

    References
    ----------
    .. [1] P. Samarati: Protecting Respondents' Identities in Microdata Release, IEEE Transactions
       on Knowledge and Data Engineering 13(6), 2001.
    .. [2] L. Sweeney: Achieving k-Anonymity Privacy Protection Using Generalization and
       Suppression, International Journal on Uncertainty, Fuzziness and Knowledge-based Systems
       10(5), 2002.

    Examples
    --------
    >>> import anonymip
    >>> anonymip.FullDomain(most_suppressed=0.04).suppression
    True
    """

    keeps_closeness: ClassVar[bool] = True  # the check asks for t-closeness
    name = "full-domain"

    def refuse_unfit(self, problem: ProblemView) -> None:
        """Refuse losses and limits that do not fit.

        Raises UnsupportedObjective if the loss looks at the members of classes. Raises InputError
        if there are limits.
        """
        if problem.compiled.tier == "members":
            raise UnsupportedObjective(
                f"objective {problem.compiled.name!r} is a loss of classes that publish what their "
                "members share",
                remedy="Use a loss of published records, such as gcp or hierarchy-loss",
            )
        if problem.limits:
            raise InputError(
                "limits of generalization are not for levels of the whole table",
                remedy="Leave the levels that are not wanted out of the hierarchy",
            )

    def assignment(
        self, problem: ProblemView, levels: Sequence[int] | NDArray[np.integer]
    ) -> Levels:
        """Return the levels with the records that they leave to be suppressed.

        `problem`: what is asked. `levels`: one for each attribute, 0 for exact values. Raises
        InvalidAssignment if the levels are not those of the attributes.
        """
        nobody = np.zeros(problem.microdata.n, np.bool_)
        chosen = _levels_of(problem.microdata, Levels(np.asarray(levels), nobody))
        alike = equal_rows(published_cells(problem.microdata, chosen))
        return Levels(chosen.levels, outliers(problem, alike.labels))

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the levels: k records that look alike, diverse, no more suppressed than allowed.

        Raises InvalidAssignment naming a record and the rule that it breaks.
        """
        given = _levels_of(problem.microdata, assignment)
        cells = published_cells(problem.microdata, given)
        broken, left_out = outliers(problem, equal_rows(cells).labels), given.suppressed_records
        shown = broken & ~left_out
        if shown.any():
            record = int(np.argmax(shown))
            alike = int((cells == cells[record]).all(axis=1).sum())
            raise InvalidAssignment(
                record,
                f"looks like {alike} records, itself included, fewer than k = {problem.k}"
                if alike < problem.k
                else f"lies in a class without the {problem.diversity}",
            )
        if (left_out & ~broken).any():
            raise InvalidAssignment(
                int(np.argmax(left_out & ~broken)),
                "is suppressed, but the records that look like it break no rule",
            )
        check_suppressed(self, left_out)

    def classes(self, problem: ProblemView, assignment: Assignment) -> Classes:
        """Return the classes of records that look alike; suppressed ones are in none.

        Raises InvalidAssignment if the assignment is none of levels of the table's attributes.
        """
        given = _levels_of(problem.microdata, assignment)
        return equal_rows(published_cells(problem.microdata, given), given.suppressed_records)

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: the node at the level, the exact value, or a star.

        The members of a node are the observed values whose cell it is.
        """
        microdata = problem.microdata
        given = _levels_of(microdata, assignment)
        stars = published_cells(microdata, given) == STAR
        hidden = given.suppressed_records[:, None] | stars
        by_value = [cells[None] for cells in cells_by_value(microdata, given)]
        return describe_levels(microdata, by_value, np.zeros(hidden.shape, np.int64), hidden)

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return no limit: all records that look alike are one class."""
        return SizeLimit(None, "all records that look alike are one class")


def cells_by_value(microdata: Microdata, given: Levels) -> list[Codes]:
    """Return for each attribute (L,) the cell of each observed value at the given level."""
    maps = level_maps(microdata)
    return [given_map.cells[level] for given_map, level in zip(maps, given.levels, strict=True)]


def published_cells(microdata: Microdata, given: Levels) -> Codes:
    """Return (n, m) the cells of all records at the given levels, nobody suppressed.

    A cell is a node of the hierarchy; without one the code of the value, or -1 for a star.
    """
    by_value = cells_by_value(microdata, given)
    columns = [cells[microdata.codes[:, a]] for a, cells in enumerate(by_value)]
    return np.stack(columns, axis=1)


def outliers(problem: ProblemView, labels: NDArray[np.integer]) -> Flags:
    """Return (n,) the records of classes that break a rule.

    `labels`: (n,) class of every record, by the cells it would show.
    """
    sizes = np.bincount(labels)
    kept = sizes >= problem.k
    if problem.diversity is not None:
        large = np.flatnonzero(kept[labels])
        number = np.cumsum(kept) - 1
        kept[kept] = problem.diversity.kept_by(
            problem.microdata, large, number[labels[large]], int(kept.sum())
        )
    broken: Flags = ~kept[labels]
    return broken


def _levels_of(microdata: Microdata, assignment: Assignment) -> Levels:
    """Return the assignment, which must be levels of the table's attributes."""
    given = as_kind(Levels, assignment, microdata)
    if len(given.levels) != microdata.m:
        raise InvalidAssignment(
            None, f"gives {len(given.levels)} levels for {microdata.m} attributes"
        )
    for attribute, level in zip(microdata.attributes, given.levels.tolist(), strict=True):
        height = 1 if attribute.hierarchy is None else attribute.hierarchy.height
        if level > height:
            raise InvalidAssignment(
                None, f"gives {attribute.name!r} level {level}, its highest is {height}"
            )
    return given
