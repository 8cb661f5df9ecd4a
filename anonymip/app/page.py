"""The page: its head, its five steps, what is running, and the files that it hands out."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, RedirectResponse, Response
from nicegui import run, ui

from anonymip.app import choice_step, question_step, release_step, table_step
from anonymip.app.parts import Page, button, heading
from anonymip.app.session import Desk, Session
from anonymip.app.texts import say, words
from anonymip.errors import AnonymipError

#: Seconds between two looks at what is running.
_LOOK = 0.3
_STEPS: dict[str, Callable[[Page], None]] = {
    "table": table_step.show,
    "question": question_step.show,
    "choice": choice_step.show,
    "release": release_step.show,
    "save": release_step.show_files,
}
#: A report is somebody's page where it came with a project: it loads nothing and runs nothing.
_REPORT = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Whole(Page):
    """All of a page: what a browser's tab shows of a session."""

    def build(self) -> None:
        """Make all of it."""
        self._shown = self._now()
        self.refresh = self._step.refresh
        ui.add_css(files("anonymip.app").joinpath("style.css").read_text("utf-8"))
        ui.html(escape(say("page.skip")), sanitize=False, tag="a").classes("skip").props(
            'href="#content"'
        )
        with ui.header(elevated=False).classes("top"), ui.element("div").classes("inner"):
            with ui.element("div").classes("line"):
                heading(say("page.title"), 1)
                ui.label(say("page.local")).classes("soft local")
            with ui.tabs() as self.tabs:
                for name, text in words("steps").items():
                    ui.tab(name, text)
            self.tabs.set_value(self.session.step)
            self.tabs.on_value_change(self._moved)
            self.tabs.props(f'align=left no-caps dense aria-label="{say("page.steps")}"')
        with ui.element("div").classes("content").props('id="content"'):
            self._running()
            panels = ui.tab_panels(self.tabs, value=self.session.step, animated=False)
            with panels.classes("w-full"):
                for name, show in _STEPS.items():
                    with ui.tab_panel(name):
                        self._step(name, show)
        ui.timer(_LOOK, self._look)

    def _moved(self, event: Any) -> None:
        # The panels tell it once more: what is shown already must not be made anew.
        if event.value != self.session.step:
            self.session.step = event.value
            self._shown = self._shown[0], self._now()[1]
            self._step.refresh()

    @ui.refreshable_method
    def _step(self, name: str, show: Callable[[Page], None]) -> None:
        """Show one step, if it is the one that is looked at."""
        if self.session.step == name:
            with ui.element("div").classes("stack"):
                show(self)

    @ui.refreshable_method
    def _running(self) -> None:
        job = self.session.job
        if job is None or not (job.running or job.error):
            return
        if not job.running:
            with ui.element("div").classes("error").props("role=alert"):
                # Where the files of a session lie says nothing to its user.
                folder = rf"{re.escape(str(self.session.folder.parent))}/\w+/"
                ui.label(re.sub(folder, "", job.error))
                button(say("job.close"), self._close)
            return
        with ui.element("div").classes("job").props("role=status"):
            with ui.element("div").classes("line"):
                heading(job.what)
                self._phase = ui.label("").classes("soft")
            self._bar = ui.element("progress").props(f'max=1 aria-label="{say("job.progress")}"')
            self._stop = button(words("job.stop")[job.keeps], job.stop, icon="stop")
        self._tell()

    def _close(self) -> None:
        self.session.job = None
        self._running.refresh()

    def _tell(self) -> None:
        """Say how far the job is."""
        job = self.session.job
        if job is None:
            return
        progress = job.progress
        phase = progress.phase or say("job.working")
        if job.stopping:
            phase = words("job.stopping")[job.keeps]
        self._phase.set_text(f"{phase} · {say('job.seconds', seconds=int(job.seconds))}")
        share = progress.done / progress.total if progress.total and progress.done else job.share
        if share:
            self._bar.props(f"value={min(share, 1.0):.3f}")
        self._stop.set_enabled(not job.stopping)

    def _now(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return what changes when the job, and the step, have to be shown anew.

        A step that is drawn anew loses focus and keys: points that arrive redraw the curve alone.
        """
        session = self.session
        of_step = {"choice": (session.busy, len(session.curve)), "release": (session.busy,)}
        return (
            (session.busy, session.job.error if session.job else ""),
            (session.version, *of_step.get(session.step, ())),
        )

    def _look(self) -> None:
        """Show what has changed since the last look."""
        before, self._shown = self._shown, self._now()
        if self._shown[0] != before[0]:
            self._running.refresh()
        elif self._shown[0][0]:
            self._tell()
        if self._shown[1] != before[1]:
            self.refresh()


def add_pages(app: FastAPI, desk: Desk) -> None:
    """Add the pages and files of all sessions to an application."""

    @ui.page("/")
    def new() -> Response:
        return RedirectResponse(f"/tab/{desk.new()}", 303)

    @ui.page("/tab/{key}")
    def work(key: str) -> Response | None:
        if key not in desk.sessions:
            return RedirectResponse("/", 303)
        Whole(desk.sessions[key], key).build()
        return None

    def session_of(key: str) -> Session:
        if key not in desk.sessions:
            raise HTTPException(404)
        return desk.sessions[key]

    @app.get("/tab/{key}/file/{name}")
    def file(key: str, name: str, show: bool = False) -> Response:
        session = session_of(key)
        try:
            path = session.path_of(name)
        except AnonymipError:
            raise HTTPException(404) from None
        if not path.is_file():
            raise HTTPException(404)
        headers = {"content-security-policy": _REPORT, "cache-control": "no-store"}
        if show and path.suffix == ".html":
            return FileResponse(path, headers=headers, media_type="text/html")
        kind = "application/octet-stream"
        return FileResponse(path, filename=name, headers=headers, media_type=kind)

    @app.get("/tab/{key}/project")
    async def project(key: str) -> Response:
        content = await run.io_bound(session_of(key).project)
        disposition = 'attachment; filename="project.zip"'
        headers = {"content-disposition": disposition, "cache-control": "no-store"}
        return Response(content, media_type="application/zip", headers=headers)
