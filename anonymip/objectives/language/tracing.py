"""Compilation of an objective on a table: traced, tabulated, tried on samples of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anonymip.errors import UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.compiled import (
    CompiledObjective,
    as_expression,
    call_class_loss,
    call_record_loss,
    expression_losses,
    refuse_other_answer,
    trace,
)
from anonymip.objectives.language.expression import Expression
from anonymip.objectives.language.monotonicity import never_falls
from anonymip.objectives.language.record import CellBatch, cells_between, cells_of_sets
from anonymip.objectives.language.tables import LossTables, NotSeparable, first_decrease, tabulate
from anonymip.runtime.arrays import Floats, Ints
from anonymip.tolerances import LOSS_ABSOLUTE, LOSS_RELATIVE

Losses = Callable[[Ints], Floats]  # losses of (B,) classes of (B, s) records

_CHAINS = 200
_LARGEST = 8


def compile_record_loss(objective: Any, microdata: Microdata) -> CompiledObjective:
    """Bind a loss of published records to a table; see :meth:`Objective.compile`."""
    domains = Domains.of(microdata)
    expression, tables = _traced(objective, domains, microdata)
    price = _price_of_stars(objective, domains)
    declared, decreasing = bool(objective.monotone), None
    assumed: tuple[str, ...] = ()
    if tables is None or expression is None:
        tier, monotone = "general", expression is not None and never_falls(expression, domains)
        expression = expression if monotone else None
        if declared and not monotone:
            refuse_falling(
                objective.name,
                lambda rows: call_record_loss(objective, domains, cells_of_sets(microdata, rows)),
                microdata.n,
            )
            monotone, assumed = True, ("the objective is monotone",)
    else:
        tier, column = "separable" if expression.terms else "affine", first_decrease(tables)
        decreasing = None if column is None else domains.names[column]
        if declared and decreasing is not None:
            raise UnsupportedObjective(
                f"objective {objective.name!r} is declared monotone, and can fall in "
                f"{decreasing!r} when a cell covers more",
                remedy="Correct the loss, or leave the declaration out",
            )
        monotone = decreasing is None
    return CompiledObjective(
        objective,
        microdata,
        domains,
        tier,
        price,
        expression,
        tables,
        decreasing,
        monotone=monotone,
        superadditive=monotone,
        assumed=assumed,
    )


def compile_members(objective: Any, microdata: Microdata) -> CompiledObjective:
    """Bind a loss of classes to a table; see :meth:`MembersObjective.compile`."""

    def cost(rows: Ints) -> Floats:
        return call_class_loss(objective, microdata, rows)

    probe_members(objective, microdata)
    superadditive = bool(objective.superadditive)
    if superadditive:
        refuse_subadditive(objective.name, cost, microdata.n)
    assumed, price = superadditive and not _is_proven(objective), objective.suppression_price
    return CompiledObjective(
        objective,
        microdata,
        Domains.of(microdata),
        "members",
        np.nan if price is None else float(price),
        superadditive=superadditive,
        assumed=("the objective is superadditive",) if assumed else (),
    )


def _is_proven(objective: Any) -> bool:
    """Return whether a proof is stated of the cost, and not of one that a subclass replaces."""
    for one in type(objective).__mro__:
        if "proof" in vars(one):
            return objective.proof is not None
        if "class_cost" in vars(one):
            break
    return False


def _traced(
    objective: Any, domains: Domains, microdata: Microdata
) -> tuple[Expression | None, LossTables | None]:
    """Return expression and tables of a loss; None for what a general one does not have."""
    try:
        traced = trace(objective, domains)
    except UnsupportedObjective as refusal:
        probe_general(objective, domains, microdata, refusal)
        return None, None
    expression = as_expression(objective, traced)
    try:
        tables = tabulate(expression, domains, microdata)
    except NotSeparable as refusal:
        probe_general(objective, domains, microdata, refusal)
        try:
            probe_traced(objective, expression, domains, microdata)
        except UnsupportedObjective:
            return None, None  # what was traced is not what is called
        return expression, None
    probe_traced(objective, expression, domains, microdata)
    return expression, tables


def _price_of_stars(objective: Any, domains: Domains) -> float:
    star = np.ones((2, domains.m))
    roots = np.array([-1 if tree is None else tree.root for tree in domains.trees], np.int32)
    cells = CellBatch(
        star * domains.low,
        star * domains.high,
        star * domains.size,
        star == 1,
        np.repeat(roots[None, :], 2, axis=0),
    )
    return float(call_record_loss(objective, domains, cells)[0])


def probe_traced(
    objective: Any, expression: Expression, domains: Domains, microdata: Microdata
) -> None:
    """Compare the traced loss with the function on a few possible records.

    Catches functions that mean something else for a batch, such as one that sums over it, and those
    that answer otherwise when they are asked again, in another order.
    """
    cells = sampled_cells(microdata)
    called = call_record_loss(objective, domains, cells)
    traced = expression_losses(expression, domains, cells)
    _refuse_difference(objective.name, called, traced)
    backwards = call_record_loss(objective, domains, cells.taken(slice(None, None, -1)))
    refuse_other_answer(objective.name, called, backwards[::-1])
    again = as_expression(objective, trace(objective, domains))
    refuse_other_answer(objective.name, traced, expression_losses(again, domains, cells))


def probe_general(
    objective: Any, domains: Domains, microdata: Microdata, refusal: UnsupportedObjective
) -> None:
    """Compare a batch with its records one by one; what cannot be called is refused as before."""
    cells = sampled_cells(microdata)
    try:
        called = call_record_loss(objective, domains, cells)
        each = [cells.taken(slice(at, at + 1)) for at in range(len(called))]
        single = [call_record_loss(objective, domains, one) for one in each]
        _refuse_difference(objective.name, called, np.concatenate(single))
    except UnsupportedObjective as failure:
        # A function that gives numbers has to be mended if they are infinite or change.
        changes = isinstance(refusal, NotSeparable) and "different losses" in str(failure)
        own_fault = changes or "infinite" in str(failure)
        raise (failure if own_fault else refusal) from None


def probe_members(objective: Any, microdata: Microdata) -> None:
    """Compare classes with each of them alone, and with their members in another order."""
    rng = np.random.default_rng(0)
    size = min(3, microdata.n)
    rows = np.array([rng.permutation(microdata.n)[:size] for _ in range(4)], np.int64)
    called = call_class_loss(objective, microdata, rows)
    single = np.concatenate([call_class_loss(objective, microdata, row[None, :]) for row in rows])
    _refuse_difference(objective.name, called, single)
    _refuse_difference(objective.name, called, call_class_loss(objective, microdata, rows[:, ::-1]))


def _refuse_difference(name: str, called: Floats, again: Floats) -> None:
    if not np.allclose(called, again, rtol=0.0, atol=rounding_slack(called).max()):
        raise UnsupportedObjective(
            f"objective {name!r} gives different losses for one record and for a batch, or for "
            "another order of the members",
            remedy="Keep it free of state, chance and functions that look at the whole batch",
        )


def sampled_cells(microdata: Microdata) -> CellBatch:
    """Return the cells of five possible records, an exact one and the widest among them."""
    rng = np.random.default_rng(0)
    sizes = np.array([len(level) for level in microdata.levels])
    picked = [np.sort(rng.integers(size, size=(5, 2)), axis=1) for size in sizes]
    lowest, highest = np.stack(picked, axis=2).transpose(1, 0, 2)
    lowest[:2], highest[0], highest[1] = 0, 0, sizes - 1
    return cells_between(microdata, lowest, highest, highest - lowest + 1)


def refuse_falling(name: str, losses: Losses, n: int) -> None:
    """Refuse a record loss that falls along some chain of growing sets of the n records."""
    chains = random_chains(n)
    before = losses(chains[:, :1])
    for size in range(2, chains.shape[1] + 1):
        after = losses(chains[:, :size])
        falls = after < before - rounding_slack(before)
        if falls.any():
            at = int(falls.argmax())
            raise UnsupportedObjective(
                f"objective {name!r} is declared monotone, but falls from {before[at]:.6g} to "
                f"{after[at]:.6g} when the records {(chains[at, : size - 1] + 1).tolist()} are "
                f"published with record {chains[at, size - 1] + 1}",
                remedy="Correct the loss, or leave the declaration out",
            )
        before = after


def refuse_subadditive(name: str, costs: Losses, n: int) -> None:
    """Refuse a class loss under which some class costs less than the two of a cut of it."""
    chains = random_chains(n)
    for size in range(2, chains.shape[1] + 1):
        whole = costs(chains[:, :size])
        for cut in range(1, size):
            parts = costs(chains[:, :cut]) + costs(chains[:, cut:size])
            falls = whole < parts - rounding_slack(parts)
            if falls.any():
                at = int(falls.argmax())
                raise UnsupportedObjective(
                    f"objective {name!r} is declared superadditive, but the class of the records "
                    f"{(chains[at, :size] + 1).tolist()} costs {whole[at]:.6g}, less than the "
                    f"{parts[at]:.6g} of its first {cut} and the others",
                    remedy="Correct the loss, or leave the declaration out",
                )


def rounding_slack(losses: Floats) -> Floats:
    """Return by how much losses may differ from others without being told apart."""
    slack: Floats = 1e3 * (LOSS_ABSOLUTE + LOSS_RELATIVE * np.abs(losses))
    return slack


def random_chains(n: int, count: int = _CHAINS) -> Ints:
    """Return (chains, length) distinct records each, in random order."""
    rng = np.random.default_rng(0)
    length = min(n, _LARGEST)
    return np.array([rng.choice(n, length, replace=False) for _ in range(count)], np.int64)
