"""Loss, bound and gap of the heuristics on UCI Adult."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from anonymip import Problem, Solution, load_instance, lower_bound, solve
from anonymip.experiments.names import Named, one_plot
from anonymip.experiments.pictures import draw_front
from anonymip.experiments.style import BOUND, QUIET, Picture, headline, logarithmic
from anonymip.experiments.summaries import drawn_front, pareto_front
from anonymip.solution import bound_text
from benchmarks.heuristics import processor_seconds, row_of, warm_up

#: The variant that is measured at that effort, with a bound of its own, and for which k.
THOROUGH, _THOROUGH_K = "thorough", 5
#: Methods with their options. The bound is the same for all, and computed once.
_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("greedy-search", {}),
    ("greedy-search", {"order": "cardinality"}),
    ("initial", {}),
    ("ordered-cut", {}),
    ("ordered-cut", {"order": "hilbert"}),
    ("ordered-cut", {"order": "neighbour+2opt"}),
    ("k-member", {}),
    ("mondrian", {}),
    ("mondrian", {"strict": False}),
    ("hilbert", {}),
    ("hp", {}),
    ("auto", {}),
)
#: Rows of docs/methods.md by method and variant, and how it calls them.
_SHOWN = {
    ("initial", ""): "`initial`",
    ("mondrian", ""): "`mondrian`",
    ("greedy-search", ""): "`greedy-search`",
    ("ordered-cut", "order=neighbour+2opt"): "`ordered-cut`, nearest-neighbour chain, 2-opt",
    ("k-member", ""): "`k-member`",
    ("local-search", "auto"): "`local-search` (what `auto` picks)",
    ("local-search", THOROUGH): "the same, `--effort thorough`",
}


def adult() -> Iterator[dict[str, Any]]:
    """Compare the heuristics on UCI Adult."""
    warm_up()
    data = load_instance("adult")
    for k in (5, 10):
        problem = Problem(data, k=k)
        bound = lower_bound(problem)
        assert bound is not None
        reference = None
        for name, options in _RUNS:
            busy = processor_seconds()
            # What a user gets, with its bound, whose sets are a start too.
            whole = name == "auto"
            solution = solve(problem, name, options=options, bound=whole).with_bound(bound)
            busy = processor_seconds() - busy
            reference = reference or solution
            variant = "; ".join(f"{key}={value}" for key, value in options.items())
            yield _row(solution, name if name == "auto" else variant, busy, reference)
        if k != _THOROUGH_K:
            continue
        busy = processor_seconds()
        solution = solve(problem, effort=THOROUGH)
        busy = processor_seconds() - busy
        assert reference is not None
        yield _row(solution, THOROUGH, busy, reference)


def _row(solution: Solution, variant: str, busy: float, reference: Solution) -> dict[str, Any]:
    assert solution.bound is not None
    return {
        **row_of(solution),
        "processor_seconds": round(busy, 2),
        "rung": solution.bound.method,
        "variant": variant,
        "ratio": round(solution.seconds / reference.seconds, 3),
        "loss_ratio": round(solution.ncp / reference.ncp, 4),
        "reference": "greedy-search, order=variance, in the same run",
    }


def _shown(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of docs/methods.md with how it calls them: k = 5, the least loss last."""
    rows = measured[measured["k"] == 5].fillna({"variant": ""})
    names = [_SHOWN.get(key) for key in zip(rows["method"], rows["variant"], strict=True)]
    rows = rows.assign(label=names).dropna(subset=["label"])
    return rows.sort_values("gcp", ascending=False, kind="stable")


def picture(measured: pd.DataFrame, peers: pd.DataFrame | None = None) -> Picture:
    """Return the picture of README: loss against time, and the bound that no release is below.

    `measured`: the rows of this benchmark. `peers`: other tools on the same table, as
    ``docs/results/peers.csv`` has them; None where nobody measured them.
    """
    rows = _shown(measured)
    thorough = rows["variant"] == THOROUGH
    told = rows["method"] + rows["gap"].map(", thorough\ngap {:.1%}".format).str.replace("%", " %")
    rows = rows.assign(label=rows["method"].mask(thorough, told))
    front = pareto_front(rows, by=["k"], loss="gcp", time="processor_seconds")
    points, joined = drawn_front(front, time="processor_seconds")
    others = _others(peers)
    below = float((rows["bound"] / (rows["n"] * rows["m"])).max())
    size = f"{rows['n'].iloc[0]:,} records, {rows['m'].iloc[0]} attributes"
    with one_plot((8.0, 4.9)) as (figure, axes, names):
        named = draw_front(axes, points, joined, loss="gcp", time="processor_seconds")
        for other in others.to_dict("records"):
            # Hollow where a tool leaves out records, which our losses do not.
            whole = other["rows_lost"] == 0
            fill = "full" if whole else "none"
            x, y = other["seconds"], other["loss"]
            axes.plot(x, y, "o", color=QUIET, fillstyle=fill, markersize=6)
            text = str(other["name"]) if whole else f"{other['name']} (loses records)"
            named.append(Named(x, y, text, QUIET, size=8.5))
        if len(others) and others["loss"].max() > _MOST_APART * points["gcp"].max():
            logarithmic(axes, "y")
            # Room for the words below the bound.
            axes.set_ylim(bottom=below / 2.2)
        else:
            axes.set_ylim(bottom=0)
        (low, high), (left, right) = axes.get_ylim(), axes.get_xlim()
        # Room for the name of the slowest.
        ends = (left, 2.5 * right)
        axes.axhspan(low, below, facecolor=BOUND, alpha=0.13, linewidth=0, zorder=0)
        axes.plot(ends, [below, below], color=BOUND, linewidth=2)
        axes.set(xlim=ends, ylim=(low, high))
        middle = (low * below) ** 0.5 if axes.get_yscale() == "log" else (low + below) / 2
        axes.text(
            0.5,
            middle,
            f"no release by equivalence classes can be here:\nproven that all lose at least "
            f"{bound_text(below)}",
            transform=axes.get_yaxis_transform(),
            ha="center",
            va="center",
            fontsize=11,
            color=BOUND,
        )
        axes.set_xlabel("processor seconds")
        axes.set_ylabel("information loss (mean penalty of a cell)")
        headline(figure, f"What UCI Adult ({size}) loses so that k = 5 records look alike")
        named = [replace(one, size=one.size + 1) for one in named]
        names.at_points(axes, named, above=below)
    return figure


#: Times that the largest loss of other tools may be ours before the axis becomes logarithmic.
_MOST_APART = 3.0


def _others(peers: pd.DataFrame | None) -> pd.DataFrame:
    """Return name, loss, seconds and lost records of each other tool that released Adult, k = 5."""
    columns = ["name", "loss", "seconds", "rows_lost"]
    if peers is None:
        return pd.DataFrame(columns=columns)
    here = (peers["table"] == "adult") & (peers["k"] == 5)
    rows = peers[here & (peers["tool"].str.lower() != "anonymip")]
    rows = rows.dropna(subset=["loss", "seconds"])
    rows = rows[rows["seconds"] > 0].fillna({"method": "", "rows_lost": 0})
    several = rows["tool"].duplicated(keep=False) & (rows["method"] != "")
    name = rows["tool"].mask(several, rows["tool"] + " " + rows["method"])
    return rows.assign(name=name)[columns]


def markdown(measured: pd.DataFrame) -> str:
    """Return the table of docs/methods.md."""
    lines = [
        "| method | loss (gcp) | no equivalence-class release can be below | gap | seconds |",
        "|---|---|---|---|---|",
    ]
    for row in _shown(measured).itertuples():
        cells = row.n * row.m
        loss, below = row.ncp / cells, bound_text(row.bound / cells)
        busy = row.processor_seconds
        seconds = f"{busy:.0f}" if busy >= 10 else f"{busy:.2f}"
        lines.append(f"| {row.label} | {loss:.5f} | {below} | {100 * row.gap:.1f} % | {seconds} |")
    return "\n".join(lines)


def sentences(measured: pd.DataFrame) -> str:
    """Return what README says of the table: what `auto` picks, and the most effort."""
    rows = _shown(measured)
    normal, thorough = (
        rows[(rows["method"] == "local-search") & (rows["variant"] == variant)].iloc[0]
        for variant in ("auto", THOROUGH)
    )
    cells = normal["n"] * normal["m"]
    return (
        f"UCI Adult has {normal['n']:,} records and {normal['m']} quasi-identifiers. With k = 5"
        f" the release of `auto` takes {normal['processor_seconds']:.0f}\nseconds and loses"
        f" {normal['ncp'] / cells:.4f}; no release can lose less than"
        f" {bound_text(normal['bound'] / cells)}. With `--effort thorough` it takes\n"
        f"{thorough['processor_seconds'] / 60:.0f} minutes and loses"
        f" {thorough['ncp'] / cells:.4f}, at most {100 * thorough['gap']:.1f} % of which can be"
        " saved."
    )
