"""Quasi-identifying attributes: what a column means and how it is published."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Literal, cast, get_args

from anonymip.errors import InputError, did_you_mean, is_number, unknown_name, within
from anonymip.instances.hierarchies.hierarchy import Calendar, Hierarchy
from anonymip.instances.scale import Scale, Unit, number_at, scale_of, unit_text
from anonymip.instances.table_format import MISSING_POLICIES

Kind = Literal["numeric", "categorical", "hierarchical", "date"]
Publish = Literal["range", "set", "node"]

_PUBLISH_OF_KIND: dict[str, tuple[Publish, ...]] = {
    "numeric": ("range", "set"),
    "categorical": ("set",),
    "hierarchical": ("node",),
    "date": ("range", "node"),
}
_HEAVIEST = 1e100  # sums and products of weights stay numbers up to here


@dataclass(frozen=True)
class Attribute:
    """One quasi-identifying attribute.

    Parameters
    ----------
    name
        Name of the column.
    kind
        ``"numeric"``, ``"categorical"``, ``"hierarchical"`` or ``"date"``. Losses count the units
        of a date as whole numbers.
    domain
        Permissible values: ``(lowest, highest)`` of a numeric attribute or of dates, all values
        (compared as text) of a categorical one. None takes the observed values.
    weight
        Importance, at least 0; read by the objectives that weigh attributes. Only ratios count.
    integer
        Whether a numeric attribute takes whole numbers only.
    hierarchy
        The generalization hierarchy of a hierarchical attribute. That of dates published as nodes
        is the calendar, which :class:`Microdata` fills in.
    publish
        Form of a generalized cell: ``"range"`` or ``"set"`` for numeric attributes, ``"set"`` for
        categorical, ``"node"`` for hierarchical ones, ``"range"`` or ``"node"`` for dates: a day,
        month, quarter, year or decade. None takes the first of these.
    precision
        How finely values are published, and counted in all losses: the width of a step of numbers,
        5 for ages 35 to 39 and 40 to 44; of dates ``"day"``, ``"month"``, ``"quarter"``,
        ``"year"`` or ``"decade"``. None is exact, and of dates the day.
    format
        Form of dates that are texts, by the codes of :meth:`datetime.datetime.strptime`, such as
        ``"%d.%m.%Y"``, which tell at least the unit that is published; None reads ISO 8601.
    at_most, at_least
        Where the highest and the lowest group begin: ``at_most=90`` counts all above 90 as 90 and
        publishes ``90+``; ``at_least=20`` counts all below 20 as 20 and publishes ``20-``. None
        for no such group.
    missing
        What becomes of missing values: a policy of :class:`TableFormat`. None is that of the table.

    Raises
    ------
    InputError
        If the parameters contradict each other.
    """

    name: str
    kind: Kind = "numeric"
    domain: Sequence[object] | None = None
    weight: float = 1.0
    integer: bool = False
    hierarchy: Hierarchy | None = None
    publish: Publish | None = None
    precision: Unit | float | None = None
    format: str | None = None
    at_most: object = None
    at_least: object = None
    missing: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("an attribute has no name", remedy="Name every column")
        if self.kind not in get_args(Kind):
            likely = did_you_mean(self.kind, get_args(Kind))
            raise self._error(
                f"unknown kind {self.kind!r}", likely or f"Use one of {', '.join(get_args(Kind))}"
            )
        allowed = _PUBLISH_OF_KIND[self.kind]
        if self.publish is None:
            object.__setattr__(self, "publish", allowed[0])
        elif self.publish not in allowed:
            raise self._error(
                f"a {self.kind} attribute cannot be published as {self.publish!r}",
                f"Use {' or '.join(allowed)}",
            )
        if not is_number(self.weight, 0, _HEAVIEST):
            remedy = "A weight is a number of at least 0 and at most 1e100"
            raise self._error(f"weight is {self.weight!r}", remedy)
        object.__setattr__(self, "weight", float(self.weight))
        if not isinstance(self.integer, bool):
            raise self._error(f"integer is {self.integer!r}", "Use true or false")
        if self.integer and self.kind != "numeric":
            remedy = "Leave integer out, or declare the attribute numeric"
            raise self._error("integer is for numeric attributes", remedy)
        on_calendar = self.kind == "date" and self.publish == "node"
        if not (on_calendar and isinstance(self.hierarchy, Calendar | None)) and (
            (self.hierarchy is None) == (self.kind == "hierarchical")
        ):
            raise self._error(
                "a hierarchy belongs to a hierarchical attribute, and only to one",
                "Give both kind='hierarchical' and hierarchy, or neither",
            )
        if self.hierarchy is not None and not isinstance(self.hierarchy, Hierarchy):
            raise self._error(
                f"hierarchy is a {type(self.hierarchy).__name__}",
                "Name its file in a schema, or give what read_hierarchy returns",
            )
        for end in ("at_most", "at_least"):
            given = getattr(self, end)
            if isinstance(given, date):  # as TOML and Python have it; manifests hold texts
                object.__setattr__(self, end, given.isoformat()[:10])
        is_scaled = self.kind in ("numeric", "date")
        if not is_scaled and any(value is not None for value in self.scaling.values()):
            raise self._error(
                "precision, format, at_most and at_least are for numbers and dates",
                "Leave them out, or declare the attribute numeric or a date",
            )
        if self.publish == "set" and self.is_numeric and not self.scale.is_plain:
            remedy = "Leave publish out, or precision, at_most and at_least"
            raise self._error("rounded and capped numbers are published as ranges", remedy)
        if self.missing is not None and self.missing not in MISSING_POLICIES:
            raise unknown_name(
                f"attribute {self.name!r}: policy for missing values",
                self.missing,
                MISSING_POLICIES,
            )
        if self.domain is not None:
            object.__setattr__(self, "domain", self._checked_domain())

    def _error(self, what: str, remedy: str) -> InputError:
        return InputError(f"attribute {self.name!r}: {what}", remedy=remedy)

    @property
    def scaling(self) -> dict[str, Any]:
        """What is declared of the scale, by name; None for what is not."""
        return {
            "precision": self.scale.precision if self.kind == "date" else self.precision,
            "format": self.format,
            "at_most": self.at_most,
            "at_least": self.at_least,
        }

    @cached_property
    def scale(self) -> Scale:
        """What numbers stand for the values."""
        ends = (self.at_most, self.at_least)
        with within(f"attribute {self.name!r}"):
            return scale_of(self.kind == "date", self.integer, self.precision, self.format, *ends)

    def _checked_domain(self) -> tuple[object, ...]:
        domain = cast(Sequence[object], self.domain)
        if isinstance(domain, str) or not isinstance(domain, Iterable):
            raise self._error("domain is a single value", "Give a list of values")
        if self.kind == "hierarchical":
            raise self._error("the hierarchy is the domain", "Leave domain out")
        if self.kind == "categorical":
            texts = tuple(str(value) for value in domain)
            if not texts or len(set(texts)) < len(texts):
                remedy = "List every permissible value once"
                raise self._error("domain is empty or names a value twice", remedy)
            return texts
        if self.kind == "date":
            return self._checked_dates(tuple(domain))
        try:
            low, high = (float(cast(float, value)) for value in domain)
        except (TypeError, ValueError):
            what = "domain of a numeric attribute is not a pair of numbers"
            raise self._error(what, "Give [lowest, highest]") from None
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise self._error(
                "domain has its lowest above its highest, or an infinite end",
                "Give [lowest, highest] with finite numbers",
            )
        if self.integer and not (low.is_integer() and high.is_integer()):
            raise self._error(
                "domain of an integer attribute has a fractional end",
                "Give whole numbers, or leave integer out",
            )
        return (low, high)

    def _checked_dates(self, domain: tuple[object, ...]) -> tuple[str, ...]:
        unit = cast(Unit, self.scale.precision)
        ends = [number_at(end, unit, self.format) for end in domain]
        numbers = [end for end in ends if end is not None]
        if len(domain) != 2 or len(numbers) != 2 or numbers[0] > numbers[1]:
            remedy = 'Give [earliest, latest], such as ["1930-01-01", "2020-12-31"]'
            raise self._error("domain of dates is not a pair of dates", remedy)
        return tuple(unit_text(int(number), unit) for number in numbers)

    @property
    def is_numeric(self) -> bool:
        """Whether numbers stand for the values, as they do for dates published as ranges."""
        return self.generalized == "numeric"

    @property
    def generalized(self) -> Literal["numeric", "categorical", "hierarchical"]:
        """The kind as losses and models see it: dates are numbers, or leaves of the calendar."""
        if self.kind == "date":
            return "numeric" if self.publish == "range" else "hierarchical"
        return self.kind

    @property
    def is_whole(self) -> bool:
        """Whether the numbers that stand for the values are whole, each of them permissible."""
        if self.kind == "date":
            return self.is_numeric
        return self.integer and self.scale.precision is None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Ends of a declared domain of numbers or dates, as they are given; None without one."""
        if self.domain is None or self.kind not in ("numeric", "date"):
            return None
        if self.kind == "date":
            unit = cast(Unit, self.scale.precision)
            low, high = (number_at(end, unit) for end in self.domain)
            return cast(float, low), cast(float, high)
        return float(cast(float, self.domain[0])), float(cast(float, self.domain[1]))
