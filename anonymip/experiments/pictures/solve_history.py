"""Incumbent and bound of a solve over time, from its progress messages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from anonymip.errors import InputError
from anonymip.experiments.pictures.picture import Picture, add_legend
from anonymip.problem import Problem
from anonymip.runtime.budget import Progress
from anonymip.solution import Solution
from anonymip.solving import solve


@dataclass(frozen=True)
class SolveHistory:
    """A solution, and what its method reported on the way.

    Parameters
    ----------
    solution
        What the solve returned.
    frame
        A row a message, in order, and one for the end: ``seconds`` since the start, compilation
        included, ``phase``, ``incumbent`` and ``bound``; missing where a message does not say.
    """

    solution: Solution
    frame: pd.DataFrame


def solve_with_history(problem: Problem, method: str = "auto", **settings: Any) -> SolveHistory:
    """Solve a problem as :func:`anonymip.solve` does, and keep its progress messages.

    Parameters
    ----------
    problem, method, **settings
        As `solve` takes them.

    Examples
    --------
    >>> import anonymip
    >>> problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    >>> history = solve_with_history(problem, "equivalence-mip")
    >>> history.solution.is_optimal
    True
    >>> bool(history.frame["incumbent"].iloc[-1] == history.solution.objective)
    True
    """
    rows: list[tuple[float, str, float | None, float | None]] = []
    listener = settings.pop("progress", None)
    began = time.perf_counter()

    def keep(message: Progress) -> None:
        seconds = time.perf_counter() - began
        rows.append((seconds, message.phase, message.incumbent, message.bound))
        if listener is not None:
            listener(message)

    solution = solve(problem, method, progress=keep, **settings)
    bound = None if solution.bound is None else solution.bound.value
    rows.append((time.perf_counter() - began, "end", solution.objective, bound))
    frame = pd.DataFrame(rows, columns=["seconds", "phase", "incumbent", "bound"])
    return SolveHistory(solution, frame.astype({"incumbent": "float64", "bound": "float64"}))


def solves_over_time(histories: Mapping[str, SolveHistory]) -> Picture:
    """Return incumbents (lines) and bounds (dashes) of solves over time, a colour a solve.

    Parameters
    ----------
    histories
        By name; of one objective and table, so that their losses can be compared.

    Raises
    ------
    InputError
        If there is none, or their losses are not in one unit.
    """
    units = {
        (one.solution.problem.objective.name, one.solution.scale) for one in histories.values()
    }
    if len(units) != 1:
        raise InputError(
            f"{len(histories)} histories with {len(units)} units of loss in one picture",
            remedy="Draw solves of one table and objective",
        )
    ((objective, scale),) = units
    picture = Picture(figsize=(7.2, 3.8), layout="constrained")
    axes = picture.add_subplot()
    for number, (name, history) in enumerate(histories.items()):
        colour = f"C{number}"
        for column, style in (("incumbent", "-"), ("bound", "--")):
            told = history.frame.dropna(subset=[column])
            axes.step(
                told["seconds"],
                told[column] / scale,
                style,
                where="post",
                color=colour,
                label=f"{name}: {column}",
            )
        end = history.frame.iloc[-1]
        if history.solution.is_optimal:
            loss = end["incumbent"] / scale
            axes.plot(end["seconds"], loss, "o", color=colour, label=f"{name}: proven optimal")
    axes.set_xlabel("seconds")
    axes.set_ylabel("loss (global certainty penalty)" if scale != 1 else f"loss ({objective})")
    axes.grid(axis="y", alpha=0.3)
    add_legend(axes)
    return picture
