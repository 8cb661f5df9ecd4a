"""Doka et al. 2015, Figs. 6 and 7: parts of tables, and small ones beside the optimum."""

from __future__ import annotations

import numpy as np
import pandas as pd

from anonymip.experiments.running.sources import Samples, TableSource
from anonymip.experiments.running.specification import Experiment, MethodChoice
from reproductions.papers.data import CENSUS_10K
from reproductions.series import (
    above_zero,
    all_proven,
    at_k,
    grows,
    is_below,
    mean_of,
    share_of,
    within,
)
from reproductions.specification import Panel, Reproduction, Series, Statement

PAPER = "Doka et al. 2015"
OPTIMUM, CONCEALMENT = "optimum", "k-concealment"
OWN = ("greedy", "sort-greedy", "hungarian")
NH, FLOW = MethodChoice("nh"), MethodChoice("min-cost-flow")
JOINED = MethodChoice(CONCEALMENT, {"join": "loss"})
JOIN = (
    "k-concealment joins the records that lose least together (join=loss); with join=increase it "
    "loses less than Hungarian at 1,000 records, where the paper has it lose more than all three"
)
_SMALL = (
    MethodChoice("column-generation", recoding="freeform", label=OPTIMUM),
    *(JOINED, NH, FLOW, *map(MethodChoice, OWN)),
)


def gcp_at(k: int, x: str) -> Series:
    """Return the mean penalty of a cell at a value of k."""
    return mean_of("gcp", x, where=at_k(k))


def time_at(k: int, x: str) -> Series:
    """Return processor seconds at a value of k."""
    return mean_of("cpu_seconds", x, where=at_k(k))


def _time_share(rows: pd.DataFrame) -> pd.DataFrame:
    """Return processor seconds of one part, if all parts were worked on side by side."""
    parts = rows["label"].map(_PARTS)
    counts = (rows["n"].astype("float64") / parts).map(np.ceil).fillna(1.0)
    return mean_of("cpu_seconds", "n")(rows.assign(cpu_seconds=rows["cpu_seconds"] / counts))


#: Records of a part in Fig. 6; NH cuts the table itself.
_PARTS = {"hungarian": 100, "sort-greedy": 150, "greedy": 250}


def _fig6(sizes: tuple[int, ...], ks: tuple[int, ...]) -> tuple[Experiment, ...]:
    methods = (*(MethodChoice(name, {"part": part}) for name, part in _PARTS.items()), NH)
    tables = tuple(TableSource(CENSUS_10K.instance, rows=n) for n in sizes)
    return (Experiment(name="parts", tables=tables, k=ks, methods=methods, bound=False),)


FIG6 = Reproduction(
    name="doka-fig6",
    paper=PAPER,
    place="Fig. 6",
    title="on parts in lexicographic order: Hungarian 100, SortGreedy 150, Greedy 250 records",
    sources=(CENSUS_10K,),
    full=lambda: _fig6((1000, 2000, 4000, 6000, 8000, 10000), (10, 30, 50)),
    quick=lambda: _fig6((1000, 3000), (10, 30, 50)),
    shrunk="1,000 and 3,000 records in place of 1,000 to 10,000",
    panels=(
        *(Panel(f"GCP, k = {k}", "records", "GCP", gcp_at(k, "n")) for k in (10, 30, 50)),
        Panel("one part's time, all k", "records", "processor seconds", _time_share, log_y=True),
    ),
    statements=(
        *(
            Statement(
                f"Greedy loses less than NH at every size, k = {k}",
                "Section 8.1",
                is_below(gcp_at(k, "n"), ("greedy",), ("nh",)),
            )
            for k in (10, 30, 50)
        ),
        Statement(
            "on its larger parts Greedy loses less than SortGreedy (k = 50)",
            "Section 8.1",
            is_below(gcp_at(50, "n"), ("greedy",), ("sort-greedy",)),
        ),
        Statement(
            "both lose less than Hungarian as k grows (k = 50)",
            "Section 8.1",
            is_below(gcp_at(50, "n"), ("greedy", "sort-greedy"), ("hungarian",)),
        ),
        Statement(
            "the time of a part falls below NH's as the table grows (Greedy)",
            "Section 8.1",
            grows(_time_share, "greedy", "nh", falls=True),
        ),
    ),
    remarks=(
        "The values of k and the sizes are not printed",
        "The time of a part is that of all parts over their number; NH's is that of all records",
    ),
    minutes=0.5,
)


def _fig7a(samples: int, ks: tuple[int, ...]) -> tuple[Experiment, ...]:
    table = TableSource(CENSUS_10K.instance, samples=Samples(samples, 14, 1))
    return (Experiment(name="gain", tables=(table,), k=ks, methods=_SMALL, bound=False),)


_GAIN = share_of(CONCEALMENT)

FIG7A = Reproduction(
    name="doka-fig7a",
    paper=PAPER,
    place="Fig. 7a",
    title="share gained of what lies between k-concealment and the optimum, n = 14",
    sources=(CENSUS_10K,),
    full=lambda: _fig7a(100, (2, 3, 4, 5, 6, 7, 8)),
    quick=lambda: _fig7a(4, (2, 4, 6)),
    shrunk="4 samples in place of 100, k = 2, 4 and 6",
    panels=(Panel("samples of 14 records", "k", "share of the GCP gained", _GAIN, "bars"),),
    statements=(
        Statement(
            "the optimum is found for every sample (here by column generation)",
            "Section 8.2",
            lambda rows: all_proven(rows, OPTIMUM),
        ),
        Statement(
            "Hungarian is nearest to the optimum of the three, at every k",
            "Section 8.2",
            is_below(_GAIN, ("greedy", "sort-greedy"), ("hungarian",), difference=True),
        ),
        Statement(
            "SortGreedy follows Hungarian at a very close distance (within a tenth)",
            "Section 8.2",
            within(_GAIN, "hungarian", "sort-greedy", 0.1, difference=True),
        ),
        Statement(
            "minCostFlow is optimal at k = 2",
            "Section 8.2",
            within(_GAIN, OPTIMUM, "min-cost-flow", 1e-6, x_to=2, difference=True),
        ),
        Statement(
            "minCostFlow loses its advantage as k grows (its share falls)",
            "Section 8.2",
            grows(_GAIN, "min-cost-flow", OPTIMUM, falls=True),
        ),
        Statement(
            "from k = 6 on minCostFlow is worse than NH",
            "Section 8.2",
            is_below(_GAIN, ("min-cost-flow",), ("nh",), x_from=6, difference=True),
        ),
        Statement(
            "k-concealment is the worst performer on average (all others gain)",
            "Section 8.2",
            above_zero(_GAIN, (*OWN, "nh")),
        ),
    ),
    remarks=(JOIN, "Domains are those of the table, as the paper's Table 2 has them"),
    minutes=1.9,
)


def _fig7b(samples: int, sizes: tuple[int, ...]) -> tuple[Experiment, ...]:
    tables = tuple(TableSource(CENSUS_10K.instance, samples=Samples(samples, n, 1)) for n in sizes)
    return (Experiment(name="time", tables=tables, k=(6,), methods=_SMALL, bound=False),)


_TIME_N = mean_of("cpu_seconds", "n")

FIG7B = Reproduction(
    name="doka-fig7b",
    paper=PAPER,
    place="Fig. 7b",
    title="records against running time, k = 6",
    sources=(CENSUS_10K,),
    full=lambda: _fig7b(20, (12, 13, 14, 15, 16, 17, 18)),
    quick=lambda: _fig7b(2, (12, 14, 16)),
    shrunk="2 samples in place of 20, up to 16 records",
    panels=(Panel("k = 6", "records", "processor seconds", _TIME_N, log_x=True, log_y=True),),
    statements=(
        Statement(
            "the optimum is found for every sample (here by column generation)",
            "Section 8.2",
            lambda rows: all_proven(rows, OPTIMUM),
        ),
        Statement(
            "the optimum's time grows inexorably (beside that of Hungarian)",
            "Section 8.2",
            grows(_TIME_N, OPTIMUM, "hungarian"),
        ),
        Statement(
            "the three methods take longer than NH", "Section 8.2", is_below(_TIME_N, ("nh",), OWN)
        ),
        Statement(
            "the three methods take less time than k-concealment",
            "Section 8.2",
            is_below(_TIME_N, OWN, (CONCEALMENT,)),
        ),
    ),
    remarks=(
        JOIN,
        "The paper averages 100 samples; its sizes are not printed",
        "At so few records times are those of calls, not of the algorithms",
    ),
    minutes=0.4,
)


REPRODUCTIONS = (FIG6, FIG7A, FIG7B)
