"""What is frozen comes back from a pickle, and from a deep copy, as it was made."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import anonymip
from anonymip import (
    Apart,
    Attribute,
    Bound,
    Cap,
    Diversity,
    FullDomain,
    InputError,
    Levels,
    Patterns,
    Problem,
    SolverOptions,
    class_objective,
    compare,
    load_instance,
    objective,
    publish,
    solve,
)
from tests.random_problems import Case, cases

TABLE = load_instance("health-records")
PROBLEM = Problem(TABLE, 3)
SOLUTION = solve(PROBLEM, "mondrian", seed=4)
COVER = solve(PROBLEM.replace(recoding="freeform"), "ring")
RELEASE = publish(SOLUTION, np.random.default_rng(1))
FROZEN = {
    "Attribute": TABLE.attributes[0],
    "Microdata": TABLE,
    "Problem": PROBLEM,
    "limited Problem": PROBLEM.replace(limits=Cap("Age", 0.5)),
    "Bound": SOLUTION.bound,
    "Solution": SOLUTION,
    "Solution of a cover": COVER,
    "Release": RELEASE,
    "Release of a cover": publish(COVER, keep_order=True),
    "Verification": RELEASE.verify(),
    "Comparison": compare(PROBLEM, [2, 3], ["mondrian", "initial"]),
    "Patterns": Patterns(np.array([0, 1, 1])),
    "Levels": Levels(np.array([0, 1]), np.array([False, True])),
    "Description": SOLUTION.description,
    "Diversity": Diversity(l=2),
    "Apart": Apart("Sex", "M", "F"),
    "FullDomain": FullDomain(suppression=True),
    "SolverOptions": SolverOptions(log=Path("a.log"), solver_options={"a": 1}),
    "Status": SOLUTION.status,
    "Schema": anonymip.Schema({"Age": {"kind": "numeric"}}),
    "MethodSpec": anonymip.METHODS["mondrian"],
    "SSE": anonymip.SSE(),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "oldest pickle": lambda one: pickle.loads(pickle.dumps(one, protocol=0)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
MODULE = """\
from anonymip import class_objective, objective


@objective(monotone=True)
def squares(record):
    return sum(record.spread[name] ** 2 for name in record.attributes)


@class_objective
def spread(members):
    return members.value["Age"].max(axis=1) - members.value["Age"].min(axis=1)
"""


def same(one: Any, other: Any) -> bool:
    """Return whether two objects hold the same, field by field, and refuse the same writing."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        alike = np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        return alike and one.flags.writeable == other.flags.writeable
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return all(same(getattr(one, a.name), getattr(other, a.name)) for a in fields(one))
    return one == other or vars(one) == vars(other)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FROZEN)
def test_frozen_objects_come_back_equal(name: str, way: str) -> None:
    """Every public frozen type holds the same afterwards, read-only where it was."""
    assert same(FROZEN[name], WAYS[way](FROZEN[name]))


@pytest.mark.parametrize("way", WAYS)
def test_what_comes_back_can_be_used(way: str) -> None:
    """A solution can be published, a problem solved, and a table's codes are still read-only."""
    back = WAYS[way](SOLUTION)
    assert publish(back).verify().ok
    assert back.summary() == SOLUTION.summary()
    again = solve(back.problem, "mondrian", seed=4)
    assert again.objective == SOLUTION.objective
    with pytest.raises(TypeError):
        back.options["seed"] = 1
    for array in (back.problem.microdata.codes, *back.problem.microdata.levels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
    assert WAYS[way](RELEASE).verify().ok


def test_a_comparison_comes_back_with_its_texts() -> None:
    """The rows of a comparison say the same."""
    table = FROZEN["Comparison"]
    back = pickle.loads(pickle.dumps(table))
    assert isinstance(back, anonymip.Comparison)
    assert back.texts() == table.texts()  # type: ignore[union-attr]


@given(cases())
def test_random_problems_come_back(case: Case) -> None:
    """Of random problems every part comes back, and a release loses what it lost."""
    problem = case.problem()
    back = pickle.loads(pickle.dumps(problem))
    assert same(problem.microdata, back.microdata)
    assert same(problem.objective, back.objective)
    assert back.whole == problem.whole


@pytest.fixture
def losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module of objectives that every process would find."""
    (tmp_path / "own_losses.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("own_losses")
    sys.modules.pop("own_losses", None)


@pytest.mark.parametrize("name", ["squares", "spread"])
def test_a_decorated_function_of_a_module_is_pickled_by_its_name(losses: Any, name: str) -> None:
    """What pickle itself cannot find behind the decorator is imported."""
    own = getattr(losses, name)
    content = pickle.dumps(Problem(TABLE, 3, objective=own))
    assert pickle.loads(content).objective is own
    del sys.modules["own_losses"]
    assert pickle.loads(content).objective.name == name
    assert sys.modules["own_losses"] is not losses


def test_an_objective_whose_module_is_gone_says_so(
    losses: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who unpickles without the module, or with another version, reads what is missing."""
    content = pickle.dumps(losses.squares)
    monkeypatch.delattr(losses, "squares")
    with pytest.raises(InputError, match="has no objective 'squares' any more"):
        pickle.loads(content)
    del sys.modules["own_losses"]
    (tmp_path / "own_losses.py").unlink()
    importlib.invalidate_caches()
    with pytest.raises(InputError, match="its module own_losses cannot be imported"):
        pickle.loads(content)


@pytest.mark.parametrize("decorator", [objective, class_objective])
def test_a_local_function_is_refused_with_a_remedy(decorator: Any) -> None:
    """A function within another cannot be pickled by reference, only copied."""

    @decorator
    def local(given: Any) -> Any:
        return given

    with pytest.raises(InputError, match=r"no import finds.*top level of a module"):
        pickle.dumps(local)
    assert copy.deepcopy(local) is local


def test_local_objectives_are_copied_with_their_problem() -> None:
    """A deep copy keeps a local function, which nobody can change."""

    @objective
    def local(record: Any) -> Any:
        return record.spread["Age"]

    found = solve(PROBLEM.replace(objective=local), "mondrian")
    assert copy.deepcopy(found).objective == found.objective


def test_cloudpickle_takes_local_functions_as_they_are() -> None:
    """What pickles functions by value, as joblib does in notebooks, is not refused."""
    namespace: dict[str, Any] = {"__name__": "joblib.externals.cloudpickle.cloudpickle"}
    exec("def reduce(one):\n    return one.__reduce__()", namespace)
    own = objective(lambda record: record.spread["Age"])
    assert namespace["reduce"](own) == (type(own), (own.function, None))


def test_a_bound_without_duals_is_equal_to_its_copy() -> None:
    """Bounds compare by value, so copies are equal in Python's own sense too."""
    bound = Bound(1.5, "prover", "argument")
    assert pickle.loads(pickle.dumps(bound)) == bound
    assert pickle.loads(pickle.dumps(Attribute("age"))) == Attribute("age")
