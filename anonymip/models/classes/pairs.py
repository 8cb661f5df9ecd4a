r"""Equivalence classes by pairs of records: big-M, indicators, the hull of a pair, and more.

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

**strengthened** is the big-M model made stronger until it holds the hull of every pair, and more.
Write d for :math:`\delta_{il}`, and consider one variable that the pair shares, with a value u in
the bounds [a, b] for row i and v in [a', b'] for row l: a lower end y, an upper end z, or whether
a value is included. "d = 1 implies u = v" has the hull

    u = s + u', v = s + v', max(a, a') d <= s <= min(b, b') d,
    a (1 - d) <= u' <= b (1 - d), a' (1 - d) <= v' <= b' (1 - d).

Fourier and Motzkin eliminate s, with u' = u - s and v' = v - s: each of the lower bounds
max(a, a') d, u - b (1 - d), v - b' (1 - d) of s against each of its upper bounds min(b, b') d,
u - a (1 - d), v - a' (1 - d). What is left beyond a <= u <= b, a' <= v <= b' is

(a) u >= a + (a' - a)^+ d and u <= b - (b - b')^+ d, the same for v: ``lower_with``,
    ``upper_with``, ``included_with``. For an upper end they say
    :math:`z_i \ge x_i + (x_l - x_i)^+ \delta_{il}`, for a value that row l has,
    ``included[i, j, h]`` >= :math:`\delta_{il}`.
(b) u - v <= (b - a') (1 - d) and v - u <= (b' - a) (1 - d): the big-M rows with constants that
    know the direction, smaller than eqs. (29)-(32), which take the larger of the two.

Variables of a pair are tied together by d alone, so the hull of the pair is the product of these
for fixed d: the relaxation with (a) and (b) is exactly that of the hull, and both imply the rows of
the big-M model. (Nodes of hierarchies have these rows in every formulation.) Hence
LP(bigm) <= LP(hull) <= LP(strengthened). Beyond the hull of pairs:

(c) ``transitive``: rows equivalent to a third are equivalent.
(d) ``neighbours``, ``farther_neighbour``: with the loss :math:`c_{il}` of publishing rows i and l
    together, and p the (k - 1)-th smallest of them for row i,
    :math:`loss_i \ge p + (c_{il} - p)^+ \delta_{il}`: of the k - 1 others in the class of i one is
    not among the k - 2 nearest, and the loss is monotone. With :math:`s_i` = ``suppress[i]`` and
    its loss q, p becomes :math:`p (1 - s_i) + q s_i`: for :math:`s_i = 1` no other row is
    equivalent and the row says loss >= q, which is then the loss. The numbers are lowered by the
    rounding of losses, so that no release is cut off. ``charged[i]`` holds the loss of row i.
(e) ``twins_adjacent``: among rows i < i' < i'' that agree in all quasi-identifiers and sensitive
    values, with none of the kind between i' and i'', :math:`\delta_{ii''} \le \delta_{ii'}`; and
    likewise :math:`\delta_{ii''} \le \delta_{i'i''}` with none between i and i'. Such rows may
    trade places in any release without changing its loss or breaking a rule. Sort the labels of
    the rows of one kind: those of one class are then neighbours in their order, suppressed ones
    last, and if the outer two of three share a class so does the middle one. Hence some optimal
    release keeps the rows, not every one does: :func:`set_start_strengthened` sorts the labels.

Identical rows are *not* merged into one: with k = 2 and rows a, b, b, c the best classes can be
{a, b} and {b, c}.

Every row of (a) to (d) is kept by every release, and is linear in what the classes of one or two
records are: it is kept by every convex combination of clusters, record by record, and so by what a
solution of the relaxed set partitioning model means. Averaging that solution over all exchanges of
identical rows leaves its loss and makes all :math:`\delta` of one kind equal, which keeps (e).
Hence LP(strengthened) <= LP(set-partition).

References
----------
E. Balas: Disjunctive programming, Annals of Discrete Mathematics 5, 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.gdp import Disjunct, Disjunction

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InputError
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
from anonymip.models.parts.equivalence_loss import charge_for_neighbours
from anonymip.models.parts.published_cells import add_covering_ends, add_covering_values
from anonymip.problem import Problem
from anonymip.runtime.arrays import Ints

#: Rows for each variable that two records share; of the hull its equation, two sums, and bounds of
#: four parts.
_ROWS = {"big-M": 2, "indicator": 1, "hull": 11}

#: Rows of transitivity that ``transitivity="auto"`` adds at most: up to 15 records. With 10 to 12
#: records they halve the time to the proof, on the 20-record sample they double it.
MOST_AUTOMATIC_TRANSITIVITY = 1_500


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
    return _built(problem, "big-M", integer_ends, transitivity, _add_big_m_rows)


def build_indicator(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model with indicators; choices and errors are those of :func:`build_bigm`."""
    return _built(problem, "indicator", integer_ends, transitivity, _fill_disjuncts)


def build_hull(
    problem: Problem, *, integer_ends: bool = True, transitivity: bool = False
) -> pyo.ConcreteModel:
    """Return the model, reformulated; choices and errors are those of :func:`build_bigm`."""
    return _built(problem, "hull", integer_ends, transitivity, _split_disjuncts)


def bigm_size(context: Context, name: str = "big-M") -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    return checked_size(context, name, _ROWS[name] * context.pairs * shared_size(context))


def indicator_size(context: Context) -> int:
    """Return the size of the model, or refuse it."""
    return bigm_size(context, "indicator")


def hull_size(context: Context) -> int:
    """Return the size of the model, or refuse it."""
    return bigm_size(context, "hull")


def _built(
    problem: Problem,
    name: str,
    integer_ends: bool,
    transitivity: bool,
    add_rows: Callable[[Any], None],
) -> pyo.ConcreteModel:
    context = fitting_context(problem, integer_ends)
    bigm_size(context, name)
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
                list(found), rule=found, doc="equivalent records are published alike"
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


def build_strengthened(
    problem: Problem,
    *,
    integer_ends: bool = True,
    transitivity: bool | str = "auto",
    symmetry: bool = True,
) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    `integer_ends`: whether the ends of integer attributes are integer variables, eq. (27).
    `transitivity`: whether to add (c), n (n - 1) (n - 2) / 2 rows; ``"auto"`` adds them to small
    tables, and where diversity or limits need them they are there in any case. `symmetry`: whether
    to add (e), which takes identical records to be exchangeable: leave it out if a constraint of
    your own tells them apart. Errors are those of :func:`build_bigm`, and InputError if a
    choice is unknown.
    """
    if transitivity not in (True, False, "auto"):
        raise InputError(f"transitivity is {transitivity!r}", remedy="Use True, False or 'auto'")
    context = fitting_context(problem, integer_ends)
    strengthened_size(context, transitivity)
    with PauseGC():
        model = begin_model(context, "strengthened")
        add_shared_cells(model, _difference, _difference)
        _add_reach_of_pairs(model)
        if _transitive(context, transitivity):
            add_transitivity(model)
        # (d): no record loses less than with its (k - 1)-th nearest neighbour.
        charge_for_neighbours(
            model,
            np.full(problem.n, problem.k),
            lambda i, other: ((i, other), model.equivalent[min(i, other), max(i, other)]),
        )
        if symmetry:
            # (e): identical records of one class are neighbours in their order.
            model.twins_adjacent = pyo.Constraint(
                list(_adjacent_twins(problem)),
                rule=lambda model, i, last, *pair: (
                    None,
                    linear(0.0, [1.0, -1.0], [model.equivalent[i, last], model.equivalent[pair]]),
                    0.0,
                ),
                doc="(e): who shares a class with an identical record shares it with those between",
            )
    return model


def strengthened_size(context: Context, transitivity: bool | str = "auto") -> int:
    """Return the size of the model, or refuse it, see :func:`.equivalence.checked_size`."""
    rows = context.pairs * (2 * shared_size(context) + 2 * len(context.ranges) + 2)
    rows += 2 * context.pairs * len(context.sets)
    if _transitive(context, transitivity) and not context.needs_transitivity:
        rows += 3 * context.triples
    return checked_size(context, "strengthened", rows)


def _transitive(context: Context, transitivity: bool | str) -> bool:
    if transitivity == "auto":
        return 3 * context.triples <= MOST_AUTOMATIC_TRANSITIVITY
    return bool(transitivity)


def _difference(first: Any, second: Any) -> float:
    """Return the most by which the first variable can exceed the second."""
    return float(first.bounds[1] - second.bounds[0])


def _add_reach_of_pairs(model: pyo.ConcreteModel) -> None:
    """Add (a): a record published with another covers the other's values."""
    coverings = {
        ends: (*ends, model.equivalent[pair]) for pair in model.pairs for ends in (pair, pair[::-1])
    }
    for end in ("lower", "upper"):
        doc = f"(a): the {end} end covers an equivalent record's value"
        add_covering_ends(model, end, f"{end}_with", coverings, doc)
    doc = "(a): an equivalent record's value is included"
    add_covering_values(model, "included_with", coverings, doc)


def twins(problem: Problem) -> list[Ints]:
    """Return the records of each kind that occurs more than once, in their order.

    Records are of one kind if they agree in all quasi-identifiers and in what the rules count.
    """
    microdata = problem.microdata
    table = np.asarray(microdata.codes)
    if microdata.counted:
        table = np.hstack([table, microdata.counted_codes])
    _, kind = np.unique(table, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    groups = [np.flatnonzero(kind == one) for one in range(int(kind.max()) + 1)]
    return [group for group in groups if len(group) > 1]


def _adjacent_twins(problem: Problem) -> Iterator[tuple[int, int, int, int]]:
    """Yield the outer records of three twins and the pair of them that must be equivalent."""
    for group in twins(problem):
        rows = group.tolist()
        for a, c in combinations(range(len(rows)), 2):
            if c - a > 1:
                yield rows[a], rows[c], rows[a], rows[c - 1]
                yield rows[a], rows[c], rows[a + 1], rows[c]


def set_start_strengthened(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply.

    Where the model has (e), identical records get the labels in order: what is read back may differ
    from `assignment` by exchanges of them. Raises InvalidAssignment if the classes break a rule of
    the problem.
    """
    problem: Problem = model.context.problem
    problem.recoding.check(problem, assignment)
    ordered = model.component("twins_adjacent") is not None
    set_start_equivalence(model, sorted_twins(problem, assignment) if ordered else assignment)


def sorted_twins(problem: Problem, assignment: Classes) -> Classes:
    """Return the classes with the labels of identical records sorted, suppressed ones last."""
    labels = assignment.labels.copy()
    for group in twins(problem):
        own = labels[group]
        labels[group] = own[np.lexsort((own, own == SUPPRESSED))]
    return Classes(labels)
