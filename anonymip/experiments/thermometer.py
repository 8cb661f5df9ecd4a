"""The gap thermometer: bounds rise from below, methods descend from above."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anonymip.errors import InputError
from anonymip.experiments.comparison import Comparison, ComparisonRow
from anonymip.experiments.pictures.picture import MARKERS, Picture, add_legend
from anonymip.files import Outputs, writing

_FORMATS = (".png", ".svg", ".pdf")
#: Letters in a line of the legend.
_LINE = 28


def thermometer(comparison: Comparison) -> Picture:
    """Return the picture: for each k the losses of the methods above, the best bound below.

    The optimum lies in the shaded band; where it is proven, the band closes to a line.
    """
    ks = sorted({row.solution.problem.k for row in comparison.rows})
    methods = list(dict.fromkeys(row.solution.method for row in comparison.rows))
    figure = Picture(figsize=(1.6 + 1.6 * len(ks) + 1.8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for place, k in enumerate(ks):
        _draw_column(
            axes, place, [row for row in comparison.rows if row.solution.problem.k == k], methods
        )
    axes.set_xticks(range(len(ks)), [f"k = {k}" for k in ks])
    axes.set_xlim(-0.6, len(ks) - 0.4)
    first = comparison.rows[0].solution
    unit = "global certainty penalty" if first.scale != 1 else first.problem.objective.name
    axes.set_ylabel(f"loss ({unit})")
    name = first.problem.recoding.name
    axes.set_title(f"{comparison.instance}: where the optimum of recoding {name} lies")
    # Losses start at 0, unless the objective has negative ones.
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _is_negative(comparison) else 0)
    axes.grid(axis="y", alpha=0.3)
    add_legend(axes)
    return figure


def _is_negative(comparison: Comparison) -> bool:
    values = [row.solution.objective for row in comparison.rows]
    values += [row.reference for row in comparison.rows if row.reference is not None]
    return min(values) < 0


def _draw_column(axes: Axes, place: int, rows: list[ComparisonRow], methods: list[str]) -> None:
    best = min(row.solution.objective / row.solution.scale for row in rows)
    reference = rows[0].reference
    if reference is not None:
        floor = reference / rows[0].solution.scale
        if rows[0].against == "optimum":
            axes.hlines(
                floor,
                place - 0.4,
                place + 0.4,
                colors="tab:green",
                linewidth=2.5,
                label="proven optimum",
            )
        else:
            axes.fill_between(
                [place - 0.4, place + 0.4],
                floor,
                best,
                color="tab:orange",
                alpha=0.2,
                label="the optimum lies here",
            )
            axes.hlines(
                floor,
                place - 0.4,
                place + 0.4,
                colors="tab:blue",
                linewidth=2.5,
                label=_bound_label(rows[0]),
            )
    else:
        axes.plot([], [], " ", label="no lower bound is known")
    for row in rows:
        at = methods.index(row.solution.method)
        shift = 0.0 if len(methods) == 1 else 0.6 * (at / (len(methods) - 1) - 0.5)
        axes.plot(
            place + shift,
            row.solution.objective / row.solution.scale,
            MARKERS[at % len(MARKERS)],
            color=f"C{at % 10}",
            label=row.solution.method,
        )


def _bound_label(row: ComparisonRow) -> str:
    """Return the words for a bound: what it stands on goes below, in short lines."""
    bound = row.solution.bound
    below = wrap(bound.method, _LINE) if bound is not None else []
    return "\n".join(["proven bound:", *below])


def refuse_format(path: str | Path) -> None:
    """Refuse files whose ending is no known format of pictures.

    Raises
    ------
    InputError
        Naming the known ones.
    """
    if Path(path).suffix.lower() not in _FORMATS:
        raise InputError(
            f"cannot draw into {path}: unknown ending", remedy=f"Use {', '.join(_FORMATS)}"
        )


def save_figure(figure: Figure, path: str | Path, outputs: Outputs | None = None) -> None:
    """Write a figure; the ending says the format.

    Parameters
    ----------
    figure
        What to write.
    path
        Its file.
    outputs
        Others that it is put in place with; None puts it there at once.

    Raises
    ------
    InputError
        If the ending is no known format, or the folder may not be written to.
    """
    refuse_format(path)
    with writing(outputs) as files:
        figure.savefig(files.stage(Path(path), public=True), dpi=150)
