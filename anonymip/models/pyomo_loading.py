"""Imports Pyomo without the parts of SciPy that it imports too and that no model needs.

They take longer than Pyomo itself. The packages of models import this first.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_NEEDLESS = ("scipy.stats", "scipy.integrate")


class _StandIn(ModuleType):
    """In the place of a module while Pyomo is imported; another thread finds all of it there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.withdraw()
        return getattr(importlib.import_module(self.__name__), name)

    def withdraw(self) -> None:
        """Leave the place to the module itself."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def _load_pyomo() -> None:
    """Import that module of Pyomo which imports SciPy."""
    if "pyomo.common.dependencies" in sys.modules:
        return
    # Where SciPy is not loaded yet, Pyomo would import it later, by itself and with all parts.
    importlib.import_module("scipy")
    stand_ins = [_StandIn(name) for name in _NEEDLESS if name not in sys.modules]
    sys.modules.update({one.__name__: one for one in stand_ins})
    try:
        importlib.import_module("pyomo.common.dependencies")
    finally:
        for one in stand_ins:
            one.withdraw()


_load_pyomo()
