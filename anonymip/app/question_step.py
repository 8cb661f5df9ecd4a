"""The second step: k, what may be done, what else must hold, and how to ask it without the page."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

from nicegui import ui

from anonymip.app.parts import Page, button, code, heading, picture, selection, told
from anonymip.app.question import ENDINGS, RECODINGS
from anonymip.app.texts import say, words
from anonymip.cli.rules import LIMITING

#: Largest k of the slider; larger ones are typed.
_MOST = 50
#: What a curve does not depend on.
_NOT_OF_CURVES = ("k", "effort", "ending")


def show(page: Page) -> None:
    """Show the step."""
    heading(say("question.title"))
    if not page.session.looked:
        told(say("table.first"))
        return
    if not page.session.schema.get("attributes"):
        told(say("table.none_asked"), "bad")
        return
    question = _Question(page)
    with ui.element("div").classes("two"):
        with ui.element("div").classes("stack"):
            question.build()
        with ui.element("div").classes("card stack"):
            question.same()


class _Slider(ui.slider):
    """A slider that moves by itself: an answer to the key before would undo those pressed since."""

    LOOPBACK = False


class _Question:
    """The questions, each with its answer so far."""

    def __init__(self, page: Page) -> None:
        self._page, self._asked = page, page.session.asked

    def build(self) -> None:
        """Show them."""
        with ui.element("div").classes("card stack tight"):
            self._k()
        with ui.element("div").classes("card stack"):
            heading(say("question.recoding"), 3)
            self._recodings()
        with ui.element("div").classes("card stack"):
            heading(say("question.rules"), 3)
            self._rules()
        with ui.element("div").classes("line"):
            page = self._page
            make = partial(page.act_and_go, page.session.make_release, "release")
            button(say("question.make"), make, go=True)
            button(say("question.curve"), partial(page.go, "choice"))

    @ui.refreshable_method
    def same(self) -> None:
        """Show what asks the same without the page."""
        session, asked = self._page.session, self._asked
        heading(say("question.copy_title"), 2)
        told(say("question.copy_intro"), "soft")
        name, table, schema = session.next_name(), str(session.table), "schema.toml"
        code(say("question.command"), asked.command(table, schema, name))
        code(say("question.python"), asked.python(table, schema, name))

    def _set(self, name: str, value: Any) -> None:
        setattr(self._asked, name, value)
        if name not in _NOT_OF_CURVES:
            self._page.session.curve = {}
        self.same.refresh()

    def _k(self) -> None:
        heading(say("question.k"), 3)
        meaning = told("")

        def tell() -> None:
            meaning.set_content(say("question.means", k=self._asked.k))

        most: int = max(2, min(_MOST, self._page.session.looked["rows"]))

        def place() -> int:
            return min(max(self._asked.k, 2), most)

        def put(event: Any) -> None:
            if event.value is not None and event.value >= 1:
                self._set("k", int(event.value))
                tell()
                slider.set_value(place())

        def slid(event: Any) -> None:
            # What follows a number that was typed, and may be beyond it, is no answer.
            if event.value != place():
                number.set_value(event.value)

        with ui.element("div").classes("line"):
            slider = _Slider(min=2, max=most, value=place(), on_change=slid)
            slider.props(f'aria-label="{say("question.k")}" label').style(
                "flex: 1; min-width: 9rem"
            )
            number = ui.number(
                say("question.k_number"), value=self._asked.k, min=1, precision=0, on_change=put
            )
            number.props("outlined dense").style("width: 8rem")
        tell()

    @ui.refreshable_method
    def _recodings(self) -> None:
        def choose(recoding: str) -> None:
            self._set("recoding", recoding)
            self._recodings.refresh()
            self._rules.refresh()

        group = ui.element("div").classes("choices")
        with group.props(f'role=radiogroup aria-label="{say("question.recoding")}"'):
            for one in RECODINGS:
                chosen = "true" if one == self._asked.recoding else "false"
                made = ui.button(on_click=partial(choose, one), color=None)
                with made.classes("choice").props(
                    f"no-caps unelevated role=radio aria-checked={chosen}"
                ):
                    ui.html(picture(one), sanitize=False)
                    ui.html(escape(words("recodings")[one]), sanitize=False, tag="strong")
                    ui.label(words("recoding_notes")[one]).classes("soft")

    @ui.refreshable_method
    def _rules(self) -> None:
        asked, has_sensitive = self._asked, self._page.session.schema["table"].get("sensitive")
        limited = asked.recoding in LIMITING
        with ui.element("div").classes("fields broad"):
            self._number("suppressed", "most_suppressed", limited, 0, 100, step=0.5)
            put = partial(self._set, "effort")
            selection(say("question.effort"), words("efforts"), asked.effort, put)
            put = partial(self._set, "ending")
            selection(say("question.ending"), list(ENDINGS), asked.ending, put)
            for text, name, least in (
                ("l", "l_diversity", 1),
                ("distinct", "distinct_diversity", 1),
                ("t", "t_closeness", 0),
            ):
                self._number(text, name, bool(has_sensitive), least, None, kind="wide")
        told(say("question.suppressed_hint" if limited else "question.suppressed_none"), "soft")
        if not has_sensitive:
            told(say("question.no_sensitive"), "soft")
        ui.checkbox(say("question.weighted"), value=asked.weighted, on_change=self._set_weighted)
        if asked.weighted:
            told(say("question.weights"), "soft")
            with ui.element("div").classes("fields broad"):
                for name, known in self._page.session.schema["attributes"].items():
                    ui.number(
                        say("question.weight", name=name),
                        value=known.get("weight", 1),
                        min=0,
                        on_change=lambda event, name=name: self._page.session.declare(
                            name, "weight", event.value
                        ),
                    ).props("outlined dense")

    def _set_weighted(self, event: Any) -> None:
        self._set("weighted", event.value)
        self._rules.refresh()

    def _number(
        self,
        text: str,
        name: str,
        enabled: bool,
        least: float,
        most: float | None,
        step: float = 1,
        kind: str = "",
    ) -> None:
        def put(event: Any) -> None:
            value = event.value
            if name == "distinct_diversity" and value is not None:
                value = int(value)
            self._set(name, 0.0 if value is None and name == "most_suppressed" else value)

        field = ui.number(
            say(f"question.{text}"),
            value=getattr(self._asked, name),
            min=least,
            max=most,
            step=step,
            on_change=put,
        )
        field.props("outlined dense clearable").classes(kind).set_enabled(enabled)
