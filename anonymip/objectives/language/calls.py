"""Calls of an objective's function; what it raises or returns is for its author to correct."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import AnonymipError, UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.expression import Expression, SymbolicCells
from anonymip.objectives.language.members import Members
from anonymip.objectives.language.record import CellBatch, Record
from anonymip.objectives.language.signatures import RecordLoss


def call_record_loss(objective: Any, domains: Domains, cells: CellBatch) -> NDArray[np.float64]:
    """Return the (B,) losses of published records.

    Raises
    ------
    UnsupportedObjective
        If the function fails or does not return B finite numbers.
    """
    record = Record(domains, cells)
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused below
            losses = _real(objective.name, _call(objective, record))
    finally:
        record.let_go()
    return _checked(objective.name, losses, len(cells.lowers), "record")


def call_class_loss(
    objective: Any, microdata: Microdata, rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the (B,) losses of classes of (B, s) records.

    Raises
    ------
    UnsupportedObjective
        If the function fails or does not return B finite numbers.
    """
    try:
        with np.errstate(all="ignore"):
            losses = _real(objective.name, objective.class_cost(Members(microdata, rows)))
    except AnonymipError:
        raise
    except (Exception, SystemExit) as error:
        raise _failure(objective.name, error) from error
    return _checked(objective.name, losses, len(rows), "class")


def _real(name: str, given: object) -> NDArray[np.float64]:
    """Return what a function gave as numbers; an imaginary part is not dropped."""
    losses = np.asarray(given)
    if losses.dtype.kind == "c":
        raise UnsupportedObjective(
            f"objective {name!r} returns complex numbers", remedy="Return real numbers"
        )
    return losses.astype(np.float64)


def _checked(name: str, losses: NDArray[np.float64], batch: int, unit: str) -> NDArray[np.float64]:
    if losses.shape == ():
        losses = np.full(batch, float(losses))
    if losses.shape != (batch,):
        raise UnsupportedObjective(
            f"objective {name!r} returns an array of shape {losses.shape} for {batch} "
            f"{unit}{'es' if unit == 'class' else 's'}",
            remedy=f"Return one number a {unit}: add terms with +, not with np.sum over all",
        )
    if not np.isfinite(losses).all():
        raise UnsupportedObjective(
            f"objective {name!r} is infinite or undefined for some release",
            remedy="Keep logarithms and divisions away from 0",
        )
    return losses


def _call(objective: RecordLoss, record: Record) -> Any:
    """Call the objective's function; whatever it raises is for its author to correct."""
    try:
        return objective.loss(record)
    except AnonymipError:
        raise
    except (TypeError, AttributeError) as error:
        raise UnsupportedObjective(
            f"objective {objective.name!r} cannot be traced: {_raised(error)}",
            remedy="Use sums, products with numbers and element-wise NumPy functions of what the "
            "record shows",
            value=str(error),
        ) from error
    except (Exception, SystemExit) as error:
        raise _failure(objective.name, error) from error


def _failure(name: str, error: BaseException) -> UnsupportedObjective:
    return UnsupportedObjective(
        f"objective {name!r} fails with {_raised(error)}",
        remedy="Correct the function",
        value=str(error),
    )


def _raised(error: BaseException) -> str:
    """Return what was raised and where; the error's own text may quote values of the table."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if Path(frame.filename).parent != Path(__file__).parent]
    line = f" in line {outside[-1].lineno}" if outside else ""
    return f"{type(error).__name__}{line}"


def trace(objective: RecordLoss, domains: Domains) -> Any:
    """Return what the function gives for a record of symbols.

    Raises
    ------
    UnsupportedObjective
        If the function fails.
    """
    return _call(objective, Record(domains, SymbolicCells(domains.origin)))


def as_expression(objective: RecordLoss, traced: object) -> Expression:
    """Return what was traced as an expression; a plain number is a constant one.

    Raises
    ------
    UnsupportedObjective
        If it is neither.
    """
    if isinstance(traced, Expression):
        return traced
    if isinstance(traced, bool) or not isinstance(traced, int | float | np.number):
        raise UnsupportedObjective(
            f"objective {objective.name!r} returns a {type(traced).__name__}",
            remedy="Return one number a record",
        )
    return Expression(float(traced), {})
