"""Equivalence classes with indicator constraints: no constants at all.

``share[i, l]`` is a Disjunct of :mod:`pyomo.gdp` for each pair; its binary indicator is
``equivalent[i, l]``, and its constraints ``lower``, ``upper``, ``included``, ``reaches`` and
``reaches_common`` hold where that is 1. There is no Disjunction: two records that are not
equivalent may still publish the same.

Solvers with indicator constraints (SCIP, Gurobi, CPLEX) take the model as it stands. Its
linear relaxation knows nothing of what records share: a conditional row is no row of a linear
program, and solvers add what they derive from it on their own.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from anonymip.models.classes.equivalence import begin_model, checked_size, fitting_context
from anonymip.models.classes.sharing import reached, shared, shared_size
from anonymip.models.parts.class_rules import add_transitivity
from anonymip.models.parts.equivalence_context import Context, linear
from anonymip.problem import Problem


def build_indicator(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    Parameters
    ----------
    problem
        With equivalence classes and a monotone objective.
    integer_ends
        Whether the ends of integer attributes are integer variables, eq. (27).
    transitivity
        Whether records equivalent to a third are equivalent, as in
        :func:`~anonymip.models.classes.bigm.build_bigm`.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables or is not proven monotone.
    InputError
        If the recoding is another one, or the model would be too large.
    """
    context = fitting_context(problem, integer_ends)
    indicator_size(context)
    with PauseGC():
        model = begin_model(context, "indicator", disjuncts=True)
        fill_disjuncts(model)
        if transitivity:
            add_transitivity(model)
    return model


def indicator_size(context: Context) -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    return checked_size(context, "indicator", context.pairs * shared_size(context))


def fill_disjuncts(model: pyo.ConcreteModel) -> None:
    """Write into the Disjunct of each pair what equivalent records share."""
    for i, other in model.pairs:
        rows: dict[str, dict[tuple[int, ...], tuple[float, object, float]]] = {}
        for name, place, first, second in shared(model, i, other):
            row = (0.0, linear(0.0, [1.0, -1.0], [first, second]), 0.0)
            rows.setdefault(name, {})[place] = row
        for a, record, variable in reached(model, i, other):
            row = (1.0, linear(0.0, [1.0], [variable]), 1.0)
            rows.setdefault("reaches_common", {})[a, record] = row
        for name, found in rows.items():
            constraint = pyo.Constraint(
                list(found),
                rule=lambda _, *index, found=found: found[index],
                doc="equivalent records are published alike",
            )
            model.share[i, other].add_component(name, constraint)
