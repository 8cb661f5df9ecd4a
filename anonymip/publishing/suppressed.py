"""Suppressed records: left out of the release, or published as rows of stars."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonymip.assignments import SUPPRESSED, Cover
from anonymip.errors import InputError, NoSolution, argument
from anonymip.problem import Problem
from anonymip.recodings.patterns import PatternGuided
from anonymip.recodings.recoding import MaySuppress
from anonymip.runtime.arrays import Flags, Ints
from anonymip.solution import MANY_SUPPRESSED, Solution

LEFT_OUT, STARRED = "left-out", "starred"


def refuse_choice(suppressed: str) -> None:
    """Refuse what is no way to treat suppressed records."""
    if suppressed not in (LEFT_OUT, STARRED):
        raise InputError(f"suppressed is {suppressed!r}", remedy=f'Use "{LEFT_OUT}" or "{STARRED}"')


def allowed_suppressed(problem: Problem, most: int | float | None) -> int:
    """Return how many records of a release may be suppressed for it to be published.

    A limit of its recoding counts where no other is given. `most`: a number of records, or a share
    below 1; None for one in twenty.
    """
    own = getattr(problem.recoding, "most_suppressed", None)
    if most and not problem.may_suppress:
        raise InputError(
            f"{argument('most_suppressed')} is given, and no records may be suppressed",
            remedy="Give a recoding with suppression=True, or leave it out",
        )
    limit = next((one for one in (most, own) if one is not None), MANY_SUPPRESSED)
    return MaySuppress(most_suppressed=limit).limit(problem.n)


def refuse_many_suppressed(solution: Solution, most: int | float | None) -> None:
    """Refuse to publish a solution that suppresses more records than is allowed.

    `most`: as in :func:`allowed_suppressed`. Raises NoSolution naming both numbers.
    """
    problem, count = solution.problem, solution.assignment.suppressed
    allowed = allowed_suppressed(problem, most)
    if count > allowed:
        share = f"{100 * count / problem.n:.1f} %"
        without = " without being asked for" if most is None else ""
        raise NoSolution(
            f"{count:,} of {problem.n:,} records ({share}) would be suppressed, more than the "
            f"{allowed:,} that may be{without}: nothing is published",
            remedy=f"Allow them with {argument('most_suppressed', ...)}, a number of records or a "
            "share of them; or use a smaller k, wider limits, or a loss that charges more for "
            "suppression",
        )


def published_records(solution: Solution, suppressed: str) -> Flags:
    """Return (n,) which records get a row.

    Rows of stars that are fewer than k, or lack the diversity, reveal more than a class may of a
    person who is found in none: they are refused. `suppressed`: ``"left-out"`` or ``"starred"``.
    """
    published = ~suppressed_records(solution)
    if suppressed == LEFT_OUT:
        if not published.any():
            raise InputError(
                f"all {len(published)} records are suppressed: nothing is left to publish",
                remedy="Use a smaller k, wider limits, or a loss that charges more for suppression",
            )
        return published
    _refuse_too_few_stars(solution)
    return np.ones_like(published)


def published_cover(assignment: Cover, suppressed: str) -> tuple[Ints, Cover]:
    """Return the records that get a row, and their cover, numbered among them.

    Starred ones are in a ring of sets of their own, so that their rows are handed out among them;
    they are as many as a set has, or more: see :func:`published_records`.
    """
    kept, cover = assignment.without_suppressed()
    out = np.flatnonzero(assignment.sizes == 0)
    if suppressed != STARRED or not len(out):
        return kept, cover
    size = int(cover.sizes.max(initial=0)) or len(out)
    ring = Cover.of(np.sort((np.arange(len(out))[:, None] + np.arange(size)) % len(out), axis=1))
    pieces = [(kept, cover), (out, ring)]
    return np.arange(assignment.n), Cover.joined(assignment.n, pieces)


def left_out(solution: Solution, suppressed: str) -> dict[str, Any]:
    """Return what the manifest says of records and columns that are not published.

    Columns that were declared are named; those without a role are counted, since a name that
    nobody declared may be a value.
    """
    problem, microdata = solution.problem, solution.problem.microdata
    # Published rows of suppressed records are not told from those that a mask allows.
    mixed = (
        suppressed == STARRED
        and isinstance(problem.recoding, PatternGuided)
        and bool(problem.recoding.stars(problem).all(axis=1).any())
    )
    return {
        "suppressed": 0 if suppressed == STARRED else int(suppressed_records(solution).sum()),
        "missing": len(microdata.original) - microdata.n,
        "columns": list(microdata.drop),
        "undeclared_columns": len(microdata.undeclared),
        **({"most": problem.most_suppressed} if problem.limits_suppression and not mixed else {}),
    }


def starred_rows(solution: Solution, suppressed: str) -> list[str]:
    """Return a caution if suppressed records are published."""
    count = int(suppressed_records(solution).sum())
    if suppressed != STARRED or not count:
        return []
    hers = f"knows that one of the {solution.suppressed} rows of stars only is hers"
    return [f"{count} suppressed records are published: who finds a person in no class {hers}"]


def suppression_assumptions(solution: Solution, suppressed: str) -> list[str]:
    """Return what is assumed of records that are suppressed as a whole."""
    count, microdata = int(suppressed_records(solution).sum()), solution.problem.microdata
    if not count:
        return []
    many = solution.many_suppressed
    assumed = [] if many is None else [f"whoever uses the release minds that {many}"]
    if suppressed == STARRED:
        assumed += starred_rows(solution, suppressed)
    elif microdata.sensitive or microdata.keep:
        assumed.append(
            "an adversary does not know the sensitive and kept values of the whole table: those "
            f"that the release lacks belong to the {count} suppressed records"
        )
    return assumed


def unused_limit(solution: Solution) -> list[str]:
    """Return why fewer records are left out than may be, where nobody set what each costs."""
    problem, count = solution.problem, solution.assignment.suppressed
    spare = problem.most_suppressed - count
    if not problem.is_capped or problem.suppression_price is not None or spare <= 0:
        return []
    losses = problem.compiled.losses_of(solution.description, solution.assignment)
    worst = float(losses[~solution.description.suppressed.all(axis=1)].max(initial=0.0))
    each = f"each costs {problem.compiled.suppression_price:.4g}, a row of stars"
    out = f"{argument('suppression_price', 0)} leaves the worst out, up to the limit"
    spared = f"{spare:,} more might be left out, and are not, since {each}, and the record that"
    return [f"{spared} loses most loses {worst:.4g}: {out}"]


def suppressed_records(solution: Solution) -> Flags:
    """Return (n,) the records that are in no class, or have no set."""
    if isinstance(solution.assignment, Cover):
        return np.asarray(solution.assignment.sizes == 0, np.bool_)
    if solution.classes is None:
        return np.zeros(solution.problem.n, np.bool_)
    return np.asarray(solution.classes.labels == SUPPRESSED, np.bool_)


def _refuse_too_few_stars(solution: Solution) -> None:
    """Refuse rows of stars that are no class: too few, or without the diversity."""
    problem = solution.problem
    if not suppressed_records(solution).any():
        return
    stars = np.flatnonzero(solution.description.suppressed.all(axis=1))
    remedy = "Leave them out, which is the default; or use another k"
    least = problem.k
    if isinstance(solution.assignment, Cover):
        least = int(max(least, solution.assignment.sizes.max()))
    if len(stars) < least:
        raise InputError(
            f"{len(stars)} rows of stars only are fewer than k = {least}: who finds a person "
            "in no class would know that one of them is hers",
            remedy=remedy,
        )
    if problem.diversity is None:
        return
    one_class = np.zeros(len(stars), np.int64)
    if not problem.diversity.kept_by(problem.microdata, stars, one_class, 1).all():
        raise InputError(
            f"{len(stars)} rows of stars only lack the {problem.diversity}: who finds a person in "
            "no class would learn from them what a class may not reveal",
            remedy=remedy,
        )
