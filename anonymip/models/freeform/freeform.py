r"""The MIP of Doka et al. (2015) for freeform generalization, and its relaxed forms.

Symbols of Doka et al., Section 4, and the components that hold them; originals l, published records
i, attributes j, values h of an attribute.

=======================================  =====================================================
:math:`x(l, i)`                          ``match[l, i]``: original l is among the matches of i
:math:`u_i^j, l_i^j`                     ``upper[i, j]``, ``lower[i, j]`` (numeric attributes)
                                         and their variables ``scaled_upper``, ``scaled_lower``
:math:`u_i^h`                            ``included[i, j, h]`` (categorical attributes)
terms of GCP                             ``record_loss[i]``
=======================================  =====================================================

====================  ========================================================================
eqs. (4), (6)         ``upper_covers``, ``lower_covers``: ends cover the matches
eqs. (5), (7), (9)    bounds of the variables: the own values are published in any case
eq. (8)               ``included_covers``: sets hold the values of the matches
eq. (10)              ``lies_in``, ``covers``: k sets for an original, k matches for a record
eq. (11)              ``loss``: minimise ``record_loss`` summed over the records
====================  ========================================================================

**Own records.** The paper asks only that the own values are published; x(i, i) may be 0
(``own_record="free"``). Setting x(i, i) = 1 (``"fixed"``, the default) loses nothing. Take any
solution of the free model. Its graph of matches is regular of degree k and bipartite, so Hall's
condition holds, since k |L| matches leave a set L of originals and no published record takes in
more than k of them: there is a perfect matching. Give each set to the record that the matching
joins to it. Every record then lies in the set that it is published with; every set has been handed
over once, so that (10) still holds; and a set S costs c(S), where in the free model it cost the
loss of S together with another record, which is no less for a monotone loss. Conversely, a solution
with x(i, i) = 1 is one of the free model. Diversity speaks of S alone, and what limits forbid for a
set they forbid for a larger one. :func:`~anonymip.models.freeform.cover_start.read_freeform` makes
this exchange. It needs sets of one size that need not be reciprocal: else only ``"fixed"`` is
modelled.

Beyond the paper:

- Sets of degree k are enough, except where they must be diverse or reciprocal: then ``degree`` is a
  variable from k to n. With degrees of their own, (10) has them on its right sides.
- ``ranges="gaps"`` is a stronger relaxation of (4) to (7): :mod:`.covering_rows`.
- ``reciprocal``: x(l, i) = x(i, l) (Section 2.2).
- ``neighbours``, ``farther_neighbour``: rows that hold in every release: :mod:`.cover_neighbours`.
- Nodes of hierarchies are ``reaches``, and other losses than GCP may be curved:
  :mod:`.equivalence_loss`. ``worst`` is the largest loss where that is the objective.
- Diversity and limits: :mod:`.cover_rules`.
- (1,k), (k,1) and (k,k)-anonymity have at least k instead of exactly k, on one side or both;
  k-concealment counts matches by a flow: :mod:`.effective_flow`.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from anonymip.models.freeform.cover_context import CoverContext
from anonymip.models.freeform.cover_matches import add_matches, matches_size
from anonymip.models.freeform.cover_neighbours import add_neighbour_losses, neighbours_size
from anonymip.models.freeform.cover_rules import add_cover_rules, cover_rules_size
from anonymip.models.freeform.covering_rows import add_covering_rows, covering_size
from anonymip.models.parts.equivalence_loss import add_loss, loss_size
from anonymip.models.parts.model_size import LARGEST_MODEL, refuse_large
from anonymip.models.parts.published_cells import add_cell_sets, add_cell_variables
from anonymip.problem import Problem


def build_freeform(
    problem: Problem,
    *,
    own_record: str = "fixed",
    ranges: str = "bounds",
    integer_ends: bool = True,
    strengthened: bool = True,
) -> pyo.ConcreteModel:
    """Return the model; it is built, not solved.

    Parameters
    ----------
    problem
        With the recoding Freeform, OneK, KOne, KK or KConcealment, and a monotone objective.
    own_record
        ``"fixed"``: every record lies in its own set; ``"free"``: as in the paper. A constraint of
        your own on ``match`` speaks of the sets before they are handed over when ``"free"``.
    ranges
        ``"bounds"``: rows of eqs. (4) to (7); ``"gaps"``: variables for the gaps between values.
    integer_ends
        Whether the ends of integer attributes are integer variables; they take integer values
        anyway once the matches are integer.
    strengthened
        Whether to add what every release keeps: losses with the nearest neighbours.

    Notes
    -----
    Size: n^2 binaries; a row a pair of records in each direction and attribute, and one more where
    strengthened.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables or is not proven monotone.
    InputError
        If the recoding is another one, a choice is unknown or does not fit it, or the model would
        be too large.
    """
    context = CoverContext.fitting(
        problem, own_record=own_record, ranges=ranges, integer_ends=integer_ends
    )
    _size(context, strengthened)
    with PauseGC():
        model = pyo.ConcreteModel(name=f"{problem.recoding.name}, flow of matches")
        model.context = context
        add_cell_sets(model)
        add_matches(model)
        add_cell_variables(model)
        add_covering_rows(model)
        add_cover_rules(model)
        add_loss(model)
        if strengthened:
            add_neighbour_losses(model)
    return model


def freeform_size(problem: Problem) -> int:
    """Return about how many constraints, and binaries for curved losses, the model has.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables or is not proven monotone.
    InputError
        If the recoding is another one, or the model would be too large.
    """
    return _size(CoverContext.fitting(problem), strengthened=True)


def _size(context: CoverContext, strengthened: bool) -> int:
    """Return the size, or refuse it; rules are counted last, which takes n^2 memory."""
    size = matches_size(context) + covering_size(context) + loss_size(context)
    size += neighbours_size(context) if strengthened else 0
    if size <= LARGEST_MODEL:
        size += cover_rules_size(context)
    refuse_large("freeform", context.problem.n, size)
    return size
