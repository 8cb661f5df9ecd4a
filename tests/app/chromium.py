"""A browser without a window, driven over the DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--remote-debugging-port=0"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def _labelled(label: str) -> str:
    """Return the script that finds what is shown under a label."""
    all_of_them = f"[...document.querySelectorAll('[aria-label={json.dumps(label)}]')]"
    return f"{all_of_them}.find(one => one.checkVisibility())"


class Tab:
    """One tab: it is told what to do, and keeps what its console complains of."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._numbers = socket, itertools.count(1)
        self.complaints: list[str] = []
        #: Addresses that were asked for.
        self.asked: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: Any) -> Any:
        """Send a command and return its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": given}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        what, told = message.get("method"), message.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.complaints.append(told["exceptionDetails"].get("text", "exception"))
        elif what == "Runtime.consoleAPICalled" and told["type"] == "error":
            self.complaints.append(str([one.get("value") for one in told["args"]]))
        elif what == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(told["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])

    def run(self, script: str) -> Any:
        """Return what a script says; promises are awaited."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, (script, found["exceptionDetails"])
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 30) -> Any:
        """Wait until a script says something, and return it."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, (script, self.text()[-1500:])
            time.sleep(0.1)
        return found

    def open(self, address: str) -> None:
        """Go to an address, and wait for the page to be drawn."""
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && !!document.querySelector('main h2')")

    def text(self) -> str:
        """Return all text that is shown."""
        return str(self.run("document.body.innerText"))

    def sees(self, text: str, seconds: float = 30) -> None:
        """Wait for a text."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def click(self, text: str, selector: str = "button, .q-tab, [role=option]") -> None:
        """Click what shows a text, or begins with it behind its icon."""
        icon = r"/^(stop|download|content_copy|upload_file)\s+/"
        self.press(
            f"[...document.querySelectorAll({json.dumps(selector)})].find(one => "
            f"one.checkVisibility() && one.innerText.trim().replace({icon}, '')"
            f".startsWith({json.dumps(text)}))"
        )

    def press(self, found: str) -> None:
        """Click, as a mouse does, into the middle of what a script finds."""
        # A tab behind another one is not drawn, and its lists do not open.
        self.call("Page.bringToFront")
        self.until(f"!!({found})")
        self.run(f"({found}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        middle = (
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])(({found}).getBoundingClientRect())"
        )
        before, box = None, self.run(middle)
        while box != before:
            time.sleep(0.1)
            before, box = box, self.run(middle)
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a list by the names of both."""
        self.press(f"{_labelled(label)}?.closest('.q-field')")
        self.click(option, "[role=option]")
        self.until("!document.querySelector('[role=option]')")

    def type(self, label: str, text: str) -> None:
        """Write into a field."""
        field = _labelled(label)
        self.until(f"!!{field}")
        self.run(f"{field}.focus(); {field}.select()")
        self.call("Input.insertText", text=text)
        self.run(f"{field}.dispatchEvent(new Event('change', {{bubbles: true}})); {field}.blur()")

    def upload(self, file: Path, place: int = 0) -> None:
        """Hand a file to one of the fields that take some."""
        self.until(f"document.querySelectorAll('input[type=file]').length > {place}")
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        found = self.call("DOM.querySelectorAll", nodeId=root, selector="input[type=file]")
        self.call("DOM.setFileInputFiles", files=[str(file)], nodeId=found["nodeIds"][place])

    def look(
        self,
        picture: Path,
        width: int = 1280,
        height: int = 900,
        *,
        dark: bool = False,
        whole: bool = True,
    ) -> None:
        """Keep a picture of the page in a theme and a width."""
        self.dress(width, height, dark=dark)
        time.sleep(0.6)
        if whole:
            height = int(self.run("document.documentElement.scrollHeight"))
            self.dress(width, min(height, 6000), dark=dark)
            time.sleep(0.3)
        shot = self.call("Page.captureScreenshot", format="png")
        picture.write_bytes(base64.b64decode(shot["data"]))

    def dress(self, width: int, height: int, *, dark: bool) -> None:
        """Have the window a size and a theme."""
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=theme)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def axe(self, script: str) -> list[str]:
        """Return the faults that axe-core finds."""
        self.run(f"{script}; undefined")
        faults = (
            "found.violations.map(fault => `${fault.id}: ${fault.nodes[0].html.slice(0, 200)} "
            "${(fault.nodes[0].any[0] || {message: ''}).message}`)"
        )
        found: list[str] = self.run(f"axe.run().then(found => {faults})")
        return found


class Chromium:
    """A browser with a profile of its own."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}/profile", "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(r"ws://127\.0\.0\.1:(\d+)/", line):
                self.port = int(found[1])
                break
        self._sockets = ExitStack()

    def tab(self, downloads: Path | None = None) -> Tab:
        """Return a new tab."""
        from urllib.request import Request, urlopen

        from websockets.sync.client import connect

        asked = Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urlopen(asked) as answer:
            address = json.load(answer)["webSocketDebuggerUrl"]
        opened = connect(address, max_size=None, ping_interval=None)
        tab = Tab(self._sockets.enter_context(opened))
        if downloads is not None:
            tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
        return tab

    def end(self) -> None:
        """Close it."""
        self._sockets.close()
        self._process.terminate()
        self._process.wait(20)


@contextmanager
def browsing(folder: Path) -> Iterator[Chromium]:
    """Give a browser for a while."""
    browser = Chromium(folder)
    try:
        yield browser
    finally:
        browser.end()
