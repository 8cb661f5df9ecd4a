"""Random pattern solutions of any table, for tests of what is published of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Diversity,
    InvalidAssignment,
    Mask,
    PatternGuided,
    Problem,
    Solution,
    Suppressions,
)
from tests.by_hand import by_patterns
from tests.random_problems import microdata, tables


@st.composite
def masks(draw: st.DrawFn, names: Sequence[str]) -> Mask:
    """Draw a mask under which every record can at least be all stars."""
    if draw(st.booleans()):
        subsets = st.lists(st.sampled_from(list(names)), unique=True).map(tuple)
        return Mask(patterns=tuple(draw(st.lists(subsets, max_size=4))), allow_all_stars=True)
    order = draw(st.permutations(list(names)))
    pair = (tuple(order[:2]),) if len(names) > 1 else ()
    together = draw(st.booleans())
    return Mask(
        suppress_at_most=draw(st.sampled_from([None, 2, 3])),
        never=tuple(order[2:3]) if draw(st.booleans()) else (),
        together=pair if together else (),
        at_most_one=() if together else pair,
        allow_all_stars=True,
    )


@st.composite
def pattern_problems(draw: st.DrawFn, largest: int = 9) -> Problem:
    """Draw a table of all kinds of columns and a mask; a sensitive column stands beside."""
    columns = draw(tables(4, largest))
    n = len(columns[0].values)
    secrets = tuple(draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n)))
    data = microdata(columns, (secrets,))
    costs = {name: float(draw(st.integers(1, 3))) for name in data.names}
    objective = draw(st.sampled_from([GCP(), Suppressions(costs)]))
    suppression = draw(st.booleans())
    return Problem(
        data,
        draw(st.integers(2, 3)),
        PatternGuided(draw(masks(data.names)), suppression=suppression),
        objective,
        Diversity(distinct=2) if suppression and draw(st.booleans()) else None,
    )


@st.composite
def pattern_solutions(draw: st.DrawFn, largest: int = 9) -> Solution:
    """Draw a solution: patterns in any order take the rows that k of the remaining records share.

    What is left over is suppressed where that is allowed, else it joins the rows of stars.
    """
    problem = draw(pattern_problems(largest))
    recoding = problem.recoding
    assert isinstance(recoding, PatternGuided)
    stars = recoding.stars(problem)
    everything = int(np.flatnonzero(stars.all(axis=1))[0])
    index = np.full(problem.n, -1)
    for pattern in draw(st.permutations(range(len(stars)))):
        shown = np.where(stars[pattern], -1, problem.microdata.codes)
        left = np.flatnonzero(index < 0)
        _, labels, counts = np.unique(shown[left], axis=0, return_inverse=True, return_counts=True)
        taken = (counts >= problem.k) & draw(
            st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)).map(
                lambda drawn: np.array(drawn, np.bool_)
            )
        )
        index[left[taken[labels.ravel()]]] = pattern
    if not recoding.suppression and (index < 0).any():
        index[index < 0] = everything
        if (index == everything).sum() < problem.k:
            index[:] = everything
    try:
        return by_patterns(problem, index)
    except InvalidAssignment:
        # What was drawn lacks the diversity.
        assume(False)
        raise
