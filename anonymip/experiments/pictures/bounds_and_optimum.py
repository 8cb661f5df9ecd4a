"""Lower bounds beside the optimum that they bound."""

from __future__ import annotations

from collections.abc import Mapping

from anonymip.errors import InputError
from anonymip.experiments.pictures.picture import Picture, add_legend
from anonymip.solution import bound_text


def bound_bars(
    bounds: Mapping[str, float], optimum: float, *, title: str = "", unit: str = "loss"
) -> Picture:
    """Return a bar for each bound, with its share of the optimum, and the optimum as a line.

    Parameters
    ----------
    bounds
        Lower bounds by what they are of, such as the relaxations of formulations.
    optimum
        Proven optimum, or the least loss known.
    title, unit
        Of the picture, and of the numbers.

    Raises
    ------
    InputError
        If there is no bound.
    """
    if not bounds:
        raise InputError("there is no bound to draw", remedy="Give one at least")
    picture = Picture(figsize=(6.4, 0.9 + 0.42 * len(bounds)), layout="constrained")
    axes = picture.add_subplot()
    places = range(len(bounds))
    axes.barh(places, list(bounds.values()), height=0.6, color="C0", alpha=0.7)
    axes.axvline(optimum, color="tab:green", linewidth=2.5, label=f"optimum {optimum:.4g}")
    axes.set_yticks(places, [_name(name, value, optimum) for name, value in bounds.items()])
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_title(title)
    add_legend(axes)
    return picture


def _name(name: str, bound: float, optimum: float) -> str:
    share = "" if optimum == 0 else f" ({bound / optimum:.0%})"
    return f"{name}: {bound_text(bound)}{share}"
