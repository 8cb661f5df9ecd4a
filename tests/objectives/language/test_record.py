"""Tests of what an objective sees of a published record."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pandas as pd
import pytest

from anonymip import Attribute, InputError, Microdata
from anonymip.instances import Domains
from anonymip.objectives import GCP, CellBatch, Record
from anonymip.objectives.language.compiled import call_record_loss

FRAME = pd.DataFrame({"age": [10, 20, 50], "pay": [0.5, 1.5, 2.5], "job": ["a", "b", "c"]})
DOMAINS = Domains.of(
    Microdata(
        FRAME,
        (
            Attribute("age", integer=True, domain=[0, 100], weight=3),
            Attribute("pay", publish="set"),
            Attribute("job", "categorical", domain=["a", "b", "c", "d", "e"]),
        ),
    )
)
#: A range and sets of two, an exact record, and a record of stars.
RECORD = Record(
    DOMAINS,
    CellBatch(
        np.array([[10, 0.5, math.nan], [20, 1.5, math.nan], [math.nan] * 3]),
        np.array([[50, 1.5, math.nan], [20, 1.5, math.nan], [math.nan] * 3]),
        np.array([[3, 2, 2], [1, 1, 1], [0, 0, 0]]),
        np.array([[False] * 3, [False] * 3, [True] * 3]),
    ),
)


def test_features_of_a_range() -> None:
    """Ends, width over the domain's, and the whole numbers in it; stars stand for the domain."""
    assert RECORD.lower["age"].tolist() == [10, 20, 0]
    assert RECORD.upper["age"].tolist() == [50, 20, 100]
    assert RECORD.width["age"].tolist() == [0.4, 0.0, 1.0]
    assert RECORD.distinct["age"].tolist() == [41, 1, 101]
    assert RECORD.spread["age"].tolist() == [0.4, 0.0, 1.0]


def test_features_of_a_set_of_numbers() -> None:
    """Values are counted; the spread is the width, as of any numeric attribute."""
    assert RECORD.distinct["pay"].tolist() == [2, 1, 3]
    assert RECORD.spread["pay"].tolist() == [0.5, 0.0, 1.0]


def test_features_of_a_set_of_texts() -> None:
    """The spread counts values beyond the first against the declared domain."""
    assert RECORD.distinct["job"].tolist() == [2, 1, 5]
    assert RECORD.spread["job"].tolist() == [0.25, 0.0, 1.0]
    assert RECORD.suppressed["job"].tolist() == [0.0, 0.0, 1.0]


def test_constants_of_attributes() -> None:
    """Weight, domain size and kind do not depend on the record."""
    assert dict(RECORD.weight) == {"age": 3.0, "pay": 1.0, "job": 1.0}
    assert dict(RECORD.domain_size) == {"age": 101, "pay": 3, "job": 5}
    assert dict(RECORD.kind) == {"age": "numeric", "pay": "numeric", "job": "categorical"}


def test_features_are_mappings_over_the_attributes() -> None:
    """Features can be iterated like a dictionary, in the order of the attributes."""
    assert RECORD.attributes == ("age", "pay", "job")
    assert list(RECORD.spread) == ["age", "pay", "job"]
    assert len(RECORD.spread) == 3


def test_unknown_attributes_are_refused() -> None:
    """A misspelt name is answered with the names there are."""
    for feature in (RECORD.width, RECORD.spread, RECORD.distinct, RECORD.suppressed, RECORD.weight):
        with pytest.raises(InputError, match="'agee', which is no quasi-identifier") as caught:
            feature["agee"]
        assert "age, pay, job" in (caught.value.remedy or "")


def test_cells_go_when_their_losses_are_known() -> None:
    """Not when Python next looks for garbage: a batch can be as large as the table."""
    cells = RECORD._cells
    ends = np.array(cells.lowers)  # type: ignore[attr-defined]
    gone = weakref.ref(ends)
    gc.disable()
    try:
        batch = CellBatch(ends, *(getattr(cells, name) for name in ("uppers", "counts", "stars")))
        assert len(call_record_loss(GCP(), DOMAINS, batch)) == 3
        del ends, batch
        assert gone() is None
    finally:
        gc.enable()
