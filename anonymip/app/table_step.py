"""The first step: a table, what its columns are, and the schema that says so."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import run, ui

from anonymip.app.guard import LARGEST
from anonymip.app.parts import Page, button, heading, selection, table, told
from anonymip.app.session import TABLES, Session
from anonymip.app.texts import capital, say, words
from anonymip.errors import InputError

#: Values that are grouped one by one.
_MOST = 60
#: Cards that are shown at once.
_CARDS = 16


def show(page: Page) -> None:
    """Show the step."""
    session = page.session
    heading(say("table.title"))
    told(say("table.intro"))
    if session.table is None or not session.looked:
        _sources(page)
        return
    looked, name = session.looked, session.table
    told(
        say("table.summary", name=name, rows=f"{looked['rows']:,}", columns=len(looked["columns"]))
        + f" · {looked['format'].partition('; ')[2]}",
        "soft",
    )
    heads = [one["name"] for one in looked["columns"]]
    table(say("table.preview", name=name), heads, looked["head"])
    with ui.expansion(say("table.more")).classes("card"), ui.element("div").classes("stack tight"):
        _upload(page, words("table.schema_drop"), page.session.take_beside)
        with ui.element("div").classes("line"):
            button(say("table.schema_save"), lambda: _save_schema(page), icon="download")
            # Another session: what was done to this table stays in its tab.
            link = ui.link(say("table.another"), "/", new_tab=True)
            link.props('rel="noopener"')
    heading(say("table.columns"))
    told(say("table.columns_intro"))
    _cards(page)
    with ui.element("div").classes("line"):
        button(say("table.next"), lambda: page.go("question"), go=True)


def _cards(page: Page) -> None:
    """Show the cards; of many columns a part, so that none waits for all of them."""
    columns = page.session.looked["columns"]

    @ui.refreshable
    def part(first: int) -> None:
        with ui.element("div").classes("line"):
            for start in range(0, len(columns), _CARDS) if len(columns) > _CARDS else ():
                text = say("table.part", first=start + 1, last=min(start + _CARDS, len(columns)))
                chosen = button(text, partial(part.refresh, start), go=start == first)
                chosen.props(f"aria-pressed={str(start == first).lower()}")
        with ui.element("div").classes("cards"):
            for column in columns[first : first + _CARDS]:
                _Card(page, column).build()

    part(0)


def _sources(page: Page) -> None:
    session = page.session
    with ui.element("div").classes("stack tight"):
        _upload(page, words("table.drop"), partial(_take, session))
        told(say("table.builtin"), "soft")
        with ui.element("div").classes("line"):
            for instance, what in words("builtin").items():
                button(f"{what} ({instance})", partial(page.act, session.take_table, instance))


def _save_schema(page: Page) -> None:
    ui.download.content(page.session.schema_text(), "schema.toml", "application/toml")


def _upload(page: Page, label: list[str], take: Callable[[str, Path], str | None]) -> None:
    async def uploaded(event: Any) -> None:
        incoming = page.session.folder.with_suffix(f".{secrets.token_hex(4)}")
        try:
            await event.file.save(incoming)
            sender.reset()
            # Large projects take a while to unpack.
            if said := await run.io_bound(take, event.file.name, incoming):
                ui.notify(said)
        except InputError as error:
            page.complain(error)
        finally:
            incoming.unlink(missing_ok=True)

    def rejected() -> None:
        most = LARGEST // 1_000_000
        ui.notify(say("table.large", most=most), type="negative", multi_line=True, timeout=9000)

    sender = ui.upload(
        on_upload=uploaded,
        on_rejected=rejected,
        auto_upload=True,
        max_file_size=LARGEST - 1_000_000,
    )
    # Quasar's own box cannot be read by a screen reader: it works unseen.
    sender.style("display: none")
    files = f"getElement({sender.id}).$refs.qRef"
    mark = "event.preventDefault(); event.currentTarget.classList"
    with ui.element("div").classes("drop") as place:
        picking = button(label[0], icon="upload_file")
        picking.on("click", js_handler=f"() => {files}.pickFiles()")
        told(label[1], "soft")
    place.on("dragover", js_handler=f"event => {{ {mark}.add('over') }}")
    place.on("dragleave", js_handler=f"event => {{ {mark}.remove('over') }}")
    taken = f"{files}.addFiles(event.dataTransfer.files)"
    place.on("drop", js_handler=f"event => {{ {mark}.remove('over'); {taken} }}")


def _take(session: Session, name: str, incoming: Path) -> None:
    ending = Path(name).suffix.lower()
    if ending == ".zip":
        session.open_project(incoming)
    elif ending in TABLES:
        session.take_table(name, incoming)
    else:
        raise InputError(say("table.ending", name=name))


class _Card:
    """What a column holds, its role, and how it may be published."""

    def __init__(self, page: Page, column: dict[str, Any]) -> None:
        self._page, self._session = page, page.session
        self._column, self._name = column, column["name"]

    @property
    def _known(self) -> dict[str, Any]:
        known: dict[str, Any] = self._session.schema["attributes"][self._name]
        return known

    @ui.refreshable_method
    def build(self) -> None:
        """Show the card."""
        column, role = self._column, self._session.role(self._name)
        is_asked = role == "quasi-identifier"
        card = ui.element("section").classes("card stack tight" + (" asked" if is_asked else ""))
        card.props["role"], card.props["aria-label"] = "group", self._name
        with card:
            heading(self._name, 3)
            rows = self._session.looked["rows"]
            told(
                say(
                    "table.facts",
                    looks=column["looks"],
                    distinct=f"{column['distinct']:,}",
                    missing=f"{100 * column['missing'] / max(rows, 1):.0f}\u00a0%",
                    unique=f"{100 * column['unique']:.0f}\u00a0%",
                ),
                "soft",
            )
            put = partial(self._change, self._session.set_role, self._name)
            selection(say("card.role", name=self._name), words("roles"), role, put)
            told(
                say("table.why", role=words("roles")[column["role"]], why=capital(column["why"])),
                "soft",
            )
            if is_asked:
                self._kind()
                with (
                    ui.expansion(say("card.finer", name=self._name)),
                    ui.element("div").classes("fields"),
                ):
                    self._finer()

    def _change(self, what: Callable[..., None], *given: Any) -> None:
        if self._page.act(what, *given):
            self.build.refresh()

    def _declare(self, key: str, value: Any) -> None:
        self._page.act(self._session.declare, self._name, key, value)

    def _kind(self) -> None:
        known = self._known
        hierarchy = known.get("hierarchy")
        coarse = "none" if hierarchy is None else form(hierarchy)
        with ui.element("div").classes("fields"):
            if hierarchy is None:
                kind = known.get("kind") or self._column["kind"]
                put = partial(self._change, self._session.declare, self._name, "kind")
                selection(say("card.kind"), words("kinds"), kind, put, "wide")
            choices = dict(words("coarse"))
            fitting = {
                "groups": len(self._column["values"] or range(_MOST + 1)) <= _MOST,
                "bands": self._column["seen"] is not None,
                "schema": False,
            }
            for one, fits in fitting.items():
                if not fits and coarse != one:
                    del choices[one]
            put = partial(self._change, self._set_coarse)
            selection(say("card.coarse", name=self._name), choices, coarse, put, "wide")
        if hierarchy is not None:
            with ui.element("div").classes("fields"):
                getattr(self, f"_{coarse}")(hierarchy)

    def _set_coarse(self, coarse: str) -> None:
        seen = self._column["seen"] or ["0", "99"]
        ends = [int(float(one)) for one in seen]
        made: dict[str, Any] = {
            "none": None,
            "bands": {"bands": [5, 10], "domain": [ends[0] // 10 * 10, ends[1] // 10 * 10 + 9]},
            "mask": {"mask": "right"},
            "groups": {"groups": {one: [one] for one in self._column["values"] or []}},
            "file": f"{self._name}.csv",
        }
        self._session.declare(self._name, "hierarchy", made[coarse])

    # Hierarchies.

    def _bands(self, hierarchy: dict[str, Any]) -> None:
        def put(place: int, text: str) -> None:
            ends = [*hierarchy["domain"]]
            ends[place] = _number(text)
            self._session.amend(hierarchy, "domain", ends)

        widths = ", ".join(map(str, hierarchy["bands"]))
        self._text(
            "card.widths",
            widths,
            lambda text: self._session.amend(hierarchy, "bands", _numbers(text)),
            "wide",
        )
        for place, key in enumerate(("card.low", "card.high")):
            self._text(key, str(hierarchy["domain"][place]), partial(put, place))

    def _mask(self, hierarchy: dict[str, Any]) -> None:
        put = partial(self._session.amend, hierarchy, "mask")
        selection(say("card.side"), words("sides"), hierarchy["mask"], put, "wide")

        def keep(text: str) -> None:
            self._session.amend(hierarchy, "keep", list(map(int, _numbers(text))))

        self._text("card.shown", ", ".join(map(str, hierarchy.get("keep", []))), keep, "wide")
        act = partial(self._page.act, self._session.write_hierarchy, self._name)
        button(say("card.as_file"), act).classes("wide")
        told(say("card.as_file_hint"), "soft wide")

    def _groups(self, hierarchy: dict[str, Any]) -> None:
        groups = {one: name for name, values in hierarchy["groups"].items() for one in values}

        def put(value: str, event: Any) -> None:
            name = event.value or ""
            groups[value] = name.strip() or value
            made: dict[str, list[str]] = {}
            for one, group in groups.items():
                made.setdefault(group, []).append(one)
            self._session.amend(hierarchy, "groups", made)

        for value in self._column["values"] or groups:
            name = groups.get(value, value)
            ui.input(
                say("card.group", value=value),
                value=name,
                on_change=partial(put, value),
                autocomplete=sorted(set(groups.values())),
            ).props("outlined dense")

    def _file(self, hierarchy: str) -> None:
        names = sorted(path.name for path in self._session.folder.glob("*.csv"))
        choices = sorted({*(one for one in names if one != self._session.table), hierarchy})
        put = partial(self._declare, "hierarchy")
        made = selection(say("card.file"), choices, hierarchy, put, "wide")
        made.props(f'hint="{say("card.file_hint")}"')

    def _schema(self, hierarchy: dict[str, Any]) -> None:
        told(json.dumps(hierarchy, ensure_ascii=False), "soft wide")

    # Fields.

    def _finer(self) -> None:
        known = self._known
        kind = known.get("kind") or self._column["kind"]
        if "hierarchy" not in known:
            if kind == "categorical":
                self._values()
            else:
                self._ends(kind)
        policy, put = known.get("missing", ""), partial(self._declare, "missing")
        selection(say("card.missing"), words("policies"), policy, put, "wide")
        cap = self._session.asked.caps.get(self._name)
        self._text("card.cap", "" if cap is None else f"{cap:g}", self._set_cap, "wide")

    def _set_cap(self, text: str) -> None:
        self._session.asked.caps.pop(self._name, None)
        if text.strip():
            self._session.asked.caps[self._name] = _number(text)
        self._session.curve = {}

    def _values(self) -> None:
        def put(text: str) -> None:
            values = [line.strip() for line in text.splitlines() if line.strip()]
            self._declare("domain", values)

        area = ui.textarea(
            say("card.values"),
            value="\n".join(map(str, self._known.get("domain", []))),
            on_change=lambda event: put(event.value or ""),
        )
        area.props(f'outlined dense autogrow hint="{say("card.domain_hint")}"').classes("wide")
        if self._column["values"] is not None:
            listed = "\n".join(self._column["values"])
            button(say("card.take_values"), lambda: area.set_value(listed)).classes("wide")

    def _ends(self, kind: str) -> None:
        is_date = kind == "date"
        read: Callable[[str], Any] = str if is_date else _number

        def put(place: int, text: str) -> None:
            ends = [*self._known.get("domain", ["", ""])]
            ends[place] = read(text) if text.strip() else ""
            self._declare("domain", ends if any(one != "" for one in ends) else None)

        domain = self._known.get("domain", ["", ""])
        for place, key in enumerate(("card.low", "card.high")):
            self._text(key, str(domain[place]), partial(put, place))
        seen = self._column["seen"]
        hint = say("card.domain_hint")
        if seen:
            hint = f"{say('card.seen', low=seen[0], high=seen[1])}; {hint}"
        told(hint, "soft wide")
        if is_date:
            self._field("card.format", "format", str)
            unit, finest = self._known.get("precision", "day"), partial(self._declare, "precision")
            selection(say("card.precision"), words("units"), unit, finest)
        else:
            self._field("card.step", "precision", _number, "wide")
        self._field("card.below", "at_least", read)
        self._field("card.above", "at_most", read)

    def _field(self, text: str, key: str, read: Callable[[str], Any], kind: str = "") -> None:
        value = self._known.get(key, "")
        self._text(
            text,
            str(value),
            lambda given: self._declare(key, read(given) if given.strip() else None),
            kind,
        )

    def _text(self, text: str, value: str, put: Callable[[str], None], kind: str = "") -> None:
        """Show a field whose text is taken in when it is left."""
        field = ui.input(say(text), value=value).props("outlined dense").classes(kind)
        field.on("change", lambda: self._page.act(put, field.value or ""))


def form(hierarchy: str | dict[str, Any]) -> str:
    """Return which fields a hierarchy has on its card; ``"schema"``: none, it stays as it is."""
    if isinstance(hierarchy, str):
        return "file"
    groups = hierarchy.get("groups", {})
    if groups and all(isinstance(one, list) for one in groups.values()):
        return "groups"
    return next((one for one in ("bands", "mask") if one in hierarchy), "schema")


def _numbers(text: str) -> list[float]:
    return [_number(one) for one in text.split(",") if one.strip()]


def _number(text: str) -> int | float:
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        raise InputError(say("card.number", text=repr(text))) from None
    return int(number) if number.is_integer() else number
