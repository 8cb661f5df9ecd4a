"""Quasi-identifying attributes: what a column means and how it is published."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, cast, get_args

from anonymip.errors import InputError, did_you_mean
from anonymip.instances.hierarchies.hierarchy import Hierarchy

Kind = Literal["numeric", "categorical", "hierarchical"]
Publish = Literal["range", "set", "node"]

_PUBLISH_OF_KIND: dict[str, tuple[Publish, ...]] = {
    "numeric": ("range", "set"),
    "categorical": ("set",),
    "hierarchical": ("node",),
}
#: Sums and products of weights stay numbers up to here.
_HEAVIEST = 1e100


@dataclass(frozen=True)
class Attribute:
    """One quasi-identifying attribute.

    Parameters
    ----------
    name
        Name of the column.
    kind
        ``"numeric"``, ``"categorical"`` or ``"hierarchical"``.
    domain
        Permissible values: ``(lowest, highest)`` of a numeric attribute, all values (compared as
        text) of a categorical one. None takes the observed values.
    weight
        Importance, at least 0; read by the objectives that weigh attributes. Only ratios count.
    integer
        Whether a numeric attribute takes whole numbers only.
    hierarchy
        The generalization hierarchy of a hierarchical attribute.
    publish
        Form of a generalized cell: ``"range"`` or ``"set"`` for numeric attributes, ``"set"`` for
        categorical, ``"node"`` for hierarchical ones. None takes the first of these.

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

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("an attribute has no name", remedy="Name every column")
        if self.kind not in get_args(Kind):
            raise InputError(
                f"attribute {self.name!r}: unknown kind {self.kind!r}",
                remedy=did_you_mean(self.kind, get_args(Kind))
                or f"Use one of {', '.join(get_args(Kind))}",
            )
        allowed = _PUBLISH_OF_KIND[self.kind]
        if self.publish is None:
            object.__setattr__(self, "publish", allowed[0])
        elif self.publish not in allowed:
            raise InputError(
                f"attribute {self.name!r}: a {self.kind} attribute cannot be published as "
                f"{self.publish!r}",
                remedy=f"Use {' or '.join(allowed)}",
            )
        if not _is_weight(self.weight):
            raise InputError(
                f"attribute {self.name!r}: weight is {self.weight!r}",
                remedy="A weight is a number of at least 0 and at most 1e100",
            )
        object.__setattr__(self, "weight", float(self.weight))
        if not isinstance(self.integer, bool):
            raise InputError(
                f"attribute {self.name!r}: integer is {self.integer!r}", remedy="Use true or false"
            )
        if self.integer and self.kind != "numeric":
            raise InputError(
                f"attribute {self.name!r}: integer is for numeric attributes",
                remedy="Leave integer out, or declare the attribute numeric",
            )
        if (self.hierarchy is None) == (self.kind == "hierarchical"):
            raise InputError(
                f"attribute {self.name!r}: a hierarchy belongs to a hierarchical attribute, "
                "and only to one",
                remedy="Give both kind='hierarchical' and hierarchy, or neither",
            )
        if self.hierarchy is not None and not isinstance(self.hierarchy, Hierarchy):
            raise InputError(
                f"attribute {self.name!r}: hierarchy is a {type(self.hierarchy).__name__}",
                remedy="Name its file in a schema, or give what read_hierarchy returns",
            )
        if self.domain is not None:
            object.__setattr__(self, "domain", self._checked_domain())

    def _checked_domain(self) -> tuple[object, ...]:
        domain = cast(Sequence[object], self.domain)
        if isinstance(domain, str) or not isinstance(domain, Iterable):
            raise InputError(
                f"attribute {self.name!r}: domain is a single value", remedy="Give a list of values"
            )
        if self.kind == "hierarchical":
            raise InputError(
                f"attribute {self.name!r}: the hierarchy is the domain", remedy="Leave domain out"
            )
        if self.kind == "categorical":
            texts = tuple(str(value) for value in domain)
            if not texts or len(set(texts)) < len(texts):
                raise InputError(
                    f"attribute {self.name!r}: domain is empty or names a value twice",
                    remedy="List every permissible value once",
                )
            return texts
        try:
            low, high = (float(cast(float, value)) for value in domain)
        except (TypeError, ValueError):
            raise InputError(
                f"attribute {self.name!r}: domain of a numeric attribute is not a pair of numbers",
                remedy="Give [lowest, highest]",
            ) from None
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise InputError(
                f"attribute {self.name!r}: domain has its lowest above its highest, or an "
                "infinite end",
                remedy="Give [lowest, highest] with finite numbers",
            )
        if self.integer and not (low.is_integer() and high.is_integer()):
            raise InputError(
                f"attribute {self.name!r}: domain of an integer attribute has a fractional end",
                remedy="Give whole numbers, or leave integer out",
            )
        return (low, high)

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers."""
        return self.kind == "numeric"


def _is_weight(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return bool(0 <= value <= _HEAVIEST)  # type: ignore[operator]
