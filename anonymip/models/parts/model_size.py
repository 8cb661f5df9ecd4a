"""How large a model may be."""

from __future__ import annotations

from anonymip.errors import InputError

#: Constraints beyond which building takes minutes and solving does not end.
LARGEST_MODEL = 3_000_000


def refuse_large(name: str, records: int, size: int, heuristics: str = "a heuristic") -> None:
    """Refuse a model with too many constraints.

    Parameters
    ----------
    name
        Of the formulation.
    records
        Of the table.
    size
        About how many constraints and choices the model would have.
    heuristics
        What to use in place of it.

    Raises
    ------
    InputError
        If the model would be too large.
    """
    if size > LARGEST_MODEL:
        raise InputError(
            f"the {name} model of {records} records has about {size:,} constraints and choices; "
            f"the limit is {LARGEST_MODEL:,}",
            remedy=f"Use {heuristics} with its bound, or fewer records",
        )
