"""Fetching public data: from a server on this machine, checked, kept, and told on what terms."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from anonymip import InputError, load_instance
from anonymip.cli.app import run
from anonymip.instances.library import fetching
from anonymip.instances.library.fetching import PUBLIC, fetch
from tests.conftest import shared_data_directory

RECORDS = "39, Private, 1, HS-grad, 9, Divorced, Sales, Wife, White, Male, 0, 0, 40, Cuba, <=50K\n"
TEXT = RECORDS + RECORDS.replace("Cuba", "?") + "\n"


class Mirror:
    """A server of one file, and what was asked of it."""

    def __init__(self, content: bytes) -> None:
        self.content, self.asked = content, 0
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.asked += 1
                found = self.path.endswith(".data")
                self.send_response(200 if found else 404)
                self.end_headers()
                # Who has read enough may close the connection.
                with suppress(ConnectionError):
                    self.wfile.write(mirror.content if found else b"")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/adult.data"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mirror]:
    """Serve two records of Adult, one of them incomplete; nothing is in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    source = PUBLIC["adult"]
    header = "sex;age;race;marital-status;education;native-country;workclass;occupation"
    made = f"{header};salary-class\r\nMale;39;White;Divorced;HS-grad;Cuba;Private;Sales;<=50K\r\n"
    small = replace(
        source,
        digest=hashlib.sha256(TEXT.encode()).hexdigest(),
        made=(source.made[0], hashlib.sha256(made.encode()).hexdigest(), source.made[2]),
    )
    monkeypatch.setattr(fetching, "PUBLIC", {"adult": small})
    serving = Mirror(TEXT.encode())
    thread = Thread(target=serving.server.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.server.shutdown()
    thread.join()
    serving.server.server_close()


def test_what_is_fetched_is_found_and_not_fetched_again(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After one request the instance loads, wherever the command is run."""
    monkeypatch.delenv("ANONYMIP_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="Run 'anonymip fetch adult'"):
        load_instance("adult")
    first = fetch("adult", address=mirror.address)
    assert first.files[0].read_text() == TEXT
    assert hashlib.sha256(first.files[1].read_bytes()).hexdigest() == first.source.made[1]
    assert fetch("adult", address=mirror.address) == first
    assert mirror.asked == 1
    data = load_instance("adult")
    assert data.n == 1
    assert data.frame["salary-class"].tolist() == ["<=50K"]


def test_another_file_is_refused_and_not_kept(mirror: Mirror) -> None:
    """A file that was tampered with is named, and the next fetch asks again."""
    mirror.content = TEXT.replace("39", "40").encode()
    with pytest.raises(InputError, match="is another file than the one that is expected"):
        fetch("adult", address=mirror.address)
    mirror.content = TEXT.encode()
    assert fetch("adult", address=mirror.address).files[0].read_text() == TEXT
    assert mirror.asked == 2


def test_no_more_is_read_than_the_file_holds(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server that sends on and on is cut off, whatever the digest would be; nothing is kept."""
    small = replace(fetching.PUBLIC["adult"], size=len(TEXT))
    monkeypatch.setattr(fetching, "PUBLIC", {"adult": small})
    assert PUBLIC["adult"].size == 3_974_305
    read = 0
    pieces = requests.Response.iter_content

    def counted(answer: requests.Response, size: int) -> Iterator[bytes]:
        nonlocal read
        for piece in pieces(answer, size):
            read += len(piece)
            yield piece

    monkeypatch.setattr(requests.Response, "iter_content", counted)
    mirror.content = TEXT.encode() + b"x" * 30_000_000
    with pytest.raises(InputError, match="is another file than the one that is expected"):
        fetch("adult", address=mirror.address)
    assert read < 100_000
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
    mirror.content = TEXT.encode()
    assert fetch("adult", address=mirror.address).files[0].read_text() == TEXT


def test_what_cannot_be_had_is_an_error_with_the_place_for_it(mirror: Mirror) -> None:
    """A server without the file, and none at all, are told; so is where a copy would serve."""
    with pytest.raises(InputError, match="the server answers 404") as caught:
        fetch("adult", address=f"{mirror.address}.gone")
    assert "adult/adult.data" in str(caught.value)
    mirror.server.shutdown()
    mirror.server.server_close()
    with pytest.raises(InputError, match="cannot be had"):
        fetch("adult", address=mirror.address)
    with pytest.raises(InputError, match="What can be: adult"):
        fetch("iris")


def test_the_command_says_licence_and_places(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    """Licence and citation come before the files."""
    assert run(["fetch", "adult", "--address", mirror.address]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("licence: CC BY 4.0; B. Becker")
    assert "adult_arx_30162.csv" in printed.replace("\n", "")


@pytest.mark.shared_data
def test_the_published_file_gives_the_table_of_the_instance() -> None:
    """The complete records of UCI's file are the benchmark's file, byte by byte."""
    folder, source = shared_data_directory(), PUBLIC["adult"]
    assert folder is not None
    original = (folder / source.file).read_bytes()
    assert hashlib.sha256(original).hexdigest() == source.digest
    place, digest, make = source.made
    assert make(original.decode()).encode() == (folder / place).read_bytes()
    assert hashlib.sha256((folder / place).read_bytes()).hexdigest() == digest
