"""Tests of what is known of the attributes apart from the records."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from anonymip import Attribute, InputError, Microdata
from anonymip.instances import Domains

FRAME = pd.DataFrame({"age": [34, 36, 61], "pay": [1.5, 2.5, 2.5], "sex": ["F", "F", "M"]})
DOMAINS = Domains.of(
    Microdata(
        FRAME,
        (
            Attribute("age", integer=True, domain=[1, 100], weight=0.5),
            Attribute("pay", publish="set"),
            Attribute("sex", "categorical"),
        ),
    )
)


def test_domains_gather_the_attributes() -> None:
    """Names, kinds, forms, weights and whole numbers stand in the order of the attributes."""
    assert DOMAINS.m == 3
    assert DOMAINS.names == ("age", "pay", "sex")
    assert DOMAINS.kinds == ("numeric", "numeric", "categorical")
    assert DOMAINS.publish == ("range", "set", "set")
    assert DOMAINS.weight.tolist() == [0.5, 1.0, 1.0]
    assert DOMAINS.integer.tolist() == [True, False, False]


def test_ends_and_sizes_are_declared_or_observed() -> None:
    """Ends exist for numbers only; sizes count declared values, else observed ones."""
    np.testing.assert_array_equal(DOMAINS.low, [1.0, 1.5, math.nan])
    np.testing.assert_array_equal(DOMAINS.high, [100.0, 2.5, math.nan])
    assert DOMAINS.size.tolist() == [100, 2, 2]


def test_attributes_are_found_by_name() -> None:
    """An unknown name raises a message that lists the known ones."""
    assert DOMAINS.index("pay") == 1
    with pytest.raises(InputError, match="reads attribute 'zip', which is no quasi-ident") as error:
        DOMAINS.index("zip")
    assert error.value.remedy == "Quasi-identifiers are age, pay, sex"


def test_more_whole_numbers_than_can_be_distinguished_are_refused() -> None:
    """A column declared to be of whole numbers, with a range of 10^100 of them."""
    frame = pd.DataFrame({"far": [0.0, 3e100, 9e100]})
    data = Microdata(frame, (Attribute("far", integer=True),))
    with pytest.raises(InputError, match="'far' is of whole numbers") as error:
        Domains.of(data)
    assert "integer = false" in str(error.value.remedy)
    Domains.of(Microdata(frame, (Attribute("far"),)))
