"""The door of the page: without the token nothing, and nothing from elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from anonymip.app.guard import LARGEST, Guard

HOST, TOKEN = "127.0.0.1:4711", "sesame"
COOKIE = {"cookie": f"other=1; anonymip-4711={TOKEN}"}


async def behind_all(*_: object) -> None:
    """Be an application that nothing shall reach."""
    raise AssertionError


def ask(
    method: str = "GET",
    path: str = "/",
    query: str = "",
    kind: str = "http",
    guard: Guard | None = None,
    **given: str | None,
) -> tuple[int, dict[str, str], bool]:
    """Return status and headers of the answer to a request, and whether it came to what is behind.

    Of a websocket that is closed before it opens the status is 0. `given`: headers, None for none.
    """
    reached, sent = [], []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return {"type": f"{kind}.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": HOST, **{name.replace("_", "-"): one for name, one in given.items()}}
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), one.encode()) for name, one in headers.items() if one],
    }
    asyncio.run((guard or Guard(behind, 4711, TOKEN))(scope, receive, send))
    start = sent[0]
    told = {name.decode(): one.decode() for name, one in start.get("headers", [])}
    return start.get("status", 0), told, bool(reached)


def test_the_token_of_the_address_becomes_a_cookie() -> None:
    """Who has the address comes in; the cookie is out of reach of scripts and of other sites."""
    status, headers, reached = ask(query=f"token={TOKEN}", sec_fetch_site="cross-site")
    assert (status, headers["location"], reached) == (303, "/", False)
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(headers["set-cookie"].split("; "))
    assert ask(**COOKIE)[0] == 200


def test_the_address_that_is_opened_works_once() -> None:
    """Other users see the words of a program that runs, and its address is among them."""
    guard = Guard(behind_all, 4711, TOKEN, "once")
    assert [ask(query="token=once", guard=guard)[0] for _ in range(3)] == [303, 403, 403]
    assert ask(query=f"token={TOKEN}", guard=guard)[0] == 303
    assert ask(query="token=", guard=guard)[0] == 403


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ({}, ""),
        ({}, "token="),
        ({}, "token=sesam"),
        ({"cookie": "anonymip-4711=other"}, ""),
        ({"cookie": f"anonymip-4712={TOKEN}"}, ""),
        ({"cookie": "anonymip-4711"}, ""),
        ({"cookie": "\x00;;="}, "token=é"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_without_the_token_nothing(given: dict[str, str], query: str, kind: str) -> None:
    """Neither a page nor a file nor a websocket."""
    status, _, reached = ask(query=query, kind=kind, origin=f"http://{HOST}", **given)
    assert not reached
    assert status == (403 if kind == "http" else 0)


@pytest.mark.parametrize("host", [None, "evil.example:4711", "127.0.0.1", "127.0.0.1:80", "[::1]"])
def test_names_that_were_made_to_point_here_are_refused(host: str | None) -> None:
    """The host that a browser believes to talk to is one of ours, with our port."""
    assert ask(**{**COOKIE, "host": host})[::2] == (403, False)
    assert ask(**{**COOKIE, "host": "localhost:4711"})[0] == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:80", f"https://{HOST}"]
)
def test_changes_from_other_pages_are_refused(origin: str | None) -> None:
    """A form or a websocket of another page is refused, even where the cookie comes with it."""
    body = {**COOKIE, "content_length": "3"}
    for kind, status in (("http", 403), ("websocket", 0)):
        assert ask("POST", kind=kind, **body, origin=origin)[::2] == (status, False)
        assert ask("POST", kind=kind, **body, origin=f"http://{HOST}")[2]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_ports_load_nothing_of_ours(site: str) -> None:
    """To browsers another port is the same site; its pictures and frames get nothing."""
    assert ask(**COOKIE, sec_fetch_site=site)[::2] == (403, False)
    assert ask(**COOKIE, sec_fetch_site="same-origin")[0] == 200


@pytest.mark.parametrize(
    ("length", "status"),
    [("2000000000", 413), (str(LARGEST + 1), 413), (None, 411), ("-1", 411), ("many", 411)],
)
def test_bodies_without_measure_are_refused_unread(length: str | None, status: int) -> None:
    """A file of two gigabytes gets a clear answer before any of it is read."""
    asked = {**COOKIE, "origin": f"http://{HOST}", "content_length": length}
    assert ask("POST", **asked)[::2] == (status, False)
    assert ask("POST", **{**asked, "content_length": str(LARGEST)})[2]


def test_pages_may_load_and_send_nothing_elsewhere() -> None:
    """Answers say so to the browser, and that the address is nobody's business."""
    headers = ask(**COOKIE)[1]
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "connect-src 'self'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
