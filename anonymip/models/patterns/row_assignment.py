r"""Row Assignment: which records become which of the given output rows, a transportation problem.

Phase 2 of the algorithm behind Theorem 3 of Bredereck et al. (2013) knows the output rows j = 1..r
that are used, and asks how many records of each type i become each of them. With the names of the
paper on the left, where h(i, j) says whether type i may become row j,

=============================================================  ==============================
:math:`h(i,j)\,n \ge g(i,j)`                            (1)    bounds of ``assigned[i, j]``
:math:`\sum_i g(i,j) \ge k`                             (2)    ``filled[j]``
:math:`\sum_j g(i,j) = n_i`                             (3)    ``published[i]``
:math:`\sum_{i,j} g(i,j)\,\omega_j \le s`               (4)    ``loss``, minimised
=============================================================  ==============================

where the sums over j run over the r output rows; the paper's "j = 1 to p" in (3) and (4) counts
patterns, but several rows may be used of one pattern, and of another none.

Every variable stands in one row of (2) and one of (3), so the matrix is that of a bipartite graph,
totally unimodular: all vertices are whole, and the linear program needs no integer variables.
:func:`assign_rows` finds such a vertex by the network simplex, in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, ldexp, log2

import numpy as np
import pyomo.environ as pyo

from anonymip.errors import InputError
from anonymip.graphs.weighted.network_simplex import cheapest_flow
from anonymip.models.parts.equivalence_context import linear, total
from anonymip.recodings.output_rows import grid_of
from anonymip.runtime.arrays import Floats, Ints

#: Bits that sums of whole costs along a path of the network may fill.
_BITS = 58


@dataclass(frozen=True, eq=False)
class RowAssignment:
    """A transportation problem between types of records and output rows."""

    counts: Ints  # (t,) int64, records of each type
    #: (r,) int64, records that each output row takes at least: k, or 0 where a row needs none.
    least: Ints
    #: (e,) int64, the pairs of a type and a row that it may become; h(i, j) = 1.
    types: Ints
    rows: Ints
    costs: Floats  # (e,) float64, cost of a record of each pair
    most: Ints | None = None  # (e,) int64, records of each pair at most; None for all of the type
    #: (r,) int64, records that each output row takes at most; None for any number.
    room: Ints | None = None

    @property
    def capacities(self) -> Ints:
        """(e,) records of each pair at most."""
        return self.counts[self.types] if self.most is None else self.most


def build_row_assignment(task: RowAssignment) -> pyo.ConcreteModel:
    """Return inequalities (1) to (4) as a linear program; it is built, not solved.

    Raises InputError if a type fits no row, or fewer records than an output row needs fit it.
    """
    _refuse_unfit(task)
    model = pyo.ConcreteModel(name="row assignment")
    model.context = task
    types, rows = task.types.tolist(), task.rows.tolist()
    most = dict(zip(zip(types, rows, strict=True), task.capacities.tolist(), strict=True))
    model.types = pyo.RangeSet(0, len(task.counts) - 1, doc="types of records")
    model.rows = pyo.RangeSet(0, len(task.least) - 1, doc="output rows that are used")
    model.fitting = pyo.Set(
        initialize=list(most), dimen=2, doc="types and the output rows that they may become"
    )
    model.assigned = pyo.Var(
        model.fitting,
        bounds=lambda _, i, j: (0, most[i, j]),
        doc="records of a type that become an output row",
    )
    of_row: dict[int, list[int]] = {j: [] for j in model.rows}
    of_type: dict[int, list[int]] = {i: [] for i in model.types}
    for i, j in most:
        of_row[j].append(i)
        of_type[i].append(j)
    room = [None] * len(task.least) if task.room is None else task.room.tolist()
    model.filled = pyo.Constraint(
        [j for j in model.rows if task.least[j] > 0 or (room[j] is not None and of_row[j])],
        rule=lambda model, j: (
            int(task.least[j]),
            total([model.assigned[i, j] for i in of_row[j]]),
            room[j],
        ),
        doc="every output row takes k records, and no more than it has room for",
    )
    model.published = pyo.Constraint(
        model.types,
        rule=lambda model, i: (
            int(task.counts[i]),
            total([model.assigned[i, j] for j in of_type[i]]),
            int(task.counts[i]),
        ),
        doc="every record becomes one output row",
    )
    model.loss = pyo.Objective(
        expr=linear(0.0, task.costs.tolist(), list(model.assigned.values())),
        sense=pyo.minimize,
        doc="loss summed over the records [unit of the objective]",
    )
    return model


def _refuse_unfit(task: RowAssignment) -> None:
    fitting = np.zeros(len(task.least), np.int64)
    np.add.at(fitting, task.rows, task.capacities)
    short = fitting < task.least
    if short.any():
        row = int(np.argmax(short))
        raise InputError(
            f"{fitting[row]} records may become output row {row}, which needs {task.least[row]}",
            remedy="Leave the row out",
        )
    lost = np.bincount(task.types, minlength=len(task.counts)) == 0
    if lost.any():
        raise InputError(
            f"type {int(np.argmax(lost))} may become none of the output rows",
            remedy="Use more output rows",
        )


def assign_rows(task: RowAssignment) -> Ints | None:
    """Return (e,) how many records of each pair are assigned, at least cost; None if none can be.

    Costs of at most six decimals are met exactly, others up to rounding. A node for each type sends
    its records, one for each row receives what it needs at least, and passes the surplus to a last
    node as far as it has room. Complexity: that of the network simplex.
    """
    t, r, e = len(task.counts), len(task.least), len(task.types)
    total, needed = int(task.counts.sum()), int(task.least.sum())
    if needed > total or (task.room is not None and (task.room < task.least).any()):
        return None
    above = np.full(r, total) if task.room is None else task.room - task.least
    supply = np.concatenate([task.counts, -task.least, [needed - total]])
    surplus = np.arange(t, t + r, dtype=np.int64)
    flow = cheapest_flow(
        supply.astype(np.int64),
        np.concatenate([task.types, surplus]).astype(np.int64),
        np.concatenate([task.rows + t, np.full(r, t + r)]).astype(np.int64),
        np.concatenate([task.capacities, above]).astype(np.int64),
        np.concatenate([whole_costs(task.costs, t + r + 1)[0], np.zeros(r, np.int64)]),
    )
    return None if flow is None else flow[:e]


def whole_costs(costs: Floats, nodes: int) -> tuple[Ints, float]:
    """Return costs as whole numbers of some unit, and by how much one may be off in its own.

    They are exact where they have few decimals.
    """
    largest = max(float(np.abs(costs).max(initial=0.0)), 1e-300)
    room = _BITS - log2(2.0 * (nodes + 2))
    unit = grid_of(costs)
    if unit and log2(largest * unit) < room:
        return np.rint(costs * unit).astype(np.int64), 0.0
    digits = floor(room - log2(largest))
    return np.rint(np.ldexp(costs, digits)).astype(np.int64), ldexp(0.5, -digits)
