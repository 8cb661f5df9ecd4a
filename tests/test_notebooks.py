"""Tests that the notebooks run, are listed, and are stored without output.

`make notebooks` runs them from a clean kernel.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
#: The first is what everybody begins with; the others take a minute of processor time together.
RUN = [
    pytest.param(notebook, marks=[pytest.mark.thorough] if number else [], id=notebook.stem)
    for number, notebook in enumerate(NOTEBOOKS)
]


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    """The folder holds notebooks with code, so the tests below test something."""
    assert NOTEBOOKS
    assert all(code_cells(notebook) for notebook in NOTEBOOKS)


@pytest.mark.parametrize("page", ["README.md", "docs/notebooks.md"])
def test_notebooks_are_listed(page: str) -> None:
    """Who looks for them finds a link to each notebook, or to their folder."""
    links = set(
        re.findall(r"\(((?:\.\./)?notebooks/[^)]*)\)", (REPOSITORY / page).read_text("utf-8"))
    )
    listed = {link.removeprefix("../") for link in links}
    assert listed == {"notebooks/"} or listed == {f"notebooks/{one.name}" for one in NOTEBOOKS}


@pytest.mark.filterwarnings("ignore::anonymip.ReleaseWarning")
@pytest.mark.parametrize("notebook", RUN)
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
