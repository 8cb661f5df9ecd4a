"""The loss of the record that loses most."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from anonymip.errors import UnsupportedObjective
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.objectives.language.protocol import Objective
from anonymip.objectives.language.record import Record
from anonymip.objectives.losses.penalties import GCP


@dataclass(frozen=True)
class Bottleneck(Objective):
    """The largest loss of a record instead of the sum over all records.

    Parameters
    ----------
    inner
        Loss of a published record.

    Raises
    ------
    UnsupportedObjective
        If `inner` is a loss of classes, or a bottleneck itself.
    """

    inner: Objective = field(default_factory=GCP)

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Objective) or isinstance(self.inner, Bottleneck):
            raise UnsupportedObjective(
                "Bottleneck needs a loss of published records",
                remedy="Give an objective that is a function of the published record",
            )

    @property
    def name(self) -> str:
        """Name in results."""
        return f"bottleneck-{self.inner.name}"

    def loss(self, record: Record) -> Any:
        """Return the record's loss under the inner objective."""
        return self.inner.loss(record)

    def compile(self, problem: Any) -> CompiledObjective:
        """Trace the inner loss; the release's loss is its maximum over the records.

        Raises
        ------
        UnsupportedObjective
            As the inner objective.
        """
        microdata = problem if isinstance(problem, Microdata) else problem.microdata
        inner = self.inner.compile(microdata)
        return replace(inner, objective=self, aggregate="max")
