"""Tables and solutions that tests write down themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from anonymip import Attribute, Classes, Cover, Diversity, Microdata, Patterns, Problem, Solution


def table_of(columns: Mapping[str, Any] | pd.DataFrame, *sensitive: str) -> Microdata:
    """Return a table of numeric columns and, where these are texts, categorical ones.

    Those that are named as sensitive are no quasi-identifiers.
    """
    frame = pd.DataFrame(columns)
    numeric = {name: pd.api.types.is_numeric_dtype(frame[name]) for name in frame}
    attributes = tuple(
        Attribute(name, "numeric" if numeric[name] else "categorical")
        for name in frame
        if name not in sensitive
    )
    return Microdata(frame, attributes, sensitive=sensitive)


def with_illness(data: Microdata, ill: Iterable[Any]) -> Microdata:
    """Return the quasi-identifiers of a table with an illness beside each record."""
    return Microdata(data.frame.assign(ill=list(ill)), data.attributes, sensitive=("ill",))


def diverse(problem: Problem, ill: Iterable[Any], **asked: Any) -> Problem:
    """Return the problem with an illness beside each record and a diversity, else l = 2."""
    data, diversity = with_illness(problem.microdata, ill), Diversity(**asked or {"l": 2})
    return problem.replace(microdata=data, diversity=diversity)


def by_classes(problem: Problem, labels: ArrayLike) -> Solution:
    """Return the solution by classes of these labels, -1 for a record that is suppressed."""
    return Solution.of(problem, Classes(np.asarray(labels)), method="by hand")


def by_cover(problem: Problem, sets: Sequence[Sequence[int]]) -> Solution:
    """Return the solution by a cover of these sets, one of each record."""
    return Solution.of(problem, Cover.of(sets), method="by hand")


def by_patterns(problem: Problem, index: ArrayLike) -> Solution:
    """Return the solution by patterns, of each record its place in the mask."""
    return Solution.of(problem, Patterns(np.asarray(index)), method="by hand")
