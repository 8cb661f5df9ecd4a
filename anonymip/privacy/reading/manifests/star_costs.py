"""What a manifest declares of the costs of stars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonymip.privacy.reading.manifests.fields import number_of, refuse, value_of


@dataclass(frozen=True)
class StarCosts:
    """What the objective charges for cells that are not exact, if the manifest states it.

    Parameters
    ----------
    columns
        By column, 1 where nothing is said.
    patterns
        By the set of columns that are not exact, in place of the sum of theirs.
    """

    columns: Mapping[str, float]
    patterns: Mapping[frozenset[str], float]


def read_star_costs(objective: Mapping[str, Any], names: Sequence[str]) -> StarCosts | None:
    """Return the costs of stars that an objective of a manifest charges; None for others.

    Raises
    ------
    InputError
        If they are no costs of these columns.
    """
    if objective["name"] != "suppressions":
        return None
    costs = objective.get("costs", {})
    if not isinstance(costs, Mapping) or not set(costs) <= set(names):
        refuse("objective.costs", "is not an object of quasi-identifiers")
    columns = {name: number_of(costs, name, "objective.costs.") for name in costs}
    patterns: dict[frozenset[str], float] = {}
    listed = objective.get("pattern_costs", [])
    if not isinstance(listed, list) or not all(isinstance(entry, Mapping) for entry in listed):
        refuse("objective.pattern_costs", "is not a list of objects")
    for entry in listed:
        named = value_of(entry, "columns", list, "objective.pattern_costs.")
        if set(entry) != {"columns", "cost"} or not all(name in names for name in named):
            refuse("objective.pattern_costs", "holds something else than columns and their cost")
        patterns[frozenset(named)] = number_of(entry, "cost", "objective.pattern_costs.")
    return StarCosts(columns, patterns)
