"""What all recodings by covers share: own records, cells, limits, diversity of sets."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import Assignment, Cover, Description
from anonymip.errors import InvalidAssignment
from anonymip.recodings.recoding import ProblemView
from anonymip.recodings.rows.describing import describe_sets
from anonymip.recodings.rules.limits import check_limits


def checked_cover(problem: ProblemView, assignment: Assignment) -> Cover:
    """Return the assignment if it is a cover of the table that obeys what binds every cover.

    Every record lies in its own set; every set has the diversity asked for, the cells keep the
    limits.

    Raises
    ------
    InvalidAssignment
        Naming a record and the rule that it breaks.
    """
    if not isinstance(assignment, Cover):
        raise InvalidAssignment(None, f"is no cover but {type(assignment).__name__}")
    n = problem.microdata.n
    if assignment.n != n:
        raise InvalidAssignment(None, f"covers {assignment.n} records, the table has {n}")
    own = np.zeros(n, np.bool_)
    own[assignment.owners[assignment.members == assignment.owners]] = True
    if not own.all():
        raise InvalidAssignment(int(np.argmin(own)), "does not lie in its own set")
    if problem.diversity is not None:
        sensitive = problem.microdata.sensitive_codes
        for size in np.unique(assignment.sizes):
            records = np.flatnonzero(assignment.sizes == size)
            at = assignment.start[records][:, None] + np.arange(size)
            met = problem.diversity.met_by(sensitive[assignment.members[at]])
            if not met.all():
                raise InvalidAssignment(
                    int(records[np.argmin(met)]), f"covers a set without the {problem.diversity}"
                )
    if problem.limits:
        check_limits(problem.microdata, problem.limits, describe_sets_of(problem, assignment))
    return assignment


def describe_sets_of(problem: ProblemView, assignment: Assignment) -> Description:
    """Return what is published: the tight range, set or node of each record's set.

    Raises
    ------
    InvalidAssignment
        If the assignment is no cover.
    """
    if not isinstance(assignment, Cover):
        raise InvalidAssignment(None, f"is no cover but {type(assignment).__name__}")
    return describe_sets(problem.microdata, assignment.start, assignment.members)
