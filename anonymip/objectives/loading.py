"""Objectives by name, and from a user's file."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import MappingProxyType

from anonymip.errors import InputError
from anonymip.objectives.penalties import GCP, LiangGCP, SetGCP, WeightedLoss
from anonymip.objectives.protocol import FunctionObjective, Objective

#: Built-in objectives by name.
OBJECTIVES = MappingProxyType(
    {
        built.name: built
        for built in (GCP(), SetGCP(), LiangGCP(), WeightedLoss(), WeightedLoss("binary"))
    }
)


def load_objective(text: str) -> Objective:
    """Return a built-in objective by name, or the one that ``FILE.py:NAME`` names.

    The file is executed; a plain function counts as an objective.

    Raises
    ------
    InputError
        If there is none, or the file cannot be executed.
    """
    if text in OBJECTIVES:
        return OBJECTIVES[text]
    path, colon, name = text.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise InputError(
            f"unknown objective {text!r}",
            remedy=f"Use {', '.join(OBJECTIVES)}, or FILE.py:NAME",
        )
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file}", remedy="Check the path of the objective")
    found = getattr(_execute(file), name, None)
    if isinstance(found, Objective):
        return found
    if isinstance(found, type) and issubclass(found, Objective):
        return _instance(file, found)
    if callable(found):
        return FunctionObjective(found)
    raise InputError(
        f"{file} defines no objective {name!r}", remedy="Name a function or an Objective of it"
    )


def _instance(file: Path, kind: type[Objective]) -> Objective:
    try:
        return kind()
    except TypeError as error:
        raise InputError(
            f"{file}: {kind.__name__} cannot be made without arguments: {error}",
            remedy="Name an instance of it, and give it name and loss",
        ) from error


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
        # Whatever the user's file raises is the user's to mend, not an internal error.
        del sys.modules[name]
        raise InputError(
            f"{file} fails with {type(error).__name__}: {error}", remedy="Correct the file"
        ) from error
    return module
