"""The arguments that forbid releases: diversity, caps, values that no cell may cover together."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from anonymip.errors import InputError

if TYPE_CHECKING:
    from anonymip.recodings import Apart, Cap, Diversity, Limit


@dataclass(frozen=True)
class Rules:
    """The options that forbid releases."""

    l_diversity: Annotated[
        float | None,
        typer.Option("--l-diversity", help="No sensitive value makes up more than 1/L of a class."),
    ] = None
    distinct_diversity: Annotated[
        int | None,
        typer.Option("--distinct-diversity", help="Distinct sensitive values in every class."),
    ] = None
    t_closeness: Annotated[
        float | None,
        typer.Option(
            "--t-closeness",
            help="How far the sensitive values of a class may lie from the table's.",
        ),
    ] = None
    ordered_closeness: Annotated[
        bool,
        typer.Option(
            "--ordered-closeness", help="Sensitive numbers lie on a line for --t-closeness."
        ),
    ] = False
    caps: Annotated[
        list[str] | None,
        typer.Option(
            "--cap", help="ATTRIBUTE=MOST: widest range, most values of a set, highest level."
        ),
    ] = None
    aparts: Annotated[
        list[str] | None,
        typer.Option("--apart", help="ATTRIBUTE=VALUE,VALUE: no published cell covers both."),
    ] = None

    def diversity(self) -> Diversity | None:
        """Return the diversity that every class must have; None asks for nothing."""
        asked = (self.l_diversity, self.distinct_diversity, self.t_closeness)
        if all(one is None for one in asked) and not self.ordered_closeness:
            return None
        from anonymip.recodings import Diversity

        return Diversity(
            l=1 if self.l_diversity is None else self.l_diversity,
            distinct=1 if self.distinct_diversity is None else self.distinct_diversity,
            t=self.t_closeness,
            ordered=self.ordered_closeness,
        )

    def limits(self) -> tuple[Limit, ...]:
        """Return the limits of generalization.

        Raises
        ------
        InputError
            If a text is no ATTRIBUTE=MOST or ATTRIBUTE=VALUE,VALUE.
        """
        return (*map(_cap, self.caps or ()), *map(_apart, self.aparts or ()))


def _cap(text: str) -> Cap:
    attribute, equals, most = text.rpartition("=")
    try:
        number = float(most)
    except ValueError:
        number = None
    if not (equals and attribute) or number is None:
        raise InputError(f"cap {text!r} is not ATTRIBUTE=MOST", remedy="For example --cap age=10")
    from anonymip.recodings import Cap

    return Cap(attribute, number)


def _apart(text: str) -> Apart:
    attribute, equals, listed = text.partition("=")
    try:
        values = next(csv.reader([listed], strict=True), [])
    except csv.Error:
        values = []
    if not (equals and attribute) or len(values) != 2:
        raise InputError(
            "--apart is not ATTRIBUTE=VALUE,VALUE",
            remedy="For example --apart job=clerk,farmer; quote commas: --apart 'job=\"a,b\",c'",
            value=text,
        )
    from anonymip.recodings import Apart

    return Apart(attribute, *values)
