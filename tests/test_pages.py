"""The pages lead where they say: links, files, functions, and the tables of architecture.md."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import anonymip
from anonymip.methods.built_in import BUILT_IN
from anonymip.models.formulations import FORMULATIONS
from anonymip.objectives import OBJECTIVES
from anonymip.recodings.registry import RECODINGS
from anonymip.solvers.registry import ADAPTERS
from tests.test_project import FLOOR, PACKAGE, REPOSITORY, SOURCES, label, wing_floor

ARCHITECTURE = REPOSITORY / "docs" / "architecture.md"
#: Texts of reproductions, which reproductions.md lists, are not pages of their own.
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted(
        page for page in (REPOSITORY / "docs").rglob("*.md") if page.parent.name != "reproductions"
    ),
]
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
#: A link to a Python file, and the names in it that the page speaks of.
PLACE = re.compile(r"\]\(([^()\s]+\.py)\)((?:\s+`[\w.]+`(?:,(?=\s+`))?)*)")
#: A file of the project by its path, and a name of the package by its dots.
PATH = re.compile(r"\b(?:anonymip|benchmarks|docs|tests)/[\w/]+\.(?:md|py)\b")
DOTTED = re.compile(r"`(anonymip(?:\.\w+)+)`")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
#: What a source says of a paper; the page may word the rest as it likes.
REFERENCE = re.compile(
    r"[A-Z]\w+ (?:& \w+ |et al\. )?\d{4}|Section [\d.]*\d|Algorithm \d|Theorem \d|Fig\. \d"
    r"|\(\d+\)-\(\d+\)"
)


def prose(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as code hosts make them."""
    titles = [re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(prose(page))]
    return {title.strip().replace(" ", "-") for title in titles}


def broken_links(page: Path, text: str) -> list[str]:
    """Return the links of a page within the project that lead nowhere."""
    broken = []
    for _, link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        inside = target.is_relative_to(REPOSITORY)
        if not (inside and target.exists()) or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


@cache
def names_in(file: Path) -> frozenset[str]:
    """Return what a file defines: functions, classes, their members, constants, model parts."""
    found = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{x.name}" for x in node.body if isinstance(x, ast.FunctionDef)}
        targets = node.targets if isinstance(node, ast.Assign) else []
        found |= {x.attr for x in targets if isinstance(x, ast.Attribute)}  # of a Pyomo model
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)


def places(page: Path, text: str) -> Iterator[tuple[Path, list[str]]]:
    """Yield the Python files that a page links to, with the names that follow each link."""
    for link, names in PLACE.findall(text):
        yield (page.parent / link).resolve(), re.findall(r"`([\w.]+)`", names)


def missing_names(page: Path, text: str) -> list[str]:
    """Return the names that a page puts behind a link to a file that does not define them."""
    return [
        f"{label(file)} has no {name}"
        for file, names in places(page, text)
        if file.is_file()
        for name in names
        if name not in names_in(file)
    ]


def table(title: str) -> dict[str, str]:
    """Return the rows of the table below a heading of the page, by the name in their first cell."""
    section = ARCHITECTURE.read_text(encoding="utf-8").partition(f"\n### {title}\n")[2]
    rows = re.findall(r"^\| `([\w-]+)` \|(.*)$", re.split(r"\n##", section)[0], re.MULTILINE)
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def targets_in(text: str) -> list[str]:
    """Return the places that a part of the page names, as a registry writes them."""
    return [
        f"{'.'.join(file.relative_to(REPOSITORY).with_suffix('').parts)}:{name}"
        for file, names in places(ARCHITECTURE, text)
        for name in names
    ]


def of_class(made: object) -> str:
    """Return the place of a class, or of that of an object, as a registry would write it."""
    kind = made if isinstance(made, type) else type(made)
    return f"{kind.__module__}:{kind.__name__}"


REGISTRIES: dict[str, dict[str, str]] = {
    "Methods": {name: str(spec.target) for name, spec in BUILT_IN.items()},
    "Formulations": {name: one.build for name, one in FORMULATIONS.items()},
    "Solvers": dict(ADAPTERS),
    "Losses": {name: of_class(loss) for name, loss in OBJECTIVES.items()},
    "Recodings": {name: of_class(made) for name, made in RECODINGS.items()},
}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link within the project names a file, and an anchor one of its headings."""
    assert broken_links(page, prose(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_files_define_what_pages_say(page: Path) -> None:
    """Every name behind a link to a file of Python is defined in that file."""
    assert missing_names(page, prose(page)) == []


def test_every_page_is_listed() -> None:
    """The list of pages leads to all of them."""
    text = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {(REPOSITORY / "docs" / link).resolve() for _, link in LINK.findall(text)}
    assert set(PAGES) - linked == {REPOSITORY / "README.md", REPOSITORY / "docs" / "README.md"}


def test_every_page_has_a_place_in_the_site() -> None:
    """The site's navigation has every page of docs, and the reference every public name, once."""
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    placed = re.findall(r"- (?:[A-Z][\w ]*: )?(\S+\.md)$", text, re.MULTILINE)
    assert len(placed) == len(set(placed))
    docs = REPOSITORY / "docs"
    pages = {page.relative_to(docs).as_posix() for page in PAGES if page.is_relative_to(docs)}
    assert pages - set(placed) == set()
    reference = (docs / "reference.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: anonymip\.(\w+)$", reference, re.MULTILINE)
    public = set(anonymip.__all__) - {"__version__"}
    assert sorted(public - set(names)) == [], "give each a line `::: anonymip.NAME` in reference.md"
    assert sorted(names) == sorted(public), "reference.md has a line twice, or of no public name"


def test_files_that_texts_name_exist() -> None:
    """Pages and docstrings name no file of the project that is not there."""
    named = [(f, path) for f in (*PAGES, *SOURCES) for path in PATH.findall(f.read_text("utf-8"))]
    assert len({path for _, path in named}) > 50
    gone = [f"{label(f)} names {path}" for f, path in named if not (REPOSITORY / path).is_file()]
    assert gone == []


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_names_of_the_package_on_pages_exist(page: Path) -> None:
    """A page names no module, class or function of the package that is not there."""
    for dotted in DOTTED.findall(prose(page)):
        assert pkgutil.resolve_name(dotted) is not None


def missing_places(text: str) -> list[str]:
    """Return the files, folders, modules and functions of the package that a text names wrongly."""
    named = [name.replace(".", "/") for name in re.findall(r"\banonymip(?:[./][a-z_]\w*)+", text)]
    return [name for name in named if not is_there(REPOSITORY / name.removesuffix("/py"))]


def is_there(path: Path) -> bool:
    """Return whether a path is a file or folder, a module without its ending, or its function."""
    module = path.parent.with_suffix(".py")
    is_function = module.is_file() and f"\ndef {path.name}(" in module.read_text("utf-8")
    return path.exists() or path.with_suffix(".py").is_file() or is_function


def test_configuration_names_what_is_there() -> None:
    """Settings of tools name no room of the package that is not there: they would fall silent."""
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert "anonymip.bounds.*" in text
    assert missing_places(text) == []


def test_invented_places_are_seen() -> None:
    """A file that has moved and a module that is not there are found; those that are there pass."""
    there = "anonymip.bounds.* anonymip/cli/app.py anonymip.cli.app"
    gone = ["anonymip/heuristics/mondrian/py", "anonymip/exact/small"]
    assert missing_places(f"{there} anonymip/heuristics/mondrian.py anonymip.exact.small.*") == gone


def test_what_leads_nowhere_is_seen() -> None:
    """A file, an anchor and a name that are not there are found; those that are there pass."""
    links = "[a](gone.md) [b](format.md#gone) [c](methods.md#all-methods) [d](https://example.org)"
    assert broken_links(ARCHITECTURE, links) == ["gone.md", "format.md#gone"]
    names = "[x](../anonymip/solution.py)\n`Solution.of`, `Bound`, `Solution.gone` `gone`,\n`Gone`."
    assert len(missing_names(ARCHITECTURE, names)) == 3


@pytest.mark.parametrize("title", REGISTRIES)
def test_tables_are_those_of_the_registries(title: str) -> None:
    """Each table has every name of its registry, in its order, with the place that it gives."""
    rows = table(title)
    assert set(rows) == set(REGISTRIES[title]), f"docs/architecture.md, {title}: rows and registry"
    assert {name: targets_in(row)[0] for name, row in rows.items()} == REGISTRIES[title]
    assert list(rows) == list(REGISTRIES[title])


def test_methods_name_the_source_of_the_registry() -> None:
    """Paper, section and algorithm stand in the table as ``anonymip methods`` tells them."""
    rows = table("Methods")
    for name, spec in BUILT_IN.items():
        assert [part for part in REFERENCE.findall(spec.source) if part not in rows[name]] == []


def test_the_page_of_methods_names_every_method() -> None:
    """The table of docs/methods.md has all methods that the package brings."""
    text = (REPOSITORY / "docs" / "methods.md").read_text("utf-8")
    section = text.partition("\n## All methods\n")[2]
    cells = re.findall(r"^\| (`[^|]*)\|", section.partition("\n## ")[0], re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)} == set(BUILT_IN), (
        "the table of docs/methods.md has other names than the registry of methods"
    )


def test_methods_of_the_papers_stand_by_their_papers() -> None:
    """The tables of a paper lead to every method whose source it is."""
    text = ARCHITECTURE.read_text(encoding="utf-8").partition("\n## From the papers")[2]
    by_paper = {part.partition("\n")[0]: set(targets_in(part)) for part in text.split("\n### ")[1:]}
    papers = [title for title in by_paper if re.search(r"\d{4}$", title)]
    assert len(papers) == 5
    for spec in BUILT_IN.values():
        for paper in papers:
            if paper in spec.source:
                assert spec.target in by_paper[paper], f"{spec.name} is missing below {paper}"


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_links_are_named_by_their_files(page: str) -> None:
    """A link to a file of the package shows its path from the package's top."""
    text = prose(REPOSITORY / page)
    shown = re.findall(r"\[`([^`]*)`\]\((?:\.\./)?anonymip/([^()]*)\)", text)
    assert len(shown) == len(re.findall(r"\]\((?:\.\./)?anonymip/", text)) > 0
    assert [pair for pair in shown if pair[0] != pair[1]] == []


def test_every_bound_is_listed() -> None:
    """The page leads to every file with a bound."""
    linked = {file for file, _ in places(ARCHITECTURE, prose(ARCHITECTURE))}
    files = {path for path in (PACKAGE / "bounds").rglob("*.py") if path.name != "__init__.py"}
    assert files
    assert files - linked == set()


def test_the_tree_is_that_of_the_package() -> None:
    """The tree of the page has every room and folder, rooms and wings from the ground up."""
    block = next(b for b in CODE.findall(ARCHITECTURE.read_text("utf-8")) if "runtime/" in b)
    lines = re.findall(r"^( *)(\w+)(/|\.py)  +\S", block, re.MULTILINE)
    assert len(lines) == len(block.splitlines()) - 2
    listed: list[tuple[str, ...]] = []
    path: tuple[str, ...] = ()
    for indent, name, end in lines:
        path = (*path[: len(indent) // 2], name)
        file = PACKAGE.joinpath(*path)
        found = (file if end == "/" else file.with_suffix(".py")).exists()
        assert found, f"the page has {'/'.join(path)}, the package has not"
        listed.append(path)
    folders = {
        init.parent.relative_to(PACKAGE).parts
        for init in PACKAGE.rglob("__init__.py")
        if init.parent != PACKAGE
    }
    assert set(listed) == folders | {(room,) for room in FLOOR}
    rooms = [FLOOR[path[0]] for path in listed if len(path) == 1]
    assert rooms == sorted(rooms)
    for room in {path[:-1] for path in listed if len(path) > 1}:
        wings = [wing_floor(room, path[-1]) for path in listed if path[:-1] == room]
        assert wings == sorted(wings), "/".join(room)
