"""Paths of a hierarchy of numbers: bands of growing width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from math import floor

from anonymip.errors import InputError


def paths_of_bands(
    values: Iterable[object], widths: Sequence[object], origin: object, root: str
) -> list[tuple[str, ...]]:
    """Return the path of each number through the bands that hold it to the root.

    Parameters
    ----------
    values
        The numbers, or texts of them; a number that comes again is left out.
    widths
        Of the bands of each level; each is a multiple of the one before.
    origin
        A number at which a band of each level begins.
    root
        Name of the whole.

    Raises
    ------
    InputError
        If something is no number, or the bands do not nest.

    Notes
    -----
    Computed in fractions, so that 0.3 lies in the band that begins at 0.3. Complexity: O(values
    times levels).
    """
    if isinstance(widths, str) or not isinstance(widths, Iterable):
        raise InputError("the widths of bands are no list", remedy="Write (5, 10, 20)")
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError("the values of bands are no list", remedy="Write range(0, 100)")
    steps, start = [_number(width, "a width") for width in widths], _number(origin, "the origin")
    _refuse_unnested(steps)
    numbers: dict[str, Fraction] = {}
    for value in values:
        numbers.setdefault(str(value), _number(value, "a value"))
    if not numbers:
        raise InputError("there are no values to put into bands", remedy="Give some numbers")
    whole = all(n.denominator == 1 for n in (*numbers.values(), *steps, start))
    if whole and steps[0] == 1:
        raise InputError(
            "bands of width 1 hold one whole number each", remedy="Begin with wider bands"
        )
    return [
        (text, *(_band(number, step, start, whole=whole) for step in steps), str(root))
        for text, number in numbers.items()
    ]


def _refuse_unnested(steps: Sequence[Fraction]) -> None:
    if not steps or min(steps) <= 0:
        raise InputError(
            "the widths of bands are none, or not above 0", remedy="Give widths such as (5, 10, 20)"
        )
    for narrow, wide in pairwise(steps):
        if wide <= narrow or (wide / narrow).denominator != 1:
            raise InputError(
                f"bands of width {_text(wide)} are not made of whole bands of width "
                f"{_text(narrow)}: levels must nest",
                remedy="Let each width be a multiple of the one before, as in (5, 10, 20)",
            )


def _band(number: Fraction, width: Fraction, origin: Fraction, *, whole: bool) -> str:
    """Return the label of the band that holds a number."""
    low = origin + width * floor((number - origin) / width)
    if whole:
        return f"{_text(low)}..{_text(low + width - 1)}"
    return f"{_text(low)}..<{_text(low + width)}"


def _number(given: object, what: str) -> Fraction:
    """Return a number exactly as it is written."""
    try:
        if isinstance(given, bool):
            raise ValueError
        # NumPy's numbers are written like Python's.
        exact = Decimal(str(given))
        if not exact.is_finite():
            raise ValueError
    except (InvalidOperation, ValueError):
        raise InputError(
            f"{what} of bands is no finite number", remedy="Give numbers only", value=given
        ) from None
    return Fraction(exact)


def _text(number: Fraction) -> str:
    """Return a number as it is written in labels."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.15g}"
