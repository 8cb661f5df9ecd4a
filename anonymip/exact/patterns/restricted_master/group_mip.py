"""The MIP of a pattern problem on groups of records: each record in one, at the least loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from anonymip.bounds.patterns.pattern_duals import PatternDuals
from anonymip.bounds.patterns.pattern_groups import RecordGroups
from anonymip.bounds.patterns.pattern_program import PatternProgram
from anonymip.exact.patterns.restricted_master.master import (
    amounts_of,
    groups_of,
    joined,
)
from anonymip.exact.patterns.restricted_master.relaxation import held_by, incidence, losses
from anonymip.exact.patterns.restricted_master.restricted_mip import (
    RestrictedAnswer,
    refuse_infeasible,
)
from anonymip.runtime.budget import Budget
from anonymip.solvers import Named, SolverOptions, StandardForm, solve_form
from anonymip.status import Stopped


def solve_groups(
    duals: PatternDuals,
    amounts: NDArray[np.int64],
    groups: RecordGroups,
    triples: NDArray[np.int64],
    solver: str,
    options: SolverOptions,
    budget: Budget,
    *,
    counts: NDArray[np.int64] | None = None,
) -> RestrictedAnswer:
    """Return the best release that consists of some groups, or of those of a known one.

    Parameters
    ----------
    duals
        Name the pairs of a row type and an output row.
    amounts
        (pairs,) the known release, to start from.
    groups
        That may be used.
    triples
        (c, 3) whose inequalities strengthen the relaxation.
    solver, options, budget
        Of the search.
    counts
        (t,) records of each row type; None for all of the program.

    Raises
    ------
    SolverError
        If the solver calls the model infeasible, which has the known release.
    """
    program = duals.program if counts is None else replace(duals.program, counts=counts)
    own = groups_of(duals, amounts)
    groups = joined(program, groups, own)
    form = _form(program, groups, triples)
    place = np.unique(np.concatenate([groups.members, own.members]), axis=0, return_inverse=True)[1]
    # The groups differ: those of the release come after them.
    first = np.argsort(place[: len(groups)])
    times = np.bincount(first[place[len(groups) :]], minlength=len(groups))
    for variable, value in zip(form.variables, times.tolist(), strict=True):
        variable.value = value
    result = solve_form(form, solver, options, start=True, budget=budget)
    if result.stopped is Stopped.INFEASIBLE:
        refuse_infeasible(result)
    if result.values is None:
        return RestrictedAnswer(None, result.bound, result.solver)
    times = np.rint(result.values).astype(np.int64)
    return RestrictedAnswer(amounts_of(duals, groups, times), result.bound, result.solver)


def _form(
    program: PatternProgram, groups: RecordGroups, triples: NDArray[np.int64]
) -> StandardForm:
    matrix = incidence(groups, program.type_count)
    held = held_by(matrix, triples)
    records = program.counts.astype(np.float64)
    free = bool(np.isfinite(program.price))
    saved = program.price if free else 0.0
    count = len(groups)
    names = [f"given_{i}" for i in range(program.type_count)]
    names += [f"triple_{i}" for i in range(len(triples))]
    return StandardForm(
        variables=tuple(Named(f"group_{i}") for i in range(count)),
        constraints=tuple(Named(name) for name in names),
        cost=losses(program, groups) - saved * groups.sizes,
        offset=saved * float(records.sum()),
        matrix=vstack([matrix, held]).tocsr(),
        row_lower=np.concatenate(
            [
                np.full(program.type_count, -np.inf) if free else records,
                np.full(len(triples), -np.inf),
            ]
        ),
        row_upper=np.concatenate([records, np.ones(len(triples))]),
        lower=np.zeros(count),
        upper=np.full(count, float(records.max(initial=1.0))),
        integer=np.ones(count, np.bool_),
        maximize=False,
    )
