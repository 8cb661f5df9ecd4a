"""Series of rows, which panels draw and statements are decided by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from anonymip.experiments.summaries import means, share_gained, slopes, with_optima
from reproductions.specification import Finding, Series, Undecided

Where = Callable[[pd.DataFrame], "pd.Series[bool]"]


def of_experiment(name: str) -> Where:
    """Return the choice of the rows of one experiment."""
    return lambda rows: rows["experiment"] == name


def at_k(k: int) -> Where:
    """Return the choice of the rows of one k."""
    return lambda rows: rows["k"] == k


def mean_of(
    value: str,
    x: str,
    *,
    where: Where | None = None,
    labels: Sequence[str] = (),
    scale: float = 1.0,
) -> Series:
    """Return a series: means of a column with their 95 % intervals.

    `value`: the column; ``ratio`` is the loss over the proven optimum, ``slope`` what the mean
    penalty of a cell grows by with each attribute. `x`: the column of the axis. `where`: which rows
    count; None for all. `labels`: which methods, in this order; empty for all, as they come.
    `scale`: factor of the values.
    """

    def series(rows: pd.DataFrame) -> pd.DataFrame:
        chosen = rows if where is None else rows[where(rows)]
        if value == "ratio":
            chosen = with_optima(chosen)
        if value == "slope":
            chosen = slopes(chosen)
        found = means(chosen, value, [x, "label"])
        if labels:
            found = pd.concat([found[found["label"] == label] for label in labels])
        drawn = found.rename(columns={x: "x", "mean": "y"})[["label", "x", "y", "low", "high"]]
        drawn["x"] = drawn["x"].astype("float64")
        drawn[["y", "low", "high"]] *= scale
        return drawn

    return series


def share_of(baseline: str, x: str = "k", *, recoding: str = "freeform") -> Series:
    """Return a series: the share gained of what lies between a baseline and the optimum."""

    def series(rows: pd.DataFrame) -> pd.DataFrame:
        found = share_gained(rows, baseline, recoding=recoding)
        found = found[found["label"] != baseline].rename(columns={x: "x", "share": "y"})
        found["x"] = found["x"].astype("float64")
        return found[["label", "x", "y"]]

    return series


def ratio_to(of: str, value: str, x: str, *, where: Where | None = None) -> Series:
    """Return a series: the mean of one method over the means of the others, at each x."""

    def series(rows: pd.DataFrame) -> pd.DataFrame:
        table = table_of(mean_of(value, x, where=where)(rows))
        if of not in table:
            raise Undecided(f"no run of {of}")
        ratios = pd.DataFrame(
            {label: table[of] / table[label] for label in table if label != of}, table.index
        )
        drawn = ratios.rename_axis("x").reset_index().melt("x", var_name="label", value_name="y")
        return drawn.dropna(subset=["y"])[["label", "x", "y"]]

    return series


def table_of(series: pd.DataFrame) -> pd.DataFrame:
    """Return a series as a table: a row for each x, a column for each label, in their order."""
    table = series.pivot_table(index="x", columns="label", values="y", sort=False)
    return table[list(dict.fromkeys(series["label"]))].sort_index()


def columns_of(series: Series, rows: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Return the columns of some methods, at each x where all of them have a value."""
    drawn = series(rows)
    table = table_of(drawn) if len(drawn) else pd.DataFrame()
    missing = [label for label in labels if label not in table]
    if missing:
        raise Undecided(f"no run of {', '.join(missing)}")
    chosen = table[list(dict.fromkeys(labels))].dropna()
    if chosen.empty:
        raise Undecided(f"{', '.join(labels)} have no value in common")
    return chosen


def is_below(
    series: Series,
    low: Sequence[str],
    high: Sequence[str],
    *,
    x_from: float | None = None,
    x_to: float | None = None,
    by: float = 1.0,
    difference: bool = False,
) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: each of some methods is below each of others, at every x.

    `series`: what is compared. `low, high`: labels. `x_from, x_to`: only there; None for no end.
    `by`: the lower ones are below the higher ones times this. `difference`: whether differences are
    said in place of ratios: of values that may be 0 or negative.
    """

    def check(rows: pd.DataFrame) -> Finding:
        table = _within(columns_of(series, rows, (*low, *high)), x_from, x_to)
        holds, texts = True, []
        for one in low:
            for other in high:
                below = table[one] < by * table[other]
                holds = holds and bool(below.all())
                apart = _apart(table, one, other, difference)
                texts.append(
                    f"{one} below {other}{'' if by == 1 else f' x {by:g}'} at {below.sum()} of "
                    f"{len(below)} ({'difference' if difference else 'ratio'} {_span(apart)})"
                )
        return Finding(holds, "; ".join(texts))

    return check


def both(*checks: Callable[[pd.DataFrame], Finding]) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: several hold together."""

    def check(rows: pd.DataFrame) -> Finding:
        findings = [one(rows) for one in checks]
        return Finding(
            all(finding.holds for finding in findings),
            "; ".join(finding.measured for finding in findings),
        )

    return check


def grows(
    series: Series,
    one: str,
    other: str,
    *,
    falls: bool = False,
    x_from: float | None = None,
    difference: bool = False,
) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: one method over another grows from the first x to the last.

    `series`: what is compared. `one, other`: labels. `falls`: whether it is to fall instead.
    `x_from`: only from there on. `difference`: whether their difference counts instead of their
    ratio.
    """

    def check(rows: pd.DataFrame) -> Finding:
        table = _within(columns_of(series, rows, (one, other)), x_from, None)
        first, last, text = _ends(_apart(table, one, other, difference))
        word = "minus" if difference else "over"
        return Finding(
            bool(last < first if falls else last > first), f"{one} {word} {other}: {text}"
        )

    return check


def no_rise(series: Series, label: str, *, most: float = 0.05) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: a method's last value is above its first by at most a share of it."""

    def check(rows: pd.DataFrame) -> Finding:
        first, last, text = _ends(columns_of(series, rows, (label,))[label])
        return Finding(
            bool(last <= first * (1 + most)), f"{label}: {text} (asked: at most +{most:.0%})"
        )

    return check


def above_zero(series: Series, labels: Sequence[str]) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: the values of all methods are positive on average over the axis."""

    def check(rows: pd.DataFrame) -> Finding:
        average = columns_of(series, rows, labels).mean()
        texts = [f"{label} {average[label]:.3g}" for label in labels]
        return Finding(bool((average > 0).all()), "on average " + ", ".join(texts))

    return check


def within(
    series: Series,
    one: str,
    other: str,
    most: float,
    *,
    x_from: float | None = None,
    x_to: float | None = None,
    difference: bool = False,
) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: one method is above another by at most a share of it, at every x.

    `series`: what is compared. `one, other`: labels. `most`: the share; with `difference` how much
    it may be above in units of the series. `x_from, x_to`: only there; None for no end.
    `difference`: whether differences count: of values that may be 0 or negative.
    """

    def check(rows: pd.DataFrame) -> Finding:
        table = _within(columns_of(series, rows, (one, other)), x_from, x_to)
        above = _apart(table, one, other, difference)
        if difference:
            text = f"{one} minus {other}: {_span(above)} (asked: at most {most:g})"
        else:
            above = above - 1
            text = (
                f"{one} is {_span(100 * above)} % above {other} (asked: at most {100 * most:g} %)"
            )
        return Finding(bool((above <= most).all()), text)

    return check


def _apart(table: pd.DataFrame, one: str, other: str, difference: bool) -> pd.Series[float]:
    """Return the ratio of one column to another at each x, or their difference."""
    return table[one] - table[other] if difference else table[one] / table[other]


def _ends(line: pd.Series[float]) -> tuple[float, float, str]:
    """Return the first and the last value along the axis, and both in words."""
    if len(line) < 2:
        raise Undecided("fewer than two values on the axis")
    first, last = line.iloc[0], line.iloc[-1]
    return first, last, f"{first:.4g} at {line.index[0]:g}, {last:.4g} at {line.index[-1]:g}"


def _span(values: pd.Series[float]) -> str:
    """Return the least and the largest value; one number, if they are the same."""
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _within(table: pd.DataFrame, low: float | None, high: float | None) -> pd.DataFrame:
    chosen = table[table.index >= low] if low is not None else table
    chosen = chosen[chosen.index <= high] if high is not None else chosen
    if chosen.empty:
        raise Undecided("no values in that part of the axis")
    return chosen


def all_proven(rows: pd.DataFrame, label: str) -> Finding:
    """Return whether all runs of an exact method ended with a proof."""
    own = rows[rows["label"] == label]
    if own.empty:
        raise Undecided(f"no run of {label}")
    proven = own["status"] == "optimal"
    return Finding(bool(proven.all()), f"{proven.sum()} of {len(own)} optima are proven")


def near_printed(
    series: Series, printed: Mapping[str, Mapping[float, float]], label: str, most: float
) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: a method's values are those that the paper prints, up to a share of them."""

    def check(rows: pd.DataFrame) -> Finding:
        table = columns_of(series, rows, (label,))
        shared = [x for x in table.index if x in printed[label]]
        if not shared:
            raise Undecided("the paper prints no value that is measured")
        away = {x: table.loc[x, label] / printed[label][x] - 1 for x in shared}
        near = sum(bool(abs(one) <= most) for one in away.values())
        text = (
            f"{near} of {len(shared)} within {100 * most:g} %; "
            f"{100 * min(away.values()):+.3g} to {100 * max(away.values()):+.3g} %"
        )
        return Finding(near == len(shared), text)

    return check
