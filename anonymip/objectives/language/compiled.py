"""An objective bound to a table: its tier, its tables, what is proven about it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Cover, Description
from anonymip.errors import AnonymipError, UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.class_cells import cells_of_sets
from anonymip.objectives.language.expression import Expression, SymbolicCells
from anonymip.objectives.language.members import Members
from anonymip.objectives.language.record import CellBatch, Record
from anonymip.objectives.language.repeated import expression_losses, refuse_other_answer
from anonymip.objectives.language.sampling import refuse_falling, refuse_subadditive, sampled_cells
from anonymip.objectives.language.signatures import ClassLoss, RecordLoss
from anonymip.objectives.language.tables import LossTables, NotSeparable, first_decrease, tabulate
from anonymip.tolerances import LOSS_ABSOLUTE, LOSS_RELATIVE

#: Sets of records described at a time.
_BATCH = 20_000


@dataclass(frozen=True, eq=False)
class CompiledObjective:
    """An objective bound to a table.

    Parameters
    ----------
    objective
        What was traced.
    microdata
        The table.
    domains
        Of the table.
    tier
        ``"affine"``, ``"separable"`` (both have tables), ``"general"`` (called on batches of
        records) or ``"members"`` (called on the members of classes).
    suppression_price
        Loss of a suppressed record; NaN where the objective has none.
    expression
        The loss of an unsuppressed record, as symbols; None of a higher tier.
    loss_tables
        The same as arrays; None of a higher tier.
    decreasing
        An attribute whose loss can fall when a cell covers more, as the tables show.
    monotone
        Whether the record loss is monotone in set inclusion: proven by the tables, or assumed.
    superadditive
        Whether a class costs at least as much as the two of any cut of it.
    assumed
        What its author declares and nobody proves.
    aggregate
        ``"sum"`` over the records, or ``"max"``.
    """

    objective: RecordLoss | ClassLoss
    microdata: Microdata
    domains: Domains
    tier: str
    suppression_price: float
    expression: Expression | None = None
    loss_tables: LossTables | None = None
    decreasing: str | None = None
    monotone: bool = False
    superadditive: bool = False
    assumed: tuple[str, ...] = ()
    aggregate: str = field(default="sum")

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
        """The loss as arrays.

        Raises
        ------
        UnsupportedObjective
            If the loss is of a higher tier.
        """
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

    def record_losses(self, cells: CellBatch) -> NDArray[np.float64]:
        """Return the (B,) losses of published records by calling the objective's own function.

        Neither the tables nor a solver have a part in this.

        Raises
        ------
        UnsupportedObjective
            If the function does not return B finite numbers, or looks at members.
        """
        if self.tier == "members":
            raise UnsupportedObjective(
                f"objective {self.name!r} is a loss of classes, not of published records",
                remedy="Ask for class_losses of sets of records",
            )
        return _evaluate(self.objective, self.domains, cells)

    def class_losses(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (B,) losses of classes of the given records, whatever the tier.

        Parameters
        ----------
        rows
            (B, s) records of each class.

        Returns
        -------
        numpy.ndarray
            The class's part of the sum over the records; with the aggregate ``"max"`` the loss of
            one of its records.

        Raises
        ------
        UnsupportedObjective
            If the function does not return finite numbers.
        """
        rows = np.asarray(rows, np.int64)
        if not len(rows):
            return np.empty(0)
        parts = [rows[at : at + _BATCH] for at in range(0, len(rows), _BATCH)]
        if self.tier == "members":
            return np.concatenate([_cost(self.objective, self.microdata, part) for part in parts])
        losses = np.concatenate(
            [self.record_losses(cells_of_sets(self.microdata, part)) for part in parts]
        )
        return losses * rows.shape[1] if self.aggregate == "sum" else losses

    def losses_of(
        self, description: Description, assignment: Assignment | None = None
    ) -> NDArray[np.float64]:
        """Return (n,) losses of the records of a release.

        Raises
        ------
        UnsupportedObjective
            If the loss looks at members and there are no classes.
        """
        if self.tier != "members":
            return self.record_losses(cells_of(description))
        if assignment is None:
            raise UnsupportedObjective(
                f"objective {self.name!r} is a loss of classes", remedy="Give the assignment too"
            )
        losses = np.full(assignment.n, np.nan)
        if isinstance(assignment, Cover):
            for size in np.unique(assignment.sizes):
                at = np.flatnonzero(assignment.sizes == size)
                places = assignment.start[at][:, None] + np.arange(size)
                rows = assignment.members[places].astype(np.int64)
                losses[at] = self.class_losses(rows) / size
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

    def aggregated(self, losses: NDArray[np.float64]) -> float:
        """Return the sum or the maximum of the losses of all records."""
        return float(losses.sum() if self.aggregate == "sum" else losses.max())


def cells_of(description: Description) -> CellBatch:
    """Return the cells of a description, as an objective sees them."""
    return CellBatch(
        description.lower,
        description.upper,
        description.members.count,
        description.suppressed,
        description.nodes,
    )


def compile_record_loss(objective: RecordLoss, microdata: Microdata) -> CompiledObjective:
    """Bind a loss of published records to a table; see :meth:`Objective.compile`."""
    domains = Domains.of(microdata)
    expression, tables = _traced(objective, domains, microdata)
    price = _price_of_stars(objective, domains)
    if tables is None or expression is None:
        if objective.monotone:
            refuse_falling(
                objective.name,
                lambda rows: _evaluate(objective, domains, cells_of_sets(microdata, rows)),
                microdata.n,
            )
        return CompiledObjective(
            objective,
            microdata,
            domains,
            "general",
            price,
            monotone=bool(objective.monotone),
            superadditive=bool(objective.monotone),
            assumed=("the objective is monotone",) if objective.monotone else (),
        )
    column = first_decrease(tables)
    decreasing = None if column is None else domains.names[column]
    if objective.monotone and decreasing is not None:
        raise UnsupportedObjective(
            f"objective {objective.name!r} is declared monotone, and can fall in {decreasing!r} "
            "when a cell covers more",
            remedy="Correct the loss, or leave the declaration out",
        )
    return CompiledObjective(
        objective,
        microdata,
        domains,
        "separable" if expression.terms else "affine",
        price,
        expression,
        tables,
        decreasing,
        monotone=decreasing is None,
        superadditive=decreasing is None,
    )


def compile_members(objective: ClassLoss, microdata: Microdata) -> CompiledObjective:
    """Bind a loss of classes to a table; see :meth:`MembersObjective.compile`."""

    def cost(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return _cost(objective, microdata, rows)

    _probe_members(objective, microdata)
    superadditive = bool(objective.superadditive)
    if superadditive:
        refuse_subadditive(objective.name, cost, microdata.n)
    price = objective.suppression_price
    return CompiledObjective(
        objective,
        microdata,
        Domains.of(microdata),
        "members",
        np.nan if price is None else float(price),
        superadditive=superadditive,
        assumed=(
            ("the objective is superadditive",) if superadditive and objective.proof is None else ()
        ),
    )


def _traced(
    objective: RecordLoss, domains: Domains, microdata: Microdata
) -> tuple[Expression | None, LossTables | None]:
    """Return expression and tables of a separable loss, or twice None for a general one."""
    try:
        traced = _call(objective, Record(domains, SymbolicCells(domains.low)))
    except UnsupportedObjective as refusal:
        _probe_general(objective, domains, microdata, refusal)
        return None, None
    expression = traced if isinstance(traced, Expression) else _constant(objective, traced)
    try:
        tables = tabulate(
            expression,
            domains,
            microdata.levels,
            tuple(microdata.leaves(a) for a in range(microdata.m)),
        )
    except NotSeparable as refusal:
        _probe_general(objective, domains, microdata, refusal)
        return None, None
    _probe_traced(objective, expression, domains, microdata)
    return expression, tables


def _price_of_stars(objective: RecordLoss, domains: Domains) -> float:
    star = np.ones((2, domains.m))
    roots = np.array([-1 if tree is None else tree.root for tree in domains.trees], np.int32)
    cells = CellBatch(
        star * domains.low,
        star * domains.high,
        star * domains.size,
        star == 1,
        np.repeat(roots[None, :], 2, axis=0),
    )
    return float(_evaluate(objective, domains, cells)[0])


def _evaluate(objective: Any, domains: Domains, cells: CellBatch) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):  # what is not finite is refused below
        losses = _real(objective.name, _call(objective, Record(domains, cells)))
    return _checked(objective.name, losses, len(cells.lowers), "record")


def _cost(objective: Any, microdata: Microdata, rows: NDArray[np.int64]) -> NDArray[np.float64]:
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
    """Call the objective's function; whatever it raises is its author's to mend."""
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


def _constant(objective: RecordLoss, traced: object) -> Expression:
    if isinstance(traced, bool) or not isinstance(traced, int | float | np.number):
        raise UnsupportedObjective(
            f"objective {objective.name!r} returns a {type(traced).__name__}",
            remedy="Return one number a record",
        )
    return Expression(float(traced), {})


def _probe_traced(
    objective: RecordLoss, expression: Expression, domains: Domains, microdata: Microdata
) -> None:
    """Compare the traced loss with the function on a few possible records.

    Catches functions that mean something else for a batch, such as one that sums over it, and those
    that answer otherwise when they are asked again, in another order.
    """
    cells = sampled_cells(domains, microdata)
    called = _evaluate(objective, domains, cells)
    traced = expression_losses(expression, domains, cells)
    _refuse_difference(objective.name, called, traced)
    backwards = _evaluate(objective, domains, cells.taken(slice(None, None, -1)))
    refuse_other_answer(objective.name, called, backwards[::-1])
    again = _call(objective, Record(domains, SymbolicCells(domains.low)))
    if not isinstance(again, Expression):
        again = _constant(objective, again)
    refuse_other_answer(objective.name, traced, expression_losses(again, domains, cells))


def _probe_general(
    objective: RecordLoss, domains: Domains, microdata: Microdata, refusal: UnsupportedObjective
) -> None:
    """Compare a batch with its records one by one; what cannot be called is refused as before."""
    cells = sampled_cells(domains, microdata)
    try:
        called = _evaluate(objective, domains, cells)
        single = [_evaluate(objective, domains, cells.only(at)) for at in range(len(called))]
        _refuse_difference(objective.name, called, np.concatenate(single))
    except UnsupportedObjective as failure:
        # A function that gives numbers has to be mended if they are infinite or change.
        changes = isinstance(refusal, NotSeparable) and "different losses" in str(failure)
        own_fault = changes or "infinite" in str(failure)
        raise (failure if own_fault else refusal) from None


def _probe_members(objective: ClassLoss, microdata: Microdata) -> None:
    rng = np.random.default_rng(0)
    size = min(3, microdata.n)
    rows = np.array([rng.permutation(microdata.n)[:size] for _ in range(4)], np.int64)
    called = _cost(objective, microdata, rows)
    single = np.concatenate([_cost(objective, microdata, row[None, :]) for row in rows])
    _refuse_difference(objective.name, called, single)
    _refuse_difference(objective.name, called, _cost(objective, microdata, rows[:, ::-1]))


def _refuse_difference(name: str, called: NDArray[np.float64], again: NDArray[np.float64]) -> None:
    scale = 1e3 * (LOSS_ABSOLUTE + LOSS_RELATIVE * np.abs(called).max())
    if not np.allclose(called, again, rtol=0.0, atol=scale):
        raise UnsupportedObjective(
            f"objective {name!r} gives different losses for one record and for a batch, or for "
            "another order of the members",
            remedy="Keep it free of state, chance and functions that look at the whole batch",
        )
