"""Tests of attributes, each and together: contradictions are refused, domains gathered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import Attribute, Hierarchy, InputError, Microdata
from anonymip.instances import Domains

TREE = Hierarchy([("a", "*"), ("b", "*")])

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "no name", "Name every column"),
    ({"kind": "ordinal"}, "unknown kind 'ordinal'", "numeric, categorical, hierarchical"),
    ({"publish": "node"}, "cannot be published as 'node'", "Use range or set"),
    ({"kind": "categorical", "publish": "range"}, "cannot be published as 'range'", "Use set"),
    ({"weight": -1}, "weight is -1", "at least 0"),
    ({"weight": float("nan")}, "weight is nan", "at least 0"),
    ({"weight": float("inf")}, "weight is inf", "at least 0"),
    ({"weight": "heavy"}, "weight is 'heavy'", "at least 0"),
    ({"weight": True}, "weight is True", "at least 0"),
    ({"weight": 10**400}, "weight is 1000", "at least 0"),
    ({"integer": "yes"}, "integer is 'yes'", "Use true or false"),
    ({"kind": "categorical", "integer": True}, "integer is for numeric", "Leave integer out"),
    ({"kind": "hierarchical"}, "a hierarchy belongs to", "Give both"),
    ({"hierarchy": TREE}, "a hierarchy belongs to", "Give both"),
    ({"kind": "hierarchical", "hierarchy": 5}, "hierarchy is a int", "read_hierarchy"),
    ({"kind": "hierarchical", "hierarchy": TREE, "domain": ["a"]}, "the domain", "Leave domain"),
    ({"domain": "1-5"}, "domain is a single value", "list of values"),
    ({"domain": 5}, "domain is a single value", "list of values"),
    ({"kind": "categorical", "domain": 5}, "domain is a single value", "list of values"),
    ({"domain": [1]}, "not a pair of numbers", "[lowest, highest]"),
    ({"domain": [1, 2, 3]}, "not a pair of numbers", "[lowest, highest]"),
    ({"domain": ["low", "high"]}, "not a pair of numbers", "[lowest, highest]"),
    ({"domain": [[1], 2]}, "not a pair of numbers", "[lowest, highest]"),
    ({"domain": [5, 1]}, "lowest above its highest", "[lowest, highest]"),
    ({"domain": [1, float("inf")]}, "infinite end", "finite numbers"),
    ({"domain": [float("nan"), 1]}, "infinite end", "finite numbers"),
    ({"domain": [0.5, 3], "integer": True}, "fractional end", "whole numbers"),
    ({"kind": "categorical", "domain": []}, "domain is empty or names a value twice", "once"),
    ({"kind": "categorical", "domain": ["a", "a"]}, "names a value twice", "once"),
    ({"kind": "categorical", "domain": [1, "1"]}, "names a value twice", "once"),
]


@pytest.mark.parametrize(("given", "message", "remedy"), REFUSED)
def test_contradictions_are_refused(given: dict[str, Any], message: str, remedy: str) -> None:
    """Contradicting parameters raise an error that names the attribute, the rule, the remedy."""
    with pytest.raises(InputError) as caught:
        Attribute(**{"name": "age", **given})
    assert message in caught.value.message
    assert remedy in (caught.value.remedy or "")
    assert given.get("name") == "" or "'age'" in caught.value.message


@pytest.mark.parametrize(
    ("given", "publish"),
    [
        ({}, "range"),
        ({"publish": "set"}, "set"),
        ({"kind": "categorical"}, "set"),
        ({"kind": "hierarchical", "hierarchy": TREE}, "node"),
    ],
)
def test_the_kind_decides_how_cells_are_published(given: dict[str, Any], publish: str) -> None:
    """Numbers become ranges, categories sets, hierarchies nodes, unless asked otherwise."""
    assert Attribute("age", **given).publish == publish


def test_only_numeric_attributes_are_numeric() -> None:
    """The property tells numbers from texts."""
    assert Attribute("age").is_numeric
    assert not Attribute("sex", "categorical").is_numeric


def test_domains_are_stored_as_numbers_or_texts() -> None:
    """A numeric domain becomes a pair of floats, a categorical one texts in the order given."""
    assert Attribute("age", domain=[1, 100]).domain == (1.0, 100.0)
    assert Attribute("code", "categorical", domain=[2, 1, True]).domain == ("2", "1", "True")


@pytest.mark.parametrize("weight", [0, 0.0, 3, 0.25, np.float64(0.5), np.int64(2)])
def test_any_finite_weight_of_at_least_zero_is_accepted(weight: float) -> None:
    """Zero is a weight: the attribute is generalized for free."""
    assert Attribute("age", weight=weight).weight == weight


def test_a_domain_of_one_number_is_accepted() -> None:
    """Lowest and highest may coincide: the attribute is constant."""
    assert Attribute("age", domain=[7, 7], integer=True).domain == (7.0, 7.0)


def test_weights_are_floats() -> None:
    """A weight of many digits is a number like any other to what computes with it."""
    weight = Attribute("x", weight=10**26).weight
    assert (type(weight), weight) == (float, 1e26)


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


def test_more_whole_numbers_than_can_be_distinguished_are_refused() -> None:
    """A column declared to be of whole numbers, with a range of 10^100 of them."""
    frame = pd.DataFrame({"far": [0.0, 3e100, 9e100]})
    data = Microdata(frame, (Attribute("far", integer=True),))
    with pytest.raises(InputError, match="'far' is of whole numbers") as error:
        Domains.of(data)
    assert "integer = false" in str(error.value.remedy)
    Domains.of(Microdata(frame, (Attribute("far"),)))
