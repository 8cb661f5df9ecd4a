"""Gomory's mixed-integer cuts of the rows of a pool: their multipliers, coefficients and choice.

Rows of the program summed with multipliers u say that sum_S u(S) y_S + sum_r u_r s_r = u_0, where
u(S) is what a column has of them in sum and s_r the slack of a row. With f the fraction of u(S) and
f_0 that of u_0 whole numbers of columns keep

    sum_S min(f / f_0, (1 - f) / (1 - f_0)) y_S + sum_r g(u_r) s_r >= 1,

where g is the same for whole slacks, and u_r / f_0 or -u_r / (1 - f_0) for others. Any multipliers
give a cut; those that the inverse of a basis has for a basic column with a fraction give one that
the vertex breaks. The slacks are put in terms of the columns, so that the cut is a row like others.

Where every type is covered more than once few rank-1 cuts are broken, and these take most of the
gap: of 1,000 records, k = 3, 29 of them left 10,073 of 58,172 columns.

References
----------
E. Balas, S. Ceria, G. Cornuéjols, N. Natraj, "Gomory cuts revisited", Operations Research Letters
19 (1996) 1-9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from anonymip.runtime.arrays import Flags, Floats


@dataclass(frozen=True)
class MixedNumbers:
    """The numbers that steer the choice of cuts."""

    #: Multipliers that are tried at a time, and coefficients, which are held densely.
    at_once: int = 50
    entries: int = 10_000_000
    least_fraction: float = 0.02  # of u_0, or what is left of 1: others give unsteady coefficients
    most_multiplier: float = 1e2
    violation: float = 1e-3  # cuts that are broken by less are left
    most: int = 100  # cuts of a round
    alike: float = 0.9  # of the cosine of two cuts, from where on one is left
    #: What a column's coefficient may be wrong by, beside what the fraction f_0 is wrong by, which
    #: is that share of its terms: sides are lowered by what both may be.
    rounding: float = 1e-9
    share: float = 2.0**-50


NUMBERS = MixedNumbers()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a program."""

    matrix: csr_array  # (c, r) coefficients of columns
    sides: Floats  # (r,)
    equations: int  # so many of the first hold as such, the others at most
    whole: Flags  # (r,) whether the slack is whole for whole columns


def mixed_integer_cuts(
    multipliers: Floats, rows: Rows, weights: Floats, most_columns: int
) -> tuple[Floats, Floats]:
    """Return (q, c) coefficients and (q,) lower sides of cuts that a vertex breaks, worst first.

    Given are (u, r) multipliers of rows, (c,) how much of each column the vertex takes, and how
    many columns a selection takes at most. No coefficient is above 1.
    """
    found: list[tuple[float, Floats, float]] = []
    fit = max(1, NUMBERS.entries // max(1, rows.matrix.shape[0]))
    at_once, most = min(NUMBERS.at_once, fit), min(NUMBERS.most, fit)
    for begin in range(0, len(multipliers), at_once):
        cuts, sides = _cuts(multipliers[begin : begin + at_once], rows, most_columns)
        broken = sides - cuts @ weights
        depth = broken / np.maximum(np.linalg.norm(cuts, axis=1), NUMBERS.rounding)
        found += [
            (float(depth[at]), cuts[at].copy(), float(sides[at]))
            for at in np.flatnonzero(broken > NUMBERS.violation).tolist()
        ]
        found.sort(key=lambda cut: -cut[0])
        # Some of them are alike.
        del found[2 * most :]
    chosen = np.empty((0, rows.matrix.shape[0]))
    least: list[float] = []
    for _, cut, side in found:
        length = np.linalg.norm(cut) * np.linalg.norm(chosen, axis=1)
        if (np.abs(chosen @ cut) < NUMBERS.alike * length).all():
            chosen = np.vstack([chosen, cut])
            least.append(side)
        if len(least) == most:
            break
    return chosen, np.array(least)


def _cuts(multipliers: Floats, rows: Rows, most_columns: int) -> tuple[Floats, Floats]:
    """Return the (q, c) coefficients of the cuts that multipliers give, and (q,) lower sides."""
    total = multipliers @ rows.sides
    fraction = total - np.floor(total)
    distance = np.minimum(fraction, 1.0 - fraction)
    is_steady = distance > NUMBERS.least_fraction
    is_steady &= np.abs(multipliers).max(axis=1, initial=0.0) < NUMBERS.most_multiplier
    multipliers, first = multipliers[is_steady], fraction[is_steady, None]
    held = np.asarray((rows.matrix @ multipliers.T).T)
    cuts = _whole_part(held, first)
    real = np.where(multipliers > 0, multipliers / first, -multipliers / (1.0 - first))
    paid = np.where(rows.whole, _whole_part(multipliers, first), real)
    paid[:, : rows.equations] = 0.0
    cuts -= np.asarray((rows.matrix @ paid.T).T)
    cuts[np.abs(cuts) < NUMBERS.rounding / 10] = 0.0
    sides = 1.0 - paid @ rows.sides
    terms = np.abs(multipliers) @ np.abs(rows.sides)
    sides -= most_columns * (NUMBERS.rounding + NUMBERS.share * terms / distance[is_steady] ** 2)
    sides -= NUMBERS.share * (np.abs(paid) @ np.abs(rows.sides))
    largest = np.maximum(1.0, np.abs(cuts).max(axis=1, initial=0.0))
    return cuts / largest[:, None], sides / largest


def _whole_part(held: Floats, first: Floats) -> Floats:
    """Return the coefficients of whole amounts with some multipliers in sum."""
    fraction = held - np.floor(held)
    return np.asarray(np.minimum(fraction / first, (1.0 - fraction) / (1.0 - first)))
