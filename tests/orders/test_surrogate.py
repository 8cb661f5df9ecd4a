"""Where directions are wanted, a loss without tables is stood in for by GCP."""

from __future__ import annotations

import pytest

from anonymip import GCP, census
from anonymip.orders.orders import find_order
from anonymip.orders.surrogate import with_surrogate_loss
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from tests.random_problems import LOSSES, PRODUCT


def test_losses_with_tables_stay() -> None:
    """Nothing is replaced that has tables."""
    problem = Problem(census(20, 3, seed=0), 2, objective=LOSSES["curved"].objective)
    assert with_surrogate_loss(problem) is problem


@pytest.mark.parametrize("name", ["neighbour", "variance+2opt"])
def test_orders_of_losses_without_tables_are_those_of_gcp(name: str) -> None:
    """The chain of neighbours and 2-opt look at GCP instead."""
    data = census(60, 4, seed=1)
    general = Problem(data, 3, objective=PRODUCT.objective)
    assert not general.compiled.has_tables
    assert with_surrogate_loss(general).compiled.has_tables
    plain = Problem(data, 3, objective=GCP())
    order = find_order(general, name, Budget())
    assert order.tolist() == find_order(plain, name, Budget()).tolist()
