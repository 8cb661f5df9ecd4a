"""An objective bound to a table: tier, tables, what is proven about it, losses; its calls.

What the function of an objective raises or returns is for its author to correct.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Cover, Description, by_size
from anonymip.errors import AnonymipError, UnsupportedObjective, did_you_mean
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.expression import Expression
from anonymip.objectives.language.record import (
    CellBatch,
    Members,
    Record,
    SymbolicCells,
    cells_of,
    cells_of_sets,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.arrays import Floats, Ints


def call_record_loss(objective: Any, domains: Domains, cells: CellBatch) -> Floats:
    """Return the (B,) losses of published records, B finite numbers."""
    record = Record(domains, cells)
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused below
            losses = _real(objective.name, _call(objective, record))
    finally:
        # The features refer to the record and it to them: cells of a whole table would stay in
        # memory until Python looks for garbage.
        vars(record).clear()
    return _checked(objective.name, losses, len(cells.lowers), "record")


def call_class_loss(objective: Any, microdata: Microdata, rows: Ints) -> Floats:
    """Return the (B,) losses of classes of (B, s) records, B finite numbers."""
    try:
        with np.errstate(all="ignore"):
            losses = _real(objective.name, objective.class_cost(Members(microdata, rows)))
    except AnonymipError:
        raise
    except (Exception, SystemExit) as error:
        raise _failure(objective.name, error) from error
    return _checked(objective.name, losses, len(rows), "class")


def _real(name: str, given: object) -> Floats:
    """Return what a function gave as numbers; an imaginary part is not dropped."""
    losses = np.asarray(given)
    if losses.dtype.kind == "c":
        raise UnsupportedObjective(
            f"objective {name!r} returns complex numbers", remedy="Return real numbers"
        )
    return losses.astype(np.float64)


def _checked(name: str, losses: Floats, batch: int, unit: str) -> Floats:
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


def _call(objective: Any, record: Record) -> Any:
    """Call the objective's function; whatever it raises is for its author to correct."""
    try:
        return objective.loss(record)
    except AnonymipError:
        raise
    except (TypeError, AttributeError) as error:
        if isinstance(error, AttributeError) and error.obj is record:
            features = [name for name in vars(record) if not name.startswith("_")]
            raise UnsupportedObjective(
                f"objective {objective.name!r} reads {error.name!r}, which no published record has",
                remedy=did_you_mean(error.name, features, f"It has {', '.join(features)}"),
            ) from error
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


def trace(objective: Any, domains: Domains) -> Any:
    """Return what the function gives for a record of symbols."""
    return _call(objective, Record(domains, SymbolicCells(domains.origin)))


def as_expression(objective: Any, traced: object) -> Expression:
    """Return what was traced as an expression; a plain number is a constant one."""
    if isinstance(traced, Expression):
        return traced
    if isinstance(traced, bool) or not isinstance(traced, int | float | np.number):
        raise UnsupportedObjective(
            f"objective {objective.name!r} returns a {type(traced).__name__}",
            remedy="Return one number a record",
        )
    return Expression(float(traced), {})


def expression_losses(expression: Expression, domains: Domains, cells: CellBatch) -> Floats:
    """Return the (B,) losses of unsuppressed records that a traced loss gives."""
    values = {}
    for a, tree in enumerate(domains.trees):
        values[a, "lower"] = cells.lowers[:, a] - domains.origin[a]
        values[a, "upper"] = cells.uppers[:, a] - domains.origin[a]
        values[a, "width"] = cells.uppers[:, a] - cells.lowers[:, a]
        values[a, "count"] = cells.count(a)
        if tree is not None:
            values[a, "level"], values[a, "leaves"] = cells.level(a, tree), cells.leaves(a, tree)
    return np.broadcast_to(expression.evaluate(values), len(cells.lowers)).astype(np.float64)


#: Element-wise functions may differ in their last digits with the place in a batch.
_LAST_DIGITS = 1e-12


def refuse_other_answer(name: str, losses: Floats, again: Floats) -> None:
    """Refuse losses that differ by more than their last digits from those asked for again."""
    largest = float(np.abs(losses).max(initial=0.0))
    if not np.allclose(losses, again, rtol=0.0, atol=_LAST_DIGITS * largest):
        raise UnsupportedObjective(
            f"objective {name!r} gives another loss when it is asked again",
            remedy="Keep it free of state and of chance",
        )


_BATCH = 20_000  # sets of records described at a time


@dataclass(frozen=True, eq=False)
class CompiledObjective:
    """An objective bound to a table."""

    objective: Any  # what was traced: an Objective or a MembersObjective
    microdata: Microdata  # the table
    domains: Domains  # of the table
    #: ``"affine"``, ``"separable"`` (both have tables), ``"general"`` (called on batches of
    #: records) or ``"members"`` (called on the members of classes).
    tier: str
    suppression_price: float  # loss of a suppressed record; NaN where the objective has none
    #: The loss of an unsuppressed record, as symbols; of a higher tier only where it proves the
    #: loss monotone, else None.
    expression: Expression | None = None
    loss_tables: LossTables | None = None  # the same as arrays; None of a higher tier
    #: An attribute whose loss can fall when a cell covers more, as the tables show.
    decreasing: str | None = None
    #: Whether the record loss is monotone in set inclusion: proven by the tables or by the rules of
    #: :mod:`anonymip.objectives.language.monotonicity`, or assumed.
    monotone: bool = False
    #: Whether a class costs at least as much as the two of any cut of it.
    superadditive: bool = False
    assumed: tuple[str, ...] = ()  # what its author declares and nobody proves
    aggregate: str = field(default="sum")  # ``"sum"`` over the records, or ``"max"``
    #: Whether the problem sets the price of a suppressed record, not the objective.
    own_price: bool = False

    @property
    def name(self) -> str:
        """Name of the objective."""
        return self.objective.name

    @property
    def has_tables(self) -> bool:
        """Whether the loss is a sum of terms that look at one attribute each."""
        return self.loss_tables is not None

    @property
    def tables(self) -> LossTables:
        """The loss as arrays. Raises UnsupportedObjective if the loss is of a higher tier."""
        if self.loss_tables is None:
            raise UnsupportedObjective(
                f"objective {self.name!r} is of the {self.tier} tier, which has no tables",
                remedy="Accepted are sums of terms that look at one attribute each",
            )
        return self.loss_tables

    @property
    def obstacle(self) -> str | None:
        """Why the record loss is not known to be monotone; None if it is."""
        if self.monotone:
            return None
        if self.decreasing is not None:
            return f"it can fall in {self.decreasing!r} when a cell covers more"
        if self.tier == "members":
            return "it looks at the members of a class, not at what is published"
        return "nothing proves it monotone, and its author does not declare it"

    def record_losses(self, cells: CellBatch) -> Floats:
        """Return the (B,) losses of published records by calling the objective's own function.

        Neither the tables nor a solver have a part in this. Raises UnsupportedObjective if the
        function does not return B finite numbers, or looks at members.
        """
        if self.tier == "members":
            raise UnsupportedObjective(
                f"objective {self.name!r} is a loss of classes, not of published records",
                remedy="Ask for class_losses of sets of records",
            )
        losses = call_record_loss(self.objective, self.domains, cells)
        if self.own_price:
            losses = np.where(cells.stars.all(axis=1), self.suppression_price, losses)
        return losses

    def losses_of_sets(self, rows: Ints) -> Floats:
        """Return (B,) what a record loses that is published as each set of records, (B, s)."""
        return self.record_losses(cells_of_sets(self.microdata, rows))

    def class_losses(self, rows: Ints) -> Floats:
        """Return (B,) losses of classes of the given records, whatever the tier.

        `rows`: (B, s) records of each class. Returns: the class's part of the sum over the records;
        with the aggregate ``"max"`` the loss of one of its records. Raises UnsupportedObjective if
        the function does not return finite numbers.
        """
        rows = np.asarray(rows, np.int64)
        if not len(rows):
            return np.empty(0)
        parts = [rows[at : at + _BATCH] for at in range(0, len(rows), _BATCH)]
        if self.tier == "members":
            return np.concatenate(
                [call_class_loss(self.objective, self.microdata, part) for part in parts]
            )
        losses = np.concatenate([self.losses_of_sets(part) for part in parts])
        return losses * rows.shape[1] if self.aggregate == "sum" else losses

    def losses_of(self, description: Description, assignment: Assignment | None = None) -> Floats:
        """Return (n,) losses of the records of a release; one of members needs its classes."""
        if self.tier != "members":
            return self.record_losses(cells_of(description))
        if assignment is None:
            raise UnsupportedObjective(
                f"objective {self.name!r} is a loss of classes", remedy="Give the assignment too"
            )
        losses = np.full(assignment.n, np.nan)
        if isinstance(assignment, Cover):
            losses[assignment.sizes == 0] = self.suppression_price
            for records, places in by_size(assignment.start):
                rows = assignment.members[places].astype(np.int64)
                losses[records] = self.class_losses(rows) / rows.shape[1]
            return losses
        if not isinstance(assignment, Classes):
            raise UnsupportedObjective(
                f"objective {self.name!r} is a loss of classes that share what they publish",
                remedy="Use a loss of published records, such as gcp or suppressions",
            )
        losses[assignment.labels == SUPPRESSED] = self.suppression_price
        groups = assignment.groups()
        for size in np.unique(assignment.sizes):
            rows = np.array([group for group in groups if len(group) == size], np.int64)
            # A class's loss is spread evenly over its members.
            losses[rows] = (self.class_losses(rows) / size)[:, None]
        return losses

    def total(self, description: Description, assignment: Assignment | None = None) -> float:
        """Return the loss of a release: the sum over its records, or the largest."""
        return self.aggregated(self.losses_of(description, assignment))

    def aggregated(self, losses: Floats) -> float:
        """Return the sum or the maximum of the losses of all records."""
        return float(losses.sum() if self.aggregate == "sum" else losses.max())
