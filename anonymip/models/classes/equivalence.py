r"""What all formulations of equivalence classes by pairs of records have in common.

Symbols of Liang & Samavi (2020), Section 2, and the components that hold them; rows i, l of the
table, attributes j. An end that the paper calls upper bound y and lower bound z is read the way
its constraints work: y is the lower end, z the upper one.

==================================  ==========================================================
:math:`\delta_{il}`                 ``equivalent[i, l]``, one for each unordered pair i < l
:math:`y_{ij}, z_{ij}`              ``lower[i, j]``, ``upper[i, j]`` (numeric attributes)
                                    and their variables ``scaled_lower``, ``scaled_upper``
:math:`w_j (z_{ij}-y_{ij})/(U-L)`   terms of ``record_loss[i]``
==================================  ==========================================================

====================  ========================================================================
eqs. (21), (34)       ``loss``: minimise ``record_loss`` summed over the records
eqs. (22)-(25)        equivalent rows share their ends: how, is what formulations differ in
eq. (26)              ``companions``: every row is equivalent to at least k - 1 others
eqs. (27), (28)       domains of ``lower`` and ``upper``: integer or real
eqs. (29)-(32)        the big-M constants, see :mod:`.bigm`
====================  ========================================================================

Beyond the paper:

- The permissible ends L, U are the *observed* ends. A published range of a monotone objective
  never reaches beyond the observed values.
- ``lower`` and ``upper`` are expressions in the unit of the attribute, for constraints of one's
  own and for reading. Their variables are the same numbers in most tables; numbers too large or
  too narrow for the tolerances of solvers are shifted and scaled (:mod:`.scaling`).
- ``included[i, j, h]``: whether the set published for row i holds value h (categorical attributes,
  and numeric ones published as sets). This is Section 2.5's split into binary columns, of which
  only the upper end z matters to a loss that counts values.
- ``reaches[i, j, v]``: whether the node published for row i is v or lies above it, for the nodes v
  above the row's value at which the loss rises (:mod:`.ancestors`). A monotone loss presses these
  down, so they need not be binary.
- ``set_size[i, j, c]`` and ``range_choice[i, j, p, q]`` choose the count c, or the range from level
  p to level q, where the loss is not linear in them.
- ``suppress[i]``: whether row i is suppressed, where the recoding allows it.
- ``worst``: the largest loss of a record, where the objective is that instead of the sum.
- Diversity and limits: :mod:`.class_rules`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pyomo.environ as pyo

from anonymip.errors import InputError, argument
from anonymip.models.parts.class_rules import add_class_rules, class_rules_size
from anonymip.models.parts.equivalence_context import Context, linear
from anonymip.models.parts.equivalence_loss import add_loss, loss_size
from anonymip.models.parts.fitting import refuse_unfit_objective
from anonymip.models.parts.model_size import refuse_large
from anonymip.models.parts.published_cells import add_cell_sets, add_cell_variables
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses


def fitting_context(problem: Problem, integer_ends: bool = True) -> Context:
    """Return what the parts of a model share, or refuse the problem.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables, or is not proven monotone: the model could then publish
        more than a class covers.
    InputError
        If the recoding is another one.
    """
    if not isinstance(problem.recoding, EquivalenceClasses):
        raise InputError(
            f"the equivalence model does not model the recoding {problem.recoding.name}",
            remedy=f"Use {argument('recoding', 'classes')}",
        )
    refuse_unfit_objective(
        problem,
        "equivalence",
        "Heuristics accept it: ordered-cut, greedy-search, k-member, mondrian; and for small "
        "tables the formulation set-partition",
    )
    return Context.of(problem, integer_ends)


def checked_size(context: Context, name: str, rows: int) -> int:
    """Return about how many constraints, and binaries for curved losses, a model has.

    Parameters
    ----------
    context
        Of the model.
    name
        Of the formulation, for the message.
    rows
        Constraints of the formulation, without those that all have.

    Raises
    ------
    InputError
        If the model would be too large.
    """
    size = 3 * context.pairs + rows + loss_size(context) + class_rules_size(context)
    refuse_large(name, context.problem.n, size, "a heuristic (greedy-search, ordered-cut)")
    return size


def begin_model(context: Context, name: str, *, disjuncts: bool = False) -> pyo.ConcreteModel:
    """Return a model with everything but what makes equivalent records share their cells.

    Parameters
    ----------
    context
        Of the model.
    name
        Of the formulation.
    disjuncts
        Whether ``equivalent`` shall be the indicators of ``share``, a Disjunct for each pair.
    """
    model = pyo.ConcreteModel(name=f"equivalence classes, {name}")
    model.context = context
    add_cell_sets(model)
    model.pairs = pyo.Set(
        initialize=list(combinations(range(context.problem.n), 2)),
        dimen=2,
        doc="unordered pairs of records",
    )
    _add_equivalent(model, disjuncts)
    add_cell_variables(model)
    if context.suppression:
        model.suppress = pyo.Var(
            model.rows, domain=pyo.Binary, doc="whether a record is published as stars"
        )
    _add_companions(model)
    add_class_rules(model)
    add_loss(model)
    return model


def _add_equivalent(model: pyo.ConcreteModel, disjuncts: bool) -> None:
    doc = "whether two records are published alike"
    if disjuncts:
        from pyomo.gdp import Disjunct

        model.share = Disjunct(model.pairs, doc="two records are published alike")
        model.equivalent = pyo.Reference(model.share[:, :].binary_indicator_var)
        model.equivalent.doc = doc
    else:
        model.equivalent = pyo.Var(model.pairs, domain=pyo.Binary, doc=doc)


def _add_companions(model: pyo.ConcreteModel) -> None:
    context = model.context
    k = context.problem.k
    n = context.problem.n

    def companions(model: Any, i: int) -> Any:
        others = [
            model.equivalent[min(i, other), max(i, other)] for other in range(n) if other != i
        ]
        coefficients = [1.0] * len(others)
        if context.suppression:
            others.append(model.suppress[i])
            coefficients.append(k - 1.0)
        return (k - 1.0, linear(0.0, coefficients, others), None)

    model.companions = pyo.Constraint(
        model.rows, rule=companions, doc="(26): at least k - 1 equivalent records"
    )
    if context.suppression:
        model.alone = pyo.Constraint(
            model.pairs,
            [0, 1],
            rule=lambda model, i, other, end: (
                None,
                linear(
                    0.0,
                    [1.0, 1.0],
                    [model.equivalent[i, other], model.suppress[(i, other)[end]]],
                ),
                1.0,
            ),
            doc="a suppressed record is equivalent to none",
        )
