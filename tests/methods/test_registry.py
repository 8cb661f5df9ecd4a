"""The registry of methods: specs are true to their functions, outsiders are welcome."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import (
    METHODS,
    AnonymipError,
    Bound,
    Classes,
    Diversity,
    InputError,
    MethodOption,
    Microdata,
    Problem,
    Solution,
    UnsupportedObjective,
    compare,
    load_instance,
    load_objective,
    register_method,
    solve,
)
from anonymip.exact.model_run import ModelRun, SolverChoices
from anonymip.methods import find_method, refuse_unfit, registry
from anonymip.recodings.registry import RECODINGS, find_recoding
from tests.brute_force import Column
from tests.hard_losses import FALLING, PRODUCT
from tests.random_problems import LOSSES, Case

SETTINGS = {
    "solver": "highs",
    "gap": 0.0,
    "threads": 1,
    "log": None,
    "solver_options": None,
    "checkpoint": None,
    "resume": False,
    "effort": None,
}


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget after the test what it registered."""
    before = dict(registry._methods)
    yield
    registry._methods.clear()
    registry._methods.update(before)


@pytest.fixture
def health() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3)


def fitting(problem: Problem, name: str) -> Problem:
    """Return the problem as a method takes it: recoding, k, diversity, attributes."""
    spec = METHODS[name]
    if "numeric" in spec.needs:
        table = problem.microdata
        numbers = [given for given in table.attributes if given.kind == "numeric"]
        names = [given.name for given in numbers]
        problem = Problem(Microdata(table.frame[names], numbers), problem.k)
    diversity = Diversity(distinct=2) if "diversity" in spec.needs else None
    k = problem.k if spec.solves_for(problem.k) else 2
    return problem.replace(k=k, recoding=find_recoding(spec.recoding), diversity=diversity)


BEGINS = inspect.signature(ModelRun.begin).parameters


@pytest.mark.parametrize("name", METHODS)
def test_spec_is_true_to_its_function(name: str) -> None:
    """Its target loads; options and defaults are the function's keyword parameters."""
    spec = METHODS[name]
    assert spec.name == name
    assert isinstance(spec.target, str)
    parameters = dict(inspect.signature(spec.load()).parameters)
    for common in ("problem", "budget", "seed"):
        parameters.pop(common)
    if spec.role == "selection":
        assert parameters.pop("settings").kind is inspect.Parameter.VAR_KEYWORD
        assert set(parameters) == {"effort"}
        return
    solving = set()
    if "solving" in parameters:
        # Handed on as they are: their defaults are those of the run of a model.
        assert parameters.pop("solving").annotation == "Unpack[SolverChoices]"
        parameters |= {name: BEGINS[name] for name in SolverChoices.__annotations__}
        solving = set(SolverChoices.__annotations__)
    assert solving <= set(spec.takes)
    for setting in spec.takes:
        assert parameters.pop(setting).default == SETTINGS[setting]
    # A start is an assignment, which no text can name.
    parameters.pop("start", None)
    defaults = {option.name: option.default for option in spec.options}
    assert {key: given.default for key, given in parameters.items()} == defaults
    assert all(given.kind is inspect.Parameter.KEYWORD_ONLY for given in parameters.values())


@pytest.mark.parametrize("name", METHODS)
def test_spec_says_where_it_comes_from(name: str) -> None:
    """Role, recoding and source are filled in, and each option has a meaning."""
    spec = METHODS[name]
    assert spec.role in ("heuristic", "exact", "selection")
    assert {spec.recoding, *spec.also} <= set(RECODINGS)
    assert spec.source
    assert all(option.meaning for option in spec.options)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_solves_the_health_records(health: Problem, name: str) -> None:
    """Each method by its name returns a release with a bound below its loss."""
    solution = solve(fitting(health, name), name)
    assert solution.bound is not None
    assert solution.bound.value <= solution.objective
    # The optima of classes, of covers, of (k,1)-anonymity, and of what conceals only.
    optima = {"classes": 0.955090, "freeform": 0.790702, "k-one": 0.591681}
    optimum = optima.get(METHODS[name].recoding, 0.783365)
    same = solution.problem.k == 3 and solution.problem.m == health.m
    assert not same or solution.objective >= optimum - 1e-6
    assert name in (solution.method, "auto")


@pytest.mark.parametrize("name", METHODS)
def test_unknown_options_are_refused(health: Problem, name: str) -> None:
    """The message names the method, the option, and the options there are."""
    known = [option.name for option in METHODS[name].options]
    with pytest.raises(InputError, match=f"method {name} has no option 'depth'") as caught:
        solve(fitting(health, name), name, options={"depth": 3})
    assert str(caught.value).endswith(", ".join(known) if known else "none")


def test_unknown_method_lists_the_methods() -> None:
    """The remedy names them all."""
    with pytest.raises(InputError, match="unknown method 'magic'") as caught:
        find_method("magic")
    assert all(name in str(caught.value) for name in METHODS)


@pytest.mark.parametrize(
    ("default", "given", "expected"),
    [
        (True, "false", False),
        (True, "0", False),
        (False, "Yes", True),
        (False, True, True),
        (3, "12", 12),
        (3, 4, 4),
        (0.5, "1e-3", 0.001),
        (0.5, 2, 2.0),
        ("a", "b", "b"),
    ],
)
def test_options_are_read_as_their_type(default: Any, given: Any, expected: Any) -> None:
    """Text of the command line and values of Python mean the same."""
    parsed = MethodOption("x", default, "a number").parse("m", given)
    assert parsed == expected
    assert type(parsed) is type(default)


@pytest.mark.parametrize(
    ("default", "given", "remedy"),
    [
        (True, "perhaps", "Give true or false"),
        (3, "three", "Give a whole number"),
        (3, 2.5, "Give a whole number"),
        (0.5, "half", "Give a number"),
    ],
)
def test_options_of_the_wrong_type_are_refused(default: Any, given: Any, remedy: str) -> None:
    """The message says what is expected."""
    with pytest.raises(InputError, match=remedy):
        MethodOption("x", default, "a number").parse("m", given)


NEEDS = {
    "monotone": ("can fall in 'a'", FALLING, False),
    "tables": ("of the general tier", PRODUCT, False),
    "sum": ("is the largest", LOSSES["gcp"], True),
}


@pytest.mark.parametrize("need", NEEDS)
def test_methods_that_need_more_of_an_objective_refuse_others(need: str) -> None:
    """The refusal says what is lacking and names the methods that accept the objective."""
    message, loss, worst = NEEDS[need]
    columns = (Column((1.0, 2.0, 4.0)), Column((5.0, 2.0, 3.0)))
    problem = Case(columns, 2, loss, worst=worst).problem()
    spec = replace(find_method("initial"), name="picky", needs=(need,))
    with pytest.raises(UnsupportedObjective, match=f"method picky needs a .*{message}") as caught:
        refuse_unfit(spec, problem)
    accepting = str(caught.value).partition("Methods that accept it: ")[2].split(", ")
    # A loss without tables is declared monotone, so that columns suffice; the others are not.
    beyond = {"diversity"} if need == "tables" else {"diversity", "superadditive"}
    assert accepting == [
        name
        for name, spec in METHODS.items()
        if spec.solves("classes") and not beyond & set(spec.needs) and spec.solves_for(2)
    ]
    for name in accepting:
        assert solve(problem, name).objective >= -1e-9


def test_methods_of_another_recoding_are_refused(health: Problem) -> None:
    """A problem of a recoding that no method solves says so."""

    class Patterns:
        name = "patterns"

    problem = health.replace(recoding=Patterns())
    with pytest.raises(InputError, match=r"solves classes, .* asks for patterns. Use none of"):
        solve(problem, "mondrian")


@pytest.mark.usefixtures("clean_registry")
def test_method_from_outside(health: Problem) -> None:
    """A registered function runs in solve and compare, with options and bound."""

    @register_method(
        "pairs", source="a test", options=(MethodOption("reverse", False, "from the last record"),)
    )
    def blocks(
        problem: Problem, *, reverse: bool = False, budget: Any = None, seed: int = 0
    ) -> Solution:
        labels = np.minimum(np.arange(problem.n) // problem.k, problem.n // problem.k - 1)
        return Solution.of(
            problem, Classes(labels[::-1] if reverse else labels), method="pairs", seed=seed
        )

    solution = solve(health, "pairs", options={"reverse": "yes"}, seed=5)
    assert solution.assignment.labels.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert solution.seed == 5
    assert solution.bound is not None
    rows = compare(health, [2, 3], ["pairs", "mondrian"], exact=True).rows
    assert [row.solution.method for row in rows] == ["pairs", "mondrian", "column-generation"] * 2
    assert all(row.against == "optimum" for row in rows)
    assert "pairs" in METHODS


def one_class(problem: Problem, *, budget: Any = None, seed: int = 0) -> Solution:
    """Return the trivial release, which it calls certified."""
    del budget, seed
    solution = Solution.of(problem, Classes(np.zeros(problem.n, np.int32)), method="one-class")
    return solution.with_bound(Bound(solution.objective, "made up", "certified"))


@pytest.mark.usefixtures("clean_registry")
def test_a_file_that_registers_a_method_may_be_run_again(tmp_path: Path) -> None:
    """It takes the place of its own method, a function of another file does not."""
    file = tmp_path / "plug_in.py"
    file.write_text(PLUG_IN)
    for _ in range(2):
        assert load_objective(f"{file}:twice").name == "twice"
    assert "again" in METHODS
    (tmp_path / "other.py").write_text(PLUG_IN)
    with pytest.raises(InputError, match="there is a method 'again' already"):
        load_objective(f"{tmp_path / 'other.py'}:twice")


PLUG_IN = """
from anonymip import Classes, Solution, register_method

@register_method("again")
def again(problem, *, budget=None, seed=0):
    return Solution.of(problem, Classes([0] * problem.n), method="again")

def twice(record):
    return 2 * record.width["age"]
"""


@pytest.mark.false_bounds
@pytest.mark.usefixtures("clean_registry")
def test_no_method_calls_its_own_bound_certified(health: Problem) -> None:
    """What a certificate proves is said by what makes certificates."""
    register_method("one-class")(one_class)
    with pytest.raises(AnonymipError, match="there is no certificate"):
        solve(health, "one-class")


@pytest.mark.usefixtures("clean_registry")
def test_registered_names_and_roles_are_checked() -> None:
    """A taken name and an unknown role are refused, and nothing is registered."""
    before = list(METHODS)
    with pytest.raises(InputError, match="there is a method 'mondrian' already"):
        register_method("mondrian")(one_class)
    with pytest.raises(InputError, match="unknown role 'magic'"):
        register_method("new", role="magic")
    assert list(METHODS) == before


@pytest.mark.thorough
def test_a_method_loaded_by_itself_takes_exact_starts() -> None:
    """The registry alone knows the starts of local search that lie above it."""
    code = (
        "from anonymip import METHODS, Problem, load_instance\n"
        "run = METHODS['local-search'].load()\n"
        "solution = run(Problem(load_instance('health-records'), 3), from_method='split-carry')\n"
        "print(solution.options['from_method'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "split-carry\n"
