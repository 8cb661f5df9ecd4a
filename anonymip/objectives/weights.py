"""Whether a loss reads the weights of the attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.protocol import MembersObjective, Objective
from anonymip.objectives.language.record import Record
from anonymip.objectives.language.sampling import sampled_cells
from anonymip.objectives.losses.squared_error import SSE


class _Noting(Mapping[str, float]):
    """The weights by attribute, which note that they were read."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self.were_read = False

    def __getitem__(self, name: str) -> float:
        self.were_read = True
        return self._weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


def unread_weights(objective: Objective | MembersObjective, microdata: Microdata) -> str | None:
    """Return the caution that declared weights have no effect; None if they have, or are equal.

    What a user's function of the members of classes reads is not known.
    """
    weights = {attribute.name: attribute.weight for attribute in microdata.attributes}
    if len(set(weights.values())) < 2:
        return None
    if isinstance(objective, MembersObjective):
        if not isinstance(objective, SSE):
            return None
    else:
        domains = Domains.of(microdata)
        record = Record(domains, sampled_cells(domains, microdata))
        noting = _Noting(weights)
        record.weight = noting  # type: ignore[assignment]
        objective.loss(record)
        if noting.were_read:
            return None
    return (
        f"the attributes have different weights, which objective {objective.name!r} does not read: "
        "use weighted-loss, or hierarchy-loss for levels of hierarchies"
    )
