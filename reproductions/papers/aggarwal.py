"""Aggarwal et al. 2005: how far their algorithms are from the optimum, beside what is proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from anonymip.experiments.running.sources import Samples
from anonymip.experiments.running.specification import Experiment, MethodChoice
from anonymip.experiments.summaries import with_optima
from reproductions.papers.data import ADULT_TREES, CMC
from reproductions.series import all_proven, mean_of, of_experiment
from reproductions.specification import Finding, Panel, Reproduction, Series, Statement, Undecided

_OPTIMUM = "optimum"
_METHODS = (
    MethodChoice("column-generation", label=_OPTIMUM),
    MethodChoice("forest"),
    MethodChoice("edge-cover"),
    MethodChoice("two-factor"),
)
_KS = (2, 3, 4, 5, 6)
#: The factors that are proven: of the forest for any table, of the others for binary ones.
_FACTORS: Mapping[str, Mapping[float, float]] = {
    "forest": {k: float(max(2 * k - 1, 3 * k - 5)) for k in _KS},
    "edge-cover": {2: 1.5},
    "two-factor": {3: 2.0},
}
_BINARY = ("wife_religion", "wife_working", "media_exposure")


def _runs(samples: int, size: int, ks: tuple[int, ...]) -> tuple[Experiment, ...]:
    drawn = Samples(samples, size, 1)
    binary = _BINARY if CMC.is_here else 3
    tables = {
        "trees": (ADULT_TREES.table(samples=drawn), "hierarchy-loss", ks),
        "binary": (CMC.table(samples=drawn, attributes=binary), "gcp", (2, 3)),
    }
    return tuple(
        Experiment(
            name=name, tables=(table,), k=values, methods=_METHODS, objective=objective, bound=False
        )
        for name, (table, objective, values) in tables.items()
    )


def _worst(name: str) -> Series:
    """Return the largest ratio to the optimum of all samples."""

    def series(rows: pd.DataFrame) -> pd.DataFrame:
        own = with_optima(rows[of_experiment(name)(rows)]).dropna(subset=["ratio"])
        found = own.groupby(["label", "k"], sort=False)["ratio"].max().reset_index()
        found = found[found["label"] != _OPTIMUM].rename(columns={"k": "x", "ratio": "y"})
        return found.astype({"x": "float64"})

    return series


def _within_factor(name: str, label: str) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: no sample is farther from its optimum than the factor that is proven."""

    def check(rows: pd.DataFrame) -> Finding:
        worst = _worst(name)(rows)
        own = worst[worst["label"] == label]
        if own.empty:
            raise Undecided(f"no ratio of {label}")
        factors = _FACTORS[label]
        ratios = dict(zip(own["x"], own["y"], strict=True))
        texts = [f"k = {k:g}: {ratio:.3g} (at most {factors[k]:g})" for k, ratio in ratios.items()]
        holds = all(ratio <= factors[k] for k, ratio in ratios.items())
        return Finding(holds, f"largest ratio {', '.join(texts)}")

    return check


RATIOS = Reproduction(
    name="aggarwal-ratios",
    paper="Aggarwal et al. 2005",
    place="Theorems 5 and 6, Section 6",
    title="ratios to the optimum, measured beside proven",
    sources=(ADULT_TREES, CMC),
    full=lambda: _runs(20, 24, _KS),
    quick=lambda: _runs(3, 14, (2, 3, 4)),
    shrunk="3 samples of 14 records in place of 20 of 24, k up to 4",
    panels=(
        Panel("trees, largest of all samples", "k", "ratio", _worst("trees"), printed=_FACTORS),
        Panel("trees, mean", "k", "ratio", mean_of("ratio", "k", where=of_experiment("trees"))),
        Panel("binary, largest", "k", "ratio", _worst("binary"), printed=_FACTORS),
    ),
    statements=(
        Statement(
            "the optimum of every sample is found",
            "(ours)",
            lambda rows: all_proven(rows, _OPTIMUM),
        ),
        Statement(
            "the forest is within max{2k - 1, 3k - 5} of the optimum, hierarchies",
            "Theorem 5",
            _within_factor("trees", "forest"),
        ),
        Statement(
            "the forest is within max{2k - 1, 3k - 5} of the optimum, binary table",
            "Theorem 5",
            _within_factor("binary", "forest"),
        ),
        Statement(
            "the [1, 2]-factor is within 1.5 of the optimum, binary table, k = 2",
            "Theorem 6",
            _within_factor("binary", "edge-cover"),
        ),
        Statement(
            "the 2-factor is within 2 of the optimum, binary table, k = 3",
            "Section 6",
            _within_factor("binary", "two-factor"),
        ),
    ),
    remarks=("The paper has no measurements; what stands as printed is the factor it proves",),
    minutes=0.5,
)

REPRODUCTIONS = (RATIOS,)
