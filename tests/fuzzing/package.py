"""What the judge asks, said in the package's words, and the package's answers for the judge."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import pandas as pd

import anonymip
from anonymip import Attribute, Microdata, Problem
from tests.fuzzing.judge.asked import Asked
from tests.fuzzing.judge.losses import Loss
from tests.fuzzing.judge.stars import Mask
from tests.fuzzing.judge.table import MISSING, Column, Table


def attribute_of(column: Column) -> Attribute:
    """Return the attribute that a column is."""
    scale = column.scale
    if scale is not None:
        return Attribute(
            column.name,
            "numeric" if scale.unit is None else "date",
            weight=column.weight,
            integer=scale.whole,
            precision=scale.step if scale.unit is None else scale.unit,  # type: ignore[arg-type]
            format=scale.form,
            **{
                name: scale.shown(end, last=False) if scale.unit else end
                for name, end in (("at_most", scale.most), ("at_least", scale.least))
                if end is not None
            },
            publish=column.publish,  # type: ignore[arg-type]
            missing="own" if column.misses else None,
        )
    return Attribute(
        column.name,
        column.kind,  # type: ignore[arg-type]
        domain=column.domain,
        weight=column.weight,
        integer=column.integer,
        hierarchy=anonymip.Hierarchy(column.paths) if column.paths else None,
        publish=column.publish,  # type: ignore[arg-type]
        missing="own" if column.misses else None,
    )


def frame_of(table: Table) -> pd.DataFrame:
    """Return the table as a data frame."""
    columns: dict[str, Any] = {
        column.name: [
            None
            if value == MISSING
            else int(told)
            if column.scale is None and column.integer
            else told
            for value, told in zip(column.values, column.told, strict=True)
        ]
        for column in table.columns
    }
    columns.update({name: list(values) for name, values in (*table.sensitive, *table.kept)})
    return pd.DataFrame(columns)


def _told(column: Column, value: Any) -> Any:
    return int(value) if column.scale is None and column.integer else value


def objective_of(loss: Loss, table: Table) -> Any:
    """Return the objective that a loss is."""
    names = [column.name for column in table.columns]
    built_in = {
        "gcp": anonymip.GCP,
        "leaf-loss": anonymip.LeafLoss,
        "set-gcp": anonymip.SetGCP,
        "liang-gcp": anonymip.LiangGCP,
        "weighted-loss": anonymip.WeightedLoss,
        "hierarchy-loss": anonymip.HierarchyLoss,
        "bottleneck-gcp": anonymip.Bottleneck,
        "sse": anonymip.SSE,
    }
    if loss.name == "weighted-loss-binary":
        return anonymip.WeightedLoss("binary")
    if loss.name == "suppressions":
        return anonymip.Suppressions(dict(zip(names, loss.costs, strict=True)))
    if loss.name == "affine":
        costs, constant = loss.costs, loss.constant

        def affine(record: Any) -> Any:
            spreads = [record.spread[name] for name in names]
            return constant + sum(c * s for c, s in zip(costs, spreads, strict=True))

        return anonymip.objective(affine)
    if loss.name in ("product", "largest"):
        by_column = dict(zip(names, loss.costs, strict=True))

        def product(record: Any) -> Any:
            return prod(cost + record.spread[name] for name, cost in by_column.items())

        def largest(record: Any) -> Any:
            parts = [cost * record.spread[name] for name, cost in by_column.items()]
            return reduce(np.maximum, parts)

        return anonymip.objective(product if loss.name == "product" else largest)
    return built_in[loss.name]()


def mask_of(mask: Mask, names: list[str]) -> anonymip.Mask:
    """Return the mask in names of columns."""

    def named(group: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(names[a] for a in group)

    return anonymip.Mask(
        suppress_at_most=mask.suppress_at_most,
        never=named(mask.never),
        together=tuple(map(named, mask.together)),
        at_most_one=tuple(map(named, mask.at_most_one)),
        allow_all_stars=mask.allow_all_stars,
        patterns=None if mask.patterns is None else tuple(map(named, mask.patterns)),
    )


def recoding_of(asked: Asked) -> Any:
    """Return the recoding that is asked for."""
    weaker = {
        "one-k": anonymip.OneK,
        "k-one": anonymip.KOne,
        "k-k": anonymip.KK,
        "k-concealment": anonymip.KConcealment,
    }
    if asked.recoding in weaker:
        return weaker[asked.recoding]()
    if asked.recoding == "classes":
        return anonymip.EquivalenceClasses(
            suppression=asked.suppression, most_suppressed=asked.most_suppressed
        )
    if asked.recoding == "freeform":
        return anonymip.Freeform(
            reciprocal=asked.reciprocal,
            degrees=asked.degrees or None,
            suppression=asked.suppression,
            most_suppressed=asked.most_suppressed,
        )
    if asked.recoding == "full-domain":
        return anonymip.FullDomain(
            suppression=asked.suppression, most_suppressed=asked.most_suppressed
        )
    names = [column.name for column in asked.table.columns]
    if asked.recoding == "pattern-levels":
        return anonymip.PatternLevels(mask_of(asked.mask, names))
    return anonymip.PatternGuided(
        mask_of(asked.mask, names),
        single_use=asked.single_use,
        suppression=asked.suppression,
        most_suppressed=asked.most_suppressed,
    )


def problem_of(asked: Asked) -> Problem:
    """Return the problem that is asked."""
    table, rules = asked.table, asked.rules
    names = [column.name for column in table.columns]
    data = Microdata(
        frame_of(table),
        tuple(map(attribute_of, table.columns)),
        sensitive=tuple(name for name, _ in table.sensitive[rules.unit > 0 :]),
        unit=table.sensitive[0][0] if rules.unit else None,
        keep=tuple(name for name, _ in table.kept),
    )
    diversity = None
    if rules.of_rows:
        diversity = anonymip.Diversity(
            l=rules.l, distinct=rules.distinct, t=rules.t, ordered=rules.ordered
        )
    caps = [anonymip.Cap(names[a], most) for a, most in rules.caps]
    apart = [anonymip.Apart(names[a], one, two) for a, one, two in rules.apart]
    return Problem(
        data,
        asked.k,
        recoding_of(asked),
        objective_of(asked.loss, table),
        diversity,
        (*caps, *apart),
    )


def judged(asked: Asked, solution: anonymip.Solution) -> tuple[Fraction, list[str]]:
    """Return the exact loss of a solution and what is wrong with its assignment."""
    given: Any = solution.assignment
    if asked.recoding in ("classes", "pattern-levels"):
        return asked.judge_classes(given.labels.tolist())
    if asked.recoding == "pattern":
        stars = solution.problem.recoding.stars(solution.problem)  # type: ignore[attr-defined]
        rows = [None if at < 0 else tuple(map(bool, stars[at])) for at in given.index.tolist()]
        return asked.judge_patterns(rows)
    if asked.recoding == "full-domain":
        left_out = np.flatnonzero(given.suppressed_records).tolist()
        return asked.judge_levels(given.levels.tolist(), left_out)
    return asked.judge_cover([given.of_record(i).tolist() for i in range(asked.table.n)])
