"""Tests of objectives by name and from files, and of the attributes that one reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonymip import (
    GCP,
    SSE,
    InputError,
    Problem,
    UnsupportedObjective,
    WeightedLoss,
    class_objective,
    load_instance,
    load_objective,
    objective,
)
from anonymip.objectives.losses.loading import attributes_read, small_table

FILE = """
from functools import partial
from anonymip import Objective, objective

def plain(record):
    return 2 * record.spread["Age"]

@objective
def decorated(record):
    return 3 * record.spread["Age"]

class Whole(Objective):
    name = "whole"
    def loss(self, record):
        return 4 * record.spread["Age"]

class Weighted(Objective):
    name = "weighted"
    def __init__(self, weight):
        self.weight = weight
    def loss(self, record):
        return self.weight * record.spread["Age"]

class Nameless(Objective):
    def loss(self, record):
        return 0

instance = Weighted(5)
fixed = partial(lambda weight, record: weight * record.spread["Age"], 6)
number = 7
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with objectives of all sorts."""
    path = tmp_path / "losses.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_built_in_objectives_have_names() -> None:
    """A name of the registry needs no file."""
    assert load_objective("gcp") == GCP()
    assert load_objective("weighted-loss-binary") == WeightedLoss("binary")


@pytest.mark.parametrize(
    ("name", "called", "price"),
    [
        ("plain", "plain", 2),
        ("decorated", "decorated", 3),
        ("Whole", "whole", 4),
        ("instance", "weighted", 5),
        ("fixed", "partial", 6),
    ],
)
def test_functions_objectives_and_classes_are_found(
    file: Path, name: str, called: str, price: float
) -> None:
    """FILE.py:NAME names a function, an objective, or a class of objectives."""
    found = load_objective(f"{file}:{name}")
    assert found.name == called
    problem = Problem(load_instance("health-records"), 3, objective=found)
    assert problem.compiled.suppression_price == price


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "defines no objective 'absent'"),
        ("", "defines no objective ''"),
        ("number", "defines no objective 'number'"),
        ("Weighted", "Weighted cannot be made without arguments"),
        ("Nameless", "Nameless cannot be made without arguments"),
    ],
)
def test_what_is_no_objective_is_refused(file: Path, name: str, message: str) -> None:
    """The message names file and name, and what may stand there."""
    with pytest.raises(InputError, match=message) as caught:
        load_objective(f"{file}:{name}")
    assert str(file) in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("def f(:", "fails with SyntaxError"),
        ("1 / 0", "fails with ZeroDivisionError: division by zero"),
        ("import no_such_module", "fails with ModuleNotFoundError"),
        ("raise SystemExit(3)", "fails with SystemExit"),
    ],
)
def test_files_that_fail_are_refused(tmp_path: Path, content: str, message: str) -> None:
    """Whatever the file raises is the user's to mend: a message, no traceback."""
    path = tmp_path / "broken.py"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        load_objective(f"{path}:f")
    assert caught.value.remedy == "Correct the file"


@pytest.mark.parametrize("text", ["gpc", "GCP", "losses.py", "losses.txt:f", ":f"])
def test_unknown_names_are_refused(text: str) -> None:
    """The message lists the built-in names and the form of a file's."""
    with pytest.raises(InputError, match="unknown objective") as caught:
        load_objective(text)
    assert "liang-gcp" in (caught.value.remedy or "")
    assert "FILE.py:NAME" in (caught.value.remedy or "")


def test_missing_files_are_refused(tmp_path: Path) -> None:
    """The message names the path."""
    with pytest.raises(InputError, match="there is no file"):
        load_objective(f"{tmp_path / 'absent.py'}:f")


def test_files_of_one_name_do_not_mix(tmp_path: Path) -> None:
    """Two files of the same name in two folders are two modules."""
    first, second = tmp_path / "one" / "losses.py", tmp_path / "two" / "losses.py"
    for number, path in enumerate((first, second), start=1):
        path.parent.mkdir()
        path.write_text(f"def f(record):\n    return {number}\n", encoding="utf-8")
    data = load_instance("health-records")
    prices = [load_objective(f"{p}:f").compile(data).suppression_price for p in (first, second)]
    assert prices == [1.0, 2.0]


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
    assert attributes_read(mixed) == {"age": "numeric", "job": "categorical", "zip": "hierarchical"}
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
