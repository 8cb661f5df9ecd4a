"""What an objective reads is found out without a table."""

from __future__ import annotations

import pytest

from anonymip import GCP, SSE, UnsupportedObjective, class_objective, objective
from anonymip.objectives.losses.loading import attributes_read, small_table


@objective
def mixed(record):
    """Read features of three kinds."""
    return (
        4 * record.spread["age"]
        + record.width["age"]
        + record.distinct["job"] / record.domain_size["job"]
        + record.level["zip"] / record.height["zip"]
        + record.weight["age"]
    )


@class_objective()
def pay(members):
    """Read members."""
    return members.value["pay"].max(axis=1) - members.value["pay"].min(axis=1)


def test_kinds_follow_from_features() -> None:
    """The features read decide the kinds; the order is that of reading."""
    assert attributes_read(mixed) == {
        "age": "numeric",
        "job": "categorical",
        "zip": "hierarchical",
    }
    assert attributes_read(pay) == {"pay": "numeric"}


def test_objectives_that_read_whatever_there_is() -> None:
    """They are shown a numeric and a categorical attribute."""
    assert attributes_read(GCP()) == {"number": "numeric", "category": "categorical"}


def test_constants_read_nothing() -> None:
    """A table is made all the same."""
    assert attributes_read(objective(lambda record: 1.0)) == {}
    assert small_table({}).m == 2


@pytest.mark.parametrize("given", [mixed, pay, GCP()])
def test_they_can_be_compiled_on_the_small_table(given) -> None:
    """The table has the attributes, with records that differ."""
    kinds = attributes_read(given)
    data = small_table(kinds)
    assert {attribute.name: attribute.kind for attribute in data.attributes} == kinds
    assert all(len(level) > 2 for level in data.levels)
    assert given.compile(data).name == given.name


def test_functions_that_fail_are_refused() -> None:
    """The message says how, and that a table may help."""
    with pytest.raises(UnsupportedObjective, match="fails without a table: ZeroDivisionError"):
        attributes_read(objective(lambda record: 1 // 0))
    with pytest.raises(UnsupportedObjective, match="Name an INSTANCE"):
        attributes_read(class_objective(lambda members: members.microdata.values[:, 0]))


def test_squared_errors_read_numbers() -> None:
    """SSE looks at the table itself, and at whatever is numeric."""
    assert attributes_read(SSE()) == {"number": "numeric"}
