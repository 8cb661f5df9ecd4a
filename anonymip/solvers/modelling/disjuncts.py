"""Disjuncts of a Pyomo model as what they are to a solver: rows with an indicator.

Pyomo's compiler knows blocks and no Disjuncts, so these pass for blocks while it reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anonymip.errors import InputError

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


@dataclass(frozen=True)
class Indicators:
    """Which binary variable decides whether a constraint counts.

    Parameters
    ----------
    of_block
        ``id`` of each active Disjunct (or, once asked for, of a block in it) -> its binary
        indicator variable; None for blocks outside.
    """

    of_block: dict[int, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(variable is not None for variable in self.of_block.values())

    def of(self, constraint: Any) -> Any:
        """Return the binary indicator variable of a constraint, None if it always counts."""
        return self._of(constraint.parent_block())

    def _of(self, block: Any) -> Any:
        if block is None:
            return None
        if id(block) not in self.of_block:
            self.of_block[id(block)] = self._of(block.parent_block())
        return self.of_block[id(block)]


@contextmanager
def disjuncts_as_blocks(model: ConcreteModel) -> Iterator[Indicators]:
    """Let all active Disjuncts of a model pass for blocks, and give the model back as it was.

    Raises
    ------
    InputError
        If the model has an active Disjunction, or a Disjunct within a Disjunct.
    """
    from pyomo.environ import Block
    from pyomo.gdp import Disjunct, Disjunction

    inside = (Block, Disjunct)
    for disjunction in model.component_data_objects(Disjunction, active=True, descend_into=inside):
        raise InputError(
            f"disjunction {disjunction.name} is a logical constraint that no solver reads",
            remedy="Apply a transformation first: TransformationFactory('gdp.bigm'), "
            "'gdp.hull'; or tie the indicators together by linear constraints",
        )
    found = list(model.component_data_objects(Disjunct, active=True, descend_into=inside))
    indicators = Indicators({id(data): data.binary_indicator_var for data in found})
    for data in found:
        if indicators._of(data.parent_block()) is not None:
            raise InputError(
                f"disjunct {data.name} lies within another one",
                remedy="Transform nested disjuncts with 'gdp.bigm' or 'gdp.hull' first",
            )
    components = {id(data.parent_component()): data.parent_component() for data in found}
    try:
        for component in components.values():
            component.parent_block().reclassify_component_type(component, Block)
        yield indicators
    finally:
        for component in components.values():
            component.parent_block().reclassify_component_type(component, Disjunct)
