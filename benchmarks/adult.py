"""Loss, bound and gap of the heuristics on UCI Adult."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from anonymip import Problem, Solution, load_instance, lower_bound, solve
from anonymip.experiments.pictures import Picture, loss_against_time
from anonymip.experiments.pictures.picture import add_legend
from anonymip.experiments.summaries import pareto_front
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
            solution = solve(problem, name, options=options, bound=False).with_bound(bound)
            busy = processor_seconds() - busy
            reference = reference or solution
            variant = "; ".join(f"{key}={value}" for key, value in options.items())
            yield _row(solution, name if name == "auto" else variant, busy, reference)
        if k != _THOROUGH_K:
            continue
        busy = processor_seconds()
        solution = solve(problem, effort=THOROUGH, bound=False)
        busy = processor_seconds() - busy
        higher = lower_bound(problem, effort=THOROUGH)
        assert higher is not None
        assert reference is not None
        yield _row(solution.with_bound(higher), THOROUGH, busy, reference)


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


def picture(measured: pd.DataFrame) -> Picture:
    """Return the picture of README: loss against time, and the bound that no release is below."""
    rows = _shown(measured)
    axis = {"gcp": "loss (gcp)", "processor_seconds": "processor seconds"}
    thorough = rows["variant"] == THOROUGH
    rows = rows.assign(label=rows["method"].mask(thorough, rows["method"] + ", thorough"))
    rows = rows.rename(columns=axis)
    loss, time = axis.values()
    front = pareto_front(rows, by=["k"], loss=loss, time=time)
    drawn = loss_against_time(front, loss=loss, time=time, title="UCI Adult, k = 5")
    (axes,) = drawn.axes
    below = float((rows["bound"] / (rows["n"] * rows["m"])).max())
    axes.axhspan(0, below, color="grey", alpha=0.25, label="no release can be here")
    axes.set_ylim(bottom=0)
    add_legend(axes)
    return drawn


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
