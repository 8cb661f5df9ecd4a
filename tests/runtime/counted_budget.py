"""A budget that counts how often it is asked."""

from __future__ import annotations

from anonymip import Budget, Stopped


class CountedBudget(Budget):
    """A budget that ends when it has been asked so often, whatever the time."""

    def __init__(self, asked: int, reason: Stopped = Stopped.INTERRUPT) -> None:
        super().__init__()
        self.left, self.reason = asked, reason

    def stop_reason(self) -> Stopped | None:
        """Return why to stop."""
        self.left -= 1
        return self.reason if self.left < 0 else None
