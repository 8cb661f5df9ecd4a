"""The first step: a table, what its columns are, and the schema that says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from anonymip.app.guard import LARGEST
from anonymip.app.parts import Page, button, heading, table, told
from anonymip.app.session import TABLES
from anonymip.app.texts import capital, say, words
from anonymip.errors import InputError

#: Values that are grouped one by one.
_MOST = 60
#: Built-in tables that are quick and need no file beside the package.
BUILTIN = ("health-records", "clinic-12", "census-1k-mixed", "census-10k")


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
    with ui.expansion(say("table.more")).classes("card"):
        _sources(page)
    heading(say("table.columns"))
    told(say("table.columns_intro"))
    with ui.element("div").classes("cards"):
        for column in looked["columns"]:
            _Card(page, column).build()
    with ui.element("div").classes("line"):
        button(say("table.next"), lambda: page.go("question"), go=True)


def _sources(page: Page) -> None:
    session = page.session
    with ui.element("div").classes("stack tight"):
        _upload(page, words("table.drop"), partial(_take, page))
        if session.table is not None:
            _upload(page, words("table.schema_drop"), partial(_take_beside, page), beside=True)
        with ui.element("div").classes("line"):
            told(say("table.builtin"), "soft")
            for instance in BUILTIN:
                button(instance, partial(page.act, session.take_table, instance))


def _upload(
    page: Page, label: list[str], take: Callable[[Path], None], *, beside: bool = False
) -> None:
    session = page.session

    async def uploaded(event: Any) -> None:
        name = event.file.name
        incoming = session.folder / "incoming.part"
        await event.file.save(incoming)
        sender.reset()

        def place() -> None:
            path = session.path_of(name)
            session.refuse_busy()
            if beside and name in session.protected():
                raise InputError(say("table.taken"))
            incoming.replace(path)
            take(path)

        if not page.act(place):
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


def _take(page: Page, path: Path) -> None:
    session = page.session
    if path.suffix.lower() == ".zip":
        session.open_project(path)
    elif path.suffix.lower() in TABLES:
        session.take_table(path.name)
    else:
        path.unlink()
        raise InputError(say("table.ending", name=path.name))


def _take_beside(page: Page, path: Path) -> None:
    if path.suffix.lower() == ".toml":
        page.session.take_schema(path.name)
    else:
        ui.notify(say("table.stored", name=path.name))


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
                    missing=f"{100 * column['missing'] / max(rows, 1):.0f} %",
                    unique=f"{100 * column['unique']:.0f} %",
                ),
                "soft",
            )
            ui.select(
                words("roles"),
                value=role,
                label=say("card.role", name=self._name),
                on_change=lambda event: self._change(
                    self._session.set_role, self._name, event.value
                ),
            ).props("outlined dense options-dense")
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
        coarse = "none"
        hierarchy = known.get("hierarchy")
        if hierarchy is not None:
            kinds = ("bands", "mask", "groups")
            coarse = next((one for one in kinds if one in hierarchy), "file")
        with ui.element("div").classes("fields"):
            if hierarchy is None:
                kind = known.get("kind") or self._column["kind"]
                self._select("card.kind", "kind", words("kinds"), kind, "wide", redraw=True)
            choices = dict(words("coarse"))
            if len(self._column["values"] or range(_MOST + 1)) > _MOST and coarse != "groups":
                del choices["groups"]
            ui.select(
                choices,
                value=coarse,
                label=say("card.coarse", name=self._name),
                on_change=lambda event: self._change(self._set_coarse, event.value),
            ).props("outlined dense options-dense").classes("wide")
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
        def numbers(text: str) -> list[float]:
            return [_number(one) for one in text.split(",") if one.strip()]

        def put(place: int, text: str) -> None:
            hierarchy["domain"][place] = _number(text)

        widths = ", ".join(map(str, hierarchy["bands"]))
        self._text(
            "card.widths", widths, lambda text: hierarchy.update(bands=numbers(text)), "wide"
        )
        for place, key in enumerate(("card.low", "card.high")):
            self._text(key, str(hierarchy["domain"][place]), partial(put, place))

    def _mask(self, hierarchy: dict[str, Any]) -> None:
        ui.select(
            words("sides"),
            value=hierarchy["mask"],
            label=say("card.side"),
            on_change=lambda event: hierarchy.update(mask=event.value),
        ).props("outlined dense options-dense")

        def keep(text: str) -> None:
            numbers = [int(_number(one)) for one in text.split(",") if one.strip()]
            hierarchy.pop("keep", None)
            hierarchy.update({"keep": numbers} if numbers else {})

        self._text("card.shown", ", ".join(map(str, hierarchy.get("keep", []))), keep)
        button(say("card.as_file"), self._as_file).classes("wide")
        told(say("card.as_file_hint"), "soft wide")

    def _as_file(self) -> None:
        def write() -> None:
            self._session.write_hierarchy(self._name)

        self._page.act(write)

    def _groups(self, hierarchy: dict[str, Any]) -> None:
        groups = {one: name for name, values in hierarchy["groups"].items() for one in values}

        def put(value: str, event: Any) -> None:
            name = event.value or ""
            groups[value] = name.strip() or value
            made: dict[str, list[str]] = {}
            for one, group in groups.items():
                made.setdefault(group, []).append(one)
            hierarchy["groups"] = made

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
        ui.select(
            choices,
            value=hierarchy,
            label=say("card.file"),
            on_change=lambda event: self._declare("hierarchy", event.value),
        ).props(f'outlined dense options-dense hint="{say("card.file_hint")}"').classes("wide")

    # Fields.

    def _finer(self) -> None:
        known = self._known
        kind = known.get("kind") or self._column["kind"]
        if "hierarchy" not in known:
            if kind == "categorical":
                self._values()
            else:
                self._ends(kind)
        policies = words("policies")
        self._select("card.missing", "missing", policies, known.get("missing", ""), "wide")
        self._field("card.weight", "weight", _number)
        cap = self._session.asked.caps.get(self._name)
        self._text("card.cap", "" if cap is None else f"{cap:g}", self._set_cap)

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
            self._known["domain"] = ends
            if all(one == "" for one in ends):
                del self._known["domain"]

        domain = self._known.get("domain", ["", ""])
        for place, key in enumerate(("card.low", "card.high")):
            self._text(key, str(domain[place]), partial(put, place))
        seen = self._column["seen"]
        hint = say("card.domain_hint")
        if seen:
            hint = f"{say('card.seen', low=seen[0], high=seen[1])}; {hint}"
        told(hint, "soft wide")
        if is_date:
            units = words("units")
            self._field("card.format", "format", str)
            self._select("card.precision", "precision", units, self._known.get("precision", "day"))
        else:
            self._field("card.step", "precision", _number, "wide")
        self._field("card.below", "at_least", read)
        self._field("card.above", "at_most", read)

    def _select(
        self,
        text: str,
        key: str,
        choices: dict[str, str],
        value: str,
        kind: str = "",
        *,
        redraw: bool = False,
    ) -> None:
        def put(event: Any) -> None:
            self._declare(key, event.value)
            if redraw:
                self.build.refresh()

        ui.select(choices, value=value, label=say(text), on_change=put).props(
            "outlined dense options-dense"
        ).classes(kind)

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


def _number(text: str) -> int | float:
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        raise InputError(say("card.number", text=repr(text))) from None
    return int(number) if number.is_integer() else number
