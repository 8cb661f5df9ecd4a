"""Synthetic microdata: census-like tables of any size.

Every attribute has a marginal distribution, written as a formula with few parameters, and a place
in a Gaussian copula: its score is a weighted sum of latent factors (age, sex, schooling, origin,
work, family) and noise of its own, and the score's quantile picks the value. Ranges,
cardinalities and variances are those of Liang & Samavi (2020), Tables 3, 9 and 10; shares of the
main categories and strengths of the correlations are rounded. ``tables/census.toml`` has them.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError
from anonymip.instances.attribute import Attribute
from anonymip.instances.microdata import Microdata
from anonymip.runtime.arrays import Floats, Ints

_FACTORS = ("age", "sex", "schooling", "origin", "work", "family")


def _decay(
    low: int,
    high: int,
    centre: float,
    variance: float,
    spikes: Iterable[tuple[int, float]] = (),
    power: int = 1,
    step: int = 1,
) -> tuple[Ints, Floats]:
    """Return values and shares, both (values,), that fall with the distance to a centre.

    A value v without a share of its own has mass proportional to exp(-(|v - centre| / s)^power);
    the scale s is solved for the variance. `low, high, step`: the values low, low + step, ...,
    high. `centre`: where the mass is largest. `variance`: of the whole distribution. `spikes`:
    values with shares of their own. `power`: 1: exponential tails, 2: normal tails.
    """
    # Imported late, here and below: nothing but generated tables needs it.
    from scipy.optimize import brentq

    own = dict(spikes)
    values = np.unique([*range(low, high + 1, step), *own]).astype(np.int64)
    special = np.isin(values, list(own))
    masses = np.array([own.get(int(value), 0.0) for value in values])
    distance = np.abs(values - centre)
    # The nearest value has exponent zero, so that a small scale leaves some mass.
    distance -= distance[~special].min()
    rest = 1.0 - masses.sum()

    def filled(log_scale: float) -> Floats:
        tail = np.exp(-((distance / math.exp(log_scale)) ** power))
        tail[special] = 0.0
        return np.asarray(masses + rest * tail / tail.sum())

    def excess(log_scale: float) -> float:
        mean = float(values @ filled(log_scale))
        return float((values - mean) ** 2 @ filled(log_scale)) / variance - 1.0

    widest = math.log(100.0 * (high - low))
    return values, filled(float(brentq(excess, math.log(0.1 * step), widest)))


def _birthplaces(mexico: float, europe: range, european: float) -> dict[int, float]:
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
    return {**south, **elsewhere, **frequent, **west, **abroad}


def _distribution(given: Mapping[str, Any]) -> tuple[Ints, Floats]:
    """Return values and shares of an attribute, both (values,), in the order along the score."""
    if "decay" in given:
        low, high = given["values"]
        return _decay(**{"low": low, "high": high, **given["decay"]})
    if "shares" in given:
        shares = dict(given["shares"])
    else:
        born = given["birthplaces"]
        shares = _birthplaces(born["mexico"], range(*born["europe"]), born["european"])
    masses = np.array(list(shares.values()), np.float64)
    return np.array(list(shares), np.int64), masses / masses.sum()


def _drawn(
    given: Mapping[str, Any], factors: Mapping[str, Floats], rng: np.random.Generator
) -> Ints:
    """Return (n,) values of an attribute, one for each record."""
    from scipy.special import ndtri

    loadings = given.get("loadings", {})
    own = 1.0 - sum(loading**2 for loading in loadings.values())
    score = math.sqrt(max(own, 0.0)) * rng.standard_normal(len(factors["age"]))
    for name, loading in loadings.items():
        score += loading * factors[name]
    values, shares = _distribution(given)
    return values[np.searchsorted(ndtri(np.cumsum(shares)[:-1]), score)]


def _attribute(given: Mapping[str, Any], mixed: bool) -> Attribute:
    if mixed and given.get("categorical", False):
        return Attribute(given["name"], "categorical")
    return Attribute(given["name"], "numeric", given["values"], integer=True)


@cache
def _entries(population: str) -> list[dict[str, Any]]:
    """Return the attributes of the population ``workers`` or ``extended``."""
    text = (Path(__file__).parent / "tables" / "census.toml").read_text("utf-8")
    return list(tomllib.loads(text)[population])


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
    workers, extended = _entries("workers"), _entries("extended")
    if n < 1:
        raise InputError(f"n is {n}", remedy="Ask for at least one record")
    if not 1 <= m <= len(extended):
        remedy = f"The generator knows 1 to {len(extended)} attributes"
        raise InputError(f"m is {m}", remedy=remedy)
    if seed < 0:
        raise InputError(f"seed is {seed}", remedy="A seed is a whole number of at least 0")
    entries = (workers if m <= len(workers) else extended)[:m]
    rng = np.random.default_rng(seed)
    factors = {name: rng.standard_normal(n) for name in _FACTORS}
    table = {one["name"]: _drawn(one, factors, rng) for one in entries}
    if "HIGRADE" in table:
        # Code = grade + 3, and nobody has finished more grades than years since the age of six.
        table["HIGRADE"] = np.minimum(table["HIGRADE"], table["AGE"] - 3)
    return Microdata(pd.DataFrame(table), tuple(_attribute(one, mixed) for one in entries))
