"""The fifth step: what the verifier says, and the files to take away."""

from __future__ import annotations

from shlex import join

from nicegui import ui

from anonymip.app.parts import Page, button, code, heading, told
from anonymip.app.question import Asked
from anonymip.app.release_step import choosing
from anonymip.app.texts import say


def show(page: Page) -> None:
    """Show the step."""
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
    asked, table = Asked.of(session.releases[name]["asked"]), str(session.table)
    made = asked.command(table, files[3], name)
    check = join(["anonymip", "verify", table, files[0], "--schema", files[3]])
    with ui.element("div").classes("card"):
        code(say("save.command"), f"{made}\n{check}")


def _download(page: Page, text: str, file: str) -> None:
    button(text, lambda: ui.download.from_url(page.address(file), file), icon="download")
