"""The reproductions by name; their runs, and the files of rows, picture and text they end in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.errors import InputError, Interrupted, argument, unknown_name
from anonymip.experiments.running.runner import run_experiment
from anonymip.experiments.style import save
from anonymip.files import refuse_outputs, writing
from anonymip.runtime.budget import Progress
from reproductions.drawing import draw, series_of
from reproductions.specification import Reproduction
from reproductions.writing import findings_of, page_of, read_rows, rounded, tidy_rows

#: The modules of the papers; each has its reproductions in ``REPRODUCTIONS``.
PAPERS = (
    *("doka", "doka_scale", "liang", "liang_tables", "liang_benchmarks", "liang_scale"),
    *("wong", "bredereck", "aggarwal"),
)


def reproductions() -> dict[str, Reproduction]:
    """Return all reproductions by name, paper by paper."""
    return {
        one.name: one
        for paper in PAPERS
        for one in import_module(f"reproductions.papers.{paper}").REPRODUCTIONS
    }


def find_reproduction(name: str) -> Reproduction:
    """Return a reproduction by name; ``PAPER:FIGURE`` is ``PAPER-FIGURE``."""
    known = reproductions()
    found = known.get(name.replace(":", "-"))
    if found is None:
        raise unknown_name("reproduction", name, known)
    return found


def redraw(asked: Reproduction, folder: Path) -> list[Path]:
    """Draw the pictures of a reproduction again from the rows that are stored, full and quick.

    `asked`: what was reproduced. `folder`: where its rows are, and its pictures come to be.
    """
    stored = [folder / f"{stem_of(asked, quick)}.csv" for quick in (False, True)]
    stored = [file for file in stored if file.is_file()]
    if not stored:
        place = argument("folder", option="--output")
        raise InputError(
            f"{folder} has no rows of {asked.name}",
            remedy=f"Name the folder by {place}, or reproduce it first",
        )
    with writing() as outputs:
        for file in stored:
            picture = outputs.stage(file.with_suffix(".png"), public=True)
            save(draw(asked, read_rows(file)), picture, ".png")
    return [file.with_suffix(".png") for file in stored]


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction found.

    `asked`: what was reproduced. `quick`: whether in its quick version. `rows`: one row a run,
    numbers as their file gives them back.
    """

    asked: Reproduction
    quick: bool
    rows: pd.DataFrame

    @property
    def stem(self) -> str:
        """The name of its files, without ending."""
        return stem_of(self.asked, self.quick)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Of each statement of the paper whether it holds here, and in numbers."""
        return findings_of(self.asked, self.rows)

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write rows, picture and text into a folder, and return their files."""
        files = files_of(self.asked, folder, self.quick)
        with writing() as outputs:
            outputs.write_text(tidy_rows(self.rows).to_csv(index=False), files[0], public=True)
            save(draw(self.asked, self.rows), outputs.stage(files[1], public=True), ".png")
            page = page_of(self.asked, self.rows, quick=self.quick)
            outputs.write_text(page, files[2], public=True)
        return files

    def record(self) -> dict[str, Any]:
        """Return all of it but the rows, for JSON."""
        series: list[dict[str, Any]] = []
        for panel in self.asked.panels:
            for point in series_of(panel, self.rows).to_dict("records"):
                label, x, y = str(point["label"]), float(point["x"]), float(point["y"])
                printed = panel.printed.get(label, {}).get(x)
                series.append(
                    {"panel": panel.title, "label": label, "x": x, "y": y, "printed": printed}
                )
        return {
            **listed(self.asked),
            "quick": self.quick,
            "runs": len(self.rows),
            "cpu_seconds": float(self.rows["cpu_seconds"].sum()),
            "statements": self.findings,
            "series": series,
        }


def stem_of(asked: Reproduction, quick: bool) -> str:
    """Return the name of a reproduction's files, without ending."""
    return f"{asked.name}-quick" if quick else asked.name


def files_of(asked: Reproduction, folder: Path, quick: bool) -> tuple[Path, ...]:
    """Return the files of rows, picture and text of a reproduction."""
    return tuple(folder / f"{stem_of(asked, quick)}{ending}" for ending in (".csv", ".png", ".md"))


def listed(asked: Reproduction) -> dict[str, Any]:
    """Return what a reproduction is, for a list in JSON."""
    return {
        "name": asked.name,
        "paper": asked.paper,
        "place": asked.place,
        "title": asked.title,
        "data": [source.note for source in asked.sources],
        "minutes": asked.minutes,
        "stored": asked.stored,
    }


def reproduce(
    asked: Reproduction,
    folder: Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    isolate: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Reproduced:
    """Run what has not been run of a reproduction, and write what it found.

    `asked`: what to reproduce. `folder`: gets ``NAME.csv``, ``NAME.png`` and ``NAME.md``, of the
    quick version ``NAME-quick``; the runs are kept in ``runs/NAME/`` as soon as each has ended.
    `quick`: whether in small sizes. `jobs, isolate, progress`: as
    :func:`anonymip.experiments.run_experiment` takes them.
    """
    refuse_outputs(files_of(asked, folder, quick), [])
    frames = []
    for experiment in (asked.quick if quick else asked.full)():
        place = folder / "runs" / stem_of(asked, quick) / experiment.name
        found = run_experiment(experiment, place, jobs=jobs, isolate=isolate, progress=progress)
        if not found.complete:
            raise Interrupted(f"{len(found.frame)} of {found.runs} runs of {experiment.name} ended")
        frames.append(found.frame)
    if asked.extra is not None:
        frames.append(asked.extra(quick))
    done = Reproduced(asked, quick, rounded(pd.concat(frames, ignore_index=True)))
    done.write(folder)
    return done
