"""A problem in exact numbers, as certificates hold it: what its records are, and what sets lose."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from anonymip.certificates.check import Rejected, Table
from anonymip.errors import InputError, UnsupportedObjective
from anonymip.objectives.language.tables import CAPPED, LossTables, losses_of_pairs, square_losses
from anonymip.objectives.losses.squared_error import SSE
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses, Freeform
from anonymip.runtime.arrays import Floats
from anonymip.tolerances import LOSS_RELATIVE

#: Distinct records at most: the checker looks at all pairs of them, some minutes for so many.
MOST_DISTINCT = 10_000
#: A fraction with no more bits than this above and below the line is what a float was meant to be
#: that differs from it by no more than rounding does, of so many parts.
_SIMPLE_BITS, _ROUNDING = 40, 2**49
#: Units that need more bits make whole numbers slow: losses are then taken as the floats they are.
_LARGEST_UNIT = 160


def without_rules(problem: Problem) -> Problem:
    """Return what is certified of a problem: the same without its rules beside k.

    Every release that keeps a diversity or limits, and every reciprocal cover, is a release of the
    problem without them: what none of these is below, none of those is.
    """
    recoding = problem.recoding
    if isinstance(recoding, Freeform) and recoding.reciprocal:
        recoding = replace(recoding, reciprocal=False)
    if recoding == problem.recoding and problem.diversity is None and not problem.limits:
        return problem
    return problem.without_rules.replace(recoding=recoding)


def rules_of(problem: Problem) -> list[str]:
    """Return what :func:`without_rules` leaves out, in words."""
    recoding = problem.recoding
    reciprocal = isinstance(recoding, Freeform) and recoding.reciprocal
    return [
        *(["reciprocal sets"] if reciprocal else []),
        *([] if problem.diversity is None else [str(problem.diversity)]),
        *map(str, problem.limits),
    ]


def uncertifiable(problem: Problem) -> str | None:
    """Return why no certificate can be made for a problem, None if one can."""
    recoding, compiled = problem.recoding, problem.compiled
    if (
        not isinstance(recoding, EquivalenceClasses | Freeform)
        or recoding.suppression
        or (isinstance(recoding, Freeform) and (recoding.reciprocal or recoding.degrees))
    ):
        return "certificates are for classes and plain freeform covers, without suppression"
    if type(problem.objective) is SSE:
        covers = isinstance(recoding, Freeform)
        return "certificates of squared errors are for classes" if covers else None
    if compiled.tier == "members":
        return f"the loss {compiled.name!r} is one of the members of classes"
    if not compiled.has_tables or compiled.aggregate != "sum":
        return f"the loss {compiled.name!r} is no sum of terms of one attribute each"
    if compiled.decreasing is not None:
        return f"the loss can fall in {compiled.decreasing!r} when a cell covers more"
    return None


def exact_problem(problem: Problem) -> dict[str, Any]:
    """Return the part of a certificate that says what is asked.

    Losses are the simplest fractions that the floats of the tables can mean, values the decimals
    that they print as, or the floats themselves where these lie at other distances: what is proven
    is exact for these.

    Raises UnsupportedObjective if the problem is none that certificates are for; InputError if it
    has too many records.
    """
    reason = uncertifiable(problem)
    if reason is not None:
        raise UnsupportedObjective(
            f"no certificate: {reason}",
            remedy="Ask for a bound without a certificate: anonymip.lower_bound",
        )
    simple = _problem_part(problem, simple_fraction)
    distinct = len({tuple(record) for record in simple["records"]})
    if distinct > MOST_DISTINCT:
        raise InputError(
            f"no certificate: the table has {distinct:,} distinct records, and a checker in plain "
            f"Python looks at all pairs, of {MOST_DISTINCT:,} at most",
            remedy="Ask for a bound without a certificate",
        )
    if simple["unit"].bit_length() <= _LARGEST_UNIT:
        # Losses that nearly agree may have changed places; then they are taken as they are.
        with suppress(Rejected):
            Table({**simple, "scale": simple["unit"]})
            return simple
    return _problem_part(problem, lambda number, _: Fraction(number))


def simple_fraction(number: float, size: float) -> Fraction:
    """Return the simplest fraction that a float can mean, or the float itself if none is simple.

    `number`: the float. `size`: of what it was computed from, which says how far rounding may have
    put it off.
    """
    exact = Fraction(number)
    near = Fraction(max(abs(size), abs(number))) / _ROUNDING
    # The convergents of the continued fraction.
    before, last, rest = (0, 1), (1, 0), exact
    while True:
        whole = math.floor(rest)
        before, last = last, (whole * last[0] + before[0], whole * last[1] + before[1])
        found = Fraction(*last)
        # What is not 0 is a difference of two values, however near they are.
        if abs(found - exact) <= near and (found or not exact):
            break
        rest = 1 / (rest - whole)
    bits = last[0].bit_length() + last[1].bit_length()
    return found if bits <= _SIMPLE_BITS else exact


def _squared_part(problem: Problem, meant: Callable[[float, float], Fraction]) -> dict[str, Any]:
    """Return the same under squared errors: a weight for each attribute."""
    data, objective = problem.microdata, problem.objective
    assert isinstance(objective, SSE)
    readings = [_reading(data.levels[a].tolist()) for a in range(data.m)]
    terms: list[dict[str, Any]] = []
    unit = 1
    for a, of in enumerate(objective.units(data).tolist()):
        weight = meant(1.0 / of**2, 0.0)
        steps = math.lcm(*(readings[a](level).denominator for level in data.levels[a].tolist()))
        unit = math.lcm(unit, weight.denominator * steps**2)
        own = {"kind": "squares", "column": a, "weight": _text(weight)}
        terms.append({**own, "attribute": data.names[a]})
    rows = data.values.tolist()
    records = [[_text(readings[a](value)) for a, value in enumerate(row)] for row in rows]
    # Classes of up to 2k - 1 records lose parts of so many.
    parts = math.lcm(*range(1, min(2 * problem.k, problem.n + 1)))
    return _asked(problem, 0, terms, records, unit * parts)


def _asked(
    problem: Problem, constant: int | str, terms: list[Any], records: list[Any], unit: int
) -> dict[str, Any]:
    content = json.dumps([constant, terms, records])
    return {
        "recoding": problem.recoding.name,
        "k": problem.k,
        "constant": constant,
        "terms": terms,
        "records": records,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
        "unit": unit,
    }


def _problem_part(problem: Problem, meant: Callable[[float, float], Fraction]) -> dict[str, Any]:
    if isinstance(problem.objective, SSE):
        return _squared_part(problem, meant)
    tables, data = problem.compiled.tables, problem.microdata
    used: list[int] = []
    terms: list[dict[str, Any]] = []
    unit, constant = 1, meant(float(tables.constant), 0.0)
    readings: dict[int, Callable[[float], Fraction]] = {}

    def column(attribute: int) -> int:
        if attribute not in used:
            used.append(attribute)
        return used.index(attribute)

    for r, a in enumerate(tables.range_columns.tolist()):
        low, high = (meant(float(end[r]), 0.0) for end in (tables.range_low, tables.range_high))
        origin = float(tables.range_origin[r])
        read = readings[a] = _reading([*data.levels[a].tolist(), origin])
        constant -= (low + high) * read(origin)
        terms.append({"kind": "range", "column": column(a), "low": _text(low), "high": _text(high)})
        values = {read(float(value)) for value in np.unique(data.values[:, a])}
        unit = math.lcm(unit, *((end * v).denominator for end in (low, high) for v in values))
    for s, a in enumerate(tables.set_columns.tolist()):
        start, size = int(tables.set_start[s]), int(tables.set_sizes[s])
        by_count = tables.set_losses[start + 1 : start + size + 1]
        largest = float(np.abs(by_count).max())
        losses = [meant(loss, largest) for loss in by_count.tolist()]
        terms.append({"kind": "set", "column": column(a), "losses": [*map(_text, losses)]})
        unit = math.lcm(unit, *(loss.denominator for loss in losses))
    for p, a in enumerate(tables.pair_columns.tolist()):
        if tables.pair_strides[p] == CAPPED:
            *_, slope, most = losses_of_pairs(tables, p).tolist()
            numbers = data.levels[a].tolist()
            read = _reading(numbers)
            by_unit, at_most = meant(slope, 0.0), meant(most, 0.0)
            line = [by_unit * read(number) for number in numbers]
            order = _printed(problem, a, None)
            own = {"kind": "capped", "column": column(a), "order": order}
            terms.append({**own, "losses": [*map(_text, line)], "most": _text(at_most)})
            unit = math.lcm(unit, *(one.denominator for one in (*line, at_most)))
            continue
        kind, rows = _by_rank(tables, p)
        largest = max(float(np.abs(row).max()) for row in rows)
        known = {loss: meant(loss, largest) for row in rows for loss in np.unique(row).tolist()}
        texts = {loss: _text(fraction) for loss, fraction in known.items()}
        charged = [[texts[loss] for loss in row.tolist()] for row in rows]
        order = _printed(problem, a, readings.get(a))
        tree = {"losses": charged[0], "gaps": charged[1]} if kind == "tree" else {}
        own = {"kind": kind, "column": column(a), "order": order, "losses": charged}
        terms.append({**own, **tree})
        unit = math.lcm(unit, *(fraction.denominator for fraction in known.values()))
    for place, a in enumerate(used):
        for term in terms:
            if term["column"] == place:
                term["attribute"] = data.names[a]
    printed = [_printed(problem, a, readings.get(a)) for a in used]
    codes = data.codes[:, used].tolist()
    records = [[values[code] for values, code in zip(printed, row, strict=True)] for row in codes]
    whole = math.lcm(unit, constant.denominator)
    return _asked(problem, _text(constant), terms, records, whole)


def _by_rank(tables: LossTables, p: int) -> tuple[str, list[Floats]]:
    """Return the kind of a term by lowest and highest rank, and its losses.

    Of a tree those of values and of neighbouring ones; else those of each rank and all from there
    on.
    """
    if tables.pair_strides[p] > 0:
        square = square_losses(tables, p)
        return "order", [square[first, first:] for first in range(len(square))]
    size, losses = int(tables.pair_sizes[p]), losses_of_pairs(tables, p)
    return "tree", [losses[:size], losses[size : 2 * size - 1]]


def _printed(
    problem: Problem, attribute: int, reading: Callable[[float], Fraction] | None
) -> list[int | str]:
    """Return the levels of an attribute as a certificate names them, all different."""
    levels = problem.microdata.levels[attribute].tolist()
    if reading is None and problem.microdata.attributes[attribute].publish == "range":
        reading = _decimal
    if reading is not None:
        beyond, label = problem.microdata.beyond[attribute], problem.microdata.table.label
        return [label if level == beyond else _text(reading(level)) for level in levels]
    names: list[int | str] = [str(level) for level in levels]
    return names if len(set(names)) == len(names) else list(range(len(names)))


def _reading(numbers: Iterable[float]) -> Callable[[float], Fraction]:
    """Return how numbers are read: as the decimals they print as where these lie as far apart.

    Far from 0 a float prints as a decimal that is off by much of its distance to the next one.
    """
    for low, high in pairwise(sorted(set(numbers))):
        exact = Fraction(high) - Fraction(low)
        if abs(_decimal(high) - _decimal(low) - exact) > LOSS_RELATIVE * exact:
            return Fraction
    return _decimal


def _decimal(number: float) -> Fraction:
    """Return the number that a float prints as."""
    return Fraction(repr(float(number)))


def _text(number: Fraction) -> int | str:
    """Return a number as a certificate holds it: whole, or a fraction in a text."""
    return int(number) if number.denominator == 1 else str(number)
