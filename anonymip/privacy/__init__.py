"""What a release guarantees: verification by code of its own.

This room imports nothing of the package but its exceptions. The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anonymip.privacy.published import PublishedTable, read_release
    from anonymip.privacy.verification import Verification, verify

__all__ = ["PublishedTable", "Verification", "read_release", "verify"]

_HOMES = {
    "PublishedTable": "anonymip.privacy.published",
    "Verification": "anonymip.privacy.verification",
    "read_release": "anonymip.privacy.published",
    "verify": "anonymip.privacy.verification",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
