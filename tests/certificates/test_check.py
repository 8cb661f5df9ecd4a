"""The checker's search finds what brute force finds, and its numbers are those of the package."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Attribute,
    Bound,
    Freeform,
    Microdata,
    Problem,
    WeightedLoss,
    certify,
    objective,
    solve,
)
from anonymip.certificates import ColumnPool, CutDual, DualProof
from anonymip.certificates.check import Duals, Rejected, Table, check, main, search, sentence
from anonymip.certificates.dual_proof import finer_scale, whole_duals
from anonymip.certificates.exact_loss import exact_problem, simple_fraction, uncertifiable
from anonymip.objectives.language import tables as language_tables
from tests.brute_force import Column
from tests.by_hand import table_of
from tests.profiles import thorough
from tests.random_problems import Case, cases, microdata


def exact_table(case: Case, *, freeform: bool, large: bool = False) -> Table:
    """Return the table of a random problem in whole numbers, hierarchies perhaps as large ones."""
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr(language_tables, "LARGEST_NODE_TABLE", 0)
        problem = case.problem()
        problem = problem.replace(recoding=Freeform()) if freeform else problem
        assume(uncertifiable(problem) is None)
    part = exact_problem(problem)
    scale = finer_scale(part["unit"], abs(problem.whole) / problem.n, problem.n)
    return Table({**part, "scale": scale})


def scale_of(case: Case) -> float:
    """Return the loss of a record that is published with all others, or 1."""
    return abs(case.set_loss(range(case.n))) or 1.0


def admissible(table: Table) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return all sets of distinct records that are allowed, each with records that make it."""
    sizes = range(table.k, table.largest + 1)
    return {
        tuple(sorted(table.types[i] for i in records)): records
        for size in sizes
        for records in combinations(range(table.n), size)
    }


def seal_of(part: dict[str, Any]) -> str:
    """Return the seal of a table and its loss."""
    content = json.dumps([part["constant"], part["terms"], part["records"]])
    return hashlib.sha256(content.encode()).hexdigest()


@pytest.mark.parametrize("values", [1, 2, 5, 8, 9, 33])
def test_losses_of_large_hierarchies_are_the_largest_between(values: int) -> None:
    """Of any first and last value; a gap that lies below a value beside it is refused."""
    chance = random.Random(values)
    exact = [chance.randint(0, 5) for _ in range(values)]
    gaps = [max(pair) + chance.randint(0, 9) for pair in pairwise(exact)]
    names = [f"v{at}" for at in range(values)]
    term = {"kind": "tree", "column": 0, "order": names, "losses": exact, "gaps": gaps}
    given_to = {"constant": 0, "records": [[name] for name in names], "k": 2, "unit": 1, "scale": 1}
    part = {**given_to, "recoding": "classes", "terms": [term]}
    table = Table({**part, "sha256": seal_of(part)})
    for first, last in combinations_with_replacement(range(values), 2):
        expected = max(gaps[first:last], default=exact[first])
        assert table.grown(table.grown(None, last)[1], first)[0] == expected
    if gaps:
        gaps[chance.randrange(len(gaps))] = -1
        with pytest.raises(Rejected, match="the loss can fall"):
            Table({**part, "sha256": seal_of(part)})


@settings(max_examples=100)
@given(
    cases(largest=7, suppression=False),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_the_search_finds_all_sets_of_low_reduced_cost(
    case: Case, freeform: bool, large: bool, chance: random.Random
) -> None:
    """Under any duals, cuts and limit, the sets are those that the definition gives."""
    table = exact_table(case, freeform=freeform, large=large)
    rows, usual = len(table.rows), max(1, int(Fraction(scale_of(case)) * table.scale))
    cuts = [
        [chance.sample(range(rows), chance.randint(1, rows)), chance.randint(1, 3), amount]
        for amount in (usual // 5, usual // 3)
    ]
    node = {
        "duals": [chance.randint(-usual, 3 * usual) for _ in range(rows)],
        "count": 0 if freeform else chance.choice([0, usual // 4]),
        "cuts": cuts,
        "splits": [],
    }
    expected, reduced = {}, {}
    for members, records in admissible(table).items():
        exact = case.set_loss(records)
        loss, covered = 0, None
        for row in members:
            loss, covered = table.grown(covered, row)
        assert abs(loss / table.scale - exact) <= case.slack(scale_of(case))
        cost = loss * (1 if freeform else len(members))
        paid = sum(
            sum(row in types for row in members) // divisor * dual for types, divisor, dual in cuts
        )
        gained = sum(node["duals"][row] for row in members)
        expected[members] = cost
        reduced[members] = cost - gained + paid + node["count"]
    for limit in (-1, *chance.sample(sorted(reduced.values()), min(3, len(reduced)))):
        found = search(table, Duals(table, node), limit)
        assert found == {m: c for m, c in expected.items() if reduced[m] <= limit}


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=5, max_size=9),
    st.integers(2, 3),
    st.lists(st.integers(-60, 400), min_size=9, max_size=9),
    st.integers(-100, 200),
    st.booleans(),
)
def test_the_search_of_squares_finds_all_sets_of_low_reduced_cost(
    points: list[tuple[int, int]], k: int, given_duals: list[int], limit: int, cut: bool
) -> None:
    """Multisets of all sizes, alike records, duals of cuts and of the count among them."""
    problem = Problem(
        microdata(tuple(Column(tuple(map(float, c))) for c in zip(*points, strict=True))),
        k,
        objective=SSE("none"),
    )
    part = exact_problem(problem)
    table = Table({**part, "scale": part["unit"]})
    t = len(table.rows)
    unit = part["unit"] // 20
    node = {
        "duals": [unit * dual for dual in given_duals[:t]],
        "count": unit * 7,
        "cuts": [[[0, t - 1], 2, unit * 30]] if cut else [],
        "splits": [],
    }
    duals = Duals(table, node)
    expected = {}
    for size in range(k, table.largest + 1):
        for members in combinations_with_replacement(range(t), size):
            if all(members.count(row) <= table.counts[row] for row in members):
                values = [table.points[row] for row in members]
                means = [sum(column) / Fraction(size) for column in zip(*values, strict=True)]
                cost = sum(
                    (v - mean) ** 2 for row in values for v, mean in zip(row, means, strict=True)
                )
                whole = cost * table.scale
                assert whole == table.set_cost(members)
                if duals.reduced(members, int(whole)) <= limit * unit:
                    expected[members] = int(whole)
    assert search(table, duals, limit * unit) == expected


@settings(max_examples=40)
@given(cases(largest=7, suppression=False), st.booleans(), st.randoms(use_true_random=False))
def test_feasible_duals_never_exceed_a_release(
    case: Case, freeform: bool, chance: random.Random
) -> None:
    """The value of duals that the search finds nothing under is below the optimum."""
    table = exact_table(case, freeform=freeform)
    optimum = case.cover_optimum() if freeform else case.optimum()
    usual = max(1, int(Fraction(scale_of(case)) * table.scale))
    node: dict[str, Any] = {
        "duals": [chance.randint(0, usual) for _ in table.rows],
        "count": 0,
        "cuts": [],
        "splits": [],
    }
    while any(search(table, Duals(table, node), -1)):
        node["duals"] = [dual * 2 // 3 - 1 for dual in node["duals"]]
    value = Duals(table, node).value / table.scale
    assert value <= optimum + case.slack(scale_of(case))


def test_alike_records_are_one_row() -> None:
    """Records are numbered as they first occur, and counted."""
    terms = [{"kind": "range", "column": 0, "low": -1, "high": 1}]
    records = [[5], [3], [5], [5]]
    seal = hashlib.sha256(json.dumps([0, terms, records]).encode()).hexdigest()
    asked = {"recoding": "classes", "k": 2, "constant": 0, "terms": terms, "records": records}
    table = Table({**asked, "sha256": seal, "unit": 1, "scale": 4})
    assert table.types == [0, 1, 0, 0]
    assert table.counts == Counter({0: 3, 1: 1})
    assert table.grown(table.grown(None, 0)[1], 1)[0] == 2 * table.scale


@pytest.mark.parametrize(
    ("number", "size", "meant"),
    [
        (1 / 74, 0.0, Fraction(1, 74)),
        (0.1 * 3, 1.0, Fraction(3, 10)),
        (1 / 3 - 1 / 4, 1.0, Fraction(1, 12)),
        (0.0, 0.0, Fraction(0)),
        (-2.5, 0.0, Fraction(-5, 2)),
        (2e-8, 0.0, Fraction(1, 50_000_000)),
        (0.5**55, 1.0, Fraction(1, 2**55)),
        (np.sqrt(2.0), 1.0, Fraction(float(np.sqrt(2.0)))),
        (np.pi * 1e-9, 0.0, Fraction(float(np.pi * 1e-9))),
    ],
)
def test_floats_are_what_they_were_meant_to_be(number: float, size: float, meant: Fraction) -> None:
    """A simple fraction within rounding is what a float stands for; others stand for themselves."""
    assert simple_fraction(float(number), size) == meant


@pytest.mark.parametrize("publish", ["range", "set"])
@pytest.mark.parametrize(
    "ages",
    [
        [1e12, 1e12 + 1e-3, 1e12 + 4e-3, 1e12 + 5e-3],
        [0.3, 0.30000000000000004, 0.1, 0.10000000000000002],
        [-1e12, -1e12 + 3e-4, 1e-12, 2e-12],
    ],
)
def test_numbers_lie_as_far_apart_as_in_the_table(ages: list[float], publish: Any) -> None:
    """Decimals as numbers print may lie at other distances, by which sets would lose another sum.

    What they lose is a share of the whole table's loss.
    """
    table = Microdata(pd.DataFrame({"age": ages}), (Attribute("age", "numeric", publish=publish),))
    problem = Problem(table, 2, objective=WeightedLoss())
    exact = Table({**(part := exact_problem(problem)), "scale": part["unit"]})
    whole = max(map(Fraction, ages)) - min(map(Fraction, ages))
    for i, j in combinations(range(4), 2):
        width = abs(Fraction(ages[i]) - Fraction(ages[j])) / whole
        cost = Fraction(exact.grown(exact.grown(None, i)[1], j)[0], exact.scale)
        assert cost == pytest.approx(width, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("loss", "bound", "said"),
    [
        ("27/2", "27/2", "loss 13.5; no release below 13.5 exists."),
        ("757678/10000", "757599/10000", "loss 75.7678; no release below 75.7599 exists."),
        (None, "13499999/1000000", "no release below 13.4999 exists."),
        (None, "-13499991/1000000", "no release below -13.5 exists."),
        ("1", "0", "loss 1; no release below 0 exists."),
        (None, "1/3000000", "no release below 3.33333e-07 exists."),
        (None, "123456789/10", "no release below 1.23456e+07 exists."),
        (None, f"1/{10**400}", "no release below 0 exists."),
    ],
)
def test_bounds_are_printed_rounded_down(loss: str | None, bound: str, said: str) -> None:
    """What is printed of a bound is never more than what is proven."""
    assert sentence(None if loss is None else Fraction(loss), Fraction(bound)) == said


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate whose table has the seal that belongs to it."""
    content["problem"]["sha256"] = seal_of(content["problem"])
    return content


def small_certificate(recoding: str) -> dict[str, Any]:
    """Return a proof by hand: 0 and 1 together, 10 and 11, lose 1 each record, and none less.

    Half a unit of dual is 1: of each record 1 in classes; in covers, where two sets hold it, 1/2.
    """
    asked = {
        "recoding": recoding,
        "k": 2,
        "constant": 0,
        "terms": [{"kind": "range", "column": 0, "low": -1, "high": 1}],
        "records": [[0], [1], [10], [11]],
        "unit": 1,
        "scale": 2,
    }
    release = [[0, 1], [2, 3]] if recoding == "classes" else [[0, 1], [0, 1], [2, 3], [2, 3]]
    dual = 2 if recoding == "classes" else 1
    content = {
        "format": "anonymip certificate 1",
        "problem": asked,
        "bound": "4",
        "loss": "4",
        "release": release,
        "proof": {"duals": [dual] * 4, "count": 0, "cuts": [], "splits": []},
    }
    return sealed(content)


@pytest.mark.parametrize("claimed", ["2", "32/15"])
def test_squares_are_multiples_of_the_unit(claimed: str) -> None:
    """A unit that is too large would raise the bound to a multiple that no release is."""
    data = table_of({"x": [0, 1, 3, 4, 7, 8, 8]})
    solution = solve(Problem(data, k=2, objective=SSE("none")), "column-generation")
    content = json.loads(json.dumps(certify(solution).content))
    assert check(content) == (Fraction(5, 3), Fraction(5, 3))
    content |= {"bound": claimed, "release": None, "loss": None}
    for unit in (1, 5, 15, 30):
        with pytest.raises(Rejected, match=r"no multiple of the unit|do not reach the bound"):
            check({**content, "problem": {**content["problem"], "unit": unit}})


def _places(part: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the whole numbers and the lists of a part of a certificate stand."""
    for key, inside in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(inside, dict | list):
            yield from _places(inside, (*above, key))
        if isinstance(inside, int | list):
            yield (*above, key)


def _change(draw: random.Random, part: Any) -> None:
    """Change a number of a part, or take away, repeat or exchange members of one of its lists."""
    *above, last = draw.choice(list(_places(part)))
    for key in above:
        part = part[key]
    inside = part[last]
    if isinstance(inside, int):
        part[last] = inside + draw.choice([-1, 1]) * draw.choice([1, max(1, abs(inside) // 50)])
    elif inside:
        one, other = draw.randrange(len(inside)), draw.randrange(len(inside))
        way = draw.choice(["less", "more", "exchange"])
        if way == "less":
            del inside[one]
        elif way == "more":
            inside.insert(other, inside[one])
        else:
            inside[one], inside[other] = inside[other], inside[one]


@pytest.mark.parametrize("seed", [0, 1, *thorough(*range(2, 20))])
def test_what_no_release_proves_of_squared_errors_is_refused(seed: int, tmp_path: Path) -> None:
    """Of 50 mutants of a proof each claims more than the optimum, whatever its numbers become.

    Half of them leave the release out; proofs have one to three changes, or none.
    """
    draw = random.Random(seed)
    n, k = draw.randint(8, 14), draw.choice([2, 3])
    numbers = [[draw.randint(0, 9), draw.choice([0, 0, 1, 40])] for _ in range(n)]
    data = table_of(pd.DataFrame(numbers, columns=["x", "y"]))
    scale = draw.choice(["none", "domain", "deviation"])
    problem = Problem(data, k=k, objective=SSE(scale))
    content = json.loads(json.dumps(certify(solve(problem, "column-generation")).content))
    loss, bound = check(content)
    assert bound == loss, "a mutant is false if the optimum is known"
    unit = Fraction(1, content["problem"]["unit"])
    file = tmp_path / "mutant.json"
    file.write_text(json.dumps(content))
    assert main(str(file)) == 0
    for number in range(50):
        mutant = json.loads(json.dumps(content))
        mutant["bound"] = str(bound + unit * draw.choice([1, 1, 2, 10**6]))
        for _ in range(draw.randint(0, 3)):
            _change(draw, mutant["proof"])
        if number % 2:
            mutant |= {"release": None, "loss": None}
        elif draw.random() < 0.5:
            mutant["loss"] = mutant["bound"]
        file.write_text(json.dumps(mutant))
        assert main(str(file)) == 1, f"mutant {number} passes"


@pytest.mark.parametrize("recoding", ["classes", "freeform"])
def test_a_small_proof_by_hand(recoding: str) -> None:
    """It is accepted with its release and without, and for no bound above 4."""
    content = small_certificate(recoding)
    assert check(content) == (4, 4)
    alone = {**content, "release": None}
    without_effect = {**content["proof"], "cuts": [[[0, 1], 2, 0]]}
    assert check({**content, "proof": without_effect}) == (4, 4)
    assert check(alone) == (None, 4)
    with pytest.raises(Rejected, match="the duals do not reach the bound"):
        check({**alone, "bound": "9/2"})
    assert check({**alone, "bound": "7/2"}) == (None, Fraction(7, 2))


#: Of which proof by hand, where it is changed, what stands there then, and why it is rejected.
CHANGES: list[tuple[str, tuple[str | int, ...], Any, str]] = [
    ("classes", ("format",), "anonymip certificate 0", "the format is unknown"),
    ("classes", ("problem", "records", 0, 0), 1, "not the one that was certified"),
    ("classes", ("problem", "sha256"), "0" * 64, "not the one that was certified"),
    ("classes", ("problem", "k"), 1, "a number is not whole, or too small"),
    ("classes", ("problem", "k"), 2.0, "a number is not whole, or too small"),
    ("classes", ("problem", "k"), 3, "fewer than k records"),
    ("classes", ("problem", "recoding"), "patterns", "the recoding is unknown"),
    ("classes", ("problem", "unit"), 0, "a number is not whole, or too small"),
    ("classes", ("problem", "unit"), 4, "the scale is no multiple of the unit"),
    ("classes", ("loss",), "5", "does not lose what is said"),
    ("classes", ("loss",), "3", "does not lose what is said"),
    ("classes", ("bound",), "5", "the release loses less than the bound"),
    ("classes", ("bound",), "-1e400", "loss or bound are larger than floats"),
    ("classes", ("release",), [[0, 1]], "the release lacks records"),
    ("classes", ("release",), [[0], [1, 2, 3]], "fewer than k records"),
    ("classes", ("release",), [[0, 1], [1, 2, 3]], "in too few or too many sets"),
    ("freeform", ("release", 0), [0, 1, 2], "differ in size"),
    ("freeform", ("release",), [[0, 1], [2, 3], [0, 1], [2, 3]], "lacks its own record"),
    ("freeform", ("release",), [[0, 0], [1, 1], [2, 3], [2, 3]], "or holds one twice"),
    ("freeform", ("release",), [[0, 1], [1, 2], [2, 3], [2, 3]], "too few or too many sets"),
    ("classes", ("proof", "duals"), [2] * 3, "not one dual for each distinct record"),
    ("classes", ("proof", "duals", 0), 3, "the duals of a node exceed the cost of a set"),
    ("classes", ("proof", "duals", 0), 0, "the pool lacks a set"),
    ("classes", ("proof", "count"), -1, "a number is not whole, or too small"),
    ("freeform", ("proof", "count"), 1, "only classes are limited in number"),
    ("classes", ("proof", "cuts"), [[[0], 0, 1]], "a number is not whole, or too small"),
    ("classes", ("proof", "cuts"), [[[0], 1, -1]], "a number is not whole, or too small"),
]


@pytest.mark.parametrize(("recoding", "place", "value", "reason"), CHANGES)
def test_each_false_statement_of_a_proof_is_named(
    recoding: str, place: tuple[str | int, ...], value: Any, reason: str
) -> None:
    """One number changed makes the proof by hand a false one, for the reason that is told."""
    content: Any = small_certificate(recoding)
    *above, last = place
    part = content
    for key in above:
        part = part[key]
    part[last] = value
    with pytest.raises(Rejected, match=reason):
        check(content)


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        ({"kind": "range", "column": 0, "low": "-1/2", "high": 1}, "no multiple of the unit"),
        ({"kind": "range", "column": 0, "low": 1, "high": 1}, "when a range grows"),
        ({"kind": "range", "column": 0, "low": -1, "high": -1}, "when a range grows"),
        ({"kind": "set", "column": 0, "losses": [1, 0, 1, 2]}, "when a set grows"),
        ({"kind": "set", "column": 0, "losses": [0, 1, 2]}, "a term lacks losses"),
        (
            {"kind": "order", "column": 0, "order": [0, 1, 10, 11], "losses": [[0] * 4] * 4},
            "losses lack",
        ),
        (
            {
                "kind": "order",
                "column": 0,
                "order": [0, 1, 10, 11],
                "losses": [[0, 1, 1, 1], [0, 1, 2], [0, 1], [0]],
            },
            "when a cell grows",
        ),
        (
            {
                "kind": "order",
                "column": 0,
                "order": [0, 1, 10, 11],
                "losses": [[0, 3, 2, 3], [0, 1, 2], [0, 1], [0]],
            },
            "when a cell grows",
        ),
    ],
)
def test_losses_that_can_fall_are_no_losses(term: dict[str, Any], reason: str) -> None:
    """The proof needs that a larger set loses no less: a term that breaks it is refused."""
    content = small_certificate("classes")
    content["problem"]["terms"] = [term]
    with pytest.raises(Rejected, match=reason):
        check(sealed(content))


@pytest.mark.parametrize(("most", "unproven"), [(0, "more"), (1, "at_most")])
def test_both_sides_of_a_split_need_a_proof(most: int, unproven: str) -> None:
    """No release takes the first class never or twice; that says nothing of taking it once."""
    content = small_certificate("classes")
    content.update(release=None, loss=None, bound="5")
    never, twice = {"duals": [100, 2, 2, 2], "splits": [98]}, {"duals": [0, 0, 2, 2], "splits": [4]}
    once = {"duals": [2, 2, 2, 2], "splits": [0]}
    nodes = {"at_most": never, "more": twice, unproven: once}
    split = {"rows": [0, 1], "most": most}
    content["proof"].update(
        pool=[[0, 1], [2, 3]],
        split=split,
        **{branch: {"count": 0, "cuts": [], **node} for branch, node in nodes.items()},
    )
    with pytest.raises(Rejected, match="a node of the tree does not reach the bound"):
        check(content)


def test_splits_count_the_sets_that_hold_all_their_rows() -> None:
    """A set that is as large as the split's rows holds them, one that lacks a copy does not."""
    content = small_certificate("classes")
    content["problem"]["records"] = [[0], [0], [1], [9]]
    table = Table(sealed(content)["problem"])
    node = {"duals": [0, 0, 0], "count": 0, "cuts": [], "splits": [3, 5]}
    splits = ((Counter([0, 1]), 1, True), (Counter([0, 0]), 0, False))
    duals = Duals(table, node, splits)
    assert duals.value == -3 * 1 + 5 * (0 + 1)
    assert [duals.reduced(members, 8) for members in ((0, 1), (0, 0), (0, 0, 1), (1, 2))] == [
        8 + 3,
        8 - 5,
        8 + 3 - 5,
        8,
    ]


def test_cuts_are_kept_down_to_the_least_dual() -> None:
    """Of cuts those are written down that have a dual in whole numbers of the scale."""
    table = Table(small_certificate("classes")["problem"])
    cuts = [([0, 1], 2, 1.0), ([0], 2, 0.5), ([1], 2, 0.2), ([2], 2, -0.5)]
    node = whole_duals(table, [0.5, -0.5, 1.0, 0.0], 0.5, cuts, [0.5, -0.5])
    assert node["duals"] == [1, -1, 2, 0]
    assert node["cuts"] == [[[0, 1], 2, 2], [[0], 2, 1]]
    assert (node["count"], node["splits"]) == (1, [1, 0])


def test_slopes_and_constants_are_read_however_small() -> None:
    """A loss of 1e-16 for a whole range and 3e-17 for a record is no loss of 0."""
    tiny = objective(lambda record: 3e-17 + 1e-16 * record.spread["age"])
    data = table_of({"age": [0.0, 1.0, 2.0]})
    part = exact_problem(Problem(data, 2, objective=tiny))
    (term,) = part["terms"]
    read = [float(Fraction(number)) for number in (part["constant"], term["low"], term["high"])]
    assert read == pytest.approx([3e-17, -5e-17, 5e-17], rel=1e-12, abs=0)


def test_the_value_counts_coverage_cuts_and_the_number_of_sets() -> None:
    """Records count as often as they are covered; cuts and the number of sets are taken off."""
    duals = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert DualProof(duals, 2, 3, "size", 1).value == 15
    cut = CutDual(np.array([0, 1, 2]), 2, 0.5)
    classes = DualProof(duals, 2, 3, "size", 1, 0.25, 2, (cut,))
    assert classes.value == pytest.approx(15 - 0.5 * 1 - 0.25 * 2)
    cover = DualProof(duals, 3, 3, "one", 3, cuts=(cut,))
    assert cover.value == pytest.approx(45 - 0.5 * 4)


def test_bounds_are_compared_without_their_duals() -> None:
    """Two bounds are equal if they say the same, whatever proves them."""
    proof = DualProof(np.ones(3), 2, 3, "size", 1)
    assert Bound(3.0, "prover", "argument", duals=proof) == Bound(3.0, "prover", "argument")
    assert "duals" not in repr(Bound(3.0, "prover", "argument", duals=proof))


def test_a_pool_has_as_many_sets_as_offsets_end() -> None:
    """The first offset is no end."""
    assert len(ColumnPool(1.0, np.array([0, 2, 5]), np.array([0, 1, 2, 3, 4]))) == 2
