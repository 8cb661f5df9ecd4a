"""Proofs from a traced loss that it never falls when a cell covers more.

An expression is followed from its symbols to its value: between which numbers each part of it lies,
and whether it can only rise, or only fall, when the cells of a record grow. Symbols are known by
themselves: lower ends fall; upper ends, counts, levels and leaves rise. What no rule covers may do
either, and proves nothing. A factor that rounding alone puts below 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, inf, isinf, isnan
from typing import Any, NamedTuple

import numpy as np

from anonymip.instances.domains import Domains
from anonymip.objectives.language.expression import Expression, Nonlinear

_RESIDUE = 1e-14  # share of the largest value of a factor that rounding may put it below 0 by


class Course(NamedTuple):
    """How a part of a loss goes when the cells of a record grow."""

    low: float  # between which numbers it lies
    high: float
    rises: bool  # never falls
    falls: bool  # never rises; what does both is constant

    def times(self, factor: float) -> Course:
        """Return the course of a multiple."""
        return _product(self, _constant(factor))

    @property
    def is_constant(self) -> bool:
        """Whether it cannot change."""
        return self.rises and self.falls


_UNKNOWN = Course(-inf, inf, rises=False, falls=False)


def never_falls(expression: Expression, domains: Domains) -> bool:
    """Return whether the loss is proven never to fall when the cells of a record cover more.

    Complexity: linear in the expression.
    """
    return _course(expression, domains).rises


def _constant(number: float) -> Course:
    return Course(float(number), float(number), rises=True, falls=True)


def _course(part: Any, domains: Domains) -> Course:
    """Return the course of an expression or a number."""
    if not isinstance(part, Expression):
        return _constant(float(part))
    parts = [_constant(part.constant)]
    for attribute in sorted({attribute for attribute, _ in part.linear}):
        parts += _of_symbols(part, attribute, domains)
    parts += [_of_term(term, domains) for term in part.terms]
    return _sum(parts)


def _sum(parts: list[Course]) -> Course:
    def total(ends: list[float]) -> float:
        return -inf if -inf in ends else fsum(ends)

    low, high = total([part.low for part in parts]), -total([-part.high for part in parts])
    return Course(low, high, all(part.rises for part in parts), all(part.falls for part in parts))


def _of_symbols(part: Expression, attribute: int, domains: Domains) -> list[Course]:
    """Return the courses of the linear terms in one attribute; its two ends are taken together."""
    linear, tree = part.linear, domains.trees[attribute]
    below, above = linear.get((attribute, "lower"), 0.0), linear.get((attribute, "upper"), 0.0)
    found = []
    if below or above:
        start = float(domains.low[attribute] - domains.origin[attribute])
        beyond = float(domains.beyond[attribute])
        end = (domains.high[attribute] if isinf(beyond) else beyond) - domains.origin[attribute]
        # Over all ranges the ends of a linear function lie at the narrowest and the widest ones.
        corners = [
            below * low + above * high for low, high in ((start, start), (start, end), (end, end))
        ]
        found.append(Course(min(corners), max(corners), below <= 0 <= above, above <= 0 <= below))
    most = {"count": float(domains.size[attribute])}
    if tree is not None:
        most |= {"level": float(tree.height), "leaves": float(tree.leaves)}
    for kind, largest in most.items():
        least = 0.0 if kind == "level" else 1.0
        symbol = Course(least, largest, rises=True, falls=False)
        if linear.get((attribute, kind), 0.0):
            found.append(symbol.times(linear[attribute, kind]))
    return found


def _of_term(term: Nonlinear, domains: Domains) -> Course:
    rule = _RULES.get(term.function)
    if rule is None:
        return _UNKNOWN
    return rule(*(_course(argument, domains) for argument in term.arguments)).times(term.factor)


def _product(a: Course, b: Course) -> Course:
    """Return the course of a b: it changes by a db + b da, each of a sign that may be known."""
    ends = [0.0 if 0.0 in (x, y) else x * y for x in (a.low, a.high) for y in (b.low, b.high)]

    def goes(factor: Course, other: Course) -> tuple[bool, bool]:
        """Return whether factor times the change of the other is never below 0, never above."""
        if other.is_constant:
            return True, True
        slack = 0.0 if isinf(size := max(-factor.low, factor.high)) else _RESIDUE * size
        above, below = factor.low >= -slack, factor.high <= slack
        return (
            (above and other.rises) or (below and other.falls),
            (above and other.falls) or (below and other.rises),
        )

    one, two = goes(a, b), goes(b, a)
    return Course(min(ends), max(ends), one[0] and two[0], one[1] and two[1])


def _inverse(a: Course) -> Course:
    if a.low <= 0 <= a.high:
        return _UNKNOWN
    return Course(1 / a.high, 1 / a.low, rises=a.falls, falls=a.rises)


def _along(function: Callable[[float], Any]) -> Callable[[Course], Course]:
    """Return the rule of a function that never falls where it is defined."""

    def rule(a: Course) -> Course:
        with np.errstate(all="ignore"):
            low, high = float(function(a.low)), float(function(a.high))
        return _UNKNOWN if isnan(low) or isnan(high) else Course(low, high, a.rises, a.falls)

    return rule


def _power(a: Course, b: Course) -> Course:
    if b.is_constant and a.low >= 0:
        if b.low >= 0:
            return _along(lambda base: np.float64(base) ** b.low)(a)
        return _inverse(_power(a, b.times(-1.0)))
    if a.is_constant and a.low > 0:
        # c^b = e^(b log c), which is checked by its sign alone.
        return _along(np.exp)(b.times(float(np.log(a.low))))
    return _UNKNOWN


def _absolute(a: Course) -> Course:
    if a.low >= 0:
        return a
    return a.times(-1.0) if a.high <= 0 else Course(0.0, max(-a.low, a.high), False, False)


def _maximum(a: Course, b: Course) -> Course:
    return Course(max(a.low, b.low), max(a.high, b.high), a.rises and b.rises, a.falls and b.falls)


def _minimum(a: Course, b: Course) -> Course:
    return _maximum(a.times(-1.0), b.times(-1.0)).times(-1.0)


def _is_above(a: Course, b: Course) -> Course:
    return Course(0.0, 1.0, a.rises and b.falls, a.falls and b.rises)


def _differs(a: Course, b: Course) -> Course:
    """Return the course of a != b: from equal at an end of what a can be it goes away for good."""
    apart = _sum([a, b.times(-1.0)])
    if apart.low >= 0:
        return Course(0.0, 1.0, apart.rises, apart.falls)
    if apart.high <= 0:
        return Course(0.0, 1.0, apart.falls, apart.rises)
    return Course(0.0, 1.0, apart.is_constant, apart.is_constant)


def _truth(a: Course) -> Course:
    return _differs(a, _constant(0.0))


def _where(condition: Course, a: Course, b: Course) -> Course:
    """Return the course of a choice: both go the same way, and so does the change of choice."""
    when = _truth(condition)
    a_above, b_above = a.low >= b.high, b.low >= a.high
    up = when.is_constant or (when.rises and a_above) or (when.falls and b_above)
    down = when.is_constant or (when.rises and b_above) or (when.falls and a_above)
    return Course(
        min(a.low, b.low),
        max(a.high, b.high),
        up and a.rises and b.rises,
        down and a.falls and b.falls,
    )


_RISING: tuple[Callable[[float], Any], ...] = (
    *(np.sqrt, np.cbrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p),
    *(np.arctan, np.tanh, np.sinh, np.arcsinh, np.floor, np.ceil, np.rint, np.trunc, np.sign),
)
#: How the functions that a loss may apply go with their arguments.
_RULES: dict[Callable[..., Any], Callable[..., Course]] = {
    **{function: _along(function) for function in _RISING},
    np.multiply: _product,
    np.true_divide: lambda a, b: _product(a, _inverse(b)),
    np.power: _power,
    np.float_power: _power,
    np.square: lambda a: _power(_absolute(a), _constant(2.0)),
    np.reciprocal: _inverse,
    np.absolute: _absolute,
    np.fabs: _absolute,
    np.maximum: _maximum,
    np.fmax: _maximum,
    np.minimum: _minimum,
    np.fmin: _minimum,
    np.clip: lambda a, low, high: _minimum(_maximum(a, low), high),
    np.greater: _is_above,
    np.greater_equal: _is_above,
    np.less: lambda a, b: _is_above(b, a),
    np.less_equal: lambda a, b: _is_above(b, a),
    np.not_equal: _differs,
    np.equal: lambda a, b: _sum([_constant(1.0), _differs(a, b).times(-1.0)]),
    np.logical_not: lambda a: _sum([_constant(1.0), _truth(a).times(-1.0)]),
    np.logical_or: lambda a, b: _maximum(_truth(a), _truth(b)),
    np.logical_and: lambda a, b: _minimum(_truth(a), _truth(b)),
    np.where: _where,
}
