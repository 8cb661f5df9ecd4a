"""A release on one page: loss, bound, gap, attributes, class sizes."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from anonymip.experiments.measures import attribute_losses
from anonymip.experiments.pages.rendering import Sheet, inline, render
from anonymip.experiments.style import PAINT
from anonymip.publishing import Release, homogeneous_classes, what_is_gone
from anonymip.recodings import PatternGuided
from anonymip.solution import Solution


def html_report(release: Release, instance: str) -> str:
    """Return a page about a release, complete in itself; it shows no single record."""
    solution = release.solution
    return render(
        "release.html",
        title=f"Release of {instance}",
        attention=solution.many_suppressed,
        sentence=_sentence(solution),
        lines=[*_after_sentence(solution), *_rules(solution)],
        penalties=attribute_losses(solution),
        sizes=_size_chart(solution),
        gone=what_is_gone(release),
        cautions=homogeneous_classes(release.manifest["homogeneous"] or {}, len(release.table)),
        checked=release.manifest["checked"],
        assumed=release.manifest["assumed"],
    )


def _sentence(solution: Solution) -> str:
    text = solution.sentence()
    return text[0].upper() + text[1:] + "."


def _after_sentence(solution: Solution) -> list[str]:
    lines = solution.summary().splitlines()
    return lines[lines.index(solution.sentence()) + 1 :]


def _rules(solution: Solution) -> list[str]:
    """Return what was asked beside k; limits do not name the values that they keep apart."""
    problem = solution.problem
    asked = [str(limit) for limit in problem.limits]
    if problem.diversity is not None:
        asked.insert(0, str(problem.diversity))
    if isinstance(problem.recoding, PatternGuided):
        asked.append(f"mask: {problem.recoding.mask}")
    return [f"asked: {rule}" for rule in asked]


def _size_chart(solution: Solution) -> Markup | None:
    """Return how many classes there are of each size; None without classes."""
    sizes, counts = np.unique(solution.sizes, return_counts=True)
    if len(sizes) == 0:
        return None

    def draw(sheet: Sheet) -> None:
        axes = sheet.figure.add_subplot()
        axes.bar(sizes, counts, color=PAINT["blue"])
        # One size alone is a bar among the numbers about it, not the whole picture.
        middle, half = (sizes[0] + sizes[-1]) / 2, max(4.5, 0.51 * np.ptp(sizes) + 1)
        axes.set_xlim(max(0.0, middle - half), middle + half)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("records in a class")
        axes.set_ylabel("classes")
        axes.grid(axis="y")

    return inline(draw, "Number of classes of each size", height=3.4)
