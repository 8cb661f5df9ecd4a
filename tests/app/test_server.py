"""The server: refusals before it begins."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from anonymip import InputError
from anonymip.app import server
from anonymip.app.session import Desk
from anonymip.cli.app import run
from tests import profiles


def test_without_nicegui_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library is an extra; the rest of the toolkit does without."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "nicegui" else found(name)
    )
    assert run(["app", "--no-browser"]) == 2
    assert "pip install 'anonymip[app]'" in " ".join(capsys.readouterr().err.split())


def test_a_port_that_is_taken_is_said() -> None:
    """Nothing is served on another one than the user asked for."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="port"):
            server.serve(taken.getsockname()[1], print, opens=False)


def test_the_address_is_open_when_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that is quicker than the server waits for it, and is not refused."""

    class Told(Exception):
        pass

    def tell(address: str) -> None:
        port = int(address.partition("127.0.0.1:")[2].partition("/")[0])
        socket.create_connection(("127.0.0.1", port), 30).close()
        raise Told

    monkeypatch.setattr(server, "guarded", lambda *_: None)
    monkeypatch.setattr(server, "_load", lambda: None)
    with pytest.raises(Told):
        server.serve(0, tell, opens=False)


@pytest.fixture
def _heard() -> Iterator[None]:
    """Let what the test starts hear signals that the tests were started to ignore."""
    heard = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, how) for number, how in heard.items()}
    yield
    for number, how in before.items():
        signal.signal(number, how)


@pytest.mark.thorough
@pytest.mark.usefixtures("_heard")
@pytest.mark.parametrize(
    "told", [signal.SIGKILL, *profiles.thorough(signal.SIGHUP, signal.SIGTERM, signal.SIGINT)]
)
def test_nothing_is_left_however_the_server_ends(tmp_path: Path, told: signal.Signals) -> None:
    """The folder of uploads goes with the process, also where that is killed."""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "anonymip", "app", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        try:
            assert process.stdout is not None
            assert "token=" in process.stdout.readline()
            (folder,) = tmp_path.glob("anonymip-app-*")
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "upload.csv").write_text("age\n44\n")
            process.send_signal(told)
            process.wait(60)
        finally:
            process.kill()
    end = time.monotonic() + 30
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()


def test_sessions_have_folders_of_their_own(tmp_path: Path) -> None:
    """Two tabs share nothing, and only the user may look into their folders."""
    desk = Desk(tmp_path)
    one, two = (desk.sessions[desk.new()] for _ in range(2))
    assert one.folder != two.folder
    assert {folder.stat().st_mode & 0o777 for folder in (one.folder, two.folder)} == {0o700}
