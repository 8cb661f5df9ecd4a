"""What a release of patterns or of levels claims: its mask or its levels, and what stars mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anonymip.assignments import Cover, Levels, Patterns
from anonymip.instances import Attribute
from anonymip.objectives import GCP, HierarchyLoss, LeafLoss, Suppressions, WeightedLoss
from anonymip.problem import Problem
from anonymip.publishing.suppressed import STARRED
from anonymip.recodings import FullDomain, PatternGuided
from anonymip.solution import Solution

#: Losses that charge a star the same whatever the domain is, and exact cells nothing.
_BLIND_TO_DOMAINS = (GCP, LeafLoss, HierarchyLoss, Suppressions)


def describe_stars(solution: Solution, suppressed: str) -> dict[str, Any]:
    """Return the keys by which a manifest says what is starred, none of classes and covers.

    ``stars`` says what rows of stars only are: ``"suppressed"`` if one of them was suppressed as
    a whole, which then nobody can distinguish from the others; else they are a class like any
    other.
    """
    assignment, problem = solution.assignment, solution.problem
    if not isinstance(assignment, Patterns | Levels):
        return {}
    starred = suppressed == STARRED and assignment.suppressed > 0
    claims: dict[str, Any] = {"stars": "suppressed" if starred else "class"}
    if isinstance(assignment, Levels):
        levels = zip(problem.microdata.names, assignment.levels.tolist(), strict=True)
        return {**claims, "levels": dict(levels)}
    if isinstance(problem.recoding, PatternGuided):
        claims["mask"] = describe_mask(problem.recoding)
    return claims


def describe_mask(recoding: PatternGuided) -> dict[str, Any]:
    """Return the rules of a mask by their names, or its patterns, and how often each serves."""
    mask = recoding.mask
    rules = mask.rules()
    if mask.patterns is not None:
        rules["patterns"] = [list(pattern) for pattern in mask.patterns]
    return {
        **rules,
        "allow_all_stars": mask.allow_all_stars,
        "single_use": recoding.single_use,
    }


def describe_costs(solution: Solution) -> dict[str, Any]:
    """Return what the objective charges for stars, so that its value can be computed again."""
    objective = solution.problem.objective
    if not isinstance(objective, Suppressions):
        return {}
    return {
        "costs": {name: float(cost) for name, cost in objective.costs.items()},
        "pattern_costs": [
            {"columns": list(columns), "cost": float(cost)}
            for columns, cost in objective.patterns.items()
        ],
    }


def star_checks(solution: Solution) -> list[str]:
    """Return what was checked of patterns or levels."""
    assignment, recoding = solution.assignment, solution.problem.recoding
    if isinstance(assignment, Levels):
        return ["every cell of a column is generalized to the level of the column"]
    if not isinstance(assignment, Patterns):
        return []
    checks = [
        "every cell is exact or a star",
        "the stars of every row are a pattern of the mask",
    ]
    if getattr(recoding, "single_use", False):
        checks.append("rows with stars in the same columns look alike")
    return checks


def revealing_columns(solution: Solution) -> list[str]:
    """Return the columns whose observed domain the published loss could reveal of hidden values.

    A suppressed record of a partition hides values that may end the domain, by whose width the
    losses of all ranges are divided. Where cells are exact, nodes or stars, the certainty
    penalty, the losses of hierarchies and what stars cost do not know a domain that was observed;
    of another loss that is not known.
    """
    attributes = solution.problem.microdata.attributes
    if isinstance(solution.assignment, Patterns | Levels):
        if _is_blind(solution.problem):
            return []
        starred = [
            bool(any_star) for any_star in np.any(solution.description.suppressed, axis=0).tolist()
        ]
    else:
        hides = not isinstance(solution.assignment, Cover) and solution.assignment.suppressed > 0
        starred = [hides] * len(attributes)
    return _observed(attributes, starred)


def columns_at_risk(problem: Problem) -> list[str]:
    """Return the columns of :func:`revealing_columns` that a release of a problem may have."""
    recoding, attributes = problem.recoding, problem.microdata.attributes
    may_hide = [bool(getattr(recoding, "suppression", False))] * len(attributes)
    if isinstance(recoding, PatternGuided | FullDomain) and _is_blind(problem):
        return []
    if isinstance(recoding, PatternGuided):
        may_hide = [*map(bool, recoding.stars(problem).any(axis=0) | np.array(may_hide))]
    if isinstance(recoding, FullDomain):
        may_hide = [True] * len(attributes)
    return _observed(attributes, may_hide)


def _observed(attributes: Sequence[Attribute], hidden: Sequence[bool]) -> list[str]:
    """Return the columns that hide values and whose domain is what was observed."""
    return [
        attribute.name
        for attribute, hides in zip(attributes, hidden, strict=True)
        if hides and attribute.domain is None and attribute.hierarchy is None
    ]


def _is_blind(problem: Problem) -> bool:
    objective = problem.objective
    # A subclass may charge what it likes.
    if type(objective) is WeightedLoss:
        return objective.categorical == "whole"
    return type(objective) in _BLIND_TO_DOMAINS
