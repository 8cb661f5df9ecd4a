"""Synthetic microdata: census-like tables of any size.

Every attribute has a marginal distribution, written as a formula with few parameters, and a place
in a Gaussian copula: its score is a weighted sum of latent factors (age, sex, schooling, origin,
work, family) and noise of its own, and the score's quantile picks the value. Ranges,
cardinalities and variances are those of Liang & Samavi (2020), Tables 3, 9 and 10; shares of the
main categories and strengths of the correlations are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.instances.attribute import Attribute
from anonymip.instances.microdata import Microdata

_FACTORS = ("age", "sex", "schooling", "origin", "work", "family")


@dataclass(frozen=True)
class _Shares:
    """Share of every value, in the order along the score: neighbours are met by like persons."""

    shares: Mapping[int, float]

    def distribution(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return values and probabilities, both (values,)."""
        masses = np.array(list(self.shares.values()), np.float64)
        return np.array(list(self.shares), np.int64), masses / masses.sum()


@dataclass(frozen=True)
class _Decay:
    """Shares that fall with the distance to a centre, except at some values.

    A value v without a share of its own has mass proportional to exp(-(|v - centre| / s)^power);
    the scale s is solved for the variance.

    Parameters
    ----------
    low, high, step
        The values low, low + step, ..., high.
    centre
        Where the mass is largest.
    variance
        Of the whole distribution.
    spikes
        Values with shares of their own.
    power
        1: exponential tails, 2: normal tails.
    """

    low: int
    high: int
    centre: float
    variance: float
    spikes: Mapping[int, float] = field(default_factory=dict)
    power: int = 1
    step: int = 1

    def distribution(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return values and probabilities, both (values,)."""
        values = np.unique([*range(self.low, self.high + 1, self.step), *self.spikes]).astype(
            np.int64
        )
        special = np.isin(values, list(self.spikes))
        masses = np.array([self.spikes.get(int(value), 0.0) for value in values])
        distance = np.abs(values - self.centre)
        # The nearest value has exponent zero, so that a small scale leaves some mass.
        distance -= distance[~special].min()
        # Imported late, here and below: nothing but generated tables needs it.
        from scipy.optimize import brentq

        rest = 1.0 - masses.sum()

        def filled(log_scale: float) -> NDArray[np.float64]:
            tail = np.exp(-((distance / math.exp(log_scale)) ** self.power))
            tail[special] = 0.0
            return np.asarray(masses + rest * tail / tail.sum())

        def excess(log_scale: float) -> float:
            return _variance(values, filled(log_scale)) / self.variance - 1.0

        widest = math.log(100.0 * (self.high - self.low))
        return values, filled(float(brentq(excess, math.log(0.1 * self.step), widest)))


def _variance(values: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    mean = float(values @ shares)
    return float((values - mean) ** 2 @ shares)


@dataclass(frozen=True)
class _Column:
    """One attribute: domain, marginal distribution, and what its score depends on."""

    name: str
    low: int
    high: int
    marginal: _Shares | _Decay
    loadings: Mapping[str, float]
    categorical: bool = False

    def draw(
        self, factors: Mapping[str, NDArray[np.float64]], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return one value per record, (n,)."""
        from scipy.special import ndtri

        noise = rng.standard_normal(len(factors["age"]))
        own = 1.0 - sum(loading**2 for loading in self.loadings.values())
        score = math.sqrt(max(own, 0.0)) * noise
        for name, loading in self.loadings.items():
            score += loading * factors[name]
        values, shares = self.marginal.distribution()
        return values[np.searchsorted(ndtri(np.cumsum(shares)[:-1]), score)]

    def attribute(self, mixed: bool) -> Attribute:
        """Return the declaration of the attribute."""
        if mixed and self.categorical:
            return Attribute(self.name, "categorical")
        return Attribute(self.name, "numeric", (self.low, self.high), integer=True)


def _birthplaces(mexico: float, europe: range, european: float) -> _Shares:
    """Return the shares of birthplaces, from Southern states over others and California to abroad.

    The extracts begin with the first states of the alphabet: Alabama, Arkansas and California are
    the birthplace of half of their persons.
    """
    south, west = {1: 0.12, 5: 0.09}, {6: 0.285}
    frequent = {4: 0.035, 17: 0.025, 36: 0.025, 40: 0.025, 42: 0.025, 48: 0.035}
    abroad = {150: 0.008, 110: 0.001, 160: 0.001, 250: 0.001, 260: 0.001, 300: 0.001, 210: 0.005}
    abroad[200] = mexico
    abroad |= dict.fromkeys(europe, european / len(europe))
    fips = [code for code in range(1, 57) if code not in (3, 7, 14, 43, 52)]
    others = [code for code in fips if code not in {**frequent, **south, **west}]
    rest = 1.0 - sum(sum(part.values()) for part in (frequent, south, west, abroad))
    # Small and large states alternate along the codes: the stride 17 shuffles their ranks.
    weights = [1.0 / (17 * at % len(others) + 2.0) for at in range(len(others))]
    elsewhere = {
        code: rest * weight / sum(weights) for code, weight in zip(others, weights, strict=True)
    }
    return _Shares({**south, **elsewhere, **frequent, **west, **abroad})


#: What the scores of the first eight depend on, in both populations: persons marry as they age,
#: schooling, age and being male raise the score of the occupation, those born abroad had less
#: schooling. Squares sum to at most 1; the rest is noise.
_LOADINGS: dict[str, dict[str, float]] = {
    "SEX": {"sex": 1.0},
    "AGE": {"age": 1.0},
    "MARST": {"age": 0.75},
    "RACE": {"origin": 0.35},
    "BPL": {"origin": 0.8, "age": 0.1},
    "HIGRADE": {"schooling": 0.9, "origin": -0.2, "age": -0.1},
    "CLASSWKRD": {"sex": 0.15, "age": -0.1, "schooling": 0.1},
    "OCCSCORE": {"schooling": 0.35, "age": 0.2, "sex": -0.25},
}

#: Three scores are shared by many occupations; one lies far above all others and is rare.
_OCCUPATIONS = {22: 0.10, 24: 0.10, 41: 0.075, 79: 0.001}
#: Self-employed (13, 14), wages (22), federal, state and local government (25, 27, 28), unpaid.
_CLASSES_OF_WORKER = {13: 0.065, 14: 0.015, 22: 0.715, 25: 0.055, 27: 0.045, 28: 0.09, 29: 0.008}


def _first_eight(
    *,
    female: float,
    age: _Decay,
    marital: Mapping[int, float],
    race: Mapping[int, float],
    birthplace: _Shares,
    birthplace_high: int,
    grade: _Decay,
    occupation_variance: float,
) -> tuple[_Column, ...]:
    """Return SEX, AGE, MARST, RACE, BPL, HIGRADE, CLASSWKRD, OCCSCORE of one population."""

    def column(
        name: str, low: int, high: int, marginal: _Shares | _Decay, categorical: bool = True
    ) -> _Column:
        return _Column(name, low, high, marginal, _LOADINGS[name], categorical)

    return (
        column("SEX", 1, 2, _Shares({1: 1.0 - female, 2: female})),
        column("AGE", 16, 90, age, categorical=False),
        column("MARST", 1, 6, _Shares(marital)),
        column("RACE", 1, 7, _Shares(race)),
        column("BPL", 1, birthplace_high, birthplace),
        column("HIGRADE", grade.low, grade.high, grade, categorical=False),
        column("CLASSWKRD", 13, 29, _Shares(_CLASSES_OF_WORKER)),
        column("OCCSCORE", 4, 79, _Decay(4, 49, 24, occupation_variance, _OCCUPATIONS, power=2)),
    )


#: Working population of Table 9.
_WORKERS = _first_eight(
    female=0.455,
    # Right half of a normal curve: the young are the most.
    age=_Decay(16, 90, 16, 225.0, power=2),
    # Single, spouse absent, separated, divorced, married, widowed: by the typical age.
    marital={6: 0.24, 2: 0.007, 3: 0.025, 4: 0.095, 1: 0.605, 5: 0.028},
    race={2: 0.108, 1: 0.855, 3: 0.017, 4: 0.005, 5: 0.007, 6: 0.003, 7: 0.006},
    birthplace=_birthplaces(0.044, range(403, 427), 0.0085),
    birthplace_high=430,
    # High school, two and four years of college are spikes. The limit by age takes some variance.
    grade=_Decay(4, 20, 15, 7.7, {15: 0.365, 17: 0.105, 19: 0.095}),
    occupation_variance=78.5,
)

#: Married or formerly married population of Table 10.
_PARENTS = _first_eight(
    female=0.408,
    age=_Decay(16, 90, 33, 100.4, power=2),
    marital={6: 0.027, 2: 0.006, 3: 0.015, 4: 0.045, 1: 0.897, 5: 0.01},
    race={2: 0.08, 1: 0.893, 3: 0.012, 4: 0.004, 5: 0.005, 6: 0.002, 7: 0.004},
    birthplace=_birthplaces(0.044, range(403, 466), 0.0125),
    birthplace_high=465,
    grade=_Decay(1, 23, 15, 8.4, {15: 0.365, 17: 0.105, 19: 0.095}),
    occupation_variance=81.0,
)


def _numeric(
    name: str,
    low: int,
    high: int,
    variance: float,
    usual: tuple[int, float],
    step: int = 1,
    **loadings: float,
) -> _Column:
    """Return an attribute with one usual value (and its share), others the rarer the farther.

    One peak and a variance are all that is published, or plausible, of most attributes.
    """
    marginal = _Decay(low, high, usual[0], variance, dict([usual]), step=step)
    return _Column(name, low, high, marginal, loadings)


def _coded(
    name: str, low: int, high: int, variance: float, usual: tuple[int, float], **loadings: float
) -> _Column:
    """Return a categorical attribute of the same shape; frequent codes are near the usual one."""
    numeric = _numeric(name, low, high, variance, usual, 1, **loadings)
    return replace(numeric, categorical=True)


#: The extended set: domains and variances of Table 10; usual values are those of such persons.
_EXTENDED = (
    *_PARENTS,
    _numeric("FAMUNIT", 1, 3, 0.00453, (1, 0.9956)),
    _numeric("FAMSIZE", 2, 16, 1.443, (3, 0.25), family=0.8),
    _numeric("ELDCH", 0, 90, 58.72, (10, 0.06), age=0.75, family=0.5),
    _numeric("YNGCH", 0, 90, 56.41, (6, 0.07), age=0.75, family=0.35),
    _coded("RELATE", 1, 12, 0.825, (1, 0.57), sex=0.9),
    _Column("BIRTHQTR", 1, 4, _Shares(dict.fromkeys(range(1, 5), 0.25)), {}, categorical=True),
    # The census counts in spring 1980: the year of birth mirrors the age.
    _Column("BIRTHYR", 1889, 1963, _Decay(1889, 1963, 1946, 100.3, power=2), {"age": -1.0}),
    _Column("MARRNO", 0, 2, _Shares({0: 0.02, 1: 0.84, 2: 0.14}), {"age": 0.3}),
    _numeric("AGEMARR", 0, 90, 20.55, (21, 0.12), schooling=0.25, sex=-0.25),
    _numeric("CHBORN", 0, 13, 4.68, (0, 0.59), sex=0.75, family=0.5),
    _coded("YRSUSA", 0, 5, 0.638, (0, 0.92), origin=0.8),
    _coded("LANGUAGE", 1, 96, 30.46, (1, 0.90), origin=0.8),
    _Column("CLASSWKR", 1, 2, _Shares({1: 0.074, 2: 0.926}), {"schooling": 0.1}, True),
    _numeric("WKSWORK", 0, 52, 168.0, (52, 0.60), work=0.7, sex=-0.3),
    _numeric("HRSWORK", 1, 99, 140.9, (40, 0.45), work=0.6, sex=-0.35),
    _numeric("UHRSWORK", 0, 99, 156.7, (40, 0.50), work=0.7, sex=-0.35),
    _numeric("WKSUNEMP", 0, 52, 26.31, (0, 0.90), work=-0.6, age=-0.15),
    # Incomes in steps of five dollars: exponential, hence a variance near the squared mean.
    _numeric("INCWAGE", 0, 75000, 9.854e7, (0, 0.10), 5, work=0.5, schooling=0.4, sex=-0.45),
    _numeric("INCOTHER", 0, 75000, 2.669e6, (0, 0.75), 5, age=0.35, schooling=0.2),
    _coded("MIGRATE5", 1, 4, 0.460, (1, 0.60), age=-0.35),
    _coded("PWSTATE", 1, 80, 94.99, (6, 0.50), origin=0.3),
    _coded("TRANWORK", 11, 70, 39.70, (11, 0.80), sex=0.1),
    _numeric("RIDERS", 0, 7, 0.709, (1, 0.65)),
    _numeric("TRANTIME", 0, 99, 240.0, (15, 0.15), work=0.2),
    _coded("CITIZEN", 0, 3, 0.1307, (0, 0.96), origin=0.85),
    _coded("YRIMM", 0, 6, 0.690, (0, 0.92), origin=0.8),
    _Column("DISABWRK", 1, 2, _Shares({1: 0.965, 2: 0.035}), {"age": 0.25, "work": -0.2}, True),
)


def census(n: int, m: int = 8, seed: int = 0, *, mixed: bool = False) -> Microdata:
    """Return synthetic census-like microdata.

    Up to eight attributes have the ranges, cardinalities and variances of a working population:
    the first m of sex, age, marital status, race, birthplace, highest grade of schooling, class
    of worker and occupation. With more attributes the population is one of families, with other
    variances and ranges of these eight, followed by the other attributes of the extended set.
    Marginals and correlations are plausible; the logic of a household is not modelled.

    Parameters
    ----------
    n
        Number of records.
    m
        Number of attributes, 1 to 35.
    seed
        Of the generator; the same n, m and seed give the same table. Up to m = 8, as well as
        above, the first attributes do not depend on m.
    mixed
        Whether codes without order are categorical, with the observed values as domain; otherwise
        all attributes are numeric with declared domain.

    Raises
    ------
    InputError
        If n, m or the seed is out of range.

    Notes
    -----
    Complexity: O(n m).

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93 (2020), Tables 3, 9 and 10.

    Examples
    --------
    >>> census(100, 4).names
    ('SEX', 'AGE', 'MARST', 'RACE')
    """
    _check_arguments(n, m, seed)
    columns = (_WORKERS if m <= len(_WORKERS) else _EXTENDED)[:m]
    rng = np.random.default_rng(seed)
    factors = {name: rng.standard_normal(n) for name in _FACTORS}
    table = {column.name: column.draw(factors, rng) for column in columns}
    if "HIGRADE" in table:
        # Code = grade + 3, and nobody has finished more grades than years since the age of six.
        table["HIGRADE"] = np.minimum(table["HIGRADE"], table["AGE"] - 3)
    return Microdata(pd.DataFrame(table), tuple(column.attribute(mixed) for column in columns))


def _check_arguments(n: int, m: int, seed: int) -> None:
    if n < 1:
        raise InputError(f"n is {n}", remedy="Ask for at least one record")
    if not 1 <= m <= len(_EXTENDED):
        raise InputError(
            f"m is {m}", remedy=f"The generator knows 1 to {len(_EXTENDED)} attributes"
        )
    if seed < 0:
        raise InputError(f"seed is {seed}", remedy="A seed is a whole number of at least 0")
