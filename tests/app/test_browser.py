"""The page in a real browser, from a messy table to files that the verifier accepts.

Needs Chromium; its pictures stay in the folder that ``ANONYMIP_SCREENSHOTS`` names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pandas as pd
import pytest
from PIL import Image

from tests.app.chromium import CHROMIUM, Chromium, Tab, browsing
from tests.hospital import write_hospital

pytest.importorskip("nicegui")
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
AXE = os.environ.get("ANONYMIP_AXE")
REPOSITORY = Path(__file__).resolve().parents[2]


#: What is chosen in lists, and is not shown whole.
_CUT = (
    "[...document.querySelectorAll('.q-select .q-field__native span')].filter(one => "
    "one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
)


@dataclass
class Served:
    """A server that runs: its address, what it may write into, and a browser."""

    address: str
    temporary: Path
    browser: Chromium
    folder: Path

    @property
    def base(self) -> str:
        """The address without its secret."""
        return self.address.partition("/?")[0]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve the page for the tests of this file, and look that nothing is left of it."""
    folder = tmp_path_factory.mktemp("app")
    temporary, desk = folder / "temporary", folder / "desk"
    temporary.mkdir()
    desk.mkdir()
    server = subprocess.Popen(
        [sys.executable, "-m", "anonymip", "app", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=desk,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(temporary),
        },
    )
    assert server.stdout is not None
    found = re.search(r"http\S+", server.stdout.readline())
    assert found is not None
    try:
        with browsing(folder) as browser:
            yield Served(found[0], temporary, browser, folder)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    assert server.stderr is not None
    assert "Traceback" not in server.stderr.read()
    assert [path.name for path in temporary.glob("anonymip-app-*")] == []
    assert list(desk.iterdir()) == []


@pytest.fixture
def tab(served: Served) -> Iterator[Tab]:
    """Return a tab on a new session; at the end nothing went elsewhere, and nothing failed."""
    tab = served.browser.tab(served.folder / "downloads")
    tab.open(served.address)
    yield tab
    assert tab.complaints == []
    elsewhere = [one for one in tab.asked if not one.startswith((served.base, "data:", "blob:"))]
    assert elsewhere == []


def judged(tab: Tab) -> None:
    """Look that axe finds no fault in what is shown, in both themes."""
    if AXE is None:
        return
    script = Path(AXE).read_text(encoding="utf-8")
    for dark in (True, False):
        tab.dress(1280, 900, dark=dark)
        time.sleep(0.4)
        assert tab.axe(script) == []


def drawn(tab: Tab, name: str, folder: Path) -> None:
    """Keep pictures in both themes and two widths: ink on paper, and nothing beyond the edge."""
    kept = Path(os.environ.get("ANONYMIP_SCREENSHOTS") or folder)
    for width in (1280, 400):
        for dark in (False, True):
            picture = kept / f"app-{name}-{width}-{'dark' if dark else 'light'}.png"
            tab.look(picture, width, dark=dark)
            grey = Image.open(picture).convert("L")
            paper = max(grey.getcolors(256) or [], default=(0, 0))[1]
            assert paper < 60 if dark else paper > 200
            assert tab.run("document.documentElement.scrollWidth") <= width
            assert tab.run(_CUT) == []
    tab.dress(1280, 900, dark=False)


def download(served: Served, file: str, seconds: float = 60) -> Path:
    """Return a file that was downloaded."""
    path = served.folder / "downloads" / file
    end = time.monotonic() + seconds
    while not path.is_file():
        assert time.monotonic() < end, file
        time.sleep(0.1)
    return path


def to_the_right(tab: Tab) -> None:
    """Press the right arrow."""
    key = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, **key)


def to_the_slider(tab: Tab) -> None:
    """Go to the question, with the keys on its slider."""
    tab.click("Question")
    tab.until("!!document.querySelector('[role=slider]')")
    tab.run("document.querySelector('[role=slider] [tabindex]').focus()")


def test_a_messy_table_becomes_a_release_that_is_verified(
    served: Served, tab: Tab, tmp_path: Path
) -> None:
    """Upload, roles, hierarchy, k by the slider, curve, release; the command does the same."""
    drawn(tab, "start", tmp_path)
    judged(tab)
    tab.upload(write_hospital(tmp_path / "hospital.csv", 20_000))
    tab.sees("What each column is", 120)
    (folder,) = [one for one in served.temporary.glob("anonymip-app-*") if one.is_dir()]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    tab.choose("Role of patient", "Says who")
    tab.choose("Role of HbA1c", "Left out")
    tab.choose("How values of postcode are made coarser", "by hiding")
    tab.type("Characters that stay, as 3, 2", "3, 2")
    tab.click("Finer settings of weight", ".q-item")
    tab.sees("Top group from")
    tab.type("Step (5: 35 to 39)", "5")
    tab.type("Top group from", "120")
    tab.click("Load or save a schema", ".q-item")
    tab.sees("Open another table in a new tab")
    judged(tab)
    drawn(tab, "table", tmp_path)
    to_the_slider(tab)
    tab.sees("how many must look alike")
    for k in (6, 7, 8):
        to_the_right(tab)
        tab.sees(f"k = {k}: whoever")
    tab.choose("How hard to look", "quick")
    judged(tab)
    drawn(tab, "question", tmp_path)
    tab.click("Some columns matter more", ".q-checkbox")
    tab.type("Weight of born", "2")
    tab.until("document.body.innerText.includes('--objective weighted-loss')")
    judged(tab)
    drawn(tab, "weights", tmp_path)
    tab.click("Table")
    tab.click("Load or save a schema", ".q-item")
    tab.click("Save the schema")
    schema = tomllib.loads(download(served, "schema.toml").read_text(encoding="utf-8"))
    assert schema["table"]["unit"] == "patient"
    assert schema["attributes"]["born"]["weight"] == 2
    tab.click("Question")
    tab.click("Some columns matter more", ".q-checkbox")
    tab.until("!document.body.innerText.includes('--objective weighted-loss')")

    # What is copied is what is shown.
    lines = tab.run("[...document.querySelectorAll('pre.code')][1].innerText")
    rights = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    tab.call("Browser.grantPermissions", permissions=rights, origin=served.base)
    tab.press(
        "[...document.querySelectorAll('button')].filter(one => /Copy$/.test(one.innerText))[1]"
    )
    tab.sees("Copied")
    assert tab.run("navigator.clipboard.readText()").strip() == lines.strip()

    # A curve that is stopped keeps its points.
    tab.click("Choice")
    tab.click("Find it")
    tab.sees("none below", 300)
    tab.click("Stop and keep")
    tab.sees("Find it again", 120)
    assert tab.run("document.querySelectorAll('tbody tr').length") >= 1
    judged(tab)
    drawn(tab, "choice", tmp_path)
    tab.click("Make the release")
    tab.sees("What k-anonymity does not promise", 600)
    assert "k = 8" in tab.text()
    judged(tab)
    drawn(tab, "release", tmp_path)

    # What was done is there after a reload.
    tab.open(tab.run("location.href"))
    tab.sees("What k-anonymity does not promise")
    tab.click("Save")
    tab.sees("Verified: the release keeps its promises.")
    judged(tab)
    drawn(tab, "save", tmp_path)
    command = tab.run("document.querySelector('pre.code').innerText").splitlines()
    tab.click("Save the project")
    with zipfile.ZipFile(download(served, "project.zip")) as archive:
        archive.extractall(tmp_path / "project")
    tab.click("The release")
    tab.click("Its manifest")
    release = download(served, "release-1.csv")
    assert json.loads(download(served, "release-1.csv.manifest.json").read_text())["k"] == 8
    assert release.read_bytes() == (tmp_path / "project" / "release-1.csv").read_bytes()

    def run(*words: str) -> str:
        return subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path / "project",
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def rows(file: Path) -> list[list[str]]:
        return sorted(pd.read_csv(file, sep=";", dtype=str).fillna("").to_numpy().tolist())

    anew = tmp_path / "project" / "release-1.csv"
    for again in (["-m", *shlex.split(command[0])], ["-c", lines]):
        assert "keeps its promises" in run("-m", *shlex.split(command[1]))
        anew.unlink()
        run(*again)
        assert rows(anew) == rows(release)
    assert "keeps its promises" in run("-m", *shlex.split(command[1]))

    # The project opens again, in a tab of its own.
    other = served.browser.tab()
    other.open(served.address)
    other.upload(served.folder / "downloads" / "project.zip")
    other.sees("What each column is", 120)
    other.until("!document.querySelector('.job')", 120)
    other.click("Save")
    other.sees("Verified: the release keeps its promises.")


def test_a_run_that_is_stopped_keeps_the_best_so_far(
    served: Served, tab: Tab, tmp_path: Path
) -> None:
    """A thorough search is stopped; its release is verified all the same. Another tab goes on."""
    tab.upload(write_hospital(tmp_path / "hospital.csv", 1_500))
    tab.sees("What each column is", 120)
    tab.click("Question")
    tab.choose("How hard to look", "thorough")
    tab.click("Make the release")
    tab.sees("Making a release with k = 5")
    judged(tab)
    other = served.browser.tab()
    other.open(served.address)
    other.sees("Your table")
    assert "hospital" not in other.text()
    began = time.monotonic()
    other.click("12 patients")
    other.sees("What each column is", 60)
    assert other.run("location.href") != tab.run("location.href")
    time.sleep(max(0.0, 8 - (time.monotonic() - began)))
    # A stop while kernels are compiled would leave nothing.
    tab.until("!document.querySelector('.job').innerText.includes('compiling')", 300)
    tab.click("Stop and keep")
    tab.sees("What k-anonymity does not promise", 120)
    tab.click("Save")
    tab.sees("Verified: the release keeps its promises.")
    # Two releases side by side.
    tab.click("Question")
    tab.choose("How hard to look", "quick")
    tab.click("Make the release")
    tab.sees("release-2: k = 5", 300)
    tab.sees("Two releases compared")
    judged(tab)
    drawn(tab, "compared", tmp_path)


def test_the_slider_keeps_up_with_keys(tab: Tab) -> None:
    """No key is lost while answers to those before arrive; what is typed moves the slider too."""
    tab.click("1,000 generated persons")
    tab.sees("What each column is", 60)
    to_the_slider(tab)
    for _ in range(10):
        to_the_right(tab)
        time.sleep(0.015)

    def agree(k: int, place: int) -> None:
        for shown in (f"k = {k}: whoever", f"-k {k} ", f"k={k},"):
            tab.sees(shown)
        now = "document.querySelector('[role=slider]').getAttribute('aria-valuenow')"
        tab.until(f"{now} === '{place}'")
        number = "document.querySelector('[aria-label=\"k as a number\"]').value"
        assert tab.run(number) == str(k)

    agree(15, 15)
    for k, place in ((30, 30), (120, 50), (1, 2), (7, 7)):
        tab.type("k as a number", str(k))
        agree(k, place)


def test_a_curve_leaves_the_other_steps_alone(tab: Tab) -> None:
    """Points that arrive do not draw the question anew; in the curve they can be clicked."""
    tab.click("1,000 generated persons")
    tab.sees("What each column is", 60)
    tab.click("Choice")
    tab.click("Find it")
    tab.sees("Finding what each k costs")
    to_the_slider(tab)
    tab.until("!document.querySelector('.job')", 300)
    time.sleep(1)
    assert tab.run("!!document.activeElement.closest('[role=slider]')")
    tab.click("Choice")
    tab.sees("Find it again")
    for dark in (True, False):
        tab.dress(1280, 900, dark=dark)
        colours = "[['.chart svg text', 'fill'], ['p.soft, th', 'color']].map(([one, key]) => "
        one, other = tab.run(f"{colours} getComputedStyle(document.querySelector(one))[key])")
        assert one == other
    points = "[...document.querySelectorAll('.chart path[transform^=matrix][fill=\"#3a8fc7\"]')]"
    tab.press(f"{points}.at(-1)")
    tab.until("[...document.querySelectorAll('tbody tr')].at(-1).innerText.includes('chosen')")


def test_what_is_wrong_is_said(served: Served, tab: Tab, tmp_path: Path) -> None:
    """A wrong file, markup in values, unique names, k above n."""
    (tmp_path / "notes.pdf").write_bytes(b"%PDF-1.7")
    tab.upload(tmp_path / "notes.pdf")
    tab.sees("is no table that this program reads")
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)))
    tab.upload(tmp_path / "noise.csv")
    tab.until("!!document.querySelector('.error')", 60)
    judged(tab)
    assert "anonymip-app-" not in tab.text()
    tab.click("Close this message")
    with (tmp_path / "large.csv").open("wb") as large:
        large.truncate(2_000_000_000)
    tab.upload(tmp_path / "large.csv")
    tab.sees("The file is too large: this page takes up to 500 MB")
    evil = "<img src=x onerror=alert(1)>"
    rows = [f"{evil}{i},{20 + i},{'FM'[i % 2]},</script><b>{i % 3}" for i in range(12)]
    text = "\n".join([f"name,age,sex,{evil}", *rows, ""])
    (tmp_path / "people.csv").write_text(text)
    tab.upload(tmp_path / "people.csv")
    tab.sees(f"Role of {evil}", 60)
    assert tab.run("document.querySelectorAll('img[src=x]').length") == 0
    tab.choose("Role of name", "Published as it is")
    tab.click("Question")
    tab.type("k as a number", "50")
    tab.sees("k = 50: whoever")
    tab.click("Make the release")
    tab.until("(document.querySelector('.error') || {innerText: ''}).innerText.includes('12')", 60)
    tab.click("Close this message")
    tab.click("Question")
    tab.type("k as a number", "3")
    tab.click("Make the release")
    tab.until("document.body.innerText.includes(\"'name'\")", 120)
    assert tab.run("document.querySelectorAll('img[src=x]').length") == 0


def test_many_columns_are_shown_in_parts(served: Served, tab: Tab, tmp_path: Path) -> None:
    """Hundreds of cards at once would freeze the page; each column has its card all the same."""
    names = [f"c{i}" for i in range(40)]
    rows = [",".join(str(i * (j + 1) % 7) for j in range(40)) for i in range(30)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows, ""]))
    tab.upload(tmp_path / "wide.csv")
    tab.sees("Columns 33 to 40", 60)
    assert tab.run("document.querySelectorAll('section.card').length") == 16
    link = "[...document.querySelectorAll('main a, .content a')].map(one => one.href)"
    assert f"{served.base}/" in tab.run(link)
    tab.click("Columns 33 to 40")
    tab.choose("Role of c39", "Left out")
    judged(tab)
    assert tab.run("document.querySelectorAll('section.card').length") == 8


def test_nobody_else_comes_in(served: Served) -> None:
    """Without the token, with another host or origin, and with two gigabytes: a clear no."""

    def status(path: str, **headers: str) -> int:
        named = {name.replace("_", "-"): one for name, one in headers.items()}
        data = b"" if "Content-Length" in named else None
        try:
            with urlopen(Request(served.base + path, data, named)) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    port = served.base.rpartition(":")[2]
    for address in ("127.0.0.2", "::1"):
        with pytest.raises(OSError, match=r"\[Errno"):
            socket.create_connection((address, int(port)), 5)
    cookie = {"Cookie": f"anonymip-{port}={served.address.partition('token=')[2]}"}
    assert status("/") == 403
    assert status("/_nicegui_ws/socket.io/?EIO=4&transport=polling") == 403
    assert status("/", **cookie) == 200
    assert status("/", **cookie, Host="evil.example") == 403
    large = {"Content-Length": "2000000000", "Origin": served.base}
    assert status("/_nicegui/client/x/upload/1", **cookie, **large) == 413
    assert status("/tab/none/file/people.csv", **cookie) == 404
    assert status("/tab/none/project", **cookie) == 404
