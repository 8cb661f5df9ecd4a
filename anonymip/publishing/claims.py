"""What a release of a cover claims: its recoding, what was checked of it, what is assumed."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import Cover
from anonymip.graphs import components, degree_of
from anonymip.recodings.registry import published_form
from anonymip.solution import Solution

#: What was checked of the sets, by recoding.
_SETS = {
    "one-k": "every original record lies in the sets of at least k = {k} published rows",
    "k-one": "every published row covers at least k = {k} original records",
    "k-k": "every published row covers at least k = {k} original records, and every original "
    "record lies in the sets of as many rows",
    "k-concealment": "for every original record at least k = {k} published rows lie in some "
    "assignment of all records as its own",
}
_PERSON_FIRST = "an adversary looks for a person's row, not for a row's person"
_ROW_FIRST = "an adversary looks for a row's person, not for a person's row"
_ALL_COUNT = "an adversary does not rule out matches that lie in no assignment"
#: What these notions leave open, beside the chances.
_OPEN = {
    "one-k": (_PERSON_FIRST, _ALL_COUNT),
    "k-one": (_ROW_FIRST, _ALL_COUNT),
    "k-k": (_ALL_COUNT,),
    "k-concealment": (_PERSON_FIRST,),
}


def claimed_form(solution: Solution) -> str:
    """Return the recoding that a release claims.

    A freeform cover with a degree for each record need not fall into k disjoint assignments. All
    its matches lie in some assignment, so that it is released as what it is: k-concealment.
    """
    form = published_form(solution.problem.recoding)
    if form == "freeform" and _degree(solution) is None:
        return "k-concealment"
    return form


def cover_checks(solution: Solution, cover: Cover) -> list[str]:
    """Return what was checked of the sets of a cover."""
    form, diversity = claimed_form(solution), solution.problem.diversity
    if form == "freeform":
        degree = degree_of(cover)
        checks = [
            f"every published row covers {degree} original records",
            f"every original record lies in {degree} sets",
            f"{degree} disjoint assignments of records to rows exist",
        ]
    else:
        checks = [_SETS[form].format(k=solution.problem.k)]
    if diversity is not None:
        checks.append(f"the original records in every set have the {diversity}")
        checks.append(f"the rows that can be a record's own show values with the {diversity}")
    return checks


def cover_assumptions(solution: Solution, cover: Cover, is_seeded: bool) -> list[str]:
    """Return what is assumed of the assignment along which a cover is published."""
    form = claimed_form(solution)
    who = "its publisher" if is_seeded else "the operating system"
    drawn = "with which the assignment of sensitive and kept values was drawn"
    assumed = [f"an adversary cannot repeat the random numbers of {who}, {drawn}"]
    if form != "freeform":
        assumed.append("an adversary takes all rows that can be a person's for equally likely")
        assumed += _OPEN[form]
    elif not _is_of_classes(cover):
        # Of reciprocal sets too: what is proven of them holds along the identity alone.
        assumed.append(
            "an adversary knows of nobody for certain which row is hers: c known rows may leave "
            "another person fewer than k - c"
        )
    if solution.problem.diversity is not None:
        assumed.append(
            "an adversary knows which rows were made for sets that hold a person: counted over all "
            "rows whose cells contain her, the shares of sensitive values can be others"
        )
    return assumed


def _is_of_classes(cover: Cover) -> bool:
    """Return whether a regular cover publishes each record with its whole class."""
    return bool((np.bincount(components(cover)) == degree_of(cover)).all())


def _degree(solution: Solution) -> int | None:
    cover = solution.assignment
    return degree_of(cover) if isinstance(cover, Cover) else None
