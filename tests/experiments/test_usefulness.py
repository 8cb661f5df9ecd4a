"""Tests of the usefulness measure, against its definition written down."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Classes,
    EquivalenceClasses,
    Freeform,
    InputError,
    Mask,
    Microdata,
    PatternGuided,
    Patterns,
    Problem,
    Solution,
    Suppressions,
    solve,
)
from anonymip.experiments import usefulness_of


@given(data=st.data())
def test_it_is_the_mean_of_the_tuple_diversities(data: st.DataObject) -> None:
    """One numeric and one categorical column; suppressed records are a class of their own."""
    n = data.draw(st.integers(4, 9))
    numbers = data.draw(st.lists(st.integers(-3, 5), min_size=n, max_size=n))
    texts = data.draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    labels = data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n))
    for label in (0, 1):
        if labels.count(label) == 1:
            labels[labels.index(label)] = -1
    frame = pd.DataFrame({"a": numbers, "b": texts})
    table = Microdata(frame, (Attribute("a", "numeric"), Attribute("b", "categorical")))
    problem = Problem(table, 2, EquivalenceClasses(suppression=True))
    solution = Solution.of(problem, Classes(np.array(labels)), method="given")
    # Classes whose rows look alike are one; suppressed records are alike, whatever they are.
    classes: dict[object, float] = {}
    for label in sorted(set(labels)):
        own = [at for at in range(n) if labels[at] == label]
        held, shown = [numbers[at] for at in own], frozenset(texts[at] for at in own)
        width = max(numbers) - min(numbers)
        part = (max(held) - min(held)) / width if width else 0.0
        looks = label if label < 0 else (min(held), max(held), shown)
        classes[looks] = part + len(shown) / len(set(texts))
    diversities = list(classes.values())
    assert usefulness_of(solution) == pytest.approx(sum(diversities) / len(diversities))


def test_patterns_have_the_classes_of_rows_that_look_alike() -> None:
    """Stars hide values, and the diversity is that of the originals behind them; covers have none.

    Rows 0 and 1 differ in b, rows 2 and 3 in nothing: (1/2 + 2/2 + 1/2 + 1/2) / 2.
    """
    frame = pd.DataFrame({"a": list("xxyy"), "b": list("uvuu")})
    table = Microdata(frame, (Attribute("a", "categorical"), Attribute("b", "categorical")))
    problem = Problem(table, 2, PatternGuided(Mask(patterns=((), ("b",)))), Suppressions())
    solution = Solution.of(problem, Patterns(np.array([1, 1, 0, 0])), method="given")
    assert usefulness_of(solution) == pytest.approx(1.25)
    with pytest.raises(InputError, match="cover"):
        usefulness_of(solve(Problem(table, 2, Freeform()), "greedy"))
