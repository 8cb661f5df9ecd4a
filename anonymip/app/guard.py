"""The door of the page: who may come in, from where, and with how much.

Other programs and pages on the same machine reach the loopback address too. So every request needs
a secret, which came with the address that the user opened; names this server, or a page elsewhere
had its name point here (DNS rebinding); and if it changes anything, comes from a page of ours.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from anonymip.app.texts import say

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Largest body of a request: half a gigabyte of a table is more than two gigabytes in memory.
LARGEST = 500_000_000
#: What a page of ours may do: load from here alone, and be framed by nobody else.
POLICY = (
    "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'; object-src 'none'"
)
_HEADERS = (
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """Lets requests with the token through to an application, and answers all others itself.

    `port`: where the server listens. `once`: another one that lets in once, for an address that
    others may see, as the words of a program are seen.
    """

    def __init__(self, app: App, port: int, token: str, once: str = "") -> None:
        self.app = app
        self._token, self._once = token, once
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        # Cookies know no ports: two servers of one user must not overwrite each other's.
        self._cookie = f"anonymip-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): one.decode("latin-1") for name, one in scope["headers"]}
        refused = self._refusal(scope, headers)
        if refused is not None:
            await _answer(scope, receive, send, *refused)
        elif scope["type"] == "http" and self._asked_token(scope):
            self._once = ""
            # The address with the token shall not stay in the window and in its history.
            cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            more = [(b"location", b"/"), (b"set-cookie", cookie.encode())]
            await _answer(scope, receive, send, 303, "", more)
        else:
            await self.app(scope, receive, _adding_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and text of the answer to who may not come in; None to come in."""
        if headers.get("host") not in self._hosts:
            return 403, say("guard.host")
        with_token = self._asked_token(scope)
        if not (with_token or self._same(self._cookie_of(headers))):
            return 403, say("guard.token")
        # Of another port is "same-site" to browsers, and its requests carry our cookie.
        from_elsewhere = headers.get("sec-fetch-site") not in (None, "none", "same-origin")
        if from_elsewhere and not with_token:
            return 403, say("guard.origin")
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            return None
        if headers.get("origin") != f"http://{headers['host']}":
            return 403, say("guard.origin")
        if scope["type"] == "websocket":
            return None
        length = headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal()):
            return 411, say("guard.length")
        if int(length) > LARGEST:
            return 413, say("guard.large", most=LARGEST // 1_000_000)
        return None

    def _asked_token(self, scope: Scope) -> bool:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        once = self._once and hmac.compare_digest(given.encode(), self._once.encode())
        return bool(once) or self._same(given)

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _cookie_of(self, headers: dict[str, str]) -> str:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        return cookies[self._cookie].value if self._cookie in cookies else ""


def _adding_headers(send: Send) -> Send:
    async def adding(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            own = {name.lower() for name, _ in given}
            policy = [(b"content-security-policy", POLICY.encode()), *_HEADERS]
            message["headers"] = [*given, *(one for one in policy if one[0] not in own)]
        await send(message)

    return adding


async def _answer(
    scope: Scope,
    receive: Receive,
    send: Send,
    status: int,
    text: str,
    more: list[tuple[bytes, bytes]] | None = None,
) -> None:
    """Send a text, or close a websocket that was never opened."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        # What was not read of a body is not taken for the next request.
        (b"connection", b"close"),
        *_HEADERS,
        *(more or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
