"""A library of instances that knows other figures than the one of the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from anonymip.instances.library import catalogue
from anonymip.instances.library.catalogue import LibraryEntry, find_entry, library


@pytest.fixture
def knowing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., LibraryEntry]:
    """Return what lets the library know other figures of an entry."""

    def know(name: str, **figures: Any) -> LibraryEntry:
        changed = replace(find_entry(name), **figures)
        entries = MappingProxyType({**library(), name: changed})
        monkeypatch.setattr(catalogue, "library", lambda: entries)
        return changed

    return know
