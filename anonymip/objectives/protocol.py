"""The objective protocol: a loss written once, traced once, used everywhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Description
from anonymip.errors import AnonymipError, UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.expression import Expression, SymbolicCells
from anonymip.objectives.record import CellBatch, Record
from anonymip.objectives.tables import LossTables, first_decrease, tabulate
from anonymip.tolerances import LOSS_ABSOLUTE, LOSS_RELATIVE


class _HasMicrodata(Protocol):
    @property
    def microdata(self) -> Microdata: ...


class Objective(ABC):
    """Information loss of a published record; the release's loss is the sum over its records.

    Subclasses write :meth:`loss` once, for one record; it is traced with symbols and evaluated
    on batches of numbers.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in results and manifests."""

    @abstractmethod
    def loss(self, record: Record) -> Any:
        """Return the loss of publishing a record as `record` shows it.

        Only sums, products with numbers, and element-wise NumPy functions apply to what `record`
        shows.
        """

    def compile(self, problem: _HasMicrodata | Microdata) -> CompiledObjective:
        """Trace the loss on a table.

        Raises
        ------
        UnsupportedObjective
            If the loss is not a sum of terms that look at one attribute each, or reads what is
            not published.
        """
        microdata = problem if isinstance(problem, Microdata) else problem.microdata
        return _compile(self, microdata)


@dataclass(frozen=True)
class FunctionObjective(Objective):
    """A user's function as an objective.

    Parameters
    ----------
    function
        Takes the published record, returns its loss.
    """

    function: Callable[[Record], Any]

    @property
    def name(self) -> str:
        """The function's name, or its type's if it has none."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def loss(self, record: Record) -> Any:
        """Call the function."""
        return self.function(record)


def objective(function: Callable[[Record], Any]) -> FunctionObjective:
    """Turn a function of the published record into an objective (a decorator).

    Examples
    --------
    >>> from anonymip import objective
    >>> @objective
    ... def protect_age(record):
    ...     return 4 * record.spread["age"] + record.spread["zip"]
    >>> protect_age.name
    'protect_age'
    """
    return FunctionObjective(function)


@dataclass(frozen=True, eq=False)
class CompiledObjective:
    """An objective traced on a table.

    Parameters
    ----------
    objective
        What was traced.
    domains
        Of the table.
    expression
        The loss of an unsuppressed record, as symbols.
    tables
        The same as arrays.
    suppression_price
        Loss of a suppressed record.
    decreasing
        An attribute whose loss can fall when a cell covers more; None proves the record loss
        monotone, and the class loss |S| c(S) superadditive.
    """

    objective: Objective
    domains: Domains
    expression: Expression
    tables: LossTables
    suppression_price: float
    decreasing: str | None

    @property
    def name(self) -> str:
        """Name of the objective."""
        return self.objective.name

    @property
    def tier(self) -> str:
        """``"affine"`` or ``"separable"``."""
        return "separable" if self.expression.terms else "affine"

    @property
    def monotone(self) -> bool:
        """Whether the record loss is proven monotone in set inclusion."""
        return self.decreasing is None

    def record_losses(self, cells: CellBatch) -> NDArray[np.float64]:
        """Return the (B,) losses of published records by calling the objective's own function.

        Neither the tables nor a solver have a part in this.

        Raises
        ------
        UnsupportedObjective
            If the function does not return B finite numbers.
        """
        return _evaluate(self.objective, self.domains, cells)

    def total(self, description: Description) -> float:
        """Return the loss of a release: the sum over its records."""
        return float(self.record_losses(cells_of(description)).sum())


def cells_of(description: Description) -> CellBatch:
    """Return the cells of a description, as an objective sees them."""
    return CellBatch(
        description.lower, description.upper, description.members.count, description.suppressed
    )


def _evaluate(objective: Objective, domains: Domains, cells: CellBatch) -> NDArray[np.float64]:
    batch = len(cells.lowers)
    with np.errstate(all="ignore"):  # what is not finite is refused below
        losses = np.asarray(_call(objective, Record(domains, cells)), np.float64)
    if losses.shape == ():
        losses = np.full(batch, float(losses))
    if losses.shape != (batch,):
        raise UnsupportedObjective(
            f"objective {objective.name!r} returns an array of shape {losses.shape} for {batch} "
            "records",
            remedy="Return one number a record: add terms with +, not with np.sum",
        )
    if not np.isfinite(losses).all():
        raise UnsupportedObjective(
            f"objective {objective.name!r} is infinite or undefined for some release",
            remedy="Keep logarithms and divisions away from 0",
        )
    return losses


def _call(objective: Objective, record: Record) -> Any:
    """Call the objective's function; whatever it raises is its author's to mend."""
    try:
        return objective.loss(record)
    except AnonymipError:
        raise
    except (TypeError, AttributeError) as error:
        raise UnsupportedObjective(
            f"objective {objective.name!r} cannot be traced: {error}",
            remedy="Use sums, products with numbers and element-wise NumPy functions of what the "
            "record shows",
        ) from error
    except Exception as error:
        raise UnsupportedObjective(
            f"objective {objective.name!r} fails with {type(error).__name__}: {error}",
            remedy="Correct the function",
        ) from error


def _compile(objective: Objective, microdata: Microdata) -> CompiledObjective:
    domains = Domains.of(microdata)
    traced = _call(objective, Record(domains, SymbolicCells(domains.low)))
    expression = traced if isinstance(traced, Expression) else _constant(objective, traced)
    tables = tabulate(expression, domains, microdata.levels)
    _probe(objective, expression, domains, microdata)
    star = np.ones((2, domains.m))
    price = _evaluate(
        objective,
        domains,
        CellBatch(star * domains.low, star * domains.high, star * domains.size, star == 1),
    )
    decreasing = first_decrease(tables)
    return CompiledObjective(
        objective,
        domains,
        expression,
        tables,
        float(price[0]),
        None if decreasing is None else domains.names[decreasing],
    )


def _constant(objective: Objective, traced: object) -> Expression:
    if isinstance(traced, bool) or not isinstance(traced, int | float | np.number):
        raise UnsupportedObjective(
            f"objective {objective.name!r} returns a {type(traced).__name__}",
            remedy="Return one number a record",
        )
    return Expression(float(traced), {})


def _probe(
    objective: Objective, expression: Expression, domains: Domains, microdata: Microdata
) -> None:
    """Compare the traced loss with the function on a few possible records.

    Catches functions that mean something else for a batch, such as one that sums over it.
    """
    rng = np.random.default_rng(0)
    batch = 5
    low = np.full((batch, domains.m), np.nan)
    high = low.copy()
    count = np.ones((batch, domains.m))
    for a, level in enumerate(microdata.levels):
        picked = np.sort(rng.integers(len(level), size=(batch, 2)), axis=1)
        picked[0], picked[1] = (0, 0), (0, len(level) - 1)
        if domains.kinds[a] == "numeric":
            ends = level.astype(np.float64)[picked]
            low[:, a], high[:, a] = ends[:, 0], ends[:, 1]
        count[:, a] = picked[:, 1] - picked[:, 0] + 1
    cells = CellBatch(low, high, count, np.zeros((batch, domains.m), np.bool_))
    called = _evaluate(objective, domains, cells)
    values = {
        (a, kind): array[:, a]
        for a in range(domains.m)
        for kind, array in (
            ("lower", low - domains.low),
            ("upper", high - domains.low),
            ("count", count),
        )
    }
    traced = np.broadcast_to(expression.evaluate(values), (batch,))
    scale = 1e3 * (LOSS_ABSOLUTE + LOSS_RELATIVE * np.abs(called).max())
    if not np.allclose(called, traced, rtol=0.0, atol=scale):
        raise UnsupportedObjective(
            f"objective {objective.name!r} gives different losses for one record and for a batch",
            remedy="Keep it free of state and of functions that look at the whole batch",
        )
