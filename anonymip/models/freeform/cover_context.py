"""Context of a freeform model: what its parts share, and which problems it takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonymip.errors import InputError
from anonymip.models.parts.equivalence_context import Context, refuse_unfit_objective
from anonymip.problem import Problem
from anonymip.recodings import KK, Freeform, KConcealment, KOne, OneK
from anonymip.runtime.arrays import Ints

#: Records beyond which the flow of k-concealment is finer than solvers' tolerances: its largest
#: constant, n^2 / 4, times as many records that a cut may separate, times 1e-6, stays below 1.
MOST_CONCEALED = 60


@dataclass(frozen=True, eq=False)
class CoverContext(Context):
    """What the parts of the model share; kept on the model as ``context``.

    `own_record` is ``"fixed"``, every record lies in its own set, or ``"free"``: its values are
    published, and it may lie elsewhere. `range_rows`, ``"bounds"`` or ``"gaps"``, says how ends of
    ranges follow from the matches.
    """

    own_record: str = "fixed"
    range_rows: str = "bounds"

    @classmethod
    def fitting(
        cls,
        problem: Problem,
        *,
        own_record: str = "fixed",
        ranges: str = "bounds",
        integer_ends: bool = True,
    ) -> CoverContext:
        """Return the context of a problem, or refuse it.

        Raises UnsupportedObjective if the objective has no tables, or is not proven monotone;
        InputError if the recoding is another one, or a choice does not fit it.
        """
        recoding = problem.recoding
        if not isinstance(recoding, Freeform | OneK | KOne | KK | KConcealment):
            raise InputError(
                f"the freeform model does not model the recoding {recoding.name}",
                remedy="Use the recoding freeform, one-k, k-one, k-k or k-concealment",
            )
        for name, given, known in (
            ("own_record", own_record, ("fixed", "free")),
            ("ranges", ranges, ("bounds", "gaps")),
        ):
            if given not in known:
                raise InputError(f"{name} is {given!r}", remedy=f"Use {' or '.join(known)}")
        refuse_unfit_objective(
            problem,
            "freeform",
            "Use a heuristic that accepts it, or an objective that is such a sum",
        )
        plain = Context.of(problem, integer_ends)
        context = cls(**vars(plain), own_record=own_record, range_rows=ranges)
        # Sets of one size, in any number, make a perfect matching of equals.
        one_size = len(np.unique(context.least_sizes)) == 1 and not context.is_reciprocal
        uniform = context.is_regular and one_size and not context.suppression
        if own_record == "free" and not uniform:
            raise InputError(
                "free own records need sets of one size that need not be reciprocal, and a row of "
                "each record",
                remedy="Use own_record fixed",
            )
        if isinstance(recoding, KConcealment) and problem.n > MOST_CONCEALED:
            raise InputError(
                f"the model of k-concealment is not reliable for {problem.n} records; the limit is "
                f"{MOST_CONCEALED}",
                remedy="Use Freeform, whose releases are k-concealed too, or fewer records",
            )
        return context

    @property
    def is_regular(self) -> bool:
        """Whether originals lie in as many sets as their published records cover."""
        return isinstance(self.problem.recoding, Freeform)

    @property
    def is_reciprocal(self) -> bool:
        """Whether l must lie in the set of i if i lies in that of l."""
        recoding = self.problem.recoding
        return isinstance(recoding, Freeform) and recoding.reciprocal

    @property
    def is_open(self) -> bool:
        """Whether the common size of all sets may have to be larger than k.

        A regular graph contains regular ones of all lower degrees, whose sets lose no more; but
        they need not be diverse, nor reciprocal: a reciprocal graph of degree k with loops has
        none if n is odd and k is even.
        """
        recoding = self.problem.recoding
        return (
            isinstance(recoding, Freeform)
            and recoding.degrees is None
            and (recoding.reciprocal or self.problem.diversity is not None)
        )

    @cached_property
    def least_sizes(self) -> Ints:
        """(n,) how many originals each published record covers at least.

        A record with k effective matches lies in a circle of them, so it covers another one.
        """
        problem, recoding = self.problem, self.problem.recoding
        if isinstance(recoding, Freeform):
            return recoding.sizes(problem)
        least = problem.k
        if isinstance(recoding, OneK):
            least = 1
        elif isinstance(recoding, KConcealment):
            least = 2
        return np.full(problem.n, least, np.int64)
