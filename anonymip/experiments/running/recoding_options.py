"""Recodings with the options that an experiment gives them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from anonymip.errors import InputError, did_you_mean
from anonymip.objectives import Suppressions
from anonymip.recodings import PatternLevels, Recoding
from anonymip.recodings.masks.mask_sections import read_mask_section
from anonymip.recodings.registry import RECODINGS, find_recoding


class MadeRecoding(NamedTuple):
    """A recoding, and what its options say of the objective.

    Parameters
    ----------
    recoding
        The recoding.
    priced
        What stars cost; None if that is not said.
    """

    recoding: Recoding
    priced: Suppressions | None = None


def make_recoding(
    name: str, options: Mapping[str, Any], mask: Mapping[str, Any] | None = None
) -> MadeRecoding:
    """Return the recoding of a name with its options.

    Parameters
    ----------
    name
        Of the recoding.
    options
        Parameters of its class; of patterns also the keys of a section ``[mask]``.
    mask
        Such a section, which options replace key by key.

    Raises
    ------
    InputError
        If there is no such recoding, or it has no such option.
    """
    if name in ("pattern", "pattern-levels"):
        rules = {**(mask or {}), **options}
        suppression = bool(rules.pop("suppression", False))
        if name == "pattern":
            return MadeRecoding(*read_mask_section(rules, suppression=suppression))
        if suppression or rules.get("single_use"):
            raise InputError(
                "the recoding pattern-levels has neither suppression nor single_use",
                remedy="Leave them out, or use the recoding pattern",
            )
        made = read_mask_section(rules)
        return MadeRecoding(PatternLevels(made.recoding.mask), made.objective)
    if not options:
        return MadeRecoding(find_recoding(name))
    make = RECODINGS.get(name)
    known = [] if make is None else list(inspect.signature(make).parameters)
    for option in options:
        if option not in known:
            raise InputError(
                f"the recoding {name} has no option {option!r}",
                remedy=did_you_mean(option, known, f"Its options: {', '.join(known) or 'none'}"),
            )
    assert make is not None
    return MadeRecoding(make(**options))
