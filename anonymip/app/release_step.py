"""The last steps: rows before and after, the report, two releases side by side; their files."""

from __future__ import annotations

from functools import partial
from shlex import join

from nicegui import ui

from anonymip.app.parts import Page, button, code, heading, selection, table, told
from anonymip.app.question import Asked
from anonymip.app.texts import capital, say, words


def show(page: Page) -> None:
    """Show the fourth step."""
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


def show_files(page: Page) -> None:
    """Show the fifth step."""
    session = page.session
    heading(say("save.title"))
    if session.table is None or not session.looked:
        told(say("save.none"))
        return
    with ui.element("div").classes("card stack tight"):
        heading(say("save.project"), 3)
        told(say("save.project_intro"), "soft")
        button(
            say("save.project_save"),
            lambda: ui.download.from_url(f"/tab/{page.key}/project", "project.zip"),
            go=True,
            icon="download",
        )
    if not session.releases:
        told(say("save.none"))
        return
    choosing(page, compared=False)
    name = session.chosen[0]
    with ui.element("div").classes("card stack tight"):
        heading(say("save.verifier"), 3)
        verdict = session.releases[name]["verified"]
        if verdict is None:
            told(say("save.unverified"), "soft")
        else:
            ok = verdict["ok"]
            told(say("save.verified" if ok else "save.refuted"), "good" if ok else "bad")
            # What its first line says stands above.
            ui.label(verdict["told"].partition("\n")[2]).classes("soft").style(
                "white-space: pre-line"
            )
    files = session.files_of(name)
    with ui.element("div").classes("card stack"):
        heading(say("save.files", name=name), 3)
        with ui.element("div").classes("line"):
            for text, file in zip(("release", "manifest", "report", "schema"), files, strict=True):
                _download(page, say(f"save.{text}"), file)
            for hierarchy in session.hierarchies_of(name):
                _download(page, say("save.hierarchy", name=hierarchy), hierarchy)
    asked, original = Asked.of(session.releases[name]["asked"]), str(session.table)
    made = asked.command(original, files[3], name)
    check = join(["anonymip", "verify", original, files[0], "--schema", files[3]])
    with ui.element("div").classes("card"):
        code(say("save.command"), f"{made}\n{check}")


def _download(page: Page, text: str, file: str) -> None:
    button(text, lambda: ui.download.from_url(page.address(file), file), icon="download")
