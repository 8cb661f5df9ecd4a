"""What a manifest declares of stars: the patterns that are allowed, the levels of the columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonymip.privacy.reading.manifests.fields import refuse

#: Keys of a mask in a manifest.
MASK_KEYS = frozenset(
    (
        "suppress_at_most",
        "never",
        "together",
        "at_most_one",
        "patterns",
        "allow_all_stars",
        "single_use",
    )
)
_RULES = ("suppress_at_most", "never", "together", "at_most_one")


@dataclass(frozen=True)
class Mask:
    """Which columns a row may show as stars.

    Parameters
    ----------
    suppress_at_most
        Most stars of a row; None for any number.
    never
        Columns without stars.
    together
        Groups of columns that are all stars, or none.
    at_most_one
        Groups of columns with one star at most.
    patterns
        The allowed sets of starred columns one by one, in place of rules; None if rules hold.
    allow_all_stars
        Whether a row of stars only is allowed beside.
    single_use
        Whether rows with stars in the same columns must look alike.
    """

    suppress_at_most: int | None = None
    never: frozenset[str] = frozenset()
    together: tuple[frozenset[str], ...] = ()
    at_most_one: tuple[frozenset[str], ...] = ()
    patterns: frozenset[frozenset[str]] | None = None
    allow_all_stars: bool = False
    single_use: bool = False

    def allows(self, starred: Collection[str], width: int) -> bool:
        """Return whether a row may show stars in exactly these of its `width` columns."""
        stars = frozenset(starred)
        if self.allow_all_stars and len(stars) == width:
            return True
        if self.patterns is not None:
            return stars in self.patterns
        return (
            (self.suppress_at_most is None or len(stars) <= self.suppress_at_most)
            and not stars & self.never
            and all(group <= stars or not group & stars for group in self.together)
            and all(len(group & stars) <= 1 for group in self.at_most_one)
        )


def read_mask(given: object, names: Sequence[str]) -> Mask:
    """Return the mask that a manifest declares.

    Parameters
    ----------
    given
        The manifest's entry.
    names
        The quasi-identifiers.

    Raises
    ------
    InputError
        If it is no mask of these columns.
    """
    if not isinstance(given, Mapping):
        refuse("mask", "is not an object")
    most = given.get("suppress_at_most")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        refuse("mask.suppress_at_most", "is not a whole number of at least 0")
    patterns = given.get("patterns")
    if patterns is not None and any(rule in given for rule in _RULES):
        refuse("mask", "has patterns and rules")
    return Mask(
        most,
        _columns("mask.never", given.get("never", []), names),
        _groups("mask.together", given.get("together", []), names),
        _groups("mask.at_most_one", given.get("at_most_one", []), names),
        None if patterns is None else frozenset(_groups("mask.patterns", patterns, names)),
        _truth(given, "allow_all_stars"),
        _truth(given, "single_use"),
    )


def read_levels(given: object, names: Sequence[str]) -> dict[str, int]:
    """Return the level of each column that a manifest declares.

    Raises
    ------
    InputError
        If it does not give a whole number of at least 0 for each of the columns.
    """
    if not isinstance(given, Mapping):
        refuse("levels", "is not an object")
    if set(given) != set(names):
        refuse("levels", "does not name each quasi-identifier once")
    for level in given.values():
        if isinstance(level, bool) or not isinstance(level, int) or level < 0:
            refuse("levels", "holds something else than whole numbers of at least 0")
    return dict(given)


def _columns(key: str, given: object, names: Sequence[str]) -> frozenset[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        refuse(key, "is not a list of columns")
    if not set(given) <= set(names):
        refuse(key, "names a column that is no quasi-identifier")
    return frozenset(given)


def _groups(key: str, given: object, names: Sequence[str]) -> tuple[frozenset[str], ...]:
    if not isinstance(given, list):
        refuse(key, "is not a list of lists of columns")
    return tuple(_columns(key, group, names) for group in given)


def _truth(given: Mapping[str, Any], key: str) -> bool:
    value = given.get(key)
    if not isinstance(value, bool):
        refuse(f"mask.{key}", "is missing" if value is None else "is not true or false")
    return value
