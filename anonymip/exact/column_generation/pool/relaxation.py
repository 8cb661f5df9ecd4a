"""The linear relaxation over a pool, of which the program holds only what its duals ask for.

One artificial column covers everything at the cost of the cutoff. So the program always has a
point, its value is the least of the cutoff and of what the pool allows, and a pool without a
selection needs no large costs to be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, vstack

from anonymip.exact.column_generation.pool.pool import Pool
from anonymip.runtime.budget import Budget
from anonymip.solvers.linear_programs import Basis, GrowingProgram
from anonymip.tolerances import DUAL_ROUNDING

#: Columns join the program from this reduced cost on, for costs of order 1, so many at a time.
_BELOW, _BATCH = -1e-9, 400

#: The artificial column counts as unused up to this.
_UNUSED = 1e-7


@dataclass(frozen=True, eq=False)
class Relaxed:
    """An optimum of the relaxation over some columns, and what its duals prove.

    Parameters
    ----------
    bound
        On every selection from these columns that keeps the rows, or the cutoff if that is less.
    reduced
        (a,) reduced costs of the columns: whatever uses one costs its own more than the bound.
    columns, weights
        What the optimum takes, by numbers of the pool.
    artificial
        Whether the optimum uses the artificial column.
    row_duals, extra_duals
        (t,) of the covering, (e,) of the further rows.
    """

    bound: float
    reduced: NDArray[np.float64]
    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    artificial: bool
    row_duals: NDArray[np.float64]
    extra_duals: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Start:
    """What a program begins with: a part of another one, around its basis.

    Parameters
    ----------
    columns, rows
        Numbers of columns of the pool and of further rows.
    basis
        Of the artificial column and these, and of the covering and these rows.
    """

    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    basis: Basis


class PoolRelaxation:
    """The relaxation over a pool, as a program of few of its columns and of its further rows.

    Parameters
    ----------
    pool
        Costs of order 1 suit the solver.
    cutoff
        Cost of the artificial column.
    """

    def __init__(self, pool: Pool, cutoff: float) -> None:
        self._pool = pool
        self._cutoff = cutoff
        #: (c, e) coefficients of the further rows, and (e,) their sides.
        self.extra = csr_array((len(pool.costs), 0))
        self.sides = np.empty(0)
        self._is_least = np.empty(0, np.bool_)
        self._begin()
        if pool.count_limit is not None:
            ones = csr_array(np.ones((len(pool.costs), 1)))
            self.hold_rows(self.add_rows(ones, np.array([float(pool.count_limit)]), least=False))

    def _begin(self) -> None:
        """Make a program of the covering alone."""
        sides = self._pool.coverage.astype(np.float64)
        self._program = GrowingProgram(sides, sides)
        self._program.add_columns(np.array([self._cutoff]), csc_array(sides[:, None]))
        self._place = np.full(len(self._pool.costs), -1, np.int64)
        self._inside = np.empty(0, np.int64)
        self._open = np.empty(0, np.bool_)
        #: Numbers of the further rows in the program, in its order.
        self.rows = np.empty(0, np.int64)

    def restart(self, start: Start) -> None:
        """Go on with a program of given columns and rows, from their basis."""
        self._begin()
        self.hold_rows(start.rows)
        self.add_columns(start.columns)
        self._program.start_from(start.basis)

    def start(self, active: NDArray[np.int64], kept: NDArray[np.int64]) -> Start:
        """Return the part of the program that a node needs, after a solve.

        Columns that are not active and further rows that are not tight are left out, but for
        basic columns and rows that are kept in any case.
        """
        basis, t = self._program.basis(), len(self._pool.coverage)
        usable = np.zeros(len(self._pool.costs), np.bool_)
        usable[active] = True
        columns = usable[self._inside] | basis.columns[1:]
        rows = ~basis.rows[t:] | np.isin(self.rows, kept)
        part = Basis(
            np.append(basis.columns[:1], basis.columns[1:][columns]),
            np.append(basis.rows[:t], basis.rows[t:][rows]),
        )
        return Start(self._inside[columns], self.rows[rows], part)

    def add_rows(
        self, coefficients: csr_array, sides: NDArray[np.float64], *, least: bool
    ) -> NDArray[np.int64]:
        """Add rows that :meth:`hold_rows` may bring into the program, and return their numbers.

        Parameters
        ----------
        coefficients
            (c, r) of every column of the pool.
        sides
            (r,) of at least 0.
        least
            Whether they are lower sides.
        """
        first, count = len(self.sides), len(sides)
        self.extra = csr_array(hstack([self.extra, coefficients]))
        self.sides = np.concatenate([self.sides, sides])
        self._is_least = np.concatenate([self._is_least, np.full(count, least)])
        return np.arange(first, first + count)

    def hold_rows(self, rows: NDArray[np.int64]) -> None:
        """Bring further rows, which are not in the program, into it."""
        inside = csr_array(self.extra[self._inside][:, rows].T)
        matrix = csr_array(hstack([csr_array(self.sides[rows][:, None]), inside]))
        self._program.add_rows(matrix, *self.row_bounds(rows))
        self.rows = np.concatenate([self.rows, rows])

    def row_bounds(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and the upper sides of further rows, infinite where there is none."""
        least, sides = self._is_least[rows], self.sides[rows]
        return np.where(least, sides, -np.inf), np.where(least, np.inf, sides)

    def open_columns(self, active: NDArray[np.int64]) -> None:
        """Let exactly these columns of the pool be used."""
        usable = np.zeros(len(self._pool.costs), np.bool_)
        usable[active] = True
        wanted = usable[self._inside]
        changed = np.flatnonzero(wanted != self._open)
        self._open = wanted
        self._program.limit_columns(1 + changed, np.where(wanted[changed], np.inf, 0.0))

    def inside(self, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some columns of the pool are in the program."""
        return self._place[columns] >= 0

    def add_columns(self, columns: NDArray[np.int64]) -> None:
        """Bring columns of the pool, which may be used, into the program."""
        columns = columns[self._place[columns] < 0]
        if not len(columns):
            return
        self._place[columns] = len(self._inside) + np.arange(len(columns))
        self._inside = np.concatenate([self._inside, columns])
        self._open = np.concatenate([self._open, np.ones(len(columns), np.bool_)])
        pool = self._pool
        matrix = vstack([pool.incidence[columns].T, self.extra[columns][:, self.rows].T])
        self._program.add_columns(pool.costs[columns], csc_array(matrix))

    def values_soon(self, choices: list[NDArray[np.int64]], iterations: int) -> list[float]:
        """Return about what the optimum is where only some columns may be used.

        Parameters
        ----------
        choices
            Columns of the pool; those that are not in the program yet are left out.
        iterations
            Of the simplex method for each, from the last optimum.
        """
        basis, values = self._program.basis(), []
        for active in choices:
            self.open_columns(active)
            values.append(self._program.value_soon(iterations))
            self._program.start_from(basis)
        return values

    def solve(self, active: NDArray[np.int64], budget: Budget) -> Relaxed | None:
        """Return the optimum over columns of the pool; None without time."""
        pool = self._pool
        self.open_columns(active)
        members, extra = pool.incidence[active], self.extra[active]
        roots = members.indices[members.indptr[:-1]]
        while True:
            found = self._program.solve(budget)
            if found is None:
                return None
            t = len(pool.coverage)
            duals = found.duals[:t]
            extra_duals = np.zeros(len(self.sides))
            extra_duals[self.rows] = np.where(
                self._is_least[self.rows],
                np.maximum(found.duals[t:], 0.0),
                np.minimum(found.duals[t:], 0.0),
            )
            reduced = pool.costs[active] - members @ duals - extra @ extra_duals
            new = np.flatnonzero((reduced < _BELOW) & (self._place[active] < 0))
            if not len(new):
                break
            new = new[np.argsort(reduced[new], kind="stable")]
            # The best of each root first: alike columns bring the duals little.
            _, best = np.unique(roots[new], return_index=True)
            order = np.concatenate([np.sort(best), np.setdiff1d(np.arange(len(new)), best)])
            self.add_columns(active[new[order[:_BATCH]]])
        taken = np.flatnonzero(found.point[1:] > 0.0)
        return Relaxed(
            self._bound(active, duals, extra_duals, reduced),
            reduced,
            self._inside[taken],
            found.point[1:][taken],
            bool(found.point[0] > _UNUSED),
            duals,
            extra_duals,
        )

    def _bound(
        self,
        active: NDArray[np.int64],
        duals: NDArray[np.float64],
        extra_duals: NDArray[np.float64],
        reduced: NDArray[np.float64],
    ) -> float:
        """Return what duals prove, whatever the solver's tolerances, less its own rounding."""
        pool = self._pool
        negative = np.minimum(reduced, 0.0)
        # A selection holds so many columns, and each of them so many times.
        missing = max(
            pool.most * float(negative.min(initial=0.0)), float(negative @ pool.limits[active])
        )
        paid = np.concatenate([pool.coverage * duals, self.sides * extra_duals])
        largest = pool.largest
        reach = largest * float(np.abs(duals).max(initial=0.0))
        reach += (
            float(np.diff(self.extra.indptr).max(initial=0))
            * largest
            * float(np.abs(extra_duals).max(initial=0.0))
        )
        scale = float(np.abs(paid).sum()) + pool.most * (reach + pool.costliest)
        return float(paid.sum()) + missing - DUAL_ROUNDING * scale
