"""The gap thermometer: bounds rise from below, methods descend from above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anonymip.errors import InputError
from anonymip.experiments.comparison import Comparison, ComparisonRow
from anonymip.experiments.names import Named, one_plot
from anonymip.experiments.style import (
    BOUND,
    OPEN,
    OPTIMUM,
    Look,
    Picture,
    headline,
    looks_of,
    save,
)
from anonymip.files import Outputs, writing

_FORMATS = (".png", ".svg", ".pdf")
_LINE = 28  # letters in a line beside the plot


@dataclass(frozen=True)
class Column:
    """What is shown of one k."""

    k: int  # its k
    losses: Mapping[str, float]  # of the methods, by name
    floor: float | None  # the proven optimum, or else the best bound; None if neither is known
    is_optimum: bool  # which of the two it is
    floor_name: str  # what the floor is called


def thermometer(comparison: Comparison) -> Picture:
    """Return the picture: for each k the losses of the methods above, the best bound below.

    The optimum lies in the shaded band; where it is proven, the band closes to a line.
    """
    ks = sorted({row.solution.problem.k for row in comparison.rows})
    columns = [_column([row for row in comparison.rows if row.solution.problem.k == k]) for k in ks]
    first = comparison.rows[0].solution
    unit = "global certainty penalty" if first.scale != 1 else first.problem.objective.name
    name = first.problem.recoding.name
    with one_plot((max(6.4, 3.4 + 1.5 * len(ks)), 4.4)) as (figure, axes, names):
        names.at_ends(axes, draw_columns(axes, columns, looks_of(_labels(columns))))
        axes.set_ylabel(f"loss ({unit})")
        unknown = [f"k = {column.k}" for column in columns if column.floor is None]
        headline(
            figure,
            f"{comparison.instance}: where the optimum of recoding {name} lies",
            f"no lower bound is known ({', '.join(unknown)})" if unknown else "",
        )
    return figure


def _column(rows: list[ComparisonRow]) -> Column:
    first, bound = rows[0], rows[0].solution.bound
    scale, is_optimum = first.solution.scale, first.against == "optimum"
    # What a bound stands on goes below, in short lines.
    below = [] if bound is None else wrap(bound.method, _LINE)
    return Column(
        first.solution.problem.k,
        {row.solution.method: row.solution.objective / row.solution.scale for row in rows},
        None if first.reference is None else first.reference / scale,
        is_optimum,
        "proven optimum" if is_optimum else "\n".join(["proven bound:", *below]),
    )


def _labels(columns: Sequence[Column]) -> list[str]:
    return list(dict.fromkeys(label for column in columns for label in column.losses))


def draw_columns(axes: Axes, columns: Sequence[Column], looks: Mapping[str, Look]) -> list[Named]:
    """Draw losses above and floors below, a column a k, and return what to name at its end."""
    labels = _labels(columns)
    named: dict[str, Named] = {}
    for place, column in enumerate(columns):
        named |= _draw_floor(axes, place, column)
        for label, loss in column.losses.items():
            shift = (
                0.0 if len(labels) == 1 else 0.6 * (labels.index(label) / (len(labels) - 1) - 0.5)
            )
            axes.plot(place + shift, loss, **looks[label].dots, markersize=7, label=label, zorder=3)
            look = looks[label]
            named[label] = Named(place + shift, loss, label, look.colour, mark=look.mark)
    axes.set_xticks(range(len(columns)), [f"k = {column.k}" for column in columns])
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.tick_params(axis="x", length=0)
    # Losses start at 0, unless the objective has negative ones.
    shown = [loss for column in columns for loss in (*column.losses.values(), column.floor or 0.0)]
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if min(shown, default=0) < 0 else 0)
    axes.grid(axis="y")
    return list(named.values())


def _draw_floor(axes: Axes, place: int, column: Column) -> dict[str, Named]:
    if column.floor is None:
        return {}
    ends, floor, named = (place - 0.4, place + 0.4), column.floor, {}
    if not column.is_optimum and column.losses:
        best, text = min(column.losses.values()), "the optimum lies here"
        axes.fill_between(ends, floor, best, color=OPEN, alpha=0.3, linewidth=0, label=text)
        named[text] = Named(ends[1], (floor + best) / 2, text, OPEN, mark="s")
    colour, name = OPTIMUM if column.is_optimum else BOUND, column.floor_name
    axes.hlines(floor, *ends, colors=colour, linewidth=3, label=name)
    return {**named, name: Named(ends[1], floor, name, colour, mark="_")}


def refuse_format(path: str | Path) -> None:
    """Refuse files whose ending is no known format of pictures."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise InputError(
            f"cannot draw into {path}: unknown ending", remedy=f"Use {', '.join(_FORMATS)}"
        )


def save_figure(figure: Figure, path: str | Path, outputs: Outputs | None = None) -> None:
    """Write a figure in the format of its ending, in place at once or with other `outputs`."""
    refuse_format(path)
    with writing(outputs) as files:
        save(figure, files.stage(Path(path), public=True), Path(path).suffix)
