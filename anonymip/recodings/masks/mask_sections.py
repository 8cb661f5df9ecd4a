"""Masks as settings give them: by the keys of the section ``[mask]`` of a schema file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any, NamedTuple

from anonymip.errors import InputError
from anonymip.objectives.losses.suppressions import Suppressions
from anonymip.recodings.masks.masks import Mask
from anonymip.recodings.patterns import PatternGuided


class MaskSection(NamedTuple):
    """What a section asks for.

    Parameters
    ----------
    recoding
        The patterns.
    objective
        What stars cost; None if nothing is said.
    """

    recoding: PatternGuided
    objective: Suppressions | None


def read_mask_section(given: Mapping[str, Any], *, suppression: bool = False) -> MaskSection:
    """Return the patterns and costs of a section ``[mask]``.

    Parameters
    ----------
    given
        Any of ``suppress_at_most``, ``never``, ``together``, ``at_most_one``, ``allow_all_stars``,
        ``patterns``, as :class:`Mask` takes them; ``single_use``; and ``costs``: by column, or by
        the columns of a pattern with commas between them. A name that holds a comma stands in
        double quotes.
    suppression
        Whether records may be suppressed as a whole.

    Raises
    ------
    InputError
        If a rule contradicts another, a cost is none, or a key is unknown.

    Examples
    --------
    >>> from anonymip.recodings.masks.mask_sections import read_mask_section
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
    return MaskSection(PatternGuided(mask, bool(single_use), suppression), _suppressions(costs))


def listed_columns(text: str) -> tuple[str, ...]:
    """Return the columns that a text lists with commas; a name with a comma stands in quotes.

    Raises
    ------
    InputError
        If quotes are not closed, or a name is empty.
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
    columns: dict[str, float] = {}
    patterns: dict[tuple[str, ...], float] = {}
    for text, cost in costs.items():
        names = listed_columns(text)
        if len(names) == 1:
            columns[names[0]] = cost
        else:
            patterns[names] = cost
    return Suppressions(columns, patterns)
