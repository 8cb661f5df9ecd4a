"""Sessions whose work is done in the test's own process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui")

from anonymip.app import work
from anonymip.app.session import Session


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return a new session."""

    def here(task: Any, limit: None, budget: Any, *, grace: float) -> Any:
        return task(budget)

    monkeypatch.setattr(work, "run_isolated", here)
    folder = tmp_path / "session"
    folder.mkdir()
    return Session(folder)
