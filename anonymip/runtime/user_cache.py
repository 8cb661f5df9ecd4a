"""Where this package keeps what it need not make or fetch twice."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path | None:
    """Return the package's folder in the user's cache; None where there is no home."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return home / "anonymip"
