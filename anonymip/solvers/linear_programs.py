"""The one door to linear programs that no adapter solves: those whose dual values are asked for.

A program that is solved once goes to SciPy's copy of HiGHS, which lies beside any other in the
process. One that grows goes to highspy, which goes on from the last basis; always with one thread,
since HiGHS shares a scheduler among all programs of a thread. What comes back is as exact as a
solver's tolerances are: a bound needs duals that are repaired in arithmetic of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget

#: A time limit of less than this is none to HiGHS, in seconds.
_LEAST = 1e-3

#: What HiGHS calls its simplex methods.
_DUAL, _PRIMAL = 1, 4

#: As many iterations are no limit to HiGHS.
_NO_LIMIT = 2**31 - 1

#: Iterations after which a simplex method is taken to cycle: so many and so many for each row and
#: column. A pool of 1,000 types that takes 106 without perturbed costs had not ended after 13
#: minutes.
_ITERATIONS, _ITERATIONS_EACH = 1_000, 2


@dataclass(frozen=True, eq=False)
class LinearAnswer:
    """An optimal vertex of a linear program that is minimised, and the objective there.

    `point` is (columns,); `duals` (rows,) say what the value rises by where the sides of a row do,
    for each unit.
    """

    value: float
    point: Floats
    duals: Floats


def solve_linear_program(
    cost: Floats,
    matrix: Any,
    row_lower: Floats,
    row_upper: Floats,
    *,
    lower: Floats | float = 0.0,
    upper: Floats | float = np.inf,
    presolve: bool = True,
    budget: Budget | None = None,
) -> LinearAnswer | None:
    """Minimise ``cost @ x`` with ``row_lower <= matrix @ x <= row_upper``; None without an optimum.

    `row_lower, row_upper, lower, upper`: (rows,) and (columns,), infinite where there is no side.
    `presolve`: whether the program is simplified first,
    which takes longer than it saves where there are many columns. `budget`: its time is a limit,
    after which there is no answer either.
    """
    from scipy.optimize import linprog

    options: dict[str, object] = {"presolve": presolve}
    remaining = None if budget is None else budget.remaining()
    if remaining is not None:
        options["time_limit"] = max(remaining, _LEAST)
    sparse, equal = csr_array(matrix), row_lower == row_upper
    # Rows with two different sides appear once for each.
    below, above = np.isfinite(row_upper) & ~equal, np.isfinite(row_lower) & ~equal
    solve: Any = linprog  # its stubs know no sparse arrays
    result = solve(
        cost,
        A_ub=vstack([sparse[below], -sparse[above]]),
        b_ub=np.concatenate([row_upper[below], -row_lower[above]]),
        A_eq=sparse[equal],
        b_eq=row_upper[equal],
        bounds=np.stack(np.broadcast_arrays(lower, upper, cost)[:2], axis=1),
        method="highs-ds",
        options=options,
    )
    if result.status != 0:
        return None
    duals = np.zeros(len(equal))
    duals[equal] = result.eqlin.marginals
    of_upper, of_lower = np.split(result.ineqlin.marginals, [int(below.sum())])
    duals[below] += of_upper
    duals[above] -= of_lower
    return LinearAnswer(float(result.fun), np.asarray(result.x, np.float64), duals)


@dataclass(frozen=True, eq=False)
class Basis:
    """Which columns, (columns,), and rows, (rows,), of a linear program are basic.

    Of rows those whose slack is basic.
    """

    columns: Flags
    rows: Flags


@dataclass(eq=False)
class Simplex:
    """What programs that are much alike share: the work on them, and how the next one is solved.

    `iterations` of the simplex methods were made in all. `perturbs` is whether the dual one starts
    with perturbed costs, until it cycles with these.
    """

    iterations: int = 0
    perturbs: bool = True


class GrowingProgram:
    """A linear program that grows by columns and rows, and goes on from its last basis.

    `row_lower, row_upper`: (rows,) sides of the rows that it begins with, infinite where there is
    none. `simplex` is shared with programs before it; None for one of its own.
    """

    def __init__(
        self, row_lower: Floats, row_upper: Floats, simplex: Simplex | None = None
    ) -> None:
        import highspy

        self._simplex = simplex or Simplex()
        self._model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._basic = highspy.HighsBasisStatus.kBasic
        self._infinity = highspy.kHighsInf
        self._model.setOptionValue("output_flag", False)
        self._model.setOptionValue("threads", 1)
        if not self._simplex.perturbs:
            self._keep_costs()
        # Whether nothing but columns came since the last vertex, which is feasible then.
        self._is_feasible = False
        self.add_rows(csr_array((len(row_lower), 0)), row_lower, row_upper)

    def add_columns(self, cost: Floats, matrix: csc_array) -> None:
        """Add columns of at least 0 with their costs and their (rows, columns) coefficients."""
        count = len(cost)
        self._model.addCols(
            count,
            cost,
            np.zeros(count),
            np.full(count, self._infinity),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.float64),
        )

    def add_rows(self, matrix: csr_array, lower: Floats, upper: Floats) -> None:
        """Add rows with their sides and their (rows, columns) coefficients."""
        self._is_feasible = False
        self._model.addRows(
            len(lower),
            np.maximum(lower, -self._infinity),
            np.minimum(upper, self._infinity),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.float64),
        )

    def limit_columns(self, columns: Ints, upper: Floats) -> None:
        """Let columns, by number, be at most `upper`, which may be infinite."""
        if len(columns):
            self._is_feasible = False
        self._model.changeColsBounds(
            len(columns),
            columns.astype(np.int32),
            np.zeros(len(columns)),
            np.minimum(upper, self._infinity),
        )

    def require_columns(self, columns: Ints, lower: Floats) -> None:
        """Let columns, by number, be at least `lower` and without an upper bound."""
        self._is_feasible = False
        upper = np.full(len(columns), self._infinity)
        self._model.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)

    def basis(self) -> Basis:
        """Return the basis that the last solve ended with, for :meth:`start_from`."""
        basis = self._model.getBasis()
        return Basis(
            np.array([status == self._basic for status in basis.col_status], np.bool_),
            np.array([status == self._basic for status in basis.row_status], np.bool_),
        )

    def start_from(self, basis: Basis) -> None:
        """Go on from a basis, with as many basic columns and rows as there are rows."""
        import highspy

        self._is_feasible = False
        given: Any = highspy.HighsBasis()
        statuses = (highspy.HighsBasisStatus.kNonbasic, self._basic)
        given.col_status = [statuses[one] for one in basis.columns.tolist()]
        given.row_status = [statuses[one] for one in basis.rows.tolist()]
        given.valid = True
        self._model.setBasis(given)

    def inverse_rows(self, columns: Flags) -> Floats:
        """Return the (b, rows) rows of the inverse of the basis of basic columns, (columns,) told.

        Each sums rows to one in which its column is the only basic one. After a solve.
        """
        _, basic = self._model.getBasicVariables()
        basic = np.asarray(basic, np.int64)
        asked = np.flatnonzero((basic >= 0) & columns[np.maximum(basic, 0)])
        rows = [self._model.getBasisInverseRow(at)[1] for at in asked.tolist()]
        return np.array(rows, np.float64).reshape(len(rows), len(basic))

    def value_soon(self, iterations: int) -> float:
        """Return the objective after some iterations of the simplex method.

        It is no bound: neither the optimum need be reached, nor are the duals repaired.
        """
        self._is_feasible = False
        self._runs(_DUAL, iterations)
        return float(self._model.getInfo().objective_function_value)

    def _keep_costs(self) -> None:
        """Have the dual simplex method start with the costs as they are."""
        self._simplex.perturbs = False
        self._model.setOptionValue("dual_simplex_cost_perturbation_multiplier", 0.0)

    def _runs(self, strategy: int, iterations: int) -> bool:
        """Run one of the simplex methods, and return whether it came to an optimum."""
        self._model.setOptionValue("simplex_strategy", strategy)
        self._model.setOptionValue("simplex_iteration_limit", iterations)
        self._model.run()
        self._model.setOptionValue("simplex_iteration_limit", _NO_LIMIT)
        self._simplex.iterations += int(self._model.getInfo().simplex_iteration_count)
        return bool(self._model.getModelStatus() == self._optimal)

    def solve(self, budget: Budget) -> LinearAnswer | None:
        """Return an optimal vertex; None if time ended or there is none."""
        remaining = budget.remaining()
        if remaining is not None:
            # The limit counts from when the model was made.
            limit = self._model.getRunTime() + max(remaining, _LEAST)
            self._model.setOptionValue("time_limit", limit)
        # Columns leave the last vertex feasible; rows and bounds leave its duals so.
        strategy = _PRIMAL if self._is_feasible else _DUAL
        self._is_feasible = False
        size = self._model.getNumRow() + self._model.getNumCol()
        limit = _ITERATIONS + _ITERATIONS_EACH * size
        if not self._runs(strategy, limit):
            if budget.stop_reason() is not None:
                return None
            # A basis may be too ill-conditioned to go on from, or the dual method cycles with
            # perturbed costs, and does so with those of the next program and from the beginning.
            self._model.clearSolver()
            self._keep_costs()
            tried = (_DUAL, limit), (_PRIMAL, 10 * limit), (_DUAL, 10 * limit), (_PRIMAL, _NO_LIMIT)
            if not any(self._runs(*each) for each in tried):
                return None
        self._is_feasible = True
        solution = self._model.getSolution()
        return LinearAnswer(
            float(self._model.getInfo().objective_function_value),
            np.asarray(solution.col_value, np.float64),
            np.asarray(solution.row_dual, np.float64),
        )
