r"""Equivalence classes by pairs of records: big-M constraints, indicators, and the hull of a pair.

**bigm**, the MILP of Liang & Samavi (2020):

====================  ========================================================================
eqs. (22), (23)       ``lower_at_most``, ``lower_at_least``: equivalent rows share lower ends
eqs. (24), (25)       ``upper_at_most``, ``upper_at_least``: equivalent rows share upper ends
eqs. (29)-(32)        the big-M constants of the four constraints
Section 2.5           ``included_at_most``, ``included_at_least``: the same for binary columns
====================  ========================================================================

Each constant is the largest difference of the two ends that their bounds allow, whichever is the
larger one: with observed values from L to U, a lower end of row i lies between L and
:math:`x_{ij}`, so two of them differ by at most :math:`\max(x_{ij}, x_{lj}) - L`. The other
components are described in :mod:`.equivalence`. Hierarchical attributes have ``reaches_common``,
``reaches_at_most`` and ``reaches_at_least``.

**indicator** has no constants at all. ``share[i, l]`` is a Disjunct of :mod:`pyomo.gdp` for each
pair; its binary indicator is ``equivalent[i, l]``, and its constraints ``lower``, ``upper``,
``included``, ``reaches`` and ``reaches_common`` hold where that is 1. There is no Disjunction: two
records that are not equivalent may still publish the same. Solvers with indicator constraints
(SCIP, Gurobi, CPLEX) take the model as it stands. Its linear relaxation knows nothing of what
records share: a conditional row is no row of a linear program, and solvers add what they derive
from it on their own.

**hull**: for each pair either ``share[i, l]`` holds or ``apart[i, l]``, which asks for nothing:
``either`` is a Disjunction. Its hull reformulation (Balas) splits every variable of the pair into
two, one for each alternative; no formulation that looks at one pair at a time has a stronger linear
relaxation. The price is the size: some eleven rows for each variable that two records share.

References
----------
E. Balas: Disjunctive programming, Annals of Discrete Mathematics 5, 1979.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.gdp import Disjunct, Disjunction

from anonymip.assignments import Classes
from anonymip.models.classes.equivalence import (
    add_shared_cells,
    begin_model,
    checked_size,
    fitting_context,
    reached,
    set_start_equivalence,
    shared,
    shared_size,
)
from anonymip.models.parts.class_rules import add_transitivity
from anonymip.models.parts.equivalence_context import Context, linear
from anonymip.problem import Problem

#: Rows for each variable that two records share under the hull: its equation, two sums, bounds of
#: four parts.
_ROWS_OF_A_SPLIT = 11


def build_bigm(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model with big-M constraints; it is built, not solved.

    `problem`: with equivalence classes and a monotone objective. `integer_ends`: whether the ends
    of integer attributes are integer variables as in eq. (27). They take integer values anyway once
    the binaries are integer, but a solver can use the knowledge: HiGHS proves the 20-record sample
    of the paper in about two thirds of the time. `transitivity`: whether records equivalent to a
    third are equivalent, n (n - 1) (n - 2) / 2 rows. Without, two records may share a class through
    others although their ``equivalent`` is 0: ask for it if a constraint of your own counts on 0.
    Diversity and limits bring it in any case. Raises UnsupportedObjective if the objective has no
    tables or is not proven monotone; InputError if the recoding is another one, or the model would
    be too large.

    Size: n (n - 1) / 2 binaries; four rows a pair and numeric attribute, two a pair and value of
    a set, at most two a pair and level of a hierarchy.
    """
    context = fitting_context(problem, integer_ends)
    bigm_size(context)
    return _built(context, "big-M", _add_big_m_rows, transitivity)


def build_indicator(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model with indicators; choices and errors are those of :func:`build_bigm`."""
    context = fitting_context(problem, integer_ends)
    indicator_size(context)
    return _built(context, "indicator", _fill_disjuncts, transitivity)


def build_hull(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model, reformulated; choices and errors are those of :func:`build_bigm`."""
    context = fitting_context(problem, integer_ends)
    hull_size(context)
    return _built(context, "hull", _split_disjuncts, transitivity)


def bigm_size(context: Context) -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    return checked_size(context, "big-M", 2 * context.pairs * shared_size(context))


def indicator_size(context: Context) -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    return checked_size(context, "indicator", context.pairs * shared_size(context))


def hull_size(context: Context) -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    return checked_size(context, "hull", _ROWS_OF_A_SPLIT * context.pairs * shared_size(context))


def _built(
    context: Context, name: str, add_rows: Callable[[Any], None], transitivity: bool
) -> pyo.ConcreteModel:
    with PauseGC():
        model = begin_model(context, name, disjuncts=name != "big-M")
        add_rows(model)
        if transitivity:
            add_transitivity(model)
    return model


def _add_big_m_rows(model: pyo.ConcreteModel) -> None:
    add_shared_cells(model, _larger_difference, lambda first, second: 1.0)


def _larger_difference(first: Any, second: Any) -> float:
    """Return the most that two ends can differ, in either direction."""
    (first_low, first_high), (second_low, second_high) = first.bounds, second.bounds
    return float(max(first_high - second_low, second_high - first_low))


def _fill_disjuncts(model: pyo.ConcreteModel) -> None:
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


def _split_disjuncts(model: pyo.ConcreteModel) -> None:
    """Let one alternative of each pair hold, and replace them by their hull."""
    _fill_disjuncts(model)
    model.apart = Disjunct(model.pairs, doc="two records need not be published alike")
    model.either = Disjunction(
        model.pairs,
        rule=lambda model, i, other: [model.share[i, other], model.apart[i, other]],
        doc="two records are published alike or not",
    )
    pyo.TransformationFactory("gdp.hull").apply_to(model)


def set_start_hull(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply, the split ones too: a warm start.

    Raises InvalidAssignment if the classes break a rule of the problem.
    """
    set_start_equivalence(model, assignment)
    hull = pyo.TransformationFactory("gdp.hull")
    for i, other in model.pairs:
        together = model.equivalent[i, other].value
        model.apart[i, other].binary_indicator_var.set_value(1 - together)
        split = [variable for pair in shared(model, i, other) for variable in pair[2:]]
        split += [variable for _, _, variable in reached(model, i, other)]
        for alternative, chosen in ((model.share, together), (model.apart, 1 - together)):
            for variable in split:
                part = hull.get_disaggregated_var(variable, alternative[i, other])
                part.set_value(variable.value * chosen, skip_validation=True)
