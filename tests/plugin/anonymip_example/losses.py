"""An objective that punishes wide cells more than proportionally."""

from __future__ import annotations

from typing import Any


def squared_spread(record: Any) -> Any:
    """Return the sum of the squared penalties of the cells."""
    return sum(record.spread[name] ** 2 for name in record.attributes)
