"""Every example of docstrings and pages, and every notebook, runs as it stands."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anonymip
from anonymip.cli.app import run
from anonymip.methods import registry

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
#: These begin in a clone: tests/test_first_contact.py runs them there.
BEGINNING = ("README.md", "tutorial.md")
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(anonymip .*)$", re.MULTILINE)


def docstring_examples() -> list[doctest.DocTest]:
    """Return the examples of all modules of the package."""
    walked = pkgutil.walk_packages(anonymip.__path__, "anonymip.")
    names = ["anonymip", *(module.name for module in walked if module.name != "anonymip.__main__")]
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in names for test in finder.find(importlib.import_module(name), name)]
    return [test for test in found if test.examples]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return language and content of the blocks of a page, in order."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(block: str) -> list[list[str]]:
    """Return the calls of the command line in a block, without ``anonymip`` itself."""
    joined = block.replace("\\\n", " ")
    return [shlex.split(line, comments=True)[1:] for line in COMMAND.findall(joined)]


EXAMPLES = docstring_examples()
RUNNABLE = [
    page
    for page in PAGES
    if page.name not in BEGINNING
    and {"python", "console", "sh"} & {lang for lang, _ in blocks(page)}
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run examples in an empty folder, and forget the methods that they register."""
    monkeypatch.chdir(tmp_path)
    before = dict(registry._methods)
    yield
    registry._methods.clear()
    registry._methods.update(before)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_docstring_examples(example: doctest.DocTest) -> None:
    """What an example in a docstring prints is what the docstring says."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    printed: list[str] = []
    runner.run(example, out=printed.append, clear_globs=False)
    assert runner.tries == len(example.examples)
    assert runner.failures == 0, "".join(printed)


#: The first takes fifteen seconds of processor time; of diversity and freeform
#: tests/test_documented.py runs the Python; the others draw and search for seconds.
SLOW = (
    *("surveys.md", "hospital.md", "diversity.md", "freeform.md", "gallery.md", "split_carry.md"),
    *("command_line.md", "experiments.md"),
)
SHOWN = [
    pytest.param(page, marks=[pytest.mark.thorough] if page.name in SLOW else [], id=page.name)
    for page in RUNNABLE
]


@pytest.mark.parametrize("page", SHOWN)
def test_pages(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of a page run in one namespace, and its commands end with exit code 0."""
    names: dict[str, object] = {"__name__": "__main__"}
    for language, content in blocks(page):
        if language == "python":
            exec(compile(content, page.name, "exec"), names)
        elif language in ("console", "sh"):
            for arguments in commands(content):
                code = run(arguments)
                assert code == 0, (arguments, capsys.readouterr().err)


def test_the_main_functions_have_examples() -> None:
    """The docstrings of the functions that most people call show how."""
    names = {example.name for example in EXAMPLES}
    assert {
        "anonymip.anonymization.anonymize",
        "anonymip.solving.solve",
        "anonymip.solving.lower_bound",
        "anonymip.experiments.comparison.compare",
        "anonymip.objectives.language.protocol.objective",
        "anonymip.methods.registry.register_method",
    } <= names


def test_the_pages_show_both_ways() -> None:
    """The README shows Python and the command line, and the blocks of every page are closed."""
    languages = [language for language, _ in blocks(REPOSITORY / "README.md")]
    assert {"python", "console"} <= set(languages)
    for page in PAGES:
        fences = page.read_text(encoding="utf-8").count("\n```")
        assert fences == 2 * len(blocks(page)), page.name


def test_commands_are_found() -> None:
    """Commands are read with and without prompt, over several lines, and apart from output."""
    block = "$ anonymip solve x.csv -q 'a b' \\\n    -k 3   # why\nloss 0.1\nanonymip methods\n"
    assert commands(block) == [["solve", "x.csv", "-q", "a b", "-k", "3"], ["methods"]]


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
