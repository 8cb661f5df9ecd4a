"""Symbolic losses, which tracing an objective function yields.

An expression is a constant, a linear part over the basis ``(attribute, "lower" | "upper" |
"count" | "level" | "leaves")``, and non-linear terms. Ends are counted from the domain's lower
end, so that a small range of huge numbers keeps its digits, or from 0 where that would lose what
tells small numbers apart. NumPy's element-wise functions apply to it, so that one function serves
symbols and batches of numbers alike.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from anonymip.errors import UnsupportedObjective
from anonymip.runtime.arrays import Floats

Basis: TypeAlias = tuple[int, str]
Values: TypeAlias = Mapping[Basis, Floats]

_ELEMENTWISE_FUNCTIONS = (np.where, np.clip)


@dataclass(frozen=True)
class Nonlinear:
    """A multiple of an element-wise NumPy function of expressions."""

    factor: float
    function: Callable[..., Any]
    arguments: tuple[Any, ...]  # expressions and numbers

    def basis(self) -> frozenset[Basis]:
        """Return all that the term depends on."""
        parts = [a.basis() for a in self.arguments if isinstance(a, Expression)]
        return frozenset().union(*parts)

    def evaluate(self, values: Values) -> Floats:
        """Return the term's numbers for a batch."""
        arguments = [a.evaluate(values) if isinstance(a, Expression) else a for a in self.arguments]
        with np.errstate(all="ignore"):  # what is not finite is refused by the caller
            return self.factor * np.asarray(self.function(*arguments), np.float64)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real | np.bool_) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    )


def _operator(function: Callable[..., Any], *, turned: bool = False) -> Any:
    """Return the method of an operator; `turned`: of its second operand."""

    def operate(self: Expression, other: Any) -> Expression:
        return _apply(function, other, self) if turned else _apply(function, self, other)

    return operate


@dataclass(frozen=True, eq=False)
class Expression:
    """A loss as a function of one published record."""

    constant: float
    linear: Mapping[Basis, float]  # coefficients
    terms: tuple[Nonlinear, ...] = ()

    __hash__ = None  # type: ignore[assignment]

    def basis(self) -> frozenset[Basis]:
        """Return all that the expression depends on."""
        return frozenset(self.linear).union(*(term.basis() for term in self.terms))

    def evaluate(self, values: Values) -> Floats:
        """Return the numbers for a batch of basis values, each (B,).

        Of two large ends that lie close together the difference is exact, that of their losses is
        mostly rounding: the width is taken first, `values` may have it from before a shift.
        """
        total: Floats = np.asarray(self.constant, np.float64)
        for element, coefficient in self.linear.items():
            attribute, kind = element
            low, high = (attribute, "lower"), (attribute, "upper")
            if kind == "upper" and low in self.linear:
                width = values.get((attribute, "width"), values[high] - values[low])
                slope = coefficient + self.linear[low]
                total = total + coefficient * width + slope * values[low]
            elif kind != "lower" or high not in self.linear:
                total = total + coefficient * values[element]
        for term in self.terms:
            total = total + term.evaluate(values)
        return total

    def _plus(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            linear = dict(self.linear)
            for element, coefficient in other.linear.items():
                linear[element] = linear.get(element, 0.0) + coefficient
            return Expression(self.constant + other.constant, linear, self.terms + other.terms)
        return Expression(self.constant + float(other), self.linear, self.terms)

    def _times(self, factor: float) -> Expression:
        return Expression(
            self.constant * factor,
            {element: coefficient * factor for element, coefficient in self.linear.items()},
            tuple(Nonlinear(t.factor * factor, t.function, t.arguments) for t in self.terms),
        )

    def __add__(self, other: Any) -> Expression:
        return self._plus(other) if _known(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Expression:
        return self._plus(-other) if _known(other) else NotImplemented

    def __rsub__(self, other: Any) -> Expression:
        return (-self)._plus(other) if _known(other) else NotImplemented

    def __neg__(self) -> Expression:
        return self._times(-1.0)

    def __pos__(self) -> Expression:
        return self

    def __mul__(self, other: Any) -> Expression:
        return self._times(float(other)) if _is_number(other) else _apply(np.multiply, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expression:
        if _is_number(other):
            return self._times(1.0 / float(other))
        return _apply(np.true_divide, self, other)

    __rtruediv__ = _operator(np.true_divide, turned=True)
    __pow__, __rpow__ = _operator(np.power), _operator(np.power, turned=True)
    __lt__, __le__ = _operator(np.less), _operator(np.less_equal)
    __gt__, __ge__ = _operator(np.greater), _operator(np.greater_equal)
    __eq__, __ne__ = _operator(np.equal), _operator(np.not_equal)
    __and__, __or__ = _operator(np.logical_and), _operator(np.logical_or)

    def __abs__(self) -> Expression:
        return _apply(np.abs, self)

    def __invert__(self) -> Expression:
        return _apply(np.logical_not, self)

    def __bool__(self) -> bool:
        raise UnsupportedObjective(
            "the objective branches on a published value (if, max, min, and, or)",
            remedy="Use np.where, np.maximum or np.minimum, which work for a whole batch",
        )

    def __float__(self) -> float:
        raise UnsupportedObjective(
            "the objective turns a published value into a plain number (float, math.sqrt)",
            remedy="Use NumPy's functions, which work for a whole batch",
        )

    def __array_ufunc__(
        self, function: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Expression:
        if method != "__call__" or options or function.nout != 1:
            raise UnsupportedObjective(
                f"the objective applies np.{function.__name__}.{method}",
                remedy="Use plain sums and element-wise NumPy functions",
            )
        arithmetic = _ARITHMETIC.get(function)
        if arithmetic is not None and all(map(_known, inputs)):
            return arithmetic(*(_plain(value) for value in inputs))
        return _apply(function, *inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, inputs: Any, options: Any
    ) -> Expression:
        if function not in _ELEMENTWISE_FUNCTIONS or options:
            raise UnsupportedObjective(
                f"the objective calls np.{getattr(function, '__name__', function)}, which is not "
                "element-wise",
                remedy="Use plain sums and element-wise NumPy functions",
            )
        return _apply(function, *inputs)


def _known(value: object) -> bool:
    return isinstance(value, Expression) or _is_number(value)


def _plain(value: Any) -> Any:
    return float(value) if _is_number(value) else value


def _apply(function: Callable[..., Any], *arguments: Any) -> Expression:
    for argument in arguments:
        if not _known(argument):
            raise UnsupportedObjective(
                f"the objective mixes a published value with a {type(argument).__name__}",
                remedy="Combine published values with numbers only",
            )
    return Expression(0.0, {}, (Nonlinear(1.0, function, arguments),))


_ARITHMETIC: dict[Any, Callable[..., Any]] = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.true_divide: lambda a, b: a / b,
    np.negative: lambda a: -a,
    np.positive: lambda a: a,
}
