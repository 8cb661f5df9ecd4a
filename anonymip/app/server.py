"""The server of the page: on the loopback address alone, with a folder that goes when it ends."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path

from anonymip.app.guard import Guard
from anonymip.app.session import Desk
from anonymip.errors import InputError, missing_extra
from anonymip.runtime import worker_pool


def guarded(folder: Path, port: int, token: str, once: str) -> Guard:
    """Return the application behind its door; see :class:`anonymip.app.guard.Guard`."""
    # Where NiceGUI would keep what is stored for users: nothing is written elsewhere.
    os.environ["NICEGUI_STORAGE_PATH"] = str(folder / "storage")
    from fastapi import FastAPI
    from nicegui import ui

    from anonymip.app.page import add_pages

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_pages(app, Desk(folder))
    icon = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#14598a" '
        'd="M1 3h9v2H1zm3 4h11v2H4zm-3 4h9v2H1z"/></svg>'
    )
    ui.run_with(
        app,
        title="AnonyMIP",
        favicon=icon,
        dark=None,
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=30,
        language="en-US",
    )
    return Guard(app, port, token, once)


_REMOVING = """
import os, shutil, sys, time
sys.stdin.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)  # a worker may still be writing
"""


def serve(port: int, tell: Callable[[str], None], *, opens: bool) -> None:
    """Serve the page until the process is told to end.

    `port`: 0 for any that is free. `tell`: hears the address.

    Raises InputError if NiceGUI is not installed, or the port is taken.
    """
    if importlib.util.find_spec("nicegui") is None:
        raise missing_extra("app", "the page needs NiceGUI")
    import uvicorn

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        # Who opens the address at once waits, and is not turned away.
        listener.listen()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"port {port} cannot be had on this machine", remedy="Name another port, or none"
        ) from error
    port = listener.getsockname()[1]
    token, once = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    folder = Path(tempfile.mkdtemp(prefix="anonymip-app-"))
    # Removes the folder when its input closes, however this process ends.
    remover = subprocess.Popen(
        [sys.executable, "-I", "-c", _REMOVING, str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    # What is uploaded passes through temporary files: they lie in there too.
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        application = guarded(folder, port, token, once)
        config = uvicorn.Config(application, log_level="critical", access_log=False)
        server = uvicorn.Server(config)
        address = f"http://127.0.0.1:{port}/?token="
        threading.Thread(target=_load, daemon=True).start()
        tell(address + token)
        if opens:
            # All users of a machine see the words of its programs.
            opening = partial(webbrowser.open, address + once)
            threading.Thread(target=opening, daemon=True).start()
        server.run(sockets=[listener])
    finally:
        tempfile.tempdir = before
        remover.communicate()


def _load() -> None:
    """Load what the first actions need, here and in a worker, while the user looks."""
    import anonymip.instances.schema  # noqa: F401
    from anonymip.app.work import loading
    from anonymip.runtime.budget import Budget

    if worker_pool.can_isolate():
        worker_pool.run_isolated(loading, None, Budget())
