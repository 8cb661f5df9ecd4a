r"""Rules for the output rows of the pattern models beside k: diversity, single use.

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

from anonymip.models.parts.class_rules import Holder, add_distinct_values
from anonymip.models.parts.equivalence_context import at_most_one, linear
from anonymip.models.patterns.pattern_columns import PatternColumns
from anonymip.recodings.output_rows import recoding_of
from anonymip.recodings.rules.diversity import Diversity, SensitiveScale, sensitive_scales
from anonymip.runtime.arrays import Floats, Ints


def add_pattern_rules(model: pyo.ConcreteModel) -> None:
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


def rules_size(columns: PatternColumns) -> int:
    """Return about how many constraints the rules need."""
    problem = columns.problem
    rows = len(columns.program.costs) if recoding_of(problem).single_use else 0
    if problem.diversity is not None:
        each = 2 if problem.diversity.t is None else 4
        values = int((problem.microdata.sensitive_codes.max(axis=0) + 1).sum())
        rows += each * columns.count * values
    return rows


def _values_of_rows(columns: PatternColumns) -> Iterator[tuple[int, int, Ints]]:
    """Yield output row, sensitive column, and the values of the types that may become the row."""
    codes = columns.problem.microdata.sensitive_codes[columns.first].astype(np.int64)
    for row in range(columns.count):
        for column in range(codes.shape[1]):
            yield row, column, codes[columns.of_row(row), column]


def records_of(model: Any, types: Ints, pattern: int) -> list[Any]:
    """Return the variables of some row types under a pattern."""
    return [model.assigned[i, pattern] for i in model.context.first[types].tolist()]


def _add_shares_of_values(model: pyo.ConcreteModel, diversity: Diversity) -> None:
    columns: PatternColumns = model.context
    numerator, denominator = diversity.ratio
    if numerator <= denominator:
        return
    model.diverse = pyo.Constraint(
        pyo.Any, doc="no sensitive value makes up more than 1/l of an output row [records]"
    )
    for row, column, values in _values_of_rows(columns):
        name, types = columns.names[row], columns.of_row(row)
        for value in np.unique(values).tolist():
            alike = values == value
            # A value too rare to fill its share of the smallest row never breaks the rule.
            if numerator * int(columns.program.counts[types[alike]].sum()) <= (
                denominator * columns.problem.k
            ):
                continue
            coefficients = denominator - numerator * alike.astype(np.float64)
            body = linear(0.0, coefficients.tolist(), records_of(model, types, name[0]))
            model.diverse[(*name, column, value)] = (0.0, body, None)


def _add_distinct_values(model: pyo.ConcreteModel, diversity: Diversity) -> None:
    columns: PatternColumns = model.context
    if diversity.distinct <= 1:
        return
    holders = []
    for row, column, values in _values_of_rows(columns):
        name, types = columns.names[row], columns.of_row(row)
        members = {
            value: records_of(model, types[values == value], name[0])
            for value in np.unique(values).tolist()
        }
        in_use = [(-float(diversity.distinct), model.used[name])]
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
    model.apart_above = pyo.Constraint(model.table_values, doc="shares above those in the table")
    model.apart_below = pyo.Constraint(model.table_values, doc="shares below those in the table")
    model.close = pyo.Constraint(pyo.Any, doc="an output row is t-close to the table")
    for row, name in enumerate(columns.names):
        types = columns.of_row(row)
        records = records_of(model, types, name[0])
        for column, scale in enumerate(scales):
            differences = _differences(scale, scale.codes[columns.first[types]])
            apart = [model.apart[(*name, column, value)] for value in range(len(scale.totals))]
            for value, difference in enumerate(differences):
                ends = [apart[value], *records]
                index = (*name, column, value)
                body = linear(0.0, [1.0, *(-difference).tolist()], ends)
                model.apart_above[index] = (0.0, body, None)
                body = linear(0.0, [1.0, *difference.tolist()], ends)
                model.apart_below[index] = (0.0, body, None)
            allowed = float(scale.steps * problem.n * numerator)
            coefficients = [allowed] * len(records) + [-float(denominator)] * len(apart)
            body = linear(0.0, coefficients, [*records, *apart])
            model.close[(*name, column)] = (0.0, body, None)


def _differences(scale: SensitiveScale, values: Ints) -> Floats:
    """Return (values, types) what a record of each row type adds to how far each share is off."""
    n, wanted = int(scale.totals.sum()), np.arange(len(scale.totals))[:, None]
    added = n * (values[None, :] == wanted) - scale.totals[:, None]
    return (np.cumsum(added, axis=0) if scale.ordered else added).astype(np.float64)


def set_rule_values(model: Any, amounts: Ints) -> None:
    """Give the variables of the rules the values that (e,) records of each pair imply."""
    columns: PatternColumns = model.context
    if model.component("holds") is not None:
        for row, column, values in _values_of_rows(columns):
            some = amounts[columns.starts[row] : columns.starts[row + 1]] > 0
            for value in np.unique(values).tolist():
                held = bool(some[values == value].any())
                model.holds[(*columns.names[row], column, value)].set_value(int(held))
    if model.component("apart") is not None:
        diversity = columns.problem.diversity
        assert diversity is not None
        scales = sensitive_scales(columns.problem.microdata, ordered=diversity.ordered)
        for row, name in enumerate(columns.names):
            types = columns.of_row(row)
            taken = amounts[columns.starts[row] : columns.starts[row + 1]]
            for column, scale in enumerate(scales):
                off = _differences(scale, scale.codes[columns.first[types]]) @ taken
                for value, distance in enumerate(np.abs(off).tolist()):
                    model.apart[(*name, column, value)].set_value(distance)
