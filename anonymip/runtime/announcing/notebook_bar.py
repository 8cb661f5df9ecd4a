"""A bar in the output of a notebook's cell, while kernels are compiled."""

from __future__ import annotations

import html
import sys
from typing import Any


class NotebookBar:
    """Shows nothing where no notebook is."""

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, text: str, done: int, total: int | None) -> None:
        """Show how far it is; a bar without a total only says that something goes on."""
        if not _is_notebook():
            return
        from IPython.display import HTML, display

        extent = "" if total is None else f' value="{done}" max="{total}"'
        content = HTML(f"<progress{extent}></progress> {html.escape(text)}")
        if self._shown is None:
            self._shown = display(content, display_id=True)
        else:
            self._shown.update(content)

    def end(self) -> None:
        """Leave one line of what was done."""
        if self._shown is not None:
            from IPython.display import HTML

            self._shown.update(HTML("kernels compiled"))
            self._shown = None


def _is_notebook() -> bool:
    """Return whether the code runs in a cell: terminals of IPython have no kernel."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return getattr(running, "kernel", None) is not None
