"""Effort: the work that a computation may spend, where no clock ends it."""

from __future__ import annotations

from anonymip.errors import unknown_name

EFFORTS = ("quick", "normal", "thorough")  # from the least work to the most
#: Said where a lower effort ended the work; not where a thorough one goes on.
MAY_GAIN = "; thorough may gain more"


def check_effort(effort: str | None, *, limited: bool = False) -> str:
    """Return the effort that is meant, one of `EFFORTS`.

    `effort`: as the user gave it; None for the default. `limited`: whether a time limit ends the
    work: then the default is ``thorough``, else ``normal``. Raises InputError if there is no such
    effort.
    """
    if effort is None:
        return "thorough" if limited else "normal"
    if effort not in EFFORTS:
        raise unknown_name("effort", effort, EFFORTS)
    return effort
