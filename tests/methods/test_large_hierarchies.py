"""Tests of hierarchies with too many values for a table of all pairs: the same answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    Attribute,
    EquivalenceClasses,
    Freeform,
    Hierarchy,
    KConcealment,
    KOne,
    Microdata,
    Problem,
    solve,
)
from anonymip.objectives.language import tables as language_tables
from anonymip.recodings.recoding import Recoding


def table(n: int) -> Microdata:
    """Return a table of two hierarchies and a number."""
    rng = np.random.default_rng(n)
    days = Hierarchy.from_bands(range(120), (4, 12, 36))
    codes = Hierarchy.from_bands(range(80), (5, 20))
    frame = pd.DataFrame(
        {
            "day": rng.integers(120, size=n).astype(str),
            "code": np.minimum(rng.geometric(0.03, n), 79).astype(str),
            "pay": rng.integers(30, size=n),
        }
    )
    return Microdata(
        frame,
        (
            Attribute("day", "hierarchical", hierarchy=days),
            Attribute("code", "hierarchical", hierarchy=codes),
            Attribute("pay"),
        ),
    )


@pytest.mark.thorough("recoding9-auto-40")
@pytest.mark.parametrize(
    ("recoding", "method", "n"),
    [
        (EquivalenceClasses(), "auto", 40),
        (EquivalenceClasses(), "local-search", 150),
        (EquivalenceClasses(), "greedy-search", 150),
        (EquivalenceClasses(), "k-member", 60),
        (EquivalenceClasses(), "mondrian", 150),
        (EquivalenceClasses(), "equivalence-mip", 10),
        (Freeform(), "auto", 40),
        (Freeform(), "reassign", 150),
        (Freeform(), "greedy", 150),
        (KOne(), "auto", 40),
        (KConcealment(), "k-concealment", 60),
    ],
)
def test_every_method_answers_as_with_tables_of_pairs(
    recoding: Recoding, method: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes looked up by their neighbours lead to the same release and the same bound."""
    data = table(n)
    expected = solve(Problem(data, k=3, recoding=recoding), method, effort="quick")
    monkeypatch.setattr(language_tables, "LARGEST_NODE_TABLE", 0)
    found = solve(Problem(data, k=3, recoding=recoding), method, effort="quick")
    assert found.problem.compiled.tables.pair_strides.tolist() == [0, 0]
    assert found.objective == expected.objective
    assert found.bound is not None
    assert expected.bound is not None
    assert found.bound.value == expected.bound.value
