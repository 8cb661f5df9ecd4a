"""Settings of the tests of heuristics."""

from __future__ import annotations

import pytest

from tests import profiles


@pytest.fixture(autouse=True)
def fewer_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an everyday run make a part of the trials: what they do is the same."""
    profiles.shorten_trials(monkeypatch)
