r"""The MILP of Liang & Samavi (2020) with big-M constraints.

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
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from anonymip.models.classes.equivalence import begin_model, checked_size, fitting_context
from anonymip.models.classes.sharing import (
    add_reached_nodes,
    add_shared_ends,
    add_shared_nodes,
    add_shared_values,
    shared_size,
)
from anonymip.models.parts.class_rules import add_transitivity
from anonymip.models.parts.equivalence_context import Context
from anonymip.problem import Problem


def build_bigm(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    Parameters
    ----------
    problem
        With equivalence classes and a monotone objective.
    integer_ends
        Whether the ends of integer attributes are integer variables as in eq. (27). They take
        integer values anyway once the binaries are integer, but a solver can use the knowledge:
        HiGHS proves the 20-record sample of the paper in about two thirds of the time.
    transitivity
        Whether records equivalent to a third are equivalent, n (n - 1) (n - 2) / 2 rows. Without,
        two records may share a class through others although their ``equivalent`` is 0: ask for
        it if a constraint of your own counts on 0. Diversity and limits bring it in any case.

    Notes
    -----
    Size: n (n - 1) / 2 binaries; four rows a pair and numeric attribute, two a pair and value of
    a set, at most two a pair and level of a hierarchy.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables or is not proven monotone.
    InputError
        If the recoding is another one, or the model would be too large.
    """
    context = fitting_context(problem, integer_ends)
    bigm_size(context)
    with PauseGC():
        model = begin_model(context, "big-M")
        add_shared_ends(model, _larger_difference)
        add_shared_values(model, lambda first, second: 1.0)
        add_shared_nodes(model)
        add_reached_nodes(model)
        if transitivity:
            add_transitivity(model)
    return model


def bigm_size(context: Context) -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    return checked_size(context, "big-M", 2 * context.pairs * shared_size(context))


def _larger_difference(first: Any, second: Any) -> float:
    """Return the most that two ends can differ, in either direction."""
    (first_low, first_high), (second_low, second_high) = first.bounds, second.bounds
    return float(max(first_high - second_low, second_high - first_low))
