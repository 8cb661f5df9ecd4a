"""Liang & Samavi 2020: the chain and the greedy search beside the optimum and other heuristics."""

from __future__ import annotations

from anonymip.experiments.running.sources import Samples, TableSource
from anonymip.experiments.running.specification import Experiment, MethodChoice
from reproductions.papers.data import CENSUS_1K, CENSUS_100K
from reproductions.series import all_proven, grows, is_below, mean_of, no_rise, of_experiment
from reproductions.specification import Panel, Reproduction, Statement

PAPER = "Liang & Samavi 2020"
_OPTIMUM, _SPLIT, _GREEDY = "optimum", "split-carry", "greedy-search"


def _fig2(samples: int, sizes: tuple[int, ...], widths: tuple[int, ...]) -> tuple[Experiment, ...]:
    methods = (
        MethodChoice("column-generation", label=_OPTIMUM),
        MethodChoice("split-carry"),
        MethodChoice("greedy-search"),
    )
    records = tuple(
        TableSource(CENSUS_100K.instance, samples=Samples(samples, n, 1)) for n in sizes
    )
    attributes = tuple(
        TableSource(CENSUS_1K.instance, attributes=m, samples=Samples(samples, 20, 1))
        for m in widths
    )
    return tuple(
        Experiment(name=name, tables=tables, k=(3,), methods=methods, bound=False)
        for name, tables in (("records", records), ("attributes", attributes))
    )


_BY_RECORDS, _BY_ATTRIBUTES = of_experiment("records"), of_experiment("attributes")
_HEURISTICS = (_SPLIT, _GREEDY)
_RATIO_N = mean_of("ratio", "n", where=_BY_RECORDS, labels=_HEURISTICS)
_RATIO_M = mean_of("ratio", "m", where=_BY_ATTRIBUTES, labels=_HEURISTICS)
_TIME_N = mean_of("cpu_seconds", "n", where=_BY_RECORDS)
_TIME_M = mean_of("cpu_seconds", "m", where=_BY_ATTRIBUTES)

FIG2 = Reproduction(
    name="liang-fig2",
    paper=PAPER,
    place="Fig. 2",
    title="Split & Carry and Greedy Search against the optimum, k = 3",
    sources=(CENSUS_100K, CENSUS_1K),
    full=lambda: _fig2(20, (10, 15, 20, 25, 30), (2, 3, 4, 5, 6, 7, 8)),
    quick=lambda: _fig2(3, (10, 20, 30), (2, 5, 8)),
    shrunk="3 samples in place of 20, 3 sizes and 3 numbers of attributes",
    panels=(
        Panel("a) loss over the optimum, m = 4", "records", "ratio", _RATIO_N),
        Panel("b) running time, m = 4", "records", "processor seconds", _TIME_N, log_y=True),
        Panel("c) loss over the optimum, n = 20", "attributes", "ratio", _RATIO_M),
        Panel("d) running time, n = 20", "attributes", "processor seconds", _TIME_M, log_y=True),
    ),
    statements=(
        Statement(
            "the general MILP gives the optimum of every sample (here column generation)",
            "Section 4.2",
            lambda rows: all_proven(rows, _OPTIMUM),
        ),
        Statement(
            "Split & Carry consistently loses less than Greedy Search, as n grows",
            "Section 4.2",
            is_below(_RATIO_N, (_SPLIT,), (_GREEDY,)),
        ),
        Statement(
            "Split & Carry consistently loses less than Greedy Search, as m grows",
            "Section 4.2",
            is_below(_RATIO_M, (_SPLIT,), (_GREEDY,)),
        ),
        Statement(
            "more attributes do not take Split & Carry farther from the optimum",
            "Section 4.2",
            no_rise(_RATIO_M, _SPLIT),
        ),
        Statement(
            "more attributes do not take Greedy Search farther from the optimum",
            "Section 4.2",
            no_rise(_RATIO_M, _GREEDY),
        ),
        Statement(
            "the time of Greedy Search is negligible beside the optimum's (here below 1 %)",
            "Section 4.2",
            is_below(_TIME_N, (_GREEDY,), (_OPTIMUM,), by=0.01),
        ),
        Statement(
            "what both save of the optimum's time grows with the records (here Split & Carry)",
            "Section 4.2",
            grows(_TIME_N, _OPTIMUM, _SPLIT),
        ),
    ),
    remarks=(
        "The sizes and k are not printed; here 10 to 30 records, 2 to 8 attributes, k = 3",
        "The optimum is found by column generation, in the paper by Gurobi on the MILP (21)-(32)",
    ),
    minutes=1.1,
)

REPRODUCTIONS = (FIG2,)
