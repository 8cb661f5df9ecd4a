"""Individual risk of records of a sample, by the weights that say whom they stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import hyp2f1

from anonymip.privacy.arrays import Floats

#: From this frequency on the series is summed: its terms fall faster than 1 / C(2j, j), so that so
#: many suffice, while the library's function fails on frequencies of hundreds.
_SERIES_FROM, _TERMS = 30, 40


def individual_risk(sample: ArrayLike, population: ArrayLike) -> Floats:
    """Return the probability that a record of the sample is linked to the right person.

    Parameters
    ----------
    sample
        (cells,) records f of the sample in each cell, 1 or more.
    population
        (cells,) persons F of the population in it, as estimated: the sum of the weights of these
        records. Fewer than f count as f.

    Returns
    -------
    numpy.ndarray
        (cells,) the mean of 1 / F given f, where F is negative-binomial with f successes of
        probability p = f / F:

            r = sum over j >= f of C(j - 1, f - 1) p^f (1 - p)^(j - f) / j
              = (p / f) 2F1(1, 1; f + 1; 1 - p),

        which is p / (1 - p) log(1 / p) for f = 1 and p / (1 - p) - (p / (1 - p))^2 log(1 / p)
        for f = 2 [1]_, [2]_.

    Notes
    -----
    mu-Argus and sdcMicro (`indivRisk`, "approx") have the same formulas for f = 1 and 2, and for
    larger f the approximation p / (f - 1 + p), which is up to 4 % higher. Of a record that is
    alone (f = 1) the probability that its person is alone in the population is p.
    Complexity: O(cells).

    References
    ----------
    .. [1] R. Benedetti, L. Franconi: Statistical and Technological Solutions for Controlled Data
       Dissemination, Pre-proceedings of New Techniques and Technologies for Statistics, 1998.
    .. [2] L. Franconi, S. Polettini: Individual Risk Estimation in mu-Argus: A Review, Privacy in
       Statistical Databases 2004, LNCS 3050, pp. 262-272.
    """
    f = np.asarray(sample, np.float64)
    p = match_share(sample, population)
    mean = np.empty(len(f))
    few = f < _SERIES_FROM
    mean[few] = hyp2f1(1.0, 1.0, f[few] + 1.0, 1.0 - p[few])
    term = np.ones(int(np.sum(~few)))
    total = term.copy()
    for j in range(_TERMS):
        term = term * (j + 1.0) * (1.0 - p[~few]) / (f[~few] + 1.0 + j)
        total += term
    mean[~few] = total
    return np.asarray(p / f * mean, np.float64)


def match_share(sample: ArrayLike, population: ArrayLike) -> Floats:
    """Return (cells,) the share p of the persons of each cell that is in the sample, at most 1."""
    f = np.asarray(sample, np.float64)
    return np.asarray(f / np.maximum(np.asarray(population, np.float64), f), np.float64)
