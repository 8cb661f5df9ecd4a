r"""Pattern-guided suppression: which records are published through which pattern.

The ILP of Bredereck et al. (2013), Section 2.2. An *instance* (j, l) is an output row of pattern j;
c(i, j, l) says that it is what becomes of type i under pattern j.

====================================================================  =======================
:math:`\min \sum_{ij} x_{ij}\,\omega_j`                          (5)   ``loss``
:math:`\sum_i c(i,j,l)\,x_{ij} \le u_{jl}\,n`                    (6)   ``linked[j, l]``
:math:`\sum_i c(i,j,l)\,x_{ij} + k (1 - u_{jl}) \ge k`           (7)   ``filled[j, l]``
:math:`\sum_j x_{ij} = n_i`                                      (8)   ``published[i]``
:math:`x_{ij} \in \{0, 1, \dots\}`, :math:`u_{jl} \in \{0, 1\}`        ``assigned[i, j]``,
                                                                       ``used[j, l]``
====================================================================  =======================

Types i and instances l are named by the first record of theirs. Where the recoding allows
suppression, ``suppressed[i]`` joins (8) at the loss of a suppressed record, and ``capped`` holds
their sum to a limit.

The formulation ``pattern`` is this. ``pattern-strong`` has the same optimum and

- leaves out instances that fewer than k records may become: by (6) and (7) they are never used;
- keeps of instances that the same records may become the cheapest: the records of the others may
  move there, which fills it no less. Not so under single use, where the pattern may be needed
  elsewhere;
- links every pair by a row of its own, :math:`x_{ij} \le n_i u_{jl}`. Summed over i this implies
  (6), since the n_i of an instance add up to n at most. The other way round it does not: in the
  relaxation (6) lets :math:`u = \sum x / n` stand for a row in use, and as (7) asks for no more
  than :math:`\sum x \ge k u`, every assignment of records to instances, however few, has some u.
  The bound of ``pattern`` is what all records lose under the cheapest pattern; that of
  ``pattern-strong`` is the best that duals of records reach;
- has continuous x where no diversity is asked for. For fixed u, (7), (8) and the bounds on x are a
  transportation problem: each x stands in one row of (7), or in ``capped``, and one of (8), so the
  matrix is totally unimodular and a best x is whole (:mod:`.row_assignment`). The least loss over
  all u is therefore the same; what a solver leaves fractional is rounded along a flow when the
  model is read.

So LP(pattern) <= LP(pattern-strong) <= optimum.

What is asked for beside k:

====================  ========================================================================
``diverse``           l times the records with value v <= all records, for each output row,
                      sensitive column and value
``holds_value``       an output row holds a sensitive value only if a record of it has it
``distinct_values``   a row in use holds at least so many sensitive values
``apart_above``,      ``apart`` is at least how far n times the records with a value, or on a line
``apart_below``       with a value up to it, lie from what the table's share of it asks for
``close``             all that is apart, over n times the records, is at most t
``single_use``        each pattern has at most one output row in use
====================  ========================================================================

Under a diversity, records of a row type have the same sensitive values too. Rows about values
make the matrix other than that of a transportation problem, so ``assigned`` is then integer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from anonymip.assignments import SUPPRESSED, Patterns
from anonymip.errors import InputError
from anonymip.models.parts.class_rules import Holder, add_distinct_values, records_by_value
from anonymip.models.parts.equivalence_context import at_most_one, linear, refuse_unsolved, total
from anonymip.models.patterns.pattern_columns import (
    PatternColumns,
    pattern_columns,
    patterns_by_amounts,
)
from anonymip.models.patterns.row_assignment import RowAssignment, assign_rows
from anonymip.problem import Problem
from anonymip.recodings.output_rows import recoding_of
from anonymip.recodings.rules.diversity import Diversity, SensitiveScale, sensitive_scales
from anonymip.runtime.arrays import Floats, Ints
from anonymip.tolerances import INTEGRALITY


def build_pattern(problem: Problem) -> pyo.ConcreteModel:
    """Return the model of the paper; it is built, not solved.

    Raises InputError if the problem asks for another recoding, or is too large;
    UnsupportedObjective if the loss of a pattern depends on the record. Size: t p variables for t
    types and p patterns, and two rows an instance, t p at most.
    """
    columns = pattern_columns(problem, strong=False)
    with PauseGC():
        model = _with_variables("patterns", columns, whole=True)
        linked = {}
        for name, _, records in _output_rows(model):
            body = linear(0.0, [1.0] * len(records) + [-problem.n], [*records, model.used[name]])
            linked[name] = (None, body, 0.0)
        model.linked = pyo.Constraint(
            model.instances,
            rule=linked,
            doc="records become only what is in use, eq. (6) [records]",
        )
        _add_rows(model)
    return model


def build_pattern_strong(
    problem: Problem, *, columns: PatternColumns | None = None
) -> pyo.ConcreteModel:
    """Return the strong model; it is built, not solved.

    `columns`: the pairs of the model, if the caller knows which suffice. Raises as
    :func:`build_pattern`, and NoSolution if a record may become no output row.

    Size: a variable and a row for each pair of a type and an instance that it may become; a binary
    variable and a row for each instance.
    """
    if columns is None:
        columns = pattern_columns(problem)
    with PauseGC():
        model = _with_variables(
            "patterns, strong", columns, whole=columns.problem.diversity is not None
        )
        linked = {}
        for name, types, records in _output_rows(model):
            counts = columns.program.counts[types].tolist()
            for record, count in zip(records, counts, strict=True):
                body = linear(0.0, [1.0, -float(count)], [record, model.used[name]])
                linked[record.index()] = (None, body, 0.0)
        model.linked = pyo.Constraint(
            list(linked),
            rule=linked,
            doc="records of a type become only what is in use [records]",
        )
        _add_rows(model)
    return model


def pattern_size(problem: Problem) -> int:
    """Return about how many constraints the model of the paper would have."""
    columns = pattern_columns(problem, strong=False)
    return columns.count + _shared_size(columns)


def pattern_strong_size(problem: Problem) -> int:
    """Return about how many constraints the strong model would have."""
    columns = pattern_columns(problem)
    return len(columns.rows) + _shared_size(columns)


def _shared_size(columns: PatternColumns) -> int:
    """Return about how many constraints are no links: k, every record, and the rules."""
    columns.refuse_many()
    problem, rows = columns.problem, columns.count + columns.program.type_count
    if recoding_of(problem).single_use:
        rows += len(columns.program.costs)
    if problem.diversity is not None:
        each = 2 if problem.diversity.t is None else 4
        values = int((problem.microdata.sensitive_codes.max(axis=0) + 1).sum())
        rows += each * columns.count * values
    return rows


def _with_variables(name: str, columns: PatternColumns, *, whole: bool) -> pyo.ConcreteModel:
    """Return a model with sets and variables."""
    columns.refuse_many()
    model = pyo.ConcreteModel(name=name)
    model.context = columns
    first = columns.first.tolist()
    patterns = columns.patterns[columns.rows].tolist()
    pairs = list(zip(columns.first[columns.types].tolist(), patterns, strict=True))
    most = dict(zip(pairs, columns.program.counts[columns.types].tolist(), strict=True))
    model.types = pyo.Set(
        initialize=first, doc="types of identical records, each named by its first one"
    )
    model.pairs = pyo.Set(initialize=pairs, dimen=2, doc="types and the patterns open to them")
    model.instances = pyo.Set(
        initialize=columns.names,
        dimen=2,
        doc="output rows: a pattern, and the first record that may become the row",
    )
    model.assigned = pyo.Var(
        model.pairs,
        domain=pyo.NonNegativeIntegers if whole else pyo.NonNegativeReals,
        bounds=lambda _, i, j: (0, most[i, j]),
        doc="records of a type that are published through a pattern",
    )
    model.used = pyo.Var(model.instances, domain=pyo.Binary, doc="whether an output row is used")
    counts = dict(zip(first, columns.program.counts.tolist(), strict=True))
    model.suppressed = pyo.Var(
        first if np.isfinite(columns.program.price) else [],
        domain=pyo.NonNegativeIntegers if whole else pyo.NonNegativeReals,
        bounds=lambda _, i: (0, counts[i]),
        doc="records of a type that are suppressed as a whole",
    )
    return model


def _output_rows(model: Any) -> Iterator[tuple[tuple[int, int], Ints, list[Any]]]:
    """Yield the name of each output row, the types that may become it, and their variables."""
    columns: PatternColumns = model.context
    for row, name in enumerate(columns.names):
        types = columns.of_row(row)
        yield name, types, [model.assigned[i, name[0]] for i in columns.first[types].tolist()]


def _add_rows(model: pyo.ConcreteModel) -> None:
    """Add what both formulations share: k, every record, rules, the loss."""
    columns: PatternColumns = model.context
    k, filled = columns.problem.k, {}
    for name, _, records in _output_rows(model):
        body = linear(0.0, [1.0] * len(records) + [-float(k)], [*records, model.used[name]])
        filled[name] = (0.0, body, None)
    model.filled = pyo.Constraint(
        model.instances, rule=filled, doc="an output row in use has k records, eq. (7) [records]"
    )
    open_to: dict[int, list[Any]] = {first: [] for first in columns.first.tolist()}
    for (first, _), variable in model.assigned.items():
        open_to[first].append(variable)
    for first, variable in model.suppressed.items():
        open_to[first].append(variable)
    counts = dict(zip(open_to, columns.program.counts.astype(float).tolist(), strict=True))
    model.published = pyo.Constraint(
        model.types,
        rule=lambda _, first: (counts[first], total(open_to[first]), counts[first]),
        doc="every record has a pattern, eq. (8) [records]",
    )
    if columns.problem.is_capped:
        model.capped = pyo.Constraint(
            expr=total(list(model.suppressed.values())) <= columns.problem.most_suppressed,
            doc="no more are suppressed than may be [records]",
        )
    _add_rules(model)
    coefficients = columns.program.costs[columns.patterns[columns.rows]].tolist()
    coefficients += [columns.program.price] * len(model.suppressed)
    variables = [*model.assigned.values(), *model.suppressed.values()]
    model.loss = pyo.Objective(
        expr=linear(0.0, coefficients, variables),
        sense=pyo.minimize,
        doc="loss summed over the records, eq. (5) [unit of the objective]",
    )


def _add_rules(model: pyo.ConcreteModel) -> None:
    """Add what the problem asks for beside k to a model that has its variables."""
    columns: PatternColumns = model.context
    diversity = columns.problem.diversity
    if diversity is not None:
        _add_shares_of_values(model, diversity)
        _add_distinct_values(model, diversity)
        _add_closeness(model, diversity)
    if recoding_of(columns.problem).single_use:
        of_pattern: dict[int, list[Any]] = {}
        for name in columns.names:
            of_pattern.setdefault(name[0], []).append(model.used[name])
        model.single_use = pyo.Constraint(
            [pattern for pattern, rows in of_pattern.items() if len(rows) > 1],
            rule=lambda _, pattern: at_most_one(*of_pattern[pattern]),
            doc="each pattern has at most one output row in use",
        )


def _sensitive(columns: PatternColumns, types: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each sensitive column and the values that some types have in it."""
    codes = columns.problem.microdata.sensitive_codes[columns.first[types]].astype(np.int64)
    yield from enumerate(codes.T)


def _add_shares_of_values(model: pyo.ConcreteModel, diversity: Diversity) -> None:
    columns: PatternColumns = model.context
    numerator, denominator = diversity.ratio
    if numerator <= denominator:
        return
    rows = {}
    for name, types, records in _output_rows(model):
        for column, values in _sensitive(columns, types):
            for value in np.unique(values).tolist():
                alike = values == value
                # A value too rare to fill its share of the smallest row never breaks the rule.
                most = numerator * int(columns.program.counts[types[alike]].sum())
                if most > denominator * columns.problem.k:
                    shares = denominator - numerator * alike.astype(np.float64)
                    body = linear(0.0, shares.tolist(), records)
                    rows[(*name, column, value)] = (0.0, body, None)
    model.diverse = pyo.Constraint(
        list(rows),
        rule=rows,
        doc="no sensitive value makes up more than 1/l of an output row [records]",
    )


def _add_distinct_values(model: pyo.ConcreteModel, diversity: Diversity) -> None:
    if diversity.distinct <= 1:
        return
    holders = []
    for name, types, records in _output_rows(model):
        in_use = [(-float(diversity.distinct), model.used[name])]
        for column, values in _sensitive(model.context, types):
            members = {
                value: [records[place] for place in places]
                for value, places in records_by_value(values)
            }
            holders.append(Holder((*name, column), members, 0.0, in_use))
    add_distinct_values(
        model,
        holders,
        "whether an output row holds the value",
        "an output row holds the values of its records",
        "a row in use holds at least so many sensitive values",
    )


def _add_closeness(model: pyo.ConcreteModel, diversity: Diversity) -> None:
    """Add t-closeness in whole numbers, as the check of a release counts it."""
    columns: PatternColumns = model.context
    problem = columns.problem
    if diversity.t is None:
        return
    numerator, denominator = diversity.farthest
    scales = sensitive_scales(problem.microdata, ordered=diversity.ordered)
    model.table_values = pyo.Set(
        initialize=[
            (*name, column, value)
            for name in columns.names
            for column, scale in enumerate(scales)
            for value in range(len(scale.totals))
        ],
        dimen=4,
        doc="output rows, sensitive columns, their values in the table",
    )
    model.apart = pyo.Var(
        model.table_values,
        domain=pyo.NonNegativeReals,
        doc="how far a share is from that in the table [records x n]",
    )
    above, below, close = {}, {}, {}
    for name, types, records in _output_rows(model):
        for column, scale in enumerate(scales):
            differences = _differences(scale, scale.codes[columns.first[types]])
            apart = [model.apart[(*name, column, value)] for value in range(len(scale.totals))]
            for value, difference in enumerate(differences):
                ends, index = [apart[value], *records], (*name, column, value)
                above[index] = (0.0, linear(0.0, [1.0, *(-difference).tolist()], ends), None)
                below[index] = (0.0, linear(0.0, [1.0, *difference.tolist()], ends), None)
            allowed = float(scale.steps * problem.n * numerator)
            coefficients = [allowed] * len(records) + [-float(denominator)] * len(apart)
            close[(*name, column)] = (0.0, linear(0.0, coefficients, [*records, *apart]), None)
    model.apart_above = pyo.Constraint(
        model.table_values, rule=above, doc="shares above those in the table"
    )
    model.apart_below = pyo.Constraint(
        model.table_values, rule=below, doc="shares below those in the table"
    )
    model.close = pyo.Constraint(
        list(close), rule=close, doc="an output row is t-close to the table"
    )


def _differences(scale: SensitiveScale, values: Ints) -> Floats:
    """Return (values, types) what a record of each row type adds to how far each share is off."""
    n, wanted = int(scale.totals.sum()), np.arange(len(scale.totals))[:, None]
    added = n * (values[None, :] == wanted) - scale.totals[:, None]
    return (np.cumsum(added, axis=0) if scale.ordered else added).astype(np.float64)


def ask_for_rows(model: pyo.ConcreteModel, loss: float) -> None:
    """Turn a model into that of the second goal: the most output rows at the least loss.

    The least loss is asked for first and proven; its value then bounds the loss. For fixed u a best
    x is whole, so x may stay continuous: if a fractional one loses as little, so does a whole one.
    The model is built with all instances of equal cost.
    """
    bounded = model.loss.expr
    model.loss.deactivate()
    model.least_loss = pyo.Constraint(
        expr=(None, bounded, loss), doc="the least loss is kept [unit of the objective]"
    )
    model.output_rows = pyo.Objective(
        expr=total(list(model.used.values())), sense=pyo.maximize, doc="output rows in use"
    )


def set_start_pattern(model: pyo.ConcreteModel, assignment: Patterns) -> None:
    """Give every variable the value that patterns imply: a warm start.

    Records of an output row that another stands for move there. Raises InputError if the model
    lacks an output row of the start; InvalidAssignment if the patterns break a rule of the problem.
    """
    columns: PatternColumns = model.context
    columns.problem.recoding.check(columns.problem, assignment)
    index = assignment.index
    shown = np.flatnonzero(index != SUPPRESSED)
    types = columns.program.type_of[shown]
    rows = columns.asked[index[shown], types]
    if (rows < 0).any():
        raise InputError(
            "the model has not all output rows of the start", remedy="Build it with all rows"
        )
    t = len(columns.program.counts)
    pairs = rows.astype(np.int64) * t + types
    amounts = np.zeros(len(columns.rows), np.int64)
    np.add.at(amounts, np.searchsorted(columns.rows * t + columns.types, pairs), 1)
    used = np.zeros(columns.count, np.int64)
    used[rows] = 1
    hidden = np.bincount(columns.program.type_of[index == SUPPRESSED], minlength=t)
    hidden = hidden[: len(model.suppressed)]
    for part, values in ((model.assigned, amounts), (model.used, used), (model.suppressed, hidden)):
        for variable, value in zip(part.values(), values.tolist(), strict=True):
            variable.set_value(value)
    _set_rule_values(model, amounts)


def _set_rule_values(model: Any, amounts: Ints) -> None:
    """Give the variables of the rules the values that (e,) records of each pair imply."""
    columns: PatternColumns = model.context
    taken = zip(_output_rows(model), np.split(amounts, columns.starts[1:]), strict=False)
    for (name, types, _), own in taken:
        if model.component("holds") is not None:
            for column, values in _sensitive(columns, types):
                for value, places in records_by_value(values):
                    held = int((own[places] > 0).any())
                    model.holds[(*name, column, value)].set_value(held)
        if model.component("apart") is not None:
            diversity = columns.problem.diversity
            assert diversity is not None
            scales = sensitive_scales(columns.problem.microdata, ordered=diversity.ordered)
            for column, scale in enumerate(scales):
                off = _differences(scale, scale.codes[columns.first[types]]) @ own
                for value, distance in enumerate(np.abs(off).tolist()):
                    model.apart[(*name, column, value)].set_value(distance)


def read_pattern(model: pyo.ConcreteModel) -> Patterns:
    """Return the patterns of a solved model; records of a type take theirs in the table's order.

    Fractional numbers of records are rounded to whole ones by a flow of least cost: within what is
    in use, numbers of types and output rows change by less than one. If tolerances of the solver
    leave none, all records are assigned again to the output rows in use.

    Raises InputError if the model has no solution, or its output rows hold not all records.
    """
    columns: PatternColumns = model.context
    parts = (model.assigned, model.used, model.suppressed)
    refuse_unsolved(variable for part in parts for variable in part.values())
    amounts = _whole_amounts(model)
    t = columns.program.type_count
    types = np.concatenate([columns.types, np.arange(t)])
    patterns = np.append(columns.patterns[columns.rows], np.full(t, SUPPRESSED))
    return patterns_by_amounts(columns.program.type_of, types, patterns, amounts)


def _whole_amounts(model: Any) -> Ints:
    """Return (e + t,) records of each pair, and suppressed ones of each row type."""
    columns: PatternColumns = model.context
    e, t, r = len(columns.rows), len(columns.program.counts), columns.count
    given = np.zeros(e + t)
    given[:e] = [variable.value for variable in model.assigned.values()]
    given[e : e + len(model.suppressed)] = [one.value for one in model.suppressed.values()]
    used = [variable.value > 0.5 for variable in model.used.values()]
    in_use = np.append(np.array(used, np.bool_), np.isfinite(columns.program.price))
    rows = np.append(columns.rows, np.full(t, r))
    types = np.append(columns.types, np.arange(t))
    given[~in_use[rows]] = 0.0
    below = np.floor(given + INTEGRALITY).astype(np.int64)
    held = np.bincount(types, weights=below, minlength=t).astype(np.int64)
    filled = np.bincount(rows, weights=below, minlength=r + 1).astype(np.int64)
    needed, room = np.where(in_use, columns.problem.k, 0), np.full(r + 1, columns.problem.n)
    needed[r], room[r] = 0, columns.problem.most_suppressed
    fits = bool(filled[r] <= room[r])
    if fits and (held == columns.program.counts).all() and (filled >= needed).all():
        return below
    costs = np.append(
        columns.program.costs[columns.patterns[columns.rows]], np.full(t, columns.program.price)
    )
    open_pairs = np.flatnonzero(in_use[rows])
    split = open_pairs[(given - below)[open_pairs] > INTEGRALITY]
    if fits and (held <= columns.program.counts).all():
        rounded = assign_rows(
            RowAssignment(
                columns.program.counts - held,
                np.maximum(needed - filled, 0),
                types[split],
                rows[split],
                costs[split],
                np.ones(len(split), np.int64),
                np.maximum(room - filled, needed - filled),
            )
        )
        if rounded is not None:
            below[split] += rounded
            return below
    ends = types[open_pairs], rows[open_pairs]
    task = RowAssignment(columns.program.counts, needed, *ends, costs[open_pairs], room=room)
    again = assign_rows(task)
    if again is None:
        raise InputError(
            "the output rows in use do not hold all records, k each",
            remedy="Solve the model to the end",
        )
    below[:] = 0
    below[open_pairs] = again
    return below
