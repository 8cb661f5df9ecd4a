"""Liang & Samavi 2020, Figs. 6 to 8: large tables, large k, many attributes."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from anonymip.experiments.running.sources import TableSource
from anonymip.experiments.running.specification import Experiment, MethodChoice
from reproductions.papers.data import CENSUS_10K_NUMERIC, CENSUS_35, CENSUS_100K
from reproductions.papers.liang import PAPER
from reproductions.papers.liang_benchmarks import GREEDY, INITIAL, MEMBER, MONDRIAN, SIMPLE
from reproductions.series import at_k, both, columns_of, grows, is_below, mean_of, within
from reproductions.specification import Finding, Panel, Reproduction, Series, Statement


def _times(
    series: Series, one: str, other: str, low: float, high: float
) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: one method over another lies between two numbers."""

    def check(rows: pd.DataFrame) -> Finding:
        table = columns_of(series, rows, (one, other))
        ratio = table[one] / table[other]
        text = f"{one} is {ratio.min():.3g} to {ratio.max():.3g} times {other}"
        return Finding(bool(ratio.min() >= low and ratio.max() <= high), text)

    return check


_BEST = "local-search"


def _at_size(k: int, value: str) -> Series:
    return mean_of(value, "n", where=at_k(k))


def _fig6(sizes: tuple[int, ...]) -> tuple[Experiment, ...]:
    tables = tuple(TableSource(CENSUS_100K.instance, rows=n) for n in sizes)
    methods = (
        MethodChoice("split-carry"),
        *map(MethodChoice, SIMPLE),
        MethodChoice("local-search", label=_BEST),
    )
    return (Experiment(name="size", tables=tables, k=(3, 5), methods=methods, bound=False),)


FIG6 = Reproduction(
    name="liang-fig6",
    paper=PAPER,
    place="Fig. 6",
    title="running time and information loss, k = 3 and 5, up to 100,000 records",
    sources=(CENSUS_100K,),
    full=lambda: _fig6((20000, 40000, 60000, 80000, 100000)),
    quick=lambda: _fig6((5000, 20000)),
    shrunk="5,000 and 20,000 records in place of 20,000 to 100,000",
    panels=tuple(
        Panel(f"{title}, k = {k}", "records", y, _at_size(k, value), log_y=value != "loss")
        for value, title, y in (
            ("cpu_seconds", "running time", "processor seconds"),
            ("loss", "information loss", "sum of NCP"),
        )
        for k in (3, 5)
    ),
    statements=tuple(
        statement
        for k in (3, 5)
        for statement in (
            Statement(
                f"Split & Carry loses much less than Greedy Search and K-Member, k = {k}",
                "Section 4.4",
                is_below(_at_size(k, "loss"), ("split-carry",), (GREEDY, MEMBER)),
            ),
            Statement(
                f"and takes less time, k = {k}",
                "Section 4.4",
                is_below(_at_size(k, "cpu_seconds"), ("split-carry",), (GREEDY, MEMBER)),
            ),
            Statement(
                f"K-Member loses slightly less than Greedy Search, k = {k}",
                "Section 4.4",
                is_below(_at_size(k, "loss"), (MEMBER,), (GREEDY,)),
            ),
            Statement(
                f"Greedy Search takes less time than K-Member, k = {k}",
                "Section 4.4",
                is_below(_at_size(k, "cpu_seconds"), (GREEDY,), (MEMBER,)),
            ),
            Statement(
                f"Mondrian loses 9 to 56 times what the initial solution loses, k = {k}",
                "Section 4.4",
                _times(_at_size(k, "loss"), MONDRIAN, INITIAL, 9, 56),
            ),
            Statement(
                f"Split & Carry is near the optimum (within 10 % of local-search), k = {k}",
                "Section 4.5",
                within(_at_size(k, "loss"), "split-carry", _BEST, 0.1),
            ),
        )
    ),
    remarks=(
        "local-search is ours: the optimum is at most its loss, and a method at least so far above",
    ),
    minutes=0.5,
)


def _many(tables: tuple[TableSource, ...], ks: tuple[int, ...], name: str) -> Experiment:
    methods = tuple(map(MethodChoice, SIMPLE))
    return Experiment(name=name, tables=tables, k=ks, methods=methods, bound=False)


_LOSS_K, _TIME_K = mean_of("loss", "k"), mean_of("cpu_seconds", "k")

FIG7 = Reproduction(
    name="liang-fig7",
    paper=PAPER,
    place="Fig. 7",
    title="running time and information loss, 8 attributes, k = 5 to 200",
    sources=(CENSUS_10K_NUMERIC,),
    full=lambda: (
        _many((TableSource(CENSUS_10K_NUMERIC.instance),), (5, 10, 25, 50, 100, 150, 200), "k"),
    ),
    quick=lambda: (
        _many((TableSource(CENSUS_10K_NUMERIC.instance, rows=4000),), (5, 50, 200), "k"),
    ),
    shrunk="4,000 records, k = 5, 50 and 200",
    panels=(
        Panel("running time", "k", "processor seconds", _TIME_K, log_y=True),
        Panel("information loss", "k", "sum of NCP", _LOSS_K),
    ),
    statements=(
        Statement(
            "Mondrian loses much more than Greedy Search and K-Member",
            "Section 4.4",
            is_below(_LOSS_K, (GREEDY, MEMBER), (MONDRIAN,)),
        ),
        Statement(
            "what Mondrian loses more than Greedy Search grows with k",
            "Section 4.4",
            grows(_LOSS_K, MONDRIAN, GREEDY, difference=True),
        ),
        Statement(
            "K-Member loses slightly less than Greedy Search for small k (5)",
            "Section 4.4",
            is_below(_LOSS_K, (MEMBER,), (GREEDY,), x_to=5),
        ),
        Statement(
            "Greedy Search loses less than K-Member for large k (from 100)",
            "Section 4.4",
            is_below(_LOSS_K, (GREEDY,), (MEMBER,), x_from=100),
        ),
        Statement(
            "Mondrian's time is negligible beside theirs (below a tenth)",
            "Section 4.4",
            is_below(_TIME_K, (MONDRIAN,), (GREEDY, MEMBER), by=0.1),
        ),
    ),
    remarks=("The paper has 20,000 records",),
    minutes=0.1,
)


def _fig8(n: int) -> tuple[Experiment, ...]:
    tables = tuple(TableSource(CENSUS_35.instance, attributes=m, rows=n) for m in (15, 25, 35))
    return (_many(tables, (10, 100), "attributes"),)


def _by_attributes(k: int, value: str) -> Series:
    return mean_of(value, "m", where=at_k(k))


FIG8 = Reproduction(
    name="liang-fig8",
    paper=PAPER,
    place="Fig. 8",
    title="running time and information loss, 15 to 35 attributes, k = 10 and 100",
    sources=(CENSUS_35,),
    full=lambda: _fig8(20000),
    quick=lambda: _fig8(1500),
    shrunk="1,500 records in place of 20,000",
    panels=tuple(
        Panel(f"{title}, k = {k}", "attributes", y, _by_attributes(k, value), log_y=value != "loss")
        for value, title, y in (
            ("cpu_seconds", "running time", "processor seconds"),
            ("loss", "information loss", "sum of NCP"),
        )
        for k in (10, 100)
    ),
    statements=(
        *(
            Statement(
                f"what Mondrian loses more than Greedy Search grows with the attributes, k = {k}",
                "Section 4.4",
                grows(_by_attributes(k, "loss"), MONDRIAN, GREEDY, difference=True),
            )
            for k in (10, 100)
        ),
        Statement(
            "for k = 10 Greedy Search and K-Member lose almost the same (within 2 %)",
            "Section 4.4",
            both(
                within(_by_attributes(10, "loss"), GREEDY, MEMBER, 0.02),
                within(_by_attributes(10, "loss"), MEMBER, GREEDY, 0.02),
            ),
        ),
        Statement(
            "for k = 100 Greedy Search loses slightly less than K-Member",
            "Section 4.4",
            is_below(_by_attributes(100, "loss"), (GREEDY,), (MEMBER,)),
        ),
    ),
    minutes=1,
)

REPRODUCTIONS = (FIG6, FIG7, FIG8)
