"""Frozen objects that come back from a pickle, or a deep copy, as they were made."""

from __future__ import annotations

from dataclasses import fields
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np


class Frozen:
    """Base of frozen dataclasses whose arrays are read-only, and whose mappings are.

    NumPy forgets in a pickle that an array is read-only: the copy could be changed, and kernels
    would be compiled once more for it. What is derived from the fields is not kept; it is derived
    again where it is asked for.
    """

    #: Attributes that are kept beside the fields.
    _kept_beside_fields: ClassVar[tuple[str, ...]] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, with mappings that can be pickled."""
        names = (*(one.name for one in fields(self)), *self._kept_beside_fields)  # type: ignore[arg-type]
        state = {name: getattr(self, name) for name in names}
        views = [name for name, value in state.items() if isinstance(value, MappingProxyType)]
        return {**state, **{name: dict(state[name]) for name in views}, "_views": views}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the fields, read-only again."""
        views = state["_views"]
        for name, value in state.items():
            if name != "_views":
                kept = MappingProxyType(value) if name in views else _read_only(value)
                object.__setattr__(self, name, kept)


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, tuple):
        for part in value:
            _read_only(part)
    return value
