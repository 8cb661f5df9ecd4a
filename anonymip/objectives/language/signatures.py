"""What a loss offers to those who compile it, whatever class it is of."""

from __future__ import annotations

from typing import Any, Protocol

from anonymip.objectives.language.members import Members
from anonymip.objectives.language.record import Record


class RecordLoss(Protocol):
    """A loss of a published record."""

    @property
    def name(self) -> str:
        """Name in results and manifests."""

    @property
    def monotone(self) -> bool | None:
        """Whether the loss is declared never to fall when a cell covers more."""

    def loss(self, record: Record) -> Any:
        """Return the loss of publishing a record as `record` shows it."""


class ClassLoss(Protocol):
    """A loss of a class by its members' original values."""

    @property
    def name(self) -> str:
        """Name in results and manifests."""

    @property
    def superadditive(self) -> bool | None:
        """Whether a class is declared to cost at least as much as the two it is split into."""

    @property
    def proof(self) -> str | None:
        """Why this holds."""

    @property
    def suppression_price(self) -> float | None:
        """Loss of a suppressed record; None where records cannot be suppressed."""

    def class_cost(self, members: Members) -> Any:
        """Return (B,) losses of B classes of s members each."""
