"""Which attributes an objective reads, found out without a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import UnsupportedObjective
from anonymip.instances import Attribute, Hierarchy, Microdata
from anonymip.instances.attribute import Kind
from anonymip.objectives.language.protocol import MembersObjective, Objective
from anonymip.objectives.losses.squared_error import SSE

#: Features that only one kind of attribute has; all others are read of a numeric one.
_KINDS: dict[str, Kind] = {
    "level": "hierarchical",
    "height": "hierarchical",
    "distinct": "categorical",
}
_NUMERIC_ONLY = ("width", "lower", "upper")
#: What stands for all attributes where a function goes through whatever there is.
_ANY: dict[str, Kind] = {"number": "numeric", "category": "categorical"}
_ROWS = 12


class _Answers(Mapping[str, Any]):
    """A feature that has a value for any attribute, and notes who is asked for."""

    def __init__(self, feature: str, asked: dict[str, set[str]], value: Any) -> None:
        self._feature = feature
        self._asked = asked
        self._value = value

    def __getitem__(self, name: str) -> Any:
        self._asked.setdefault(name, set()).add(self._feature)
        return self._value

    def __iter__(self) -> Iterator[str]:
        return iter(_ANY)

    def __len__(self) -> int:
        return len(_ANY)


class _Recorder:
    """Looks like a published record, or like the members of classes, of any table."""

    attributes = tuple(_ANY)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.asked: dict[str, set[str]] = {}
        self._shape = shape

    def __getattr__(self, feature: str) -> _Answers:
        if feature.startswith("_"):
            raise AttributeError(feature)
        constant = {"kind": "numeric", "weight": 1.0, "domain_size": 2}
        value = constant.get(feature, np.full(self._shape, 0.5))
        return _Answers(feature, self.asked, value)


def attributes_read(objective: Objective | MembersObjective) -> dict[str, Kind]:
    """Return name and kind of the attributes that an objective reads, in the order of reading.

    The function is called with a record that has whatever attribute it is asked for. The kind is
    what the features read allow; an objective that goes through all attributes there are sees
    one of each of two kinds.

    Raises
    ------
    UnsupportedObjective
        If the function fails on such a record.
    """
    if isinstance(objective, SSE):
        return {"number": "numeric"}
    if isinstance(objective, MembersObjective):
        recorder, call = _Recorder((2, 3)), objective.class_cost
    else:
        recorder, call = _Recorder((2,)), objective.loss  # type: ignore[assignment]
    try:
        call(recorder)  # type: ignore[arg-type]
    except Exception as error:
        raise UnsupportedObjective(
            f"objective {objective.name!r} fails without a table: {type(error).__name__}: {error}",
            remedy="Name an INSTANCE to look at it with",
        ) from error
    return {name: _kind(name, features) for name, features in recorder.asked.items()}


def _kind(name: str, features: set[str]) -> Kind:
    if features & set(_NUMERIC_ONLY):
        return "numeric"
    for feature, kind in _KINDS.items():
        if feature in features:
            return kind
    return _ANY.get(name, "numeric")


def small_table(kinds: Mapping[str, Kind]) -> Microdata:
    """Return a table of 12 records with attributes of the given names and kinds."""
    kinds = dict(kinds) or dict(_ANY)
    columns: dict[str, list[Any]] = {}
    attributes = []
    for place, (name, kind) in enumerate(kinds.items()):
        codes = [(number * (place + 2) + number // 3) % 7 for number in range(_ROWS)]
        if kind == "numeric":
            columns[name] = list(codes)
            attributes.append(Attribute(name, domain=(0, 6), integer=True))
        else:
            columns[name] = [f"v{code}" for code in codes]
            hierarchy = _small_hierarchy() if kind == "hierarchical" else None
            attributes.append(Attribute(name, kind, hierarchy=hierarchy))
    return Microdata(pd.DataFrame(columns), tuple(attributes))


def _small_hierarchy() -> Hierarchy:
    groups = ("low", "low", "low", "mid", "mid", "high", "high")
    return Hierarchy(tuple((f"v{code}", group, "*") for code, group in enumerate(groups)))
