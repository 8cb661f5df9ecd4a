r"""What column generation asks of a problem: which columns suffice, and what a solution is of them.

With the rows of one type merged (:math:`m_i` of them) a column is a multiset S of
:math:`a_S(i) \le m_i` rows, and both recodings are one program,

.. math::

    \min \sum_S C(S)\, y_S \quad \text{with} \quad
    \sum_S a_S(i)\, y_S = b_i, \quad y_S \in \{0, 1, \dots\}.

=========  ====================================  ==============================
recoding   columns                               costs, right-hand sides
=========  ====================================  ==============================
classes    k rows up to the largest size needed  ``s c(S)``; :math:`b_i = m_i`
freeform   k rows                                ``c(S)``; :math:`b_i = k m_i`
=========  ====================================  ==============================

Classes are at most :math:`\lfloor n / k \rfloor` many, which is a row of its own where k does not
divide n; freeform covers have n sets. That larger sets are never needed rests on a superadditive
class loss or a monotone record loss; an objective that is neither is refused with two sets that
show it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.enumeration.merging import MergedRows, merge_rows
from anonymip.errors import InputError, UnsupportedObjective, argument
from anonymip.exact.column_generation.violations import falling_pair, subadditive_pair
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses, Freeform

_REMEDY = "Use another method of the recoding, such as its MIP"


@dataclass(frozen=True, eq=False)
class ColumnRules:
    """Which columns there are, and which sums of them are releases.

    Parameters
    ----------
    problem
        What is asked, k being the size of the sets of a cover.
    freeform
        Whether covers are asked for, else classes.
    rows
        The row types, in the order of their first records.
    smallest, largest
        Fewest and most rows of a column.
    sides
        (t,) in how many columns the rows of each type lie, in sum.
    most
        Most columns of a release: exactly as many in a freeform cover.
    counted
        Whether that is a row of the program, which the others do not imply.
    price
        Cost of a row that is left out; infinite where none may be.
    """

    problem: Problem
    freeform: bool
    rows: MergedRows
    smallest: int
    largest: int
    sides: NDArray[np.float64]
    most: int
    counted: bool
    price: float

    @property
    def types(self) -> int:
        """Number of row types."""
        return self.rows.types

    @property
    def coverage(self) -> NDArray[np.int64]:
        """(t,) the sides, as whole numbers."""
        return self.sides.astype(np.int64)

    @property
    def weight(self) -> str:
        """What the loss of a record counts in a column's cost: its ``"size"``, or ``"one"``."""
        return "one" if self.freeform else "size"


def column_rules(problem: Problem) -> ColumnRules:
    """Return the rules of a problem's columns.

    Raises
    ------
    InputError
        If the recoding is another one, or sets differ in size or must be reciprocal or diverse.
    UnsupportedObjective
        If the loss is not summed, or lacks the property on which the sizes rest.
    """
    compiled = problem.compiled
    if not isinstance(problem.recoding, EquivalenceClasses | Freeform):
        raise InputError(
            f"column-generation makes classes and freeform covers, the problem asks for "
            f"{problem.recoding.name}",
            remedy=f"Use {argument('recoding', 'classes')} or {argument('recoding', 'freeform')}",
        )
    if compiled.aggregate != "sum":
        raise UnsupportedObjective(
            f"column-generation adds losses up, and {compiled.name!r} is the largest of a record",
            remedy=_REMEDY,
        )
    if problem.diversity is not None and problem.diversity.t is not None:
        raise InputError(f"column-generation cannot keep the {problem.diversity}", remedy=_REMEDY)
    unmet = unmet_property(problem)
    if unmet is not None:
        raise UnsupportedObjective(f"column-generation needs {unmet}", remedy=_REMEDY)
    if isinstance(problem.recoding, Freeform):
        return _rules_of_covers(problem, problem.recoding)
    return _rules_of_classes(problem, problem.recoding)


def unmet_property(problem: Problem) -> str | None:
    """Return which property of the loss the sizes of columns rest on and that it lacks; or None.

    Parameters
    ----------
    problem
        With classes or covers. Under a diversity classes of all sizes are columns.
    """
    compiled, covers = problem.compiled, isinstance(problem.recoding, Freeform)
    if covers and not compiled.monotone:
        needed, shown = "a monotone record loss for covers", falling_pair(problem)
    elif not covers and not compiled.superadditive and problem.diversity is None:
        needed, shown = "a superadditive class loss", subadditive_pair(problem)
    else:
        return None
    return f"{needed}; of {compiled.name!r}, {compiled.obstacle}{shown}"


def _rules_of_classes(problem: Problem, recoding: EquivalenceClasses) -> ColumnRules:
    n, k = problem.n, problem.k
    largest = recoding.max_size(problem).size
    rows = merge_rows(problem, np.zeros(n), merge=True)
    return ColumnRules(
        problem,
        freeform=False,
        rows=rows,
        smallest=k,
        largest=n if largest is None else min(largest, n),
        sides=rows.counts.astype(np.float64),
        most=n // k,
        counted=n % k > 0,
        price=float(problem.compiled.suppression_price) if recoding.suppression else np.inf,
    )


def _rules_of_covers(problem: Problem, recoding: Freeform) -> ColumnRules:
    degrees = recoding.sizes(problem)
    if recoding.reciprocal or (degrees != degrees[0]).any():
        raise InputError(
            "column-generation makes no sets that are reciprocal or differ in size", remedy=_REMEDY
        )
    if problem.diversity is not None:
        raise InputError(
            "column-generation makes no diverse covers, whose sets may have to be larger than k",
            remedy=_REMEDY,
        )
    degree = int(degrees[0])
    plain = problem.replace(k=degree, recoding=Freeform())
    rows = merge_rows(plain, np.zeros(problem.n), merge=True)
    return ColumnRules(
        plain,
        freeform=True,
        rows=rows,
        smallest=degree,
        largest=degree,
        sides=degree * rows.counts.astype(np.float64),
        most=problem.n,
        counted=False,
        price=np.inf,
    )
