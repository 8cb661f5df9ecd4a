"""The text of a reproduction: which statements hold, the values, and where they were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.experiments.overview import reasons
from reproductions.drawing import series_of
from reproductions.series import table_of
from reproductions.specification import Panel, Reproduction

_WORDS = {True: "yes", False: "no", None: "not decided"}
#: Columns that results of reproductions keep; the others are the same in all rows, or digests.
_KEPT = (
    *("experiment", "instance", "sample", "n", "m", "k", "recoding", "diversity"),
    *("objective_name", "label", "repetition", "time_limit", "loss", "bound", "status", "reason"),
    *("cpu_seconds", "gcp", "classes", "smallest", "average", "largest", "suppressed_cells"),
    *("usefulness", "problem"),
)
_DIGEST = 8


def tidy_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows as they are stored: without columns that are empty, digests shortened."""
    kept = rows[[name for name in (*_KEPT, *_added(rows)) if name in rows]]
    kept = kept.dropna(axis="columns", how="all")
    if "problem" in kept:
        kept = kept.assign(problem=kept["problem"].str.slice(0, _DIGEST))
    return kept


def read_rows(file: Path) -> pd.DataFrame:
    """Return the rows of a file that a reproduction wrote."""
    return pd.read_csv(file, dtype={"experiment": str})


def rounded(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with numbers of seven digits, which their file gives back as they are."""
    numbers = rows.select_dtypes("float").columns
    return rows.assign(
        **{name: rows[name].map(lambda value: float(f"{value:.7g}")) for name in numbers}
    )


def _added(rows: pd.DataFrame) -> list[str]:
    """Return columns that are a reproduction's own."""
    from anonymip.experiments.running.runs import COLUMNS

    return [name for name in rows.columns if name not in COLUMNS]


def findings_of(asked: Reproduction, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return, for each statement of the paper, whether it holds in these rows, and in numbers."""
    found = []
    for statement in asked.statements:
        finding = statement.find(rows)
        found.append(
            {
                "says": statement.says,
                "where": statement.where,
                "holds": finding.holds,
                "measured": finding.measured,
            }
        )
    return found


def findings_text(findings: list[dict[str, Any]]) -> str:
    """Return the paragraph that says which statements hold, and their table."""
    count = dict.fromkeys(_WORDS.values(), 0)
    for one in findings:
        count[_WORDS[one["holds"]]] += 1
    summary = (
        f"Of {len(findings)} statements {count['yes']} hold here, {count['no']} do not, and "
        f"{count['not decided']} are not decided by these rows."
    )
    lines = [
        summary,
        "",
        "| holds | statement of the paper | where | measured |",
        "|---|---|---|---|",
    ]
    for one in findings:
        cells = (_WORDS[one["holds"]], one["says"], one["where"], one["measured"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def values_text(panel: Panel, rows: pd.DataFrame) -> str:
    """Return the values of a panel as a table, those that the paper prints beside them."""
    drawn = series_of(panel, rows)
    if not len(drawn):
        return f"{panel.title}: no values."
    table = table_of(drawn)
    lines = [
        f"{panel.title} ({panel.y})",
        "",
        f"| {panel.x} | {' | '.join(f'{x:g}' for x in table.index)} |",
        f"|---|{'---|' * len(table)}",
    ]
    for label in table:
        values = [_number(value, panel.digits) for value in table[label]]
        lines.append(f"| {label} | {' | '.join(values)} |")
        printed = panel.printed.get(str(label), {})
        if printed:
            values = [_number(printed.get(x), panel.digits) for x in table.index]
            lines.append(f"| {label}, as printed | {' | '.join(values)} |")
    return "\n".join(lines)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.{digits}g}"


def page_of(asked: Reproduction, rows: pd.DataFrame, *, quick: bool) -> str:
    """Return the text of a reproduction in Markdown.

    `asked`: what was reproduced. `rows`: one row a run. `quick`: whether these are rows of the
    quick version.
    """
    size = (
        f"**Quick version: {asked.shrunk}.** All methods run; what it says holds for its sizes."
        if quick
        else "Full version."
    )
    parts = [
        f"# {asked.paper}, {asked.place}: {asked.title}",
        size,
        " ".join(source.note for source in asked.sources),
        *(f"{remark}." for remark in asked.remarks),
        "## Statements",
        findings_text(findings_of(asked, rows)),
        "## Values",
        *(values_text(panel, rows) for panel in asked.panels),
        "## Runs",
        _runs_text(rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _runs_text(rows: pd.DataFrame) -> str:
    seconds = rows["cpu_seconds"].sum()
    summary = (
        f"{len(rows)} runs, {seconds:.0f} processor seconds in all; times are processor seconds, "
        "compilation left out."
    )
    lines = [summary, *(f"{reason}." for reason in reasons(rows))]
    for name in ("machine", "system", "versions"):
        if name in rows:
            texts = rows[name].dropna().unique()
            lines.append(f"{name.capitalize()}: {'; '.join(_plain(text) for text in texts)}.")
    return "\n\n".join(lines)


def _plain(text: str) -> str:
    return text.strip("{}").replace('"', "")
