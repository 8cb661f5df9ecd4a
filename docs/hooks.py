"""What MkDocs does beside rendering ``docs/``: pages from elsewhere, links into the repository.

The pages link to files of the repository, as a code host shows them. In the site these links lead
to copies: Markdown and notebooks become pages, all else is shown with its lines numbered.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

REPOSITORY = Path(__file__).resolve().parents[1]
#: Pages that lie outside docs/, and where the site has them.
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "README.md": "README.md",
}
LINK = re.compile(r"(\]\()([^()\s#]+)((?:#[^()\s]*)?\))")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
#: A link that shows the name of the file it leads to.
NAMED = re.compile(r"\[(?:\.\./)*[\w/]+\.md\]\(([^()#\s]+\.md)(#[^()\s]*)?\)")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
COMMANDS = "<!-- commands -->"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/, the notebooks, and the files that pages link to."""
    for source, place in PAGES.items():
        if files.get_file_from_path(place) is None:
            text = (REPOSITORY / source).read_text(encoding="utf-8")
            files.append(File.generated(config, place, content=text))
    for notebook in sorted((REPOSITORY / "notebooks").glob("*.ipynb")):
        for place, content in notebook_page(notebook, config.extra["notebooks"]).items():
            files.append(File.generated(config, f"notebooks/{place}", content=content))
    linked = {
        target
        for file in files.documentation_pages()
        for _, target in outside_links(file.content_string, source_of(file))
        if target.is_file() and place_of(target).startswith("source/")
    }
    for target in sorted(linked):
        files.append(File.generated(config, place_of(target), content=shown(target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links into the repository lead to the site, and fill in the help of the commands."""
    source, place = source_of(page.file), page.file.src_uri
    if place.startswith("results/reproductions/"):
        figure = f"![What the rows show]({page.file.name}.png)"
        markdown = markdown.replace("\n\n", f"\n\n{figure}\n\n", 1)
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, help_of_commands())
    for link, target in outside_links(markdown, source):
        inside = os.path.relpath(place_of(target), os.path.dirname(place) or ".")
        markdown = re.sub(rf"(\]\(){re.escape(link)}([#)])", rf"\g<1>{inside}\g<2>", markdown)

    def entitled(link: re.Match[str]) -> str:
        """Return a link that shows the title of a page in place of its file's name."""
        there = os.path.normpath(os.path.join(os.path.dirname(place), link[1]))
        file = files.get_file_from_path(there)
        title = TITLE.search(file.content_string) if file is not None else None
        return f"[{title[1]}]({link[1]}{link[2] or ''})" if title else link[0]

    return NAMED.sub(entitled, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Show names in docstrings without the role that Sphinx would read."""
    return re.sub(r":(?:attr|class|data|func|math|meth|mod):(<(?:span|a|code)\b)", r"\1", html)


def source_of(file: File) -> Path:
    """Return the file of the repository that a page of the site is made of."""
    for source, place in PAGES.items():
        if file.generated_by is not None and file.src_uri == place:
            return REPOSITORY / source
    if file.generated_by is not None:
        return REPOSITORY / file.src_uri
    return REPOSITORY / "docs" / file.src_uri


def outside_links(text: str, source: Path) -> list[tuple[str, Path]]:
    """Return the links of a page that mean a file of the repository elsewhere than beside it."""
    found = []
    for _, link, _ in LINK.findall(CODE.sub("", text)):
        target = (source.parent / link).resolve()
        here = source.is_relative_to(REPOSITORY / "docs")
        if ":" in link or (here and target.is_relative_to(REPOSITORY / "docs")):
            continue
        if target.is_relative_to(source.with_suffix("")):  # a picture of a notebook
            continue
        if not target.exists():
            raise PluginError(
                f"{source.relative_to(REPOSITORY)} links to {link}, which is not there"
            )
        found.append((link, target))
    return list(dict.fromkeys(found))


def place_of(target: Path) -> str:
    """Return where the site has a file of the repository."""
    path = target.relative_to(REPOSITORY)
    if str(path) in PAGES:
        return PAGES[str(path)]
    if path.parts[0] == "docs":
        return str(path.relative_to("docs"))
    if path == Path("notebooks"):
        return "notebooks.md"
    if path.suffix == ".ipynb":
        return str(path.with_suffix(".md"))
    return f"source/{path}.html"


def shown(target: Path) -> str:
    """Return a page of its own that shows a file with its lines numbered."""
    try:
        lexer = get_lexer_for_filename(target.name)
    except ClassNotFound:
        lexer = TextLexer()
    title = str(target.relative_to(REPOSITORY))
    page = HtmlFormatter(full=True, title=title, linenos="inline", wrapcode=True)
    return str(highlight(target.read_text(encoding="utf-8"), lexer, page))


def executed(notebook: Path) -> Any:
    """Return a notebook with what its cells show; what has been run is kept under ``out``."""
    sources = [notebook, *sorted((REPOSITORY / "anonymip").rglob("*.py"))]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    kept = REPOSITORY / "out" / "notebooks" / f"{notebook.stem}-{digest[:16]}.ipynb"
    if not kept.exists():
        content = nbformat.read(notebook, as_version=4)
        with TemporaryDirectory() as folder:
            NotebookClient(
                content,
                resources={"metadata": {"path": folder}},
                extra_arguments=["--log-level=ERROR"],
            ).execute()
        kept.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(content, kept)
    return nbformat.read(kept, as_version=4)


def notebook_page(notebook: Path, run: bool) -> dict[str, str | bytes]:
    """Return a notebook as a page, and its pictures."""
    content = executed(notebook) if run else nbformat.read(notebook, as_version=4)
    name = notebook.stem
    text, resources = MarkdownExporter().from_notebook_node(
        content, resources={"unique_key": name, "output_files_dir": name}
    )
    return {f"{name}.md": text, **resources.get("outputs", {})}


def help_of_commands() -> str:
    """Return the help of all commands, as Typer writes it."""
    call = [sys.executable, "-m", "typer", "anonymip.cli.app", "utils", "docs"]
    call += ["--name", "anonymip"]
    text = subprocess.run(call, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    # The list of the commands with their help cut short: the table of contents has them all.
    return re.sub(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+", "", text.partition("\n")[2])
