"""What a manifest promises beside k: diversity of sensitive values, limits of generalization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from anonymip.privacy.reading.manifests.fields import number_of, one_of, refuse, value_of


@dataclass(frozen=True)
class Diversity:
    """What the manifest promises of the sensitive values of every class.

    Parameters
    ----------
    l
        No value makes up more than 1/l of a class.
    distinct
        Every class has so many values at least.
    matches
        In a cover, the rows of a record among which the values are counted, all equally likely;
        None if their number differs, and for classes.
    t
        How far the values of a class may lie from those of all rows; None for any distance.
    ordered
        Whether numbers lie on a line.
    """

    l: Fraction  # noqa: E741 - the field's own name
    distinct: int
    matches: int | None = None
    t: Fraction | None = None
    ordered: bool = False


@dataclass(frozen=True)
class Limit:
    """A limit of generalization that the manifest promises.

    Parameters
    ----------
    attribute
        Name of the quasi-identifier.
    most
        The most that a cell may cover; None for two values, not named, that no cell may cover both.
    """

    attribute: str
    most: float | None


def read_diversity(given: object) -> Diversity | None:
    """Return the diversity that a manifest promises; None if it promises none.

    Raises
    ------
    InputError
        If it is no object of numbers that can be kept.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        refuse("diversity", "is not an object")
    share = number_of(given, "l", "diversity.")
    distinct = cast(int, value_of(given, "distinct", int, "diversity."))
    matches = None
    if given.get("matches") is not None:
        matches = cast(int, value_of(given, "matches", int, "diversity."))
    if share < 1 or distinct < 1 or (matches is not None and matches < 1):
        refuse("diversity", "asks for less than nothing")
    far = None if given.get("t") is None else number_of(given, "t", "diversity.")
    if far is not None and (not 0 <= far < 1 or matches is not None):
        refuse("diversity", "has a t that is not from 0 to below 1, or not of classes")
    ordered = given.get("ordered", False)
    if not isinstance(ordered, bool):
        refuse("diversity.ordered", "is neither true nor false")
    # The nearest fraction of ordinary size is what was meant: 3.3333333333333335 is 10/3.
    return Diversity(
        Fraction(share).limit_denominator(10**6),
        distinct,
        matches,
        None if far is None else Fraction(far).limit_denominator(10**6),
        ordered,
    )


def read_limits(given: object, names: Sequence[str]) -> tuple[Limit, ...]:
    """Return the limits that a manifest promises for the quasi-identifiers.

    Raises
    ------
    InputError
        If it is no list of rules for these columns.
    """
    if given is None:
        return ()
    if not isinstance(given, list):
        refuse("limits", "is not a list")
    return tuple(_limit(entry, names) for entry in given)


def _limit(entry: object, names: Sequence[str]) -> Limit:
    if not isinstance(entry, Mapping):
        refuse("limits", "holds something that is not an object")
    attribute = one_of(entry, "attribute", names, "limits.")
    if one_of(entry, "rule", ("cap", "apart"), "limits.") == "apart":
        return Limit(attribute, None)
    return Limit(attribute, number_of(entry, "most", "limits."))
