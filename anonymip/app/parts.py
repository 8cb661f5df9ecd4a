"""Parts of the page that several steps show: tables, code to copy, pictures of the recodings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from nicegui import ui

from anonymip.app.session import Session
from anonymip.app.texts import capital, say
from anonymip.errors import AnonymipError


class Page:
    """What the steps know of the page that they are on."""

    def __init__(self, session: Session, key: str) -> None:
        self.session, self.key = session, key
        self.tabs: Any = None
        #: Shows what has changed.
        self.refresh: Callable[[], Any] = lambda: None

    def address(self, name: str) -> str:
        """Return where a file of the session is handed out."""
        return f"/tab/{self.key}/file/{quote(name)}"

    def act(self, what: Callable[..., Any], *given: Any) -> bool:
        """Do something for the user; what is wrong is said on the page. Return whether it went."""
        try:
            what(*given)
        except AnonymipError as error:
            self.complain(error)
            return False
        return True

    def complain(self, error: AnonymipError) -> None:
        """Say what is wrong with what the user did."""
        text = f"{capital(error.render(show_values=True))}."
        ui.notify(text, type="negative", multi_line=True, timeout=9000)

    def go(self, step: str) -> None:
        """Show a step."""
        self.tabs.set_value(step)

    def act_and_go(self, what: Callable[..., Any], step: str) -> None:
        """Do something for the user, and show a step if it went."""
        if self.act(what):
            self.go(step)


def heading(text: str, level: int = 2) -> None:
    """Show a heading."""
    ui.html(escape(text), sanitize=False, tag=f"h{level}")


def told(text: str, kind: str = "") -> ui.html:
    """Show a paragraph; the text is shown as it is."""
    return ui.html(escape(text), sanitize=False, tag="p").classes(kind)


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, paired: bool = False
) -> ui.html:
    """Show a table of texts; where columns are pairs, the second of each is marked."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)

    def cell(place: int, text: str) -> str:
        kind = ' class="after"' if paired and place % 2 else ""
        return f'<td{kind} title="{escape(text)}">{escape(text)}</td>'

    body = "".join(
        f"<tr>{''.join(cell(place, text) for place, text in enumerate(row))}</tr>" for row in rows
    )
    shown = ui.html(
        f'<table class="plain cells"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        sanitize=False,
    ).classes("sheet")
    shown.props["tabindex"], shown.props["role"], shown.props["aria-label"] = 0, "region", caption
    return shown


def code(title: str, text: str) -> None:
    """Show a text to copy, with a button that does so."""
    with ui.element("div").classes("stack tight"):
        with ui.element("div").classes("line"):
            heading(title, 3)
            copying = button(say("question.copy"), icon="content_copy")
        shown = ui.html(escape(text), sanitize=False, tag="pre").classes("code")
    # Browsers let pages copy while a click lasts, which a way over the server may not.
    copied = f"navigator.clipboard.writeText(getHtmlElement({shown.id}).textContent)"
    copying.on(
        "click",
        lambda: ui.notify(say("question.copied")),
        js_handler=f"() => {copied}.then(() => emit())",
    )


def selection(
    label: str, choices: Any, value: object, put: Callable[[Any], object], kind: str = ""
) -> Any:
    """Show a list to choose from; what is chosen is handed on."""
    made = ui.select(choices, value=value, label=label, on_change=lambda event: put(event.value))
    return made.props("outlined dense options-dense").classes(kind)


def button(
    text: str, act: Callable[[], Any] | None = None, *, go: bool = False, icon: str | None = None
) -> Any:
    """Show a button; those that lead on have a colour."""
    made = ui.button(text, on_click=act, icon=icon, color=None)
    return made.props("no-caps unelevated").classes("go" if go else "plain")


#: Cells of the pictures: how far a bar reaches from where, in tenths; None is a star.
_CELLS: dict[str, tuple[tuple[tuple[int, int] | None, ...], ...]] = {
    "classes": (((1, 5), (2, 7)), ((1, 5), (2, 7)), ((6, 9), (0, 3)), ((6, 9), (0, 3))),
    "freeform": (((1, 4), (2, 6)), ((2, 5), (3, 7)), ((6, 8), (0, 3)), ((5, 9), (1, 3))),
    "full-domain": (((0, 5), (0, 10)), ((0, 5), (0, 10)), ((5, 10), (0, 10)), ((5, 10), (0, 10))),
    "pattern": (((3, 4), None), ((3, 4), None), (None, (1, 2)), (None, (1, 2))),
}


def picture(recoding: str) -> str:
    """Return a small picture of a recoding: four rows of two cells, a bar as wide as its range."""
    shapes = []
    for row, cells in enumerate(_CELLS[recoding]):
        for column, cell in enumerate(cells):
            x, y = 8 + 100 * column, 4 + 15 * row
            shapes.append(f'<rect x="{x}" y="{y}" width="90" height="11" rx="3"/>')
            if cell is None:
                shapes.append(f'<text x="{x + 41}" y="{y + 14}">*</text>')
            else:
                low, high = cell
                shapes.append(
                    f'<rect x="{x + 9 * low}" y="{y}" width="{9 * (high - low)}" height="11" '
                    'rx="3" class="filled"/>'
                )
    return f'<svg viewBox="0 0 206 66" aria-hidden="true">{"".join(shapes)}</svg>'
