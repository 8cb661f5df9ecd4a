"""A release on one page: loss, bound, gap, attributes, class sizes."""

from __future__ import annotations

import html
import io

import numpy as np
from matplotlib.figure import Figure

from anonymip.experiments.measures import attribute_losses
from anonymip.publishing import Release, homogeneous_classes, what_is_gone
from anonymip.recodings import PatternGuided
from anonymip.solution import Solution

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem .2rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.headline { font-size: 1.3rem; }
"""


def html_report(release: Release, instance: str) -> str:
    """Return a page about a release, complete in itself; it shows no single record."""
    solution = release.solution
    lines = "".join(
        f"<li>{html.escape(line)}</li>"
        for line in (*solution.summary().splitlines()[1:], *_rules(solution))
    )
    checked = "".join(f"<li>{html.escape(text)}</li>" for text in release.manifest["checked"])
    assumed = "".join(f"<li>{html.escape(text)}</li>" for text in release.manifest["assumed"])
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Release of {html.escape(instance)}</title>
<style>{_STYLE}</style></head>
<body>
<h1>Release of {html.escape(instance)}</h1>
<p class="headline">{html.escape(_sentence(solution))}</p>
<ul>{lines}</ul>
<h2>Where the loss lies</h2>
{_attribute_table(solution)}
<h2>Class sizes</h2>
{_size_chart(solution)}
{_listed("What is not published", what_is_gone(release))}{_listed("Cautions", _cautions(release))}
<h2>Checked</h2><ul>{checked}</ul>
<h2>Assumed</h2><ul>{assumed}</ul>
</body>
</html>
"""


def _cautions(release: Release) -> list[str]:
    counts, rows = release.manifest["homogeneous"] or {}, len(release.frame)
    return homogeneous_classes(counts, rows)


def _listed(title: str, lines: list[str]) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>\n" if lines else ""


def _sentence(solution: Solution) -> str:
    text = solution.sentence()
    return text[0].upper() + text[1:] + "."


def _rules(solution: Solution) -> list[str]:
    """Return what was asked beside k; limits do not name the values that they keep apart."""
    problem = solution.problem
    asked = [str(limit) for limit in problem.limits]
    if problem.diversity is not None:
        asked.insert(0, str(problem.diversity))
    if isinstance(problem.recoding, PatternGuided):
        asked.append(f"mask: {problem.recoding.mask}")
    return [f"asked: {rule}" for rule in asked]


def _attribute_table(solution: Solution) -> str:
    """Return the mean normalised penalty of each attribute."""
    rows = []
    for name, penalty in attribute_losses(solution).items():
        rows.append(
            f"<tr><td>{html.escape(name)}</td><td class='number'>{100 * penalty:.2f} %</td></tr>"
        )
    head = "<tr><th>attribute</th><th>mean share of the domain that a cell covers</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _size_chart(solution: Solution) -> str:
    sizes, counts = np.unique(solution.sizes, return_counts=True)
    if len(sizes) == 0:
        return "<p>All records are suppressed.</p>"
    figure = Figure(figsize=(6.4, 2.4), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(sizes, counts, color="tab:blue")
    axes.set_xlabel("records in a class")
    axes.set_ylabel("classes")
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    drawn = buffer.getvalue()
    return drawn[drawn.index("<svg") :]
