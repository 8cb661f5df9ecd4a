"""Wong, Mamoulis & Cheung 2010, Figs. 9 to 15: rings in partitions beside classes."""

from __future__ import annotations

from collections.abc import Mapping

from anonymip.experiments.running.specification import Experiment, MethodChoice
from anonymip.recodings import Diversity
from reproductions.papers.data import ADULT_SETS, CENSUS_OCCUPATION, CENSUS_SETS
from reproductions.series import both, grows, is_below, mean_of, near_printed, within
from reproductions.specification import Panel, Reproduction, Source, Statement

PAPER = "Wong, Mamoulis & Cheung 2010"
_METHODS = (
    MethodChoice("nh", label="NH"),
    MethodChoice("hp", label="HP"),
    MethodChoice("hilbert", {"cells": "HS"}, label="HS"),
)
_DIVERSE = (
    MethodChoice("nh", label="NH"),
    MethodChoice("hilbert-diversity", label="HS"),
    MethodChoice("anatomy", label="AT"),
)
_NO_HR = "HR, which publishes ranges of codes, is left out: the tables here are of sets"
_TIMES = "Times are of the covers; the drawing of random matchings is part of publishing"
_FEWER = "The printed values are those of 100,000 records, ours of 10,000: fewer records lose more"


def _vary(
    source: Source,
    *,
    rows: tuple[int | None, ...] = (None,),
    widths: tuple[int, ...] = (3,),
    ks: tuple[int, ...] = (10,),
) -> tuple[Experiment, ...]:
    tables = tuple(source.table(rows=n, attributes=m) for n in rows for m in widths)
    return (
        Experiment(
            name="sets", tables=tables, k=ks, methods=_METHODS, objective="set-gcp", bound=False
        ),
    )


def _printed(text: str, labels: str) -> Mapping[str, Mapping[float, float]]:
    """Return the values of a table as the paper's figures hold them: x, then a value a label."""
    lines = [[float(cell) for cell in line.split()] for line in text.strip().splitlines()]
    return {
        label: {line[0]: line[place] for line in lines}
        for place, label in enumerate(labels.split(), 1)
    }


def _panels(x: str, name: str, printed: Mapping[str, Mapping[float, float]]) -> tuple[Panel, ...]:
    return (
        Panel("information loss", name, "GCP", mean_of("gcp", x), printed=printed),
        Panel("running time", name, "processor seconds", mean_of("cpu_seconds", x)),
    )


_LOSS = {x: mean_of("gcp", x) for x in ("n", "m", "k")}


def _order(x: str) -> tuple[Statement, ...]:
    return (
        Statement(
            "NH and HP lose much less than HS (below a half)",
            "Section 7",
            is_below(_LOSS[x], ("NH", "HP"), ("HS",), by=0.5),
        ),
        Statement("NH loses least", "Section 7", is_below(_LOSS[x], ("NH",), ("HP", "HS"))),
    )


_CENSUS_D = _printed(
    """
    2 0.00000288 0.00000378 0.002249
    3 0.000241 0.00029 0.001769
    4 0.001334 0.001641 0.003058
    5 0.003381 0.004252 0.007025
    6 0.006648 0.008154 0.012777
    7 0.007067 0.008614 0.014058
    """,
    "NH HP HS",
)
_CENSUS_K = _printed(
    """
    2 0.00000889 0.0000108 0.000883
    4 0.0000438 0.0000532 0.001149
    6 0.0000987 0.000121 0.001475
    8 0.000164 0.000198 0.001655
    10 0.000241 0.00029 0.001769
    20 0.000754 0.000899 0.00233
    40 0.001985 0.002319 0.003725
    60 0.003421 0.004156 0.005193
    80 0.004805 0.005543 0.006645
    100 0.006285 0.007419 0.00794
    """,
    "NH HP HS",
)
_ADULT_D = _printed(
    """
    2 0.00024 0.000273 0.002107
    3 0.000162 0.000184 0.003851
    4 0.002643 0.003257 0.011563
    5 0.002794 0.161276 0.008581
    6 0.00613 0.102195 0.015668
    7 0.016707 0.082694 0.031271
    8 0.023435 0.069801 0.037712
    9 0.029386 0.081912 0.044055
    10 0.030822 0.076354 0.043836
    """,
    "NH HP HS",
)
_ADULT_K = _printed(
    """
    10 0.002794 0.003257 0.011563
    20 0.006354 0.007733 0.020479
    30 0.010121 0.012015 0.027082
    40 0.01392 0.016966 0.033123
    50 0.017479 0.021387 0.037773
    60 0.020858 0.025426 0.041819
    70 0.024415 0.030233 0.045824
    80 0.027958 0.033607 0.050024
    90 0.030958 0.03763 0.053153
    100 0.034039 0.040451 0.056708
    """,
    "NH HP HS",
)

FIG9 = Reproduction(
    name="wong-fig9",
    paper=PAPER,
    place="Fig. 9",
    title="records, k = 10, d = 3",
    sources=(CENSUS_SETS,),
    full=lambda: _vary(CENSUS_SETS, rows=(2000, 4000, 6000, 8000, 10000)),
    quick=lambda: _vary(CENSUS_SETS, rows=(2000, 10000)),
    shrunk="2,000 and 10,000 records",
    panels=_panels("n", "records", {}),
    statements=(
        *_order("n"),
        Statement(
            "HP loses only slightly more than NH (within a quarter)",
            "Section 7.1",
            within(_LOSS["n"], "HP", "NH", 0.25),
        ),
        Statement(
            "what NH saves beside HS grows with the records",
            "Section 7.1",
            grows(_LOSS["n"], "HS", "NH"),
        ),
    ),
    remarks=("The paper has 100,000 to 500,000 records", _NO_HR, _TIMES),
    minutes=0.1,
)
FIG10 = Reproduction(
    name="wong-fig10",
    paper=PAPER,
    place="Fig. 10",
    title="attributes of CENSUS, k = 10",
    sources=(CENSUS_SETS,),
    full=lambda: _vary(CENSUS_SETS, widths=(2, 3, 4, 5, 6, 7)),
    quick=lambda: _vary(CENSUS_SETS, rows=(4000,), widths=(2, 3, 4, 5, 6, 7)),
    shrunk="4,000 records in place of 10,000",
    panels=_panels("m", "attributes", _CENSUS_D),
    statements=(
        *_order("m"),
        Statement(
            "the gap between HS and NH grows with d",
            "Section 7.2",
            grows(_LOSS["m"], "HS", "NH", difference=True),
        ),
    ),
    remarks=(_FEWER, _NO_HR, _TIMES),
    minutes=0.1,
)
FIG11 = Reproduction(
    name="wong-fig11",
    paper=PAPER,
    place="Fig. 11",
    title="attributes of Adult, k = 10",
    sources=(ADULT_SETS,),
    full=lambda: _vary(ADULT_SETS, widths=(2, 3, 4, 5, 6, 7, 8, 9, 10)),
    quick=lambda: _vary(ADULT_SETS, rows=(10000,), widths=(2, 5, 8, 9, 10)),
    shrunk="10,000 records in place of 32,561, d = 2, 5, 8, 9 and 10",
    panels=_panels("m", "attributes", _ADULT_D),
    statements=(
        *_order("m"),
        *(
            Statement(
                f"{label} loses what is printed (within 5 %)",
                "Fig. 11",
                near_printed(_LOSS["m"], _ADULT_D, label, 0.05),
            )
            for label in ("NH", "HP", "HS")
        ),
        Statement(
            "NH loses what is printed for d = 8, 9 and 10 (within 0.5 %)",
            "Fig. 11",
            near_printed(
                _LOSS["m"], {"NH": {d: _ADULT_D["NH"][d] for d in (8, 9, 10)}}, "NH", 0.005
            ),
        ),
        Statement(
            "HP loses more than HS at d = 5",
            "Section 7.2",
            is_below(_LOSS["m"], ("HS",), ("HP",), x_from=5, x_to=5),
        ),
    ),
    remarks=(_NO_HR, _TIMES),
    minutes=0.2,
)
FIG12 = Reproduction(
    name="wong-fig12",
    paper=PAPER,
    place="Fig. 12",
    title="k, CENSUS, d = 3",
    sources=(CENSUS_SETS,),
    full=lambda: _vary(CENSUS_SETS, ks=(2, 4, 6, 8, 10, 20, 40, 60, 80, 100)),
    quick=lambda: _vary(CENSUS_SETS, rows=(4000,), ks=(2, 10, 40, 100)),
    shrunk="4,000 records in place of 10,000, k = 2, 10, 40 and 100",
    panels=_panels("k", "k", _CENSUS_K),
    statements=_order("k"),
    remarks=(_FEWER, _NO_HR, _TIMES),
    minutes=0.1,
)
FIG13 = Reproduction(
    name="wong-fig13",
    paper=PAPER,
    place="Fig. 13",
    title="k, Adult, d = 4",
    sources=(ADULT_SETS,),
    full=lambda: _vary(ADULT_SETS, widths=(4,), ks=(10, 20, 30, 40, 50, 60, 70, 80, 90, 100)),
    quick=lambda: _vary(ADULT_SETS, rows=(10000,), widths=(4,), ks=(10, 50, 100)),
    shrunk="10,000 records in place of 32,561, k = 10, 50 and 100",
    panels=_panels("k", "k", _ADULT_K),
    statements=(
        *_order("k"),
        *(
            Statement(
                f"{label} loses what is printed (within 5 %)",
                "Fig. 13",
                near_printed(_LOSS["k"], _ADULT_K, label, 0.05),
            )
            for label in ("NH", "HP", "HS")
        ),
    ),
    remarks=(
        "At k = 10 the paper prints for NH its value of d = 5 (Fig. 11), for HP and HS of d = 4",
        _NO_HR,
        _TIMES,
    ),
    minutes=0.2,
)


def _diverse(
    ls: tuple[int, ...], widths: tuple[int, ...], rows: int | None
) -> tuple[Experiment, ...]:
    here = CENSUS_OCCUPATION.is_here
    return tuple(
        Experiment(
            name=f"l{most}",
            tables=tuple(
                CENSUS_OCCUPATION.table(rows=rows if here else None, attributes=m)
                for m in (widths if here else (2, 3))
            ),
            k=(most,),
            methods=_DIVERSE,
            objective="set-gcp",
            diversity=Diversity(most),
            bound=False,
        )
        for most in ls
    )


_FIG14_PRINTED = _printed(
    """
    2 0.000183 0.313969 0.409492
    3 0.006748 0.325878 0.324806
    4 0.007222 0.263173 0.323497
    5 0.008115 0.261525 0.280463
    6 0.022049 0.243241 0.256992
    7 0.019707 0.219094 0.221323
    """,
    "NH HS AT",
)
_FIG15_PRINTED = _printed(
    """
    2 0.0000358 0.135877 0.148082
    3 0.000976 0.233997 0.232041
    4 0.004854 0.290793 0.286415
    5 0.006748 0.325878 0.324806
    6 0.011855 0.346939 0.359652
    7 0.031352 0.37439 0.383919
    8 0.056521 0.388463 0.405179
    9 0.078358 0.390911 0.422564
    """,
    "NH HS AT",
)


def _diversity_statements(x: str) -> tuple[Statement, ...]:
    return (
        Statement(
            "NH loses less than HS and AT by a large factor (below a third)",
            "Section 7.4",
            is_below(_LOSS[x], ("NH",), ("HS", "AT"), by=1 / 3),
        ),
        Statement(
            "HS loses about as much as AT (within a quarter)",
            "Section 7.4",
            both(within(_LOSS[x], "HS", "AT", 0.25), within(_LOSS[x], "AT", "HS", 0.25)),
        ),
        Statement(
            "AT is fastest",
            "Section 7.4",
            is_below(mean_of("cpu_seconds", x), ("AT",), ("NH", "HS")),
        ),
    )


_DIVERSITY_REMARKS = (
    "k is l",
    "HS is hilbert-diversity: along the curve the next record of each sensitive value",
    _FEWER,
    _TIMES,
)

FIG14 = Reproduction(
    name="wong-fig14",
    paper=PAPER,
    place="Fig. 14",
    title="attributes of CENSUS, l = 5",
    sources=(CENSUS_OCCUPATION,),
    full=lambda: _diverse((5,), (2, 3, 4, 5, 6, 7), None),
    quick=lambda: _diverse((5,), (2, 3, 5, 7), 3000),
    shrunk="3,000 records in place of 10,000, d = 2, 3, 5 and 7",
    panels=_panels("m", "attributes", _FIG14_PRINTED),
    statements=_diversity_statements("m"),
    remarks=_DIVERSITY_REMARKS,
    minutes=0.2,
)
FIG15 = Reproduction(
    name="wong-fig15",
    paper=PAPER,
    place="Fig. 15",
    title="l, CENSUS, d = 3",
    sources=(CENSUS_OCCUPATION,),
    full=lambda: _diverse((2, 3, 4, 5, 6, 7, 8, 9), (3,), None),
    quick=lambda: _diverse((2, 5, 9), (3,), 3000),
    shrunk="3,000 records in place of 10,000, l = 2, 5 and 9",
    panels=_panels("k", "l", _FIG15_PRINTED),
    statements=_diversity_statements("k"),
    remarks=_DIVERSITY_REMARKS,
    minutes=0.2,
)

REPRODUCTIONS = (FIG9, FIG10, FIG11, FIG12, FIG13, FIG14, FIG15)
