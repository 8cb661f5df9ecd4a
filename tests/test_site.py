"""The pages as a site: complete, strict, and with nothing that is loaded from elsewhere.

Needs what `make docs` installs. ``ANONYMIP_SITE`` names a site that is built already; without it
one is built here, with notebooks that have not been run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import anonymip
from anonymip.cli.app import app
from tests.test_project import REPOSITORY

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs `make docs`"),
]
#: What a browser loads by itself, and the attribute that says from where.
LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}


class Page(HTMLParser):
    """What a page loads, where it leads, and where one can lead into it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in one element."""
        values = {name: value or "" for name, value in attrs}
        self.loaded += [values[name] for name in LOADED.get(tag, ()) if name in values]
        self.links += [values["href"]] if tag == "a" and "href" in values else []
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site."""
    if "ANONYMIP_SITE" in os.environ:
        return (REPOSITORY / os.environ["ANONYMIP_SITE"]).resolve()
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NOTEBOOKS": "false", "NO_MKDOCS_2_WARNING": "1"},
        check=True,
        timeout=600,
    )
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Return the pages of the site."""
    found = {page: Page(page.read_text(encoding="utf-8")) for page in sorted(site.rglob("*.html"))}
    assert len(found) > 50
    return found


def elsewhere(address: str) -> bool:
    """Return whether an address lies in a network."""
    return address.startswith("//") or urlsplit(address).scheme in (
        "http",
        "https",
        "ftp",
        "ws",
        "wss",
    )


def test_nothing_is_loaded_from_a_network(site: Path, pages: dict[Path, Page]) -> None:
    """No page asks a browser to load anything from elsewhere, and no style sheet does."""
    assert {one for page in pages.values() for one in page.loaded if elsewhere(one)} == set()
    styles = [sheet.read_text(encoding="utf-8") for sheet in site.rglob("*.css")]
    assert styles
    addresses = [one for text in styles for one in re.findall(r"url\(\s*['\"]?([^'\")]+)", text)]
    assert [one for one in addresses if elsewhere(one)] == []
    assert [
        text for text in styles if re.search(r"@import\s+(?:url\()?['\"]?(?:https?:)?//", text)
    ] == []


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the links within the site that lead nowhere."""
    for path, page in pages.items():
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else set()
            # The search fills in what is marked by a double underscore.
            if not target.is_file() or (anchor and anchor not in known and anchor[:2] != "__"):
                yield f"{path.name}: {link}"


def test_links_lead_somewhere(pages: dict[Path, Page]) -> None:
    """Every link of every page, copies of sources included, has a target within the site."""
    mine = {path: page for path, page in pages.items() if path.name != "404.html"}
    assert list(broken(mine)) == []


def test_python_and_commands_are_told_name_by_name(site: Path, pages: dict[Path, Page]) -> None:
    """The reference has every public name and every command."""
    names = {f"anonymip.{name}" for name in anonymip.__all__ if name != "__version__"}
    assert names - pages[site / "reference.html"].anchors == set()
    commands = {f"anonymip-{command.name}" for command in app.registered_commands}
    assert commands - pages[site / "commands.html"].anchors == set()


def test_notebooks_are_pages(site: Path, pages: dict[Path, Page]) -> None:
    """Each notebook is a page; where they have been run each shows a picture or a table."""
    for notebook in (REPOSITORY / "notebooks").glob("*.ipynb"):
        page = site / "notebooks" / f"{notebook.stem}.html"
        assert page in pages
        if "ANONYMIP_SITE" in os.environ:
            assert re.search(r"<img[^>]* src=\"[^\"]*\.png|<table", page.read_text("utf-8"))


def browse(site: Path, tmp_path: Path, address: str) -> tuple[str, list[str], list[str]]:
    """Open a page in Chromium; return it as drawn, what scripts complain of, and what is loaded."""
    assert CHROMIUM is not None
    log = tmp_path / "net.json"
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", *quiet, f"--user-data-dir={tmp_path}/profile"),
            *("--enable-logging=stderr", f"--log-net-log={log}", "--window-size=1280,1600"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000"),
            *("--dump-dom", f"{site.as_uri()}/{address}"),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    complaints = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    starts = [event["params"] for event in events if "initiator" in event.get("params", {})]
    # What the browser asks for on its own account has no page behind it.
    asked = [start["url"] for start in starts if start["initiator"] != "not an origin"]
    return done.stdout, complaints, [address for address in asked if elsewhere(address)]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("page", ["index.html", "reference.html", "notebooks/1_first_release.html"])
def test_a_browser_needs_no_network(site: Path, tmp_path: Path, page: str) -> None:
    """Read as files, pages are drawn without a complaint and without asking a network."""
    drawn, complaints, asked = browse(site, tmp_path, page)
    assert "md-content" in drawn
    assert complaints == []
    assert asked == []


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_what_a_page_asks_for_is_seen(tmp_path: Path) -> None:
    """A picture from elsewhere and a script that fails are noticed."""
    page = '<img src="http://example.org/a.png"><script>missing()</script>'
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    _, complaints, asked = browse(tmp_path, tmp_path, "page.html")
    assert len(complaints) == 1
    assert asked == ["http://example.org/a.png"]
    assert Page(page).loaded == asked


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_search_finds_without_a_network(site: Path, tmp_path: Path) -> None:
    """What is searched for is found where the pages are read as files."""
    drawn, complaints, _ = browse(site, tmp_path, "index.html?q=homogeneous")
    assert complaints == []
    assert re.search(r'<a href="[^"]*glossary\.html[^"]*" class="md-search-result__link"', drawn)
