"""Objectives by name, from a user's file, and from installed packages."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from anonymip.errors import InputError, unknown_name
from anonymip.extensions import Extensions
from anonymip.objectives.language.protocol import FunctionObjective, MembersObjective, Objective
from anonymip.objectives.losses.bottleneck import Bottleneck
from anonymip.objectives.losses.penalties import (
    GCP,
    HierarchyLoss,
    LeafLoss,
    LiangGCP,
    SetGCP,
    WeightedLoss,
)
from anonymip.objectives.losses.squared_error import SSE
from anonymip.objectives.losses.suppressions import Suppressions

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
        return _from_file(Path(path), name)
    registered = _OUTSIDE.find(text)
    if registered is None:
        raise unknown_name("objective", text, objective_names(), more=", or FILE.py:NAME")
    return registered


def objective_names() -> tuple[str, ...]:
    """Return the names of all objectives, importing the packages that register some."""
    return (*OBJECTIVES, *_OUTSIDE.all())


def _from_file(file: Path, name: str) -> Objective | MembersObjective:
    if not os.path.isfile(file):
        raise InputError(f"there is no file {file}", remedy="Check the path of the objective")
    found = _as_objective(getattr(_execute(file), name, None), str(file))
    if found is None:
        raise InputError(
            f"{file} defines no objective {name!r}", remedy="Name a function or an Objective of it"
        )
    return found


def _as_objective(found: object, place: str) -> Objective | MembersObjective | None:
    """Return an instance, an instance of a class, or a function as an objective; else None."""
    if isinstance(found, Objective | MembersObjective):
        return found
    if isinstance(found, type) and issubclass(found, Objective | MembersObjective):
        return _instance(place, found)
    return FunctionObjective(found) if callable(found) else None


def _instance(place: str, kind: type[Objective | MembersObjective]) -> Objective | MembersObjective:
    try:
        return kind()
    except TypeError as error:
        raise InputError(
            f"{place}: {kind.__name__} cannot be made without arguments: {error}",
            remedy="Name an instance of it, and give it name and loss",
        ) from error


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
