"""Tests of what a person should know of a release before giving it away."""

from __future__ import annotations

import re
import warnings

import pandas as pd
import pytest

from anonymip import anonymize
from anonymip.errors import ReleaseWarning

N = 20


@pytest.mark.parametrize(("role", "called"), [("sensitive", "sensitive"), ("keep", "kept")])
@pytest.mark.parametrize("distinct", [18, 20])
def test_nearly_unique_columns(role: str, called: str, distinct: int) -> None:
    """A column published untouched that nearly names persons is named, without a value of it."""
    numbers = [123456789 + min(row, distinct - 1) for row in range(N)]
    frame = pd.DataFrame({"age": range(N), "ssn": numbers})
    message = re.escape(f"column 'ssn' ({called}) is nearly unique: {distinct} different values")
    with pytest.warns(ReleaseWarning, match=message) as result:
        anonymize(frame, ["age"], 5, method="initial", **{role: ["ssn"]})  # type: ignore[arg-type]
    assert not any("12345" in str(one.message) for one in result)


def test_columns_that_do_not_name_persons() -> None:
    """A column with fewer different values, or that is not published, brings no warning."""
    frame = pd.DataFrame({"age": range(N), "job": [min(row, 16) for row in range(N)]})
    frame["ssn"] = range(N)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReleaseWarning)
        anonymize(frame, ["age"], 5, method="initial", sensitive=["job"], drop=["ssn"])
