"""Losses that most methods have no quick way for, beside those that random problems draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from anonymip import objective
from tests.brute_force import Cell
from tests.random_problems import Loss


@objective
def falling(record: Any) -> Any:
    """Reward wide ranges and large sets: not monotone."""
    return sum(1.0 - record.spread[name] for name in record.attributes)


def naive_falling(cells: Sequence[Cell]) -> float:
    """Return the same as `falling`."""
    return sum(1.0 - cell.spread for cell in cells)


@objective(monotone=True)
def product(record: Any) -> Any:
    """Charge what several attributes lose together: general, declared monotone.

    By a function that no proof knows.
    """
    total: Any = 1.0
    for name in record.attributes:
        total = total * (0.5 + record.spread[name])
    return total if len(record.attributes) == 1 else np.hypot(total, 0.0)


def naive_product(cells: Sequence[Cell]) -> float:
    """Return the same as `product`."""
    return math.prod(0.5 + cell.spread for cell in cells)


@objective
def swinging(record: Any) -> Any:
    """Charge what several attributes lose together, up and down: general, not monotone."""
    return np.cos(3.0 * sum(record.spread[name] for name in record.attributes)) + 1.0


def naive_swinging(cells: Sequence[Cell]) -> float:
    """Return the same as `swinging`."""
    return math.cos(3.0 * sum(cell.spread for cell in cells)) + 1.0


FALLING = Loss(falling, naive_falling)
PRODUCT = Loss(product, naive_product)
SWINGING = Loss(swinging, naive_swinging)
