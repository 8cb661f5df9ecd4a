"""Equivalence classes with the convex hull of each pair's choice.

For each pair either ``share[i, l]`` holds (see :mod:`.indicator`) or ``apart[i, l]``, which asks
for nothing: ``either`` is a Disjunction of :mod:`pyomo.gdp`. Its hull reformulation (Balas)
splits every variable of the pair into two, one for each alternative; no formulation that looks
at one pair at a time has a stronger linear relaxation. The price is the size: some eleven rows
for each variable that two records share.

References
----------
E. Balas: Disjunctive programming, Annals of Discrete Mathematics 5, 1979.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.gdp import Disjunct, Disjunction

from anonymip.assignments import Classes
from anonymip.models.classes.equivalence import begin_model, checked_size, fitting_context
from anonymip.models.classes.equivalence_start import set_start_equivalence
from anonymip.models.classes.indicator import fill_disjuncts
from anonymip.models.classes.sharing import reached, shared, shared_size
from anonymip.models.parts.class_rules import add_transitivity
from anonymip.models.parts.equivalence_context import Context
from anonymip.problem import Problem

#: Rows for each variable that two records share: its equation, two sums, bounds of four parts.
_ROWS_OF_A_SPLIT = 11


def build_hull(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model, reformulated; it is built, not solved.

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
    hull_size(context)
    with PauseGC():
        model = begin_model(context, "hull", disjuncts=True)
        fill_disjuncts(model)
        model.apart = Disjunct(model.pairs, doc="two records need not be published alike")
        model.either = Disjunction(
            model.pairs,
            rule=lambda model, i, other: [model.share[i, other], model.apart[i, other]],
            doc="two records are published alike or not",
        )
        pyo.TransformationFactory("gdp.hull").apply_to(model)
        if transitivity:
            add_transitivity(model)
    return model


def hull_size(context: Context) -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    return checked_size(context, "hull", _ROWS_OF_A_SPLIT * context.pairs * shared_size(context))


def set_start_hull(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply, the split ones too: a warm start.

    Raises
    ------
    InvalidAssignment
        If the classes break a rule of the problem.
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
