"""The linear relaxation of a node of a certificate, its duals in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, vstack

from anonymip.certificates.check import Duals, Table
from anonymip.certificates.dual_proof import lowered, whole_duals
from anonymip.exact.set_partitioning.rank_one_cuts import RankOneCut, coefficients, right_sides
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.solvers.linear_programs import GrowingProgram

#: Rows that occur together, how many sets with them at most, and whether that or more is meant.
Split = tuple[Any, int, bool]

#: What a row of the program costs that no set keeps, in costs of a set.
_ARTIFICIAL = 1e3
#: How far floats may be off in a reduced cost, in costs of a set.
_BLUR = 1e-6


@dataclass(frozen=True, eq=False)
class Sets:
    """Admissible sets with their costs."""

    table: Table  # of the certificate
    members: list[tuple[int, ...]]  # distinct records of each, ascending
    costs: list[int]  # in parts of the table's scale

    @classmethod
    def of(cls, table: Table, costs: Mapping[tuple[int, ...], int]) -> Sets:
        """Return the sets of a mapping, in an order of their own."""
        members = sorted(costs)
        return cls(table, members, [costs[m] for m in members])

    def only(self, kept: Flags) -> Sets:
        """Return some of the sets."""
        at = np.flatnonzero(kept).tolist()
        return Sets(self.table, [self.members[a] for a in at], [self.costs[a] for a in at])

    @cached_property
    def held(self) -> csr_array:
        """(sets, rows) how often each set holds each distinct record."""
        flat = np.array([row for m in self.members for row in m], np.int32)
        starts = np.concatenate([[0], np.cumsum([len(m) for m in self.members], dtype=np.int64)])
        shape = (len(self.members), len(self.table.rows))
        held = csr_array((np.ones(len(flat)), flat, starts), shape=shape)
        held.sum_duplicates()
        return held

    @cached_property
    def losses(self) -> Floats:
        """(sets,) the costs in units of the loss."""
        return np.array([cost / self.table.scale for cost in self.costs])

    @cached_property
    def size(self) -> float:
        """The largest cost, by which a program is scaled."""
        return float(np.abs(self.losses).max(initial=0.0)) or 1.0

    def holding(self, subset: Any) -> Floats:
        """Return (sets,) 1 for those that hold the rows of a subset."""
        holds = np.ones(len(self.members), np.bool_)
        for row, times in subset.items():
            holds &= (self.held[:, [row]].toarray() >= times).ravel()
        return holds.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Vertex:
    """An optimal vertex of the relaxation over some sets."""

    value: float  # its cost
    shares: Floats  # (sets,) how much of each it takes
    duals: Floats  # (rows of the program,) of records, of the number of classes, of splits and cuts
    matrix: csc_array  # (rows of the program, sets) coefficients


@dataclass(frozen=True, eq=False)
class Relaxed:
    """What the relaxation of a node leaves."""

    node: dict[str, Any]  # its part of the certificate
    value: int  # what its duals prove for what the node holds
    left: Sets  # the sets that releases up to the goal may have
    shares: Floats  # (left,) how much of each the program takes
    cuts: list[RankOneCut]  # those that have a dual


def solve_over(
    sets: Sets,
    splits: Sequence[Split],
    cuts: Sequence[RankOneCut],
    budget: Budget,
    binding: Sequence[bool] | None = None,
) -> Vertex | None:
    """Return a vertex of the relaxation over some sets; None if time ended.

    `binding` says of the number of classes, each split and each cut whether it is kept with
    equality.
    """
    table = sets.table
    coverage = covered(table)
    parts: list[Any] = [sets.held.T]
    lower, upper = [*coverage.astype(float)], [*coverage.astype(float)]
    if table.classes:
        parts.append(csr_array(np.ones((1, len(sets.members)))))
        lower.append(-np.inf)
        upper.append(float(table.n // table.k))
    for subset, most, at_most in splits:
        parts.append(csr_array(sets.holding(subset)[None, :]))
        lower.append(-np.inf if at_most else most + 1.0)
        upper.append(float(most) if at_most else np.inf)
    if cuts:
        parts.append(coefficients(cuts, sets.held).T)
        lower += [-np.inf] * len(cuts)
        upper += [*right_sides(cuts, coverage).astype(float)]
    for row, binds in enumerate(binding or (), len(coverage)):
        if binds:
            lower[row] = upper[row] = upper[row] if np.isfinite(upper[row]) else lower[row]
    matrix = csc_array(vstack(parts))
    program = GrowingProgram(np.array(lower), np.array(upper))
    # Sets that are left may lack records, or what a split asks for.
    alone = eye_array(matrix.shape[0], format="csc")[:, np.isfinite(lower)]
    rows = alone.shape[1]
    program.add_columns(np.full(rows, _ARTIFICIAL), csc_array(alone))
    program.add_columns(sets.losses / sets.size, matrix)
    found = program.solve(budget)
    if found is None:
        return None
    scaled = found.duals * sets.size
    return Vertex(found.value * sets.size, found.point[rows:], scaled, matrix)


def proven_by(
    sets: Sets, splits: Sequence[Split], cuts: Sequence[RankOneCut], vertex: Vertex, goal: int
) -> Relaxed:
    """Return what the duals of a vertex prove in whole numbers."""
    table, duals = sets.table, vertex.duals
    first = len(table.rows)
    split, cut = first + table.classes, first + table.classes + len(splits)
    node = whole_duals(
        table,
        duals[:first].tolist(),
        float(-duals[first]) if table.classes else 0.0,
        [(c.types, c.divisor, float(-d)) for c, d in zip(cuts, duals[cut:], strict=True)],
        np.abs(duals[split:cut]).tolist(),
    )
    reduced = sets.losses - vertex.matrix.T @ duals
    blur = _BLUR * sets.size
    # Floats tell which sets cannot matter; whole numbers decide on the others.
    near = np.flatnonzero(reduced < blur).tolist()
    node = lowered(table, node, {sets.members[a]: sets.costs[a] for a in near}, splits)
    value = Duals(table, node, splits).value
    kept = reduced <= (goal - value) / table.scale + blur
    used = [c for c, d in zip(cuts, duals[cut:], strict=True) if d < 0]
    return Relaxed(node, value, sets.only(kept), vertex.shares[kept], used)


def refined(relaxed: Relaxed, splits: Sequence[Split], goal: int, budget: Budget) -> Relaxed | None:
    """Return the relaxation with duals of more digits; None if time ended.

    Duals of floats fall short by some 10^-15 of what they prove, which is many units where amounts
    of real numbers are summed. What they leave of the costs, a program of its own, has duals that
    say how they are to be mended: those of whole numbers are put right digits at a time, as in the
    iterative refinement of linear programs (Gleixner, Steffy, Wolter 2016).
    """
    table, sets, node = relaxed.left.table, relaxed.left, relaxed.node
    duals = Duals(table, node, splits)
    left = [duals.reduced(m, cost) for m, cost in zip(sets.members, sets.costs, strict=True)]
    of_cut = {(tuple(rows), divisor): dual for rows, divisor, dual in node["cuts"]}
    known = [of_cut.get((tuple(cut.types), cut.divisor), 0) for cut in relaxed.cuts]
    rows = [*([node["count"]] if table.classes else []), *node["splits"], *known]
    vertex = solve_over(
        Sets(table, sets.members, left), splits, relaxed.cuts, budget, [dual > 0 for dual in rows]
    )
    if vertex is None:
        return None
    first = len(table.rows)
    signs = [-1] * table.classes + [-1 if split[2] else 1 for split in splits] + [-1] * len(known)
    more = [round(Fraction(dual) * table.scale) for dual in vertex.duals.tolist()]
    others = [max(0, a + sign * b) for a, sign, b in zip(rows, signs, more[first:], strict=True)]
    cut = table.classes + len(splits)
    better = {
        "duals": [dual + change for dual, change in zip(node["duals"], more[:first], strict=True)],
        "count": others[0] if table.classes else 0,
        "cuts": [
            [list(one.types), one.divisor, dual]
            for one, dual in zip(relaxed.cuts, others[cut:], strict=True)
            if dual
        ],
        "splits": others[table.classes : cut],
    }
    better = lowered(table, better, dict(zip(sets.members, sets.costs, strict=True)), splits)
    duals = Duals(table, better, splits)
    kept = [
        duals.value + duals.reduced(m, cost) <= goal
        for m, cost in zip(sets.members, sets.costs, strict=True)
    ]
    held = np.array(kept, np.bool_)
    return Relaxed(better, duals.value, sets.only(held), relaxed.shares[held], relaxed.cuts)


def covered(table: Table) -> Ints:
    """Return (rows,) how often each distinct record is covered in all."""
    return np.array([table.coverage * table.counts[t] for t in range(len(table.rows))], np.int64)
