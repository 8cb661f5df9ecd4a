"""Tests of tracing: what an objective's function may do, and what it is told otherwise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import Attribute, Microdata, UnsupportedObjective, objective
from anonymip.objectives import CellBatch, CompiledObjective
from anonymip.objectives.kernels.class_loss import kernel_rows, new_state, open_class, record_loss
from tests.by_hand import table_of

Function = Callable[[Any], Any]

DATA = Microdata(
    pd.DataFrame({"age": [1, 2, 4, 9], "pay": [0.5, 1.5, 2.5, 2.5], "job": ["a", "b", "a", "c"]}),
    (Attribute("age", integer=True), Attribute("pay"), Attribute("job", "categorical")),
)


def traced(function: Function) -> CompiledObjective:
    """Return the function as an objective, traced; a NumPy warning on the way is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return objective(function).compile(DATA)


AFFINE: dict[str, Function] = {
    "sum of spreads": lambda r: sum(r.spread[a] for a in r.attributes),
    "sum of all": lambda r: sum(r.spread.values()),
    "products and quotients": lambda r: 4 * r.width["age"] - r.width["pay"] / 3 + 2,
    "signs": lambda r: +r.width["age"] + -r.width["pay"],
    "number minus loss": lambda r: 1 - r.spread["job"],
    "ends": lambda r: r.upper["age"] - 0.5 * r.lower["age"],
    "np.add": lambda r: np.add(r.width["age"], r.width["pay"]),
    "np.float32": lambda r: np.float32(2) * r.width["age"],
    "fraction": lambda r: Fraction(1, 2) * r.width["age"],
    "zero-dimensional array": lambda r: np.array(0.5) * r.width["age"],
    "np.sum along the terms": lambda r: np.sum([r.width["age"], r.width["pay"]], axis=0),
    "matrix product": lambda r: np.array([1.0, 2.0]) @ np.array([r.width["age"], r.width["pay"]]),
    "price of stars": lambda r: r.width["age"] + 5 * r.suppressed["age"],
    "constant": lambda r: 3,
    "constants of attributes": lambda r: (
        r.weight["age"] * r.spread["age"] / r.domain_size["age"] if r.kind["age"] else 0
    ),
}

SEPARABLE: dict[str, Function] = {
    "abs": lambda r: abs(r.width["age"] - 0.5),
    "np.abs": lambda r: np.abs(r.width["age"] - 0.5),
    "power": lambda r: r.width["age"] ** 2 + pow(r.width["pay"], 3),
    "number to the power": lambda r: 2 ** r.width["age"],
    "np.sqrt": lambda r: np.sqrt(r.width["age"]) + np.sqrt(r.distinct["job"] - 1),
    "np.log": lambda r: np.log(r.distinct["job"]) + np.log1p(r.width["age"]),
    "np.exp": lambda r: np.exp(r.width["age"]),
    "np.where": lambda r: np.where(r.width["age"] > 0.5, 1.0, 0.0),
    "np.where of losses": lambda r: np.where(r.distinct["job"] == 1, 0.0, r.distinct["job"]),
    "np.maximum": lambda r: np.maximum(r.width["age"], 0.5) + np.minimum(r.width["pay"], 0.5),
    "np.clip": lambda r: np.clip(r.width["age"], 0.1, 0.5),
    "product of one attribute": lambda r: r.width["age"] * r.distinct["age"],
    "quotient of one attribute": lambda r: r.width["age"] / r.distinct["age"],
    "number over loss": lambda r: 1 / r.distinct["job"],
    "comparison as number": lambda r: 2.0 * (r.distinct["job"] > 1),
    "negation": lambda r: np.where(~(r.distinct["job"] != 1), 0.0, 1.0),
    "both conditions": lambda r: np.where(
        (r.width["age"] >= 0.1) & (r.width["age"] <= 0.9) | (r.width["age"] < 0), 1.0, 2.0
    ),
    "np.floor_divide": lambda r: np.floor_divide(r.distinct["age"], 2),
    "price where stars": lambda r: np.where(r.suppressed["age"], 5.0, r.width["age"]),
}

BRANCHES = "branches on a published value"
NUMBER = "turns a published value into a plain number"
BATCH = "gives different losses for one record and for a batch"
NOT_TRACED = "cannot be traced"
UNDEFINED = "infinite or undefined"

REFUSED: dict[str, tuple[Function, str]] = {
    "if": (lambda r: 1 if r.width["age"] > 0.5 else 0, BRANCHES),
    "if equal": (lambda r: 0 if r.distinct["job"] == 1 else 1, BRANCHES),
    "if suppressed": (lambda r: 5 if r.suppressed["age"] else r.width["age"], BRANCHES),
    "and": (lambda r: np.where(r.width["age"] > 0 and r.width["age"] < 1, 1, 0), BRANCHES),
    "not": (lambda r: np.where(not r.width["age"], 1, 0), BRANCHES),
    "in": (lambda r: r.distinct["job"] in (1, 2), BRANCHES),
    "max": (lambda r: max(r.width["age"], 0.5), BRANCHES),
    "min": (lambda r: min(r.width["age"], r.width["pay"]), BRANCHES),
    "np.max": (lambda r: np.max([r.width["age"], r.width["pay"]]), BRANCHES),
    "math.sqrt": (lambda r: math.sqrt(r.width["age"]), NUMBER),
    "math.fsum": (lambda r: math.fsum([r.width["age"], r.width["pay"]]), NUMBER),
    "float": (lambda r: float(r.width["age"]), NUMBER),
    "np.sum of a list": (lambda r: np.sum([r.width["age"], r.width["pay"]]), BATCH),
    "np.mean of a list": (lambda r: np.mean([r.width["age"], r.width["pay"]]), BATCH),
    "random": (lambda r: np.random.default_rng().random() * r.width["age"], BATCH),
    "np.sum": (lambda r: np.sum(r.width["age"]), r"calls np\.sum, which is not element-wise"),
    "reduction": (lambda r: np.add.reduce(r.width["age"]), r"applies np\.add\.reduce"),
    "np.where of lists": (lambda r: np.where(r.width["age"] > 0, [1, 2], 0), "with a list"),
    "array factor": (lambda r: np.array([1.0, 2.0]) * r.width["age"], "with a ndarray"),
    "int": (lambda r: int(r.width["age"]), NOT_TRACED),
    "round": (lambda r: round(r.width["age"]), NOT_TRACED),
    "index": (lambda r: [0, 1, 2, 3][r.distinct["job"]], NOT_TRACED),
    "look-up": (lambda r: {1: 0}[r.distinct["job"]], NOT_TRACED),
    "unknown feature": (lambda r: r.levels["job"], "reads 'levels', which no published record has"),
    "level of a category": (lambda r: r.level["job"], "reads level of 'job', which is not hierar"),
    "np.log of 0": (lambda r: np.log(r.width["age"]), UNDEFINED),
    "division by 0": (lambda r: 1 / (r.distinct["job"] - 2), UNDEFINED),
    "0 by 0": (lambda r: (r.distinct["job"] - 2) / (r.distinct["job"] - 2), UNDEFINED),
    "nan": (lambda r: math.nan * r.width["age"], UNDEFINED),
    "constant nan": (lambda r: math.nan, UNDEFINED),
    "exception": (lambda r: 1 / 0, "fails with ZeroDivisionError"),
    "no return": (lambda r: None, "returns a NoneType"),
    "text": (lambda r: "low", "returns a str"),
    "truth value": (lambda r: True, "returns a bool"),
    "list": (lambda r: [r.width["age"]], "returns a list"),
    "width of a category": (lambda r: r.width["job"], "reads width of 'job', which is not numeric"),
    "end of a category": (lambda r: r.lower["job"], "reads lower of 'job', which is not numeric"),
    "count of reals": (lambda r: r.distinct["pay"], "a range of real numbers"),
}


GENERAL: dict[str, Function] = {
    "several attributes": lambda r: r.width["age"] * r.lower["pay"],
    "larger of two": lambda r: np.maximum(r.width["age"], -r.distinct["job"]),
    "modulo": lambda r: r.distinct["age"] % 2,
    "stacked": lambda r: np.stack([r.width["age"], r.width["pay"]]).max(axis=0),
    "np.interp": lambda r: np.interp(r.width["age"], [0.0, 0.5, 1.0], [0.0, 0.1, 1.0]),
}


@pytest.mark.parametrize("name", GENERAL)
def test_functions_of_several_attributes_are_called_on_batches(name: str) -> None:
    """They have no tables, and nothing proves them monotone."""
    compiled = traced(GENERAL[name])
    assert compiled.tier == "general"
    assert not compiled.has_tables
    assert not compiled.monotone
    assert "nothing proves it monotone" in (compiled.obstacle or "")
    with pytest.raises(UnsupportedObjective, match="has no tables"):
        _ = compiled.tables


@pytest.mark.parametrize("name", AFFINE)
def test_sums_and_products_with_numbers_are_affine(name: str) -> None:
    """Whatever spelling of a linear function is used, it is recognised."""
    assert traced(AFFINE[name]).tier == "affine"


@pytest.mark.parametrize("name", SEPARABLE)
def test_element_wise_functions_of_one_attribute_are_separable(name: str) -> None:
    """Operators and NumPy's element-wise functions become tables."""
    assert traced(SEPARABLE[name]).tier == "separable"


@pytest.mark.parametrize("name", [*AFFINE, *SEPARABLE])
def test_the_tables_of_a_single_record_equal_the_function(name: str) -> None:
    """The loss of a record published exactly is the same from the tables and the function."""
    compiled = traced({**AFFINE, **SEPARABLE}[name])
    rows = kernel_rows(DATA, compiled.tables, np.arange(DATA.n))
    state = new_state(compiled.tables, 1)
    from_tables = []
    for row in range(DATA.n):
        open_class(rows, state, row)
        from_tables.append(record_loss(compiled.tables, state))
    ends = np.where([True, True, False], DATA.values, np.nan)
    cells = CellBatch(ends, ends, np.ones((4, 3)), np.zeros((4, 3), np.bool_))
    np.testing.assert_allclose(from_tables, compiled.record_losses(cells), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_with_a_remedy(name: str) -> None:
    """Branching, reductions, several attributes in a term and mistakes raise a clear error."""
    function, message = REFUSED[name]
    with pytest.raises(UnsupportedObjective, match=message) as caught:
        traced(function)
    assert caught.value.remedy


def test_np_sum_that_happens_to_be_right_is_accepted() -> None:
    """A reduction over the batch is harmless only where all losses are zero."""
    constant = table_of({"age": [5, 5, 5]})
    compiled = objective(lambda r: np.sum([r.width["age"]])).compile(constant)
    assert compiled.tables.constant == 0.0


def test_functions_that_return_another_shape_for_a_batch_are_refused() -> None:
    """One number a record is expected; nothing is broadcast silently."""

    def shapeless(record: Any) -> Any:
        width = record.width["age"]
        return np.zeros((2, len(width))) if isinstance(width, np.ndarray) else width

    with pytest.raises(UnsupportedObjective, match=r"returns an array of shape \(2, 5\)"):
        traced(shapeless)
