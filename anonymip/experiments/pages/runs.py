"""Runs of methods on one page: what was asked, how near the optimum, how fast, on which machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from anonymip.experiments.overview import COLUMNS, overview, overview_texts, reasons
from anonymip.experiments.pages.charts import optimum_chart, spread_chart, time_chart
from anonymip.experiments.pages.rendering import render
from anonymip.experiments.style import Look, looks_of
from anonymip.experiments.summaries import pareto_front
from anonymip.status import Stopped
from anonymip.tolerances import OPTIMALITY_RELATIVE, same_loss

_PROBLEM = ["instance", "n", "m", "sample", "k"]
_TABLE = ["instance", "n", "m", "recoding"]
#: More tables are in the list of methods alone.
_MOST_PICTURES = 8
#: Columns of the list that are numbers, and what they are sorted by.
_KEYS = {"k": "k", "loss": "loss", "to optimum": "ratio", "gap": "gap", "seconds": "seconds"}


@dataclass(frozen=True)
class _Cell:
    text: str
    key: str | None = None


@dataclass(frozen=True)
class _Column:
    name: str
    number: bool


@dataclass(frozen=True)
class _Table:
    name: str
    picture: Markup


def runs_page(frame: pd.DataFrame, title: str) -> str:
    """Return a page about the runs of a comparison or an experiment, complete in itself.

    Parameters
    ----------
    frame
        One row a run, with the columns of an experiment's table.
    title
        Of the page.
    """
    runs = _measured(frame)
    solved = runs.dropna(subset=["shown"])
    tables = list(solved.groupby(_TABLE, sort=False, dropna=False))
    looks = looks_of(frame["label"])
    # Of one table its name is in the question.
    one = int(len(frame.drop_duplicates(_TABLE[:3])) == 1)
    return render(
        "runs.html",
        title=title,
        question=_question(frame),
        answers=_answers(solved),
        tables=[_table(names, rows, looks) for names, rows in tables[:_MOST_PICTURES]],
        left_out=max(0, len(tables) - _MOST_PICTURES),
        times=_times(solved, looks),
        spread=spread_chart(solved, looks) if len(set(solved["sample"])) > 1 else None,
        measured_by="proven optimum" if solved["proven"].all() else "best bound or least loss",
        columns=[_Column(name, name in _KEYS) for name in COLUMNS[one:]],
        rows=[row[one:] for row in _rows(frame)],
        refusals=reasons(frame),
        surroundings=_surroundings(frame),
    )


def _measured(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with what is shown of them, and what they are measured by.

    ``shown``: the loss, of GCP the mean penalty of a cell; ``floor``: the optimum of the problem if
    it is proven, else its best bound, likewise; ``least``: the least loss that a method of the
    recoding found; ``ratio``: the loss over the floor, or over the least without one.
    """
    is_gcp = frame["objective_name"] == "gcp"
    shown = frame["loss"].mask(is_gcp, frame["gcp"]).astype("float64")
    unit = (shown / frame["loss"].astype("float64")).replace([np.inf, -np.inf], np.nan)
    bound = frame["bound"].astype("float64") * unit
    proven = frame["status"] == Stopped.OPTIMAL.value
    keyed = frame.assign(shown=shown, best=bound, optimum=shown.where(proven))
    groups = keyed.groupby([*_PROBLEM, "recoding"], dropna=False, sort=False)
    optimum = groups["optimum"].transform("min")
    floor = optimum.fillna(groups["best"].transform("max"))
    least = groups["shown"].transform("min")
    by = floor.where(floor > 0, least)
    ratio = (shown / by.where(by != 0)).mask((shown == 0) & (by == 0), 1.0)
    return keyed.assign(floor=floor, proven=optimum.notna(), least=least, ratio=ratio)


def _question(frame: pd.DataFrame) -> str:
    tables = frame.drop_duplicates(["instance", "n", "m"])
    samples = len(set(frame["sample"].dropna()))
    which = f"{tables['instance'].iloc[0]}" if len(tables) == 1 else f"{len(tables)} tables"
    size = tables.iloc[0]
    if len(tables) == 1 and pd.notna(size["n"]):
        which += f" ({int(size['n']):,} records of {int(size['m'])} attributes)"
    if samples > 1:
        which += f", {samples} samples"
    ks = ", ".join(str(k) for k in sorted(set(frame["k"])))
    objectives = ", ".join(dict.fromkeys(frame["objective_name"].dropna()))
    methods = frame["label"].nunique()
    counted = f"{methods} method{'s' if methods > 1 else ''}"
    come = "come" if methods > 1 else "comes"
    asked = f"with k = {ks} and the loss {objectives}"
    return f"How near the optimum {counted} {come} on {which}, {asked}."


def _answers(solved: pd.DataFrame) -> list[str]:
    """Return, for each k and recoding, which method loses least and what is proven about it."""
    lines = []
    for (k, recoding), rows in solved.groupby(["k", "recoding"], sort=False):
        groups = rows.groupby("label", sort=False)["shown"]
        # Means compare on the same problems alone.
        whole = groups.mean()[groups.size() == groups.size().max()]
        loss = float(whole.min())
        best = [str(label) for label, mean in whole.items() if same_loss(mean, loss)]
        mine = rows[rows["label"] == best[0]]
        text = f"k = {k}, {recoding}: {_who(best, groups.ngroups)}, {loss:.5g}"
        if mine["proven"].all():
            over = float(mine["ratio"].mean()) - 1
            above = f"{100 * over:.2g} % above the proven optimum"
            text += ", the proven optimum." if over <= OPTIMALITY_RELATIVE else f", {above}."
        elif mine["floor"].notna().all() and loss > 0:
            part = 1 - float(mine["floor"].mean()) / loss
            saved = "less than 0.01" if part < 1e-4 else f"at most {100 * part:.3g}"
            text += f"; {saved} % of it could be saved."
        else:
            text += "; no bound is known."
        lines.append(text)
    return lines


def _who(best: list[str], of: int) -> str:
    if len(best) == 1:
        return f"{best[0]} loses least"
    if len(best) == of:
        return f"all {of} methods lose the same"
    return f"{', '.join(best[:-1])} and {best[-1]} lose least"


def _table(names: Any, rows: pd.DataFrame, looks: Mapping[str, Look]) -> _Table:
    instance, n, m, recoding = names
    size = "" if pd.isna(n) else f" ({int(n):,} x {int(m)})"
    groups = rows.groupby(["k", "label"], sort=False)
    means = groups.agg(shown=("shown", "mean")).reset_index()
    floors = (
        rows.drop_duplicates([*_PROBLEM])
        .groupby("k")
        .agg(floor=("floor", lambda values: values.mean(skipna=False)), proven=("proven", "all"))
    )
    picture = optimum_chart(means.merge(floors.reset_index(), on="k"), looks)
    return _Table(f"{instance}{size}, {recoding}", picture)


def _times(solved: pd.DataFrame, looks: Mapping[str, Look]) -> Markup | None:
    over = solved["shown"] / solved["least"].where(solved["least"] != 0)
    measured = solved.assign(ratio=over.fillna(1.0), all="")
    front = pareto_front(measured, by=["all"], loss="ratio", time="seconds")
    return time_chart(front, looks)


def _rows(frame: pd.DataFrame) -> list[list[_Cell]]:
    shown = []
    table = overview(frame)
    for (_, numbers), texts in zip(table.iterrows(), overview_texts(frame), strict=True):
        row = []
        for name, text in zip(COLUMNS, texts, strict=True):
            value = numbers[_KEYS[name]] if name in _KEYS else None
            # What is not known stands behind what is; this is how browsers spell it.
            key = None if value is None else "Infinity" if pd.isna(value) else repr(float(value))
            row.append(_Cell(text, key))
        shown.append(row)
    return shown


def _surroundings(frame: pd.DataFrame) -> list[str]:
    lines = [f"AnonyMIP {', '.join(dict.fromkeys(frame['anonymip'].dropna()))}"]
    columns = ["machine", "cores", "system", "python", "numpy"]
    for machine in frame[columns].dropna().drop_duplicates().to_dict("records"):
        lines.append(
            f"{machine['machine']}, {machine['cores']} cores, {machine['system']}; "
            f"Python {machine['python']}, NumPy {machine['numpy']}"
        )
    seeds = sorted(set(frame["seed"].dropna()))
    if seeds:
        lines.append(f"seeds {', '.join(str(seed) for seed in seeds)}")
    return lines
