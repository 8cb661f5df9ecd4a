"""Hierarchies of codes: masked from one side, or cut at their separators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonymip.errors import InputError, argument, did_you_mean
from anonymip.instances.hierarchies.hierarchy import (
    Hierarchy,
    read_hierarchy,
    refuse_unknown_keys,
)

_SIDES = ("right", "left")


@dataclass(frozen=True)
class CodeRule:
    """How the codes of a column are made coarser; the column says which codes there are.

    Parameters
    ----------
    mask
        The side from which characters become stars, ``"right"`` or ``"left"``: 02138, 0213*, 021**.
    keep
        How many characters each level still shows, from many to few; empty for one less a level.
    separator
        In place of a mask: what stands between the parts of a code. E11.9 lies below E11.*.
    above
        What lies above the first parts of separated codes, as E10-E14 above E11; None for the
        root.
    root
        Name of the whole.

    Raises
    ------
    InputError
        If these contradict each other.

    Examples
    --------
    >>> from anonymip import CodeRule
    >>> CodeRule("right", keep=(3, 2)).hierarchy(["02138", "02215"]).paths
    (('02138', '021**', '02***', '*'), ('02215', '022**', '02***', '*'))
    >>> CodeRule(separator=".").hierarchy(["E11.9", "E11"]).paths
    (('E11', 'E11.*', '*'), ('E11.9', 'E11.*', '*'))
    """

    mask: str | None = None
    keep: tuple[int, ...] = ()
    separator: str | None = None
    above: Hierarchy | None = None
    root: str = "*"

    def __post_init__(self) -> None:
        if (self.mask is None) == (self.separator is None):
            raise InputError(
                "a hierarchy of codes has either a mask or a separator",
                remedy='Write {mask = "right"} or {separator = "."}, or give '
                f"{argument('mask', 'right')}",
            )
        if self.mask is not None and self.mask not in _SIDES:
            raise InputError(
                f"codes are masked from {self.mask!r}",
                remedy=did_you_mean(self.mask, _SIDES) or "Use right or left",
            )
        whole = all(type(one) is int and one > 0 for one in self.keep)
        if not whole or list(self.keep) != sorted(set(self.keep), reverse=True):
            raise InputError(
                "keep is no list of falling numbers of characters", remedy="Write keep = [3, 2]"
            )
        if self.separator == "" or (self.separator is not None and self.keep):
            raise InputError(
                "codes are cut at an empty separator, or at one and by numbers of characters",
                remedy='Write {separator = "."}, or {mask = "right", keep = [3, 2]}',
            )

    def hierarchy(self, values: Iterable[str], others: Sequence[str] = ()) -> Hierarchy:
        """Return the hierarchy of the codes that a column holds.

        `values`: the codes, in any order; empty ones are left out. `others`: values that are no
        codes and lie below the root: what stands for missing ones. Raises InputError if there are
        no codes, or one looks like a masked one. Complexity: O(total length of the codes times
        levels).
        """
        codes = sorted({value for value in values if value} - set(others))
        if not codes:
            raise InputError(
                "there are no codes for the hierarchy", remedy="Check the column, or leave it out"
            )
        paths = [(code, *self._levels(code)) for code in codes]
        return Hierarchy([*paths, *((one, self.root) for one in others)], observed=True)

    def _levels(self, code: str) -> list[str]:
        """Return what lies above a code, up to the root."""
        if self.separator is None:
            shown = [one for one in self.keep or range(len(code) - 1, 0, -1) if one < len(code)]
            stars = ["*" * (len(code) - one) for one in shown]
            if self.mask == "right":
                masked = [code[:one] + hidden for one, hidden in zip(shown, stars, strict=True)]
            else:
                masked = [hidden + code[len(hidden) :] for hidden in stars]
            return [*masked, self.root]
        parts = code.split(self.separator)
        # A code that others begin with is a value of its own beside them: E11 lies below E11.*.
        lowest = max(len(parts) - 1, 1)
        cut = [self.separator.join((*parts[:one], "*")) for one in range(lowest, 0, -1)]
        if self.above is None:
            return [*cut, self.root]
        places = {path[0]: path[1:] for path in self.above.paths}
        if parts[0] not in places:
            raise InputError(
                "a code begins with a part that the hierarchy above it lacks",
                remedy="Add the part there, or correct the code in the table",
                value=code,
            )
        return [*cut, *places[parts[0]]]


def rule_of_codes(given: Mapping[str, Any], folder: Any) -> CodeRule:
    """Return the rule that a table of a schema with ``mask`` or ``separator`` means."""
    known = {"mask": {"mask", "keep", "root"}, "separator": {"separator", "above", "root"}}
    kind = "mask" if "mask" in given else "separator"
    refuse_unknown_keys(given, f"codes by {kind}", known[kind])
    for key in ("mask", "separator", "above", "root"):
        if not isinstance(given.get(key, ""), str):
            raise InputError(f"{key} of a hierarchy is no text", remedy=f'Write {key} = "..."')
    keep = given.get("keep", [])
    if not isinstance(keep, list):
        raise InputError("keep is no list", remedy="Write keep = [3, 2]")
    above = None if "above" not in given else read_hierarchy(folder / given["above"])
    return CodeRule(
        given.get("mask"), tuple(keep), given.get("separator"), above, given.get("root", "*")
    )
