"""What the pages say of attacks and of the papers' figures is so, counted in another way."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import METHODS, Cover, Freeform, Microdata, Problem, census, solve
from tests.brute_force import Column, Rules, gcp, optimum

DOCS = Path(__file__).resolve().parents[1] / "docs"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS_OF_THE_PROGRAM = [
    ("greedy", "chooser"),
    ("sort-greedy", "weight"),
    ("sort-greedy", "repair"),
]


def names_of(page: str) -> dict[str, Any]:
    """Return what the Python blocks of a page leave, run one after the other."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in PYTHON.findall((DOCS / page).read_text(encoding="utf-8")):
            exec(compile(block, page, "exec"), names)
    return names


def test_minimality_tells_the_values_of_a_class() -> None:
    """Of all tables that give the release of docs/rules.md, the least loss leaves those of HIV.

    The release alone keeps its promise: each of 30 has HIV in half of them.
    """
    shown = names_of("rules.md")
    labels, ages, ills = shown["least"].classes.labels, shown["ages"], shown["ills"]
    assert len(set(labels)) == 2
    people = range(len(ages))
    exact = Counter(ills[i] for i in people if labels[i] != labels[0])
    old = [i for i in people if ages[i] == 50]
    column = Column(tuple(ages), integer=True)
    possible: list[tuple[str, ...]] = []
    minimal: list[tuple[str, ...]] = []
    for values in set(permutations(ills)):
        if all(Counter(values[i] for i in pair) != exact for pair in combinations(old, 2)):
            continue
        possible.append(values)
        rules = Rules(sensitive=(values,), l=Fraction(2))
        if optimum((column,), 2, gcp, rules=rules) == pytest.approx(shown["least"].objective):
            minimal.append(values)
    young = [i for i in people if ages[i] == 30]
    for person in young:
        assert sum(values[person] == "HIV" for values in possible) * 2 == len(possible)
    assert minimal
    assert all(values[person] == "HIV" for values in minimal for person in young)


@pytest.mark.parametrize(("method", "name"), OPTIONS_OF_THE_PROGRAM)
def test_defaults_are_those_of_the_authors_program(method: str, name: str) -> None:
    """The value that an option calls the program's is the default: it makes the same cover.

    What it calls the paper's text makes another, and docs/freeform.md names both.
    """
    (option,) = (option for option in METHODS[method].options if option.name == name)
    # The last word with which a value begins, before the bracket that says whose it is.
    values = "loss|increase|published|originals"
    program, text = (
        re.findall(rf"\b({values})\b", option.meaning.partition(f"({whose})")[0])[-1]
        for whose in ("the authors' program", "the paper's text")
    )
    assert program == option.default != text

    problem = Problem(census(120, 6, seed=1), 6, recoding=Freeform())

    def matches(**options: str) -> list[tuple[int, ...]]:
        cover = solve(problem, method, options=options).assignment
        assert isinstance(cover, Cover)
        return [tuple(sorted(row)) for row in cover.matches.tolist()]

    default = matches()
    assert default == matches(**{name: program})
    assert default != matches(**{name: text})
    page = (DOCS / "freeform.md").read_text(encoding="utf-8")
    assert f"({name}={program})" in page.replace("`", "")
    assert f"({name}={text})" in page.replace("`", "")


def counted(data: Microdata, sets: list[list[int]]) -> float:
    """Return the mean width of the cells of rows that cover sets of records, of the domain's."""
    shares = []
    for a in range(data.m):
        low, high = data.domain_bounds(a)
        shares += [np.ptp(data.values[rows, a]) / (high - low) for rows in sets]
    return sum(shares) / len(shares)


@pytest.mark.thorough
def test_diverse_classes_on_a_curve_lose_about_as_much_as_rings() -> None:
    """The figures of docs/diversity.md: no factor of 48 between nh and hilbert-diversity."""
    figures = names_of("diversity.md")["figures"]
    assert set(figures) == {2, 5}
    for l, (rings, curve, groups) in figures.items():  # noqa: E741
        assert all(solution.problem.diversity.l == l for solution in (rings, curve, groups))
        data = rings.problem.microdata
        assert counted(data, rings.assignment.matches.tolist()) == pytest.approx(rings.gcp)
        for solution in (curve, groups):
            labels = solution.assignment.labels
            sets = [np.flatnonzero(labels == label).tolist() for label in labels]
            assert counted(data, sets) == pytest.approx(solution.gcp)
        assert rings.gcp / 2 < curve.gcp < 2 * rings.gcp < groups.gcp


@pytest.mark.thorough
def test_hp_parts_beyond_an_attribute_that_does_not_split() -> None:
    """The figures of docs/freeform.md: hp parts by age, where stopping leaves a class a sex."""
    shown = names_of("freeform.md")
    partitioned, stopped = shown["partitioned"], shown["stopped"]
    twins = partitioned.problem.microdata
    assert twins.names == ("SEX", "TWIN", "AGE")
    codes = twins.codes
    for group in partitioned.assignment.groups():
        assert len(group) < 2 * partitioned.problem.k or (codes[group] == codes[group][0]).all()
    sets = [np.flatnonzero(codes[:, 0] == code).tolist() for code in codes[:, 0]]
    assert counted(twins, sets) == pytest.approx(stopped.gcp)
    assert stopped.gcp > 10 * partitioned.gcp
