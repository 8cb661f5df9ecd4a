"""The third step: what each k costs, with the band down to what is proven."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

from nicegui import ui

from anonymip.app.parts import Page, button, heading, told
from anonymip.app.texts import say, words


def show(page: Page) -> None:
    """Show the step."""
    session = page.session
    heading(say("choice.title"))
    if not session.schema.get("attributes"):
        told(say("table.none_asked" if session.looked else "table.first"), "bad")
        return
    told(say("choice.intro"))
    points = session.points()
    if points:
        _chart(page, points)
        _points(page, points)
    elif not session.busy:
        told(say("choice.none"), "soft")
    if not session.busy:
        with ui.element("div").classes("line"):
            again = say("choice.again" if points else "choice.start")
            button(again, lambda: page.act(session.make_curve), go=not points)
            if points:
                make = partial(page.act_and_go, session.make_release, "release")
                button(say("question.make"), make, go=True)


def _take(page: Page, k: int) -> None:
    page.session.asked.k = k
    page.refresh()


def _percent(share: float | None) -> str:
    return say("choice.unknown") if share is None else f"{100 * share:.2f} %"


def _points(page: Page, points: list[tuple[int, dict[str, Any]]]) -> None:
    with ui.element("div").classes("sheet"), ui.element("table").classes("plain"):
        with ui.element("thead"), ui.element("tr"):
            left_out = any(point["suppressed"] for _, point in points)
            for place, head in enumerate(words("choice.heads")):
                if place == 3 and not left_out:
                    continue
                kind = "th" if head else "td"
                ui.html(escape(head), sanitize=False, tag=kind).props('scope="col"' if head else "")
        with ui.element("tbody"):
            for k, point in points:
                with ui.element("tr"):
                    below = _percent(point["bound"])
                    if point.get("optimal"):
                        below = say("choice.optimal")
                    cells = [str(k), _percent(point["loss"]), below]
                    for text in cells + [f"{point['suppressed']:,}"] * left_out:
                        ui.html(escape(text), sanitize=False, tag="td")
                    with ui.element("td"):
                        if k == page.session.asked.k:
                            ui.label(say("choice.taken")).classes("good")
                        else:
                            take = button(say("choice.take"), partial(_take, page, k))
                            take.props["aria-label"] = say("choice.take_k", k=k)


def _chart(page: Page, points: list[tuple[int, dict[str, Any]]]) -> None:
    """Show loss and bound as lines, and what lies between them as a band."""
    low = [None if one["bound"] is None else 100 * one["bound"] for _, one in points]
    high = [100 * one["loss"] for _, one in points]
    width = [None if a is None else b - a for a, b in zip(low, high, strict=True)]
    grey, blue = "#7d8b98", "#3a8fc7"
    marked = [
        {"value": one, "symbolSize": 16 if k == page.session.asked.k else 9}
        for (k, _), one in zip(points, high, strict=True)
    ]
    hidden = {"type": "line", "symbol": "none", "silent": True, "lineStyle": {"opacity": 0}}
    chart = ui.echart(
        {
            "animation": False,
            "grid": {"left": 60, "right": 20, "top": 50, "bottom": 30},
            "legend": {"top": 0, "data": [say("choice.loss"), say("choice.bound")]},
            "xAxis": {"type": "category", "name": "k", "data": [str(k) for k, _ in points]},
            "yAxis": {
                "type": "value",
                "name": f"{say('choice.loss')}, %",
                "splitLine": {"lineStyle": {"color": "rgba(125,139,152,.25)"}},
            },
            "series": [
                {**hidden, "data": low, "stack": "band"},
                {
                    **hidden,
                    "data": width,
                    "stack": "band",
                    "areaStyle": {"color": blue, "opacity": 0.18},
                },
                {
                    "name": say("choice.bound"),
                    "type": "line",
                    "data": low,
                    "symbol": "diamond",  # a line of one point is none
                    "color": grey,
                    "lineStyle": {"type": "dashed"},
                    "silent": True,
                },
                {
                    "name": say("choice.loss"),
                    "type": "line",
                    "data": marked,
                    "symbol": "circle",
                    "color": blue,
                },
            ],
        },
        on_point_click=lambda event: _take(page, points[event.data_index][0]),
        # Its texts are those of the theme.
        renderer="svg",
    )
    chart.classes("card chart").style("height: 22rem").props(
        f'role=img aria-label="{say("choice.chart")}"'
    )
