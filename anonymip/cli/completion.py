"""The names that a shell completes: of methods, recodings, objectives, solvers and instances.

Completion has to answer before a finger is lifted, so nothing is imported for it: built-in names
are read from the sources of their registries, those that installed packages register from their
entry points.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

_KEY = r'^        "([\w-]+)": '
#: The file of each registry, and what its entries look like.
REGISTRIES = {
    "methods": ("methods/built_in.py", r'^    (?:MethodSpec|_method)\(\s*"(?:\w+\.){0,2}([\w-]+)"'),
    "recodings": ("recodings/registry.py", _KEY),
    "objectives": ("objectives/losses/loading.py", _KEY),
    "solvers": ("solvers/registry.py", _KEY),
    "instances": ("instances/library/tables/named.toml", r'^name = "([\w-]+)"'),
}

Complete = Callable[[str], list[str]]


def built_in(registry: str) -> list[str]:
    """Return the names of a registry in its order; none where its source is not at hand."""
    file, entry = REGISTRIES[registry]
    try:
        text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    except OSError:
        return []
    return re.findall(entry, text, re.MULTILINE)


def _of(registry: str, *, extended: bool = True) -> Complete:
    """Return what completes a name of a registry, and of those that packages add to it."""

    def complete(incomplete: str) -> list[str]:
        outside = entry_points(group=f"anonymip.{registry}").names if extended else ()
        return [
            one for one in (*built_in(registry), *sorted(outside)) if one.startswith(incomplete)
        ]

    return complete


method = _of("methods")
recoding = _of("recodings")
objective = _of("objectives")
solver = _of("solvers")
# Where none fits, the shell completes the names of files.
instance = _of("instances", extended=False)


def effort(incomplete: str) -> list[str]:
    """Return what completes an effort."""
    from anonymip.effort import EFFORTS

    return [name for name in EFFORTS if name.startswith(incomplete)]


def methods(incomplete: str) -> list[str]:
    """Return what completes the last of several methods with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in method(last)]
