"""The command that serves the page for people who do not write code."""

from __future__ import annotations

from typing import Annotated

import typer

from anonymip.cli.arguments import spread
from anonymip.cli.console import out, say


@spread
def app(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Default: one that is free.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address, and open nothing.")
    ] = False,
) -> None:
    """Open a page that makes releases, in this machine's browser; nothing leaves the machine."""
    from anonymip.app.server import serve

    def tell(address: str) -> None:
        say(out, f"Open {address}\nThe address is a secret of yours. Ctrl-C ends the program.")

    serve(port, tell, opens=not no_browser)
