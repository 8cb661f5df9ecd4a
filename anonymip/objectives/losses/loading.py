"""Objectives by name, from a user's file, from installed packages; the attributes they read."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError, UnsupportedObjective, unknown_name
from anonymip.extensions import Extensions
from anonymip.instances import Attribute, Hierarchy, Microdata
from anonymip.instances.attribute import Kind
from anonymip.objectives.language.protocol import FunctionObjective, MembersObjective, Objective
from anonymip.objectives.language.record import Feature
from anonymip.objectives.losses.penalties import (
    GCP,
    Bottleneck,
    HierarchyLoss,
    LeafLoss,
    LiangGCP,
    SetGCP,
    Suppressions,
    WeightedLoss,
)
from anonymip.objectives.losses.squared_error import SSE

#: Built-in objectives by name.
OBJECTIVES: Mapping[str, Objective | MembersObjective] = MappingProxyType(
    {
        "gcp": GCP(),
        "set-gcp": SetGCP(),
        "liang-gcp": LiangGCP(),
        "weighted-loss": WeightedLoss(),
        "weighted-loss-binary": WeightedLoss("binary"),
        "hierarchy-loss": HierarchyLoss(),
        "leaf-loss": LeafLoss(),
        "suppressions": Suppressions(),
        "bottleneck-gcp": Bottleneck(),
        "sse": SSE(),
    }
)


def load_objective(text: str) -> Objective | MembersObjective:
    """Return an objective by name, or the one that ``FILE.py:NAME`` names.

    The name is that of a built-in objective or of one that an installed package registers. The
    file is executed; a plain function counts as an objective.

    Raises
    ------
    InputError
        If there is none, or file or package cannot be used.
    """
    if text in OBJECTIVES:
        return OBJECTIVES[text]
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py"):
        if not os.path.isfile(path):
            raise InputError(f"there is no file {path}", remedy="Check the path of the objective")
        found = _as_objective(getattr(_execute(Path(path)), name, None), path)
        if found is None:
            raise InputError(
                f"{path} defines no objective {name!r}",
                remedy="Name a function or an Objective of it",
            )
        return found
    registered = _OUTSIDE.find(text)
    if registered is None:
        known = (*OBJECTIVES, *_OUTSIDE.all())
        raise unknown_name("objective", text, known, more=", or FILE.py:NAME")
    return registered


def _as_objective(found: object, place: str) -> Objective | MembersObjective | None:
    """Return an instance, an instance of a class, or a function as an objective; else None."""
    if isinstance(found, Objective | MembersObjective):
        return found
    if isinstance(found, type) and issubclass(found, Objective | MembersObjective):
        try:
            return found()
        except TypeError as error:
            raise InputError(
                f"{place}: {found.__name__} cannot be made without arguments: {error}",
                remedy="Name an instance of it, and give it name and loss",
            ) from error
    return FunctionObjective(found) if callable(found) else None


def _read(name: str, load: Callable[[], object]) -> Objective | MembersObjective:
    """Return the objective that an entry point registers."""
    found = load()
    read = _as_objective(found, name)
    if read is None:
        raise InputError(
            f"it registers an object of type {type(found).__name__}",
            remedy="Register an Objective, a class of objectives, or a function",
        )
    if read.name != name:
        raise InputError(
            f"the objective calls itself {read.name!r}", remedy="Register it by this name"
        )
    return read


_OUTSIDE = Extensions("anonymip.objectives", "objective", _read, lambda: frozenset(OBJECTIVES))


def _execute(file: Path) -> object:
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]
    name = f"anonymip_objective_{digest}"
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None or specification.loader is None:
        raise InputError(f"{file} is no Python file", remedy="Give a .py file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        # Whatever the user's file raises is for the user to correct, not an internal error.
        del sys.modules[name]
        raise InputError(
            f"{file} fails with {type(error).__name__}: {error}", remedy="Correct the file"
        ) from error
    return module


#: Features that only one kind of attribute has; all others are read of a numeric one.
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("width", "lower", "upper"), "numeric"),
    **dict.fromkeys(("level", "height"), "hierarchical"),
    "distinct": "categorical",
}
#: What stands for all attributes where a function goes through whatever there is.
_ANY: dict[str, Kind] = {"number": "numeric", "category": "categorical"}
_ROWS, _GROUPS = 12, ("low", "low", "low", "mid", "mid", "high", "high")


class _Recorder:
    """Looks like a published record, or like the members of classes, of any table."""

    attributes = tuple(_ANY)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.asked: dict[str, set[str]] = {}
        self._shape = shape

    def __getattr__(self, feature: str) -> Feature:
        """Return a feature that has a value for any attribute, and notes who is asked for."""
        if feature.startswith("_"):
            raise AttributeError(feature)
        constant = {"kind": "numeric", "weight": 1.0, "domain_size": 2}
        value = constant.get(feature, np.full(self._shape, 0.5))

        def read(name: str) -> Any:
            self.asked.setdefault(name, set()).add(feature)
            return value

        return Feature(self.attributes, read)


def attributes_read(objective: Objective | MembersObjective) -> dict[str, Kind]:
    """Return name and kind of the attributes that an objective reads, in the order of reading.

    The function is called with a record that has whatever attribute it is asked for. The kind is
    what the features read allow; an objective that goes through all attributes there are sees one
    of each of two kinds. Raises UnsupportedObjective if the function fails on such a record.
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
    return {
        name: next(
            (kind for feature, kind in _KINDS.items() if feature in features),
            _ANY.get(name, "numeric"),
        )
        for name, features in recorder.asked.items()
    }


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
            tree = Hierarchy(tuple((f"v{code}", group, "*") for code, group in enumerate(_GROUPS)))
            hierarchy = tree if kind == "hierarchical" else None
            attributes.append(Attribute(name, kind, hierarchy=hierarchy))
    return Microdata(pd.DataFrame(columns), tuple(attributes))
