"""Doka et al. 2015, Figs. 8 to 10: the effect of k, of the attributes, and of the size."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from anonymip.experiments.running.sources import TableSource
from anonymip.experiments.running.specification import Experiment, MethodChoice
from reproductions.papers.data import CENSUS_10K, CENSUS_64K
from reproductions.papers.doka import (
    CONCEALMENT,
    FLOW,
    JOIN,
    JOINED,
    NH,
    OWN,
    PAPER,
    gcp_at,
    time_at,
)
from reproductions.series import at_k, both, columns_of, grows, is_below, mean_of, within
from reproductions.specification import (
    Finding,
    Panel,
    Reproduction,
    Series,
    Source,
    Statement,
    Undecided,
)

_EARLIER = ("nh", CONCEALMENT)
#: Most records on which Hungarian runs on the whole table.
_WHOLE = 2000
_IN_PARTS = (
    "Of more than 2,000 records Hungarian takes parts of 1,000 in lexicographic order, as the "
    "authors' program does; the others take the whole table"
)


def _large(n: int, whole: int = _WHOLE) -> tuple[MethodChoice, ...]:
    """Return the methods that are run on tables of some size."""
    part = {"part": 1000} if n > whole else {}
    own = (MethodChoice("greedy"), MethodChoice("sort-greedy"), MethodChoice("hungarian", part))
    return (JOINED, NH, *own)


def _fig8(n: int, ks: tuple[int, ...], *, flow: bool) -> tuple[Experiment, ...]:
    table = TableSource(CENSUS_10K.instance, rows=n)
    methods = (*_large(n), *((FLOW,) if flow else ()))
    return (Experiment(name="k", tables=(table,), k=ks, methods=methods, bound=False),)


def _improvement(series: Series) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: the best of the three loses at least 41 % less than both others somewhere."""

    def check(rows: pd.DataFrame) -> Finding:
        table = columns_of(series, rows, (*OWN, *_EARLIER))
        gain = 1 - table[list(OWN)].min(axis=1) / table[list(_EARLIER)].min(axis=1)
        text = f"{gain.min():.1%} to {gain.max():.1%} below the better of NH and k-concealment"
        return Finding(bool(gain.max() >= 0.4), f"{text} (asked: 40 % somewhere)")

    return check


_GCP_K, _TIME_K = mean_of("gcp", "k"), mean_of("cpu_seconds", "k")
_LESS_THAN_EARLIER = "the three methods lose less than NH and k-concealment"
_KS = (10, 30, 50, 70, 90, 110, 130, 150)
_FIG8_STATEMENTS = (
    Statement(f"{_LESS_THAN_EARLIER} at every k", "Section 8.3", is_below(_GCP_K, OWN, _EARLIER)),
    Statement(
        "what they gain on NH widens with k (SortGreedy, difference)",
        "Section 8.3",
        grows(_GCP_K, "nh", "sort-greedy", difference=True),
    ),
    Statement("they lose up to 41 % less", "Section 8.3", _improvement(_GCP_K)),
    Statement(
        "the three methods scale with k as well as NH (SortGreedy's time over NH's does not grow)",
        "Section 8.3",
        grows(_TIME_K, "sort-greedy", "nh", falls=True),
    ),
)
#: Decided only where Hungarian takes the whole table.
_BESIDE_HUNGARIAN = (
    Statement(
        "Greedy comes nearer to Hungarian as k grows",
        "Section 8.3",
        grows(_GCP_K, "greedy", "hungarian", falls=True),
    ),
    Statement(
        "SortGreedy comes nearer to Hungarian as k grows",
        "Section 8.3",
        grows(_GCP_K, "sort-greedy", "hungarian", falls=True),
    ),
    Statement(
        "SortGreedy loses practically the same as Hungarian for large k (from 100: within 2 %)",
        "Section 8.3",
        within(_GCP_K, "sort-greedy", "hungarian", 0.02, x_from=100),
    ),
)
_FIG8_PANELS = (
    Panel("GCP", "k", "GCP", _GCP_K),
    Panel("running time", "k", "processor seconds", _TIME_K, log_y=True),
)

FIG8A = Reproduction(
    name="doka-fig8-1k",
    paper=PAPER,
    place="Fig. 8",
    title="effect of k, 1,000 records",
    sources=(CENSUS_10K,),
    full=lambda: _fig8(1000, _KS, flow=True),
    quick=lambda: _fig8(300, (10, 50, 110, 150), flow=True),
    shrunk="300 records in place of 1,000, k = 10, 50, 110 and 150",
    panels=_FIG8_PANELS,
    statements=(
        *_FIG8_STATEMENTS,
        *_BESIDE_HUNGARIAN,
        Statement(
            "minCostFlow is no viable approach (it loses more than the three at every k)",
            "Section 8.3",
            is_below(_GCP_K, OWN, ("min-cost-flow",)),
        ),
    ),
    remarks=(JOIN,),
    minutes=2.1,
)

FIG8B = Reproduction(
    name="doka-fig8-10k",
    paper=PAPER,
    place="Fig. 8",
    title="effect of k, 10,000 records",
    sources=(CENSUS_10K,),
    full=lambda: _fig8(10000, (10, 50, 100, 150), flow=False),
    quick=lambda: _fig8(1200, (10, 50, 110), flow=False),
    shrunk="1,200 records in place of 10,000, k up to 110",
    panels=_FIG8_PANELS,
    statements=_FIG8_STATEMENTS,
    remarks=(JOIN, _IN_PARTS),
    minutes=4.4,
)


def _fig9(n: int, widths: tuple[int, ...], ks: tuple[int, ...]) -> tuple[Experiment, ...]:
    tables = tuple(TableSource(CENSUS_10K.instance, rows=n, attributes=m) for m in widths)
    return (Experiment(name="d", tables=tables, k=ks, methods=_large(n), bound=False),)


def _slope_at(k: int) -> Series:
    return mean_of("slope", "m", where=at_k(k))


def _steady(series: Series, one: str, other: str) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: the ratio of one method to another stays within a factor of 2."""

    def check(rows: pd.DataFrame) -> Finding:
        table = columns_of(series, rows, (one, other))
        if len(table) < 2:
            raise Undecided("fewer than two values on the axis")
        ratio = table[one] / table[other]
        text = f"{one} over {other}: {ratio.min():.3g} to {ratio.max():.3g}"
        return Finding(bool(ratio.max() <= 2 * ratio.min()), text)

    return check


FIG9 = Reproduction(
    name="doka-fig9",
    paper=PAPER,
    place="Fig. 9",
    title="effect of dimensionality, k = 30 and 50",
    sources=(CENSUS_10K,),
    full=lambda: _fig9(10000, (2, 3, 4, 5, 6, 7, 8), (30, 50)),
    quick=lambda: _fig9(1000, (2, 4, 6, 8), (30, 50)),
    shrunk="1,000 records in place of 10,000, d = 2, 4, 6 and 8",
    panels=tuple(
        panel
        for k in (30, 50)
        for panel in (
            Panel(f"GCP, k = {k}", "attributes", "GCP", gcp_at(k, "m")),
            Panel(f"slope, k = {k}", "attributes", "(GCP(d) - GCP(2)) / (d - 2)", _slope_at(k)),
            Panel(f"time, k = {k}", "attributes", "processor seconds", time_at(k, "m"), log_y=True),
        )
    ),
    statements=tuple(
        statement
        for k in (30, 50)
        for statement in (
            Statement(
                f"{_LESS_THAN_EARLIER} at every d, k = {k}",
                "Section 8.4",
                is_below(gcp_at(k, "m"), OWN, _EARLIER),
            ),
            Statement(
                f"their slopes are below those of NH and k-concealment, k = {k}",
                "Section 8.4",
                is_below(_slope_at(k), OWN, _EARLIER),
            ),
            Statement(
                f"k-concealment has the worst slope, NH the second worst, k = {k}",
                "Section 8.4",
                both(
                    is_below(_slope_at(k), ("nh",), (CONCEALMENT,)),
                    is_below(_slope_at(k), OWN, ("nh",)),
                ),
            ),
            Statement(
                f"SortGreedy and Hungarian have better slopes than Greedy, k = {k}",
                "Section 8.4",
                is_below(_slope_at(k), ("sort-greedy", "hungarian"), ("greedy",)),
            ),
            Statement(
                f"their times lie between those of NH and k-concealment, k = {k}",
                "Section 8.4",
                both(
                    is_below(time_at(k, "m"), ("nh",), OWN),
                    is_below(time_at(k, "m"), OWN, (CONCEALMENT,)),
                ),
            ),
            Statement(
                f"all times grow alike with d, k = {k} (their ratios to k-concealment's stay "
                "within a factor of 2)",
                "Section 8.4",
                both(*(_steady(time_at(k, "m"), one, CONCEALMENT) for one in ("nh", *OWN))),
            ),
        )
    ),
    remarks=(JOIN, _IN_PARTS),
    minutes=8,
)


def _fig10(
    source: Source, sizes: tuple[int, ...], ks: tuple[int, ...], whole: int
) -> tuple[Experiment, ...]:
    tables = tuple(TableSource(source.instance, rows=n) for n in sizes)
    methods = _large(max(sizes), whole)
    return (Experiment(name="size", tables=tables, k=ks, methods=methods, bound=False),)


def _fig10_statements(ks: tuple[int, ...], *, whole: bool) -> tuple[Statement, ...]:
    every = tuple(
        statement
        for k in ks
        for statement in (
            Statement(
                f"{_LESS_THAN_EARLIER} at every size, k = {k}",
                "Section 8.5",
                is_below(gcp_at(k, "n"), OWN, _EARLIER),
            ),
            *(
                Statement(
                    f"{name}'s time grows with the table as k-concealment's, k = {k} (their ratio "
                    "stays within a factor of 2)",
                    "Section 8.5",
                    _steady(time_at(k, "n"), label, CONCEALMENT),
                )
                for name, label in (("SortGreedy", "sort-greedy"), ("Greedy", "greedy"))
            ),
        )
    )
    beside = tuple(
        Statement(
            f"SortGreedy approaches Hungarian as the table grows, k = {k}",
            "Section 8.5",
            grows(gcp_at(k, "n"), "sort-greedy", "hungarian", falls=True),
        )
        for k in ks
        if whole
    )
    return (
        *every,
        *beside,
        Statement(
            "k-concealment loses less than NH for small k (k = 15)",
            "Section 8.5",
            is_below(gcp_at(15, "n"), (CONCEALMENT,), ("nh",)),
        ),
    )


def _fig10_panels(ks: tuple[int, ...]) -> tuple[Panel, ...]:
    return tuple(
        panel
        for k in ks
        for panel in (
            Panel(f"GCP, k = {k}", "records", "GCP", gcp_at(k, "n"), log_x=True),
            Panel(
                f"time, k = {k}",
                "records",
                "processor seconds",
                time_at(k, "n"),
                log_x=True,
                log_y=True,
            ),
        )
    )


FIG10 = Reproduction(
    name="doka-fig10",
    paper=PAPER,
    place="Fig. 10",
    title="effect of size, 1,000 to 8,000 records, k = 15 and 50",
    sources=(CENSUS_10K,),
    full=lambda: _fig10(CENSUS_10K, (1000, 2000, 4000, 8000), (15, 50), 8000),
    quick=lambda: _fig10(CENSUS_10K, (500, 1000, 1500), (15, 50), 8000),
    shrunk="up to 1,500 records in place of 8,000",
    panels=_fig10_panels((15, 50)),
    statements=_fig10_statements((15, 50), whole=True),
    remarks=(JOIN, "Larger tables are doka-fig10-large"),
    minutes=6.5,
)

FIG10_LARGE = Reproduction(
    name="doka-fig10-large",
    paper=PAPER,
    place="Fig. 10",
    title="effect of size, 16,000 to 64,000 records, k = 15",
    sources=(CENSUS_64K,),
    full=lambda: _fig10(CENSUS_64K, (16000, 32000, 64000), (15,), _WHOLE),
    quick=lambda: _fig10(CENSUS_64K, (2500, 5000), (15,), _WHOLE),
    shrunk="2,500 and 5,000 records in place of 16,000 to 64,000",
    panels=_fig10_panels((15,)),
    statements=_fig10_statements((15,), whole=False),
    remarks=(JOIN, _IN_PARTS),
    minutes=10,
)

REPRODUCTIONS = (FIG8A, FIG8B, FIG9, FIG10, FIG10_LARGE)
