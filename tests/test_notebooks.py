"""Tests that the notebooks run and are stored without output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    """The folder holds notebooks with code, so the tests below test something."""
    assert NOTEBOOKS
    assert all(code_cells(notebook) for notebook in NOTEBOOKS)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code cells run in order, in one namespace, as plain Python."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), start=1):
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebooks_are_stored_without_output(notebook: Path) -> None:
    """No cell keeps its output or the number of its run."""
    for cell in code_cells(notebook):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
