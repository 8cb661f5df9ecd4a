"""Liang & Samavi 2020, Figs. 3 to 5, 9 and 10: the two heuristics beside others."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from anonymip.experiments.running.sources import TableSource
from anonymip.experiments.running.specification import Experiment, MethodChoice
from reproductions.papers.data import CENSUS_1K_MIXED, CENSUS_10K, CENSUS_100K, FARS
from reproductions.papers.liang import PAPER
from reproductions.series import (
    both,
    columns_of,
    grows,
    is_below,
    mean_of,
    of_experiment,
    ratio_to,
    within,
)
from reproductions.specification import Finding, Panel, Reproduction, Series, Source, Statement

GREEDY, MONDRIAN, MEMBER, INITIAL = "greedy-search", "mondrian", "k-member", "initial"
_COVERS = ("greedy", "sort-greedy", "hungarian")
SIMPLE = (GREEDY, MEMBER, MONDRIAN, INITIAL)
_CHAINS = tuple(f"split-carry S={s}" for s in (3, 4, 5))
_CHAIN_CHOICES = tuple(
    MethodChoice("split-carry", {"S": s}, label=label)
    for s, label in zip((3, 4, 5), _CHAINS, strict=True)
)
_DOKA = "The program of Doka et al. is theirs in Python; times are those of implementations"


# Figs. 3 and 4: 1,000 and 2,000 records, GCP as the paper defines it.


def _fig3(sizes: tuple[tuple[Source, int], ...], ks: tuple[int, ...]) -> tuple[Experiment, ...]:
    methods = tuple(map(MethodChoice, (*SIMPLE, *_COVERS)))
    return tuple(
        Experiment(
            name=str(place),
            tables=(TableSource(source.instance, rows=n),),
            k=ks,
            methods=methods,
            objective="liang-gcp",
            bound=False,
        )
        for place, (source, n) in zip((1000, 2000), sizes, strict=True)
    )


def _losses_at(n: int) -> Series:
    return mean_of("loss", "k", where=of_experiment(str(n)))


def _times_at(n: int) -> Series:
    return mean_of("cpu_seconds", "k", where=of_experiment(str(n)))


def _gap_falls(one: str, other: str) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: a method over another is smaller at 2,000 records, on average over k."""

    def check(rows: pd.DataFrame) -> Finding:
        means = []
        for n in (1000, 2000):
            table = columns_of(_losses_at(n), rows, (one, other))
            means.append(float((table[one] / table[other]).mean()))
        text = f"{one} over {other}: {means[0]:.4g} at 1,000 records, {means[1]:.4g} at 2,000"
        return Finding(means[1] < means[0], text)

    return check


def _in_both(
    check: Callable[[Series], Callable[[pd.DataFrame], Finding]],
) -> Callable[..., Finding]:
    return both(check(_losses_at(1000)), check(_losses_at(2000)))


def _full3() -> tuple[Experiment, ...]:
    return _fig3(((CENSUS_1K_MIXED, 1000), (CENSUS_10K, 2000)), (3, 5, 7, 9, 11, 13, 15))


def _quick3() -> tuple[Experiment, ...]:
    return _fig3(((CENSUS_1K_MIXED, 300), (CENSUS_10K, 600)), (3, 9, 15))


_SHRUNK3 = "300 and 600 records in place of 1,000 and 2,000, k = 3, 9 and 15"
_REMARKS3 = (
    "GCP as the paper's Defs. 8 and 9 have it, (count - 1) / |A| for categories, summed",
    "The 2,000 records are of another extract of CENSUS than the 1,000",
    _DOKA,
)

FIG3 = Reproduction(
    name="liang-fig3",
    paper=PAPER,
    place="Fig. 3",
    title="information loss and running time, 8 attributes, k = 3 to 15",
    sources=(CENSUS_1K_MIXED, CENSUS_10K),
    full=_full3,
    quick=_quick3,
    shrunk=_SHRUNK3,
    panels=(
        Panel("a) 1,000 records", "k", "information loss", _losses_at(1000)),
        Panel("b) 2,000 records", "k", "information loss", _losses_at(2000)),
        Panel("c) 1,000 records", "k", "processor seconds", _times_at(1000), log_y=True),
        Panel("d) 2,000 records", "k", "processor seconds", _times_at(2000), log_y=True),
    ),
    statements=(
        Statement(
            "Doka Hungarian loses least of the three covers",
            "Section 4.3",
            _in_both(lambda series: is_below(series, ("hungarian",), ("greedy", "sort-greedy"))),
        ),
        Statement(
            "Mondrian is fast and loses far more than the others",
            "Section 4.3",
            _in_both(lambda series: is_below(series, (GREEDY, *_COVERS), (MONDRIAN,))),
        ),
        Statement(
            "Greedy Search takes much less time than the covers (below a tenth)",
            "Section 4.3",
            both(
                is_below(_times_at(1000), (GREEDY,), _COVERS, by=0.1),
                is_below(_times_at(2000), (GREEDY,), _COVERS, by=0.1),
            ),
        ),
        Statement(
            "for larger k (15) Greedy Search loses less than K-Member",
            "Section 4.3",
            _in_both(lambda series: is_below(series, (GREEDY,), (MEMBER,), x_from=15)),
        ),
        Statement(
            "with 2,000 records Greedy Search reaches SortGreedy (within 5 %)",
            "Section 4.3",
            within(_losses_at(2000), GREEDY, "sort-greedy", 0.05),
        ),
        Statement(
            "the initial solution loses less than Mondrian, and is faster",
            "Section 4.5",
            both(
                _in_both(lambda series: is_below(series, (INITIAL,), (MONDRIAN,))),
                is_below(_times_at(2000), (INITIAL,), (MONDRIAN,)),
            ),
        ),
    ),
    remarks=_REMARKS3,
    minutes=0.4,
)


def _ratios_at(n: int) -> Series:
    return ratio_to(GREEDY, "loss", "k", where=of_experiment(str(n)))


FIG4 = Reproduction(
    name="liang-fig4",
    paper=PAPER,
    place="Fig. 4",
    title="loss of Greedy Search over that of other algorithms",
    sources=(CENSUS_1K_MIXED, CENSUS_10K),
    full=_full3,
    quick=_quick3,
    shrunk=_SHRUNK3,
    panels=(
        Panel("a) 1,000 records", "k", "ratio", _ratios_at(1000)),
        Panel("b) 2,000 records", "k", "ratio", _ratios_at(2000)),
    ),
    statements=(
        Statement(
            "for small k (3) Greedy Search loses less than Doka Greedy",
            "Section 4.3",
            _in_both(lambda series: is_below(series, (GREEDY,), ("greedy",), x_to=3)),
        ),
        Statement(
            "as k grows Doka Greedy gains on it",
            "Section 4.3",
            _in_both(lambda series: grows(series, GREEDY, "greedy")),
        ),
        *(
            Statement(
                f"with more records Greedy Search gains on {other}",
                "Section 4.3",
                _gap_falls(GREEDY, other),
            )
            for other in ("hungarian", "sort-greedy", "greedy", MONDRIAN, MEMBER)
        ),
    ),
    remarks=_REMARKS3,
    minutes=0.4,
)

# Fig. 5, 9 and 10: one table each, all methods.


def _bars(
    source: Source, n: int, attributes: tuple[str, ...] | int | None = None
) -> tuple[Experiment, ...]:
    methods = (*_CHAIN_CHOICES, *map(MethodChoice, (*SIMPLE, *_COVERS)))
    table = TableSource(source.instance, rows=n, attributes=attributes)
    return (Experiment(name="bars", tables=(table,), k=(3,), methods=methods, bound=False),)


_BY_K = mean_of("gcp", "k")
_SECONDS = mean_of("cpu_seconds", "k")
_BAR_PANELS = (
    Panel("GCP", "k", "GCP", _BY_K, "bars"),
    Panel("running time", "k", "processor seconds", _SECONDS, "bars", log_y=True),
)
_NEAR = Statement(
    "Split & Carry and Greedy Search lose little more than Doka Hungarian (within 10 %)",
    "Section 4.3",
    both(*(within(_BY_K, one, "hungarian", 0.1) for one in (*_CHAINS, GREEDY))),
)

FIG5 = Reproduction(
    name="liang-fig5",
    paper=PAPER,
    place="Fig. 5",
    title="5,000 records, 4 attributes as numbers, k = 3",
    sources=(CENSUS_100K,),
    full=lambda: _bars(CENSUS_100K, 5000),
    quick=lambda: _bars(CENSUS_100K, 1500),
    shrunk="1,500 records in place of 5,000",
    panels=_BAR_PANELS,
    statements=(
        _NEAR,
        Statement(
            "they lose less than Doka Greedy and Doka SortGreedy",
            "Section 4.3",
            is_below(_BY_K, (*_CHAINS, GREEDY), ("greedy", "sort-greedy")),
        ),
        Statement(
            "they are faster than the covers",
            "Section 4.3",
            is_below(_SECONDS, (*_CHAINS, GREEDY), _COVERS),
        ),
        Statement(
            "Mondrian loses far more than they do",
            "Section 4.3",
            is_below(_BY_K, (*_CHAINS, GREEDY), (MONDRIAN,)),
        ),
        Statement(
            "the initial solution loses less than Mondrian, and is faster",
            "Section 4.3",
            both(
                is_below(_BY_K, (INITIAL,), (MONDRIAN,)),
                is_below(_SECONDS, (INITIAL,), (MONDRIAN,)),
            ),
        ),
    ),
    remarks=(
        "The paper's text says k = 4, its Table 8 and the sizes of its sub-problems k = 3",
        _DOKA,
    ),
    minutes=0.1,
)

_FARS_ATTRIBUTES = ("ideathmon", "iage", "isex", "irace")


def _fars(n: int) -> tuple[Experiment, ...]:
    attributes = _FARS_ATTRIBUTES if FARS.is_here else 4
    return _bars(FARS, n, attributes)


_FARS_STATEMENTS = (
    _NEAR,
    Statement(
        "they are faster than Doka Hungarian",
        "Appendix F",
        is_below(_SECONDS, (*_CHAINS, GREEDY), ("hungarian",)),
    ),
)

FIG9 = Reproduction(
    name="liang-fig9",
    paper=PAPER,
    place="Fig. 9",
    title="FARS, 1,000 records, 4 attributes, k = 3",
    sources=(FARS,),
    full=lambda: _fars(1000),
    quick=lambda: _fars(400),
    shrunk="400 records in place of 1,000",
    panels=_BAR_PANELS,
    statements=(
        *_FARS_STATEMENTS,
        Statement(
            "Greedy Search is faster than Split & Carry",
            "Appendix F",
            is_below(_SECONDS, (GREEDY,), _CHAINS),
        ),
    ),
    minutes=0.1,
)


def _fig10(n: int) -> tuple[Experiment, ...]:
    attributes = _FARS_ATTRIBUTES if FARS.is_here else 4
    table = TableSource(FARS.instance, rows=n, attributes=attributes)
    methods = (*_CHAIN_CHOICES, *map(MethodChoice, SIMPLE))
    return (Experiment(name="bars", tables=(table,), k=(3,), methods=methods, bound=False),)


FIG10 = Reproduction(
    name="liang-fig10",
    paper=PAPER,
    place="Fig. 10",
    title="FARS, as many records as there are, 4 attributes, k = 3",
    sources=(FARS,),
    full=lambda: _fig10(10093),
    quick=lambda: _fig10(2500),
    shrunk="2,500 records in place of 10,093",
    panels=_BAR_PANELS,
    statements=(
        Statement(
            "Split & Carry loses less than Greedy Search",
            "Appendix F",
            is_below(_BY_K, _CHAINS, (GREEDY,)),
        ),
        Statement(
            "Split & Carry is faster than Greedy Search",
            "Appendix F",
            is_below(_SECONDS, _CHAINS, (GREEDY,)),
        ),
    ),
    remarks=("The paper has 40,000 records",),
    minutes=0.1,
)

REPRODUCTIONS = (FIG3, FIG4, FIG5, FIG9, FIG10)
