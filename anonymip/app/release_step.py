"""The fourth step: rows before and after, the report, and two releases side by side."""

from __future__ import annotations

from functools import partial

from nicegui import ui

from anonymip.app.parts import Page, heading, selection, table, told
from anonymip.app.texts import capital, say, words


def show(page: Page) -> None:
    """Show the step."""
    session = page.session
    heading(say("release.title"))
    if not session.releases:
        told(say("release.none" if not session.busy else "release.working"))
        return
    labels = choosing(page)
    name, other = session.chosen
    release = session.releases[name]
    with ui.element("div").classes("card stack tight"):
        if release["attention"]:
            told(say("release.attention", what=release["attention"]), "bad")
        ui.label(release["gap"]).style("font-weight: 600")
        told(f"{capital(release['sentence'])}.")
        for line in release["cautions"]:
            told(f"{capital(line)}.", "soft")
        with ui.expansion(say("release.found")), ui.element("div").classes("stack tight"):
            for line in release["found"]:
                told(line, "soft")
    heading(say("release.rows"), 3)
    told(say("release.rows_intro"), "soft")
    few = release["few"]
    heads = [text for name, _, _ in few for text in (name, say("release.after", name=name))]
    columns = [cells for _, before, after in few for cells in (before, after)]
    table(say("release.rows"), heads, list(zip(*columns, strict=True)), paired=True)
    with ui.element("div").classes("card stack tight"):
        heading(say("release.promise"), 3)
        told(say("release.promise_text"))
    if other in session.releases:
        heading(say("release.compare"), 3)
        mine, theirs = dict(release["figures"]), dict(session.releases[other]["figures"])
        names = dict.fromkeys((*mine, *theirs))
        table(
            say("release.compare"),
            [say("release.figure"), labels[name], labels[other]],
            [(one, mine.get(one, "-"), theirs.get(one, "-")) for one in names],
        ).classes("wraps")
    heading(say("release.report"), 3)
    told(say("release.report_intro"), "soft")
    report = page.address(session.files_of(name)[2])
    ui.element("iframe").classes("report").props(
        f'src="{report}?show=1" title="{say("release.report_title", name=name)}"'
    ).props["sandbox"] = ""


def choosing(page: Page, *, compared: bool = True) -> dict[str, str]:
    """Show which release is looked at, and with which it is compared; return their labels."""
    session = page.session
    labels = {
        name: say(
            "release.label",
            name=name,
            k=one["asked"]["k"],
            recoding=words("recodings")[one["asked"]["recoding"]].partition(":")[0],
        )
        for name, one in session.releases.items()
    }
    if session.chosen[0] not in labels:
        session.chosen = (next(reversed(labels)), "")
    name, other = session.chosen

    def choose(mine: str, theirs: str) -> None:
        session.chosen = (mine, "" if theirs == mine else theirs)
        page.refresh()

    with ui.element("div").classes("line"):
        wide = "min-width: 16rem"
        selection(say("release.which"), labels, name, lambda one: choose(one, other)).style(wide)
        if compared and len(labels) > 1:
            others = {
                "": say("release.nothing"),
                **{one: text for one, text in labels.items() if one != name},
            }
            against = other if other in others else ""
            selection(say("release.against"), others, against, partial(choose, name)).style(wide)
    return labels
