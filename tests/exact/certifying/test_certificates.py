"""Certificates prove what brute force finds, and nothing that is false."""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import anonymip.certificates.check as checker
from anonymip import (
    SSE,
    Certificate,
    Classes,
    Cover,
    EquivalenceClasses,
    Freeform,
    InputError,
    PatternGuided,
    Problem,
    Solution,
    UnsupportedObjective,
    VerificationFailed,
    census,
    certify,
    check_certificate,
    load_instance,
    objective,
    solve,
)
from anonymip.bounds.combinatorial import lower_bound_of
from anonymip.certificates import exact_loss
from anonymip.certificates.check import Rejected, check
from anonymip.exact.certifying import certifying
from anonymip.exact.certifying.relaxing import Sets, proven_by, solve_over
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, Rules, least_cost_of_classes
from tests.by_hand import table_of
from tests.cover_brute_force import regular_optimum
from tests.random_problems import Case, cases, microdata

#: What `check.py` reports as a rejection.
REFUSALS = (Rejected, ArithmeticError, LookupError, TypeError, ValueError)


def best_of(case: Case, *, freeform: bool) -> tuple[Solution, float]:
    """Return an optimal solution by brute force, and its loss."""
    problem = case.problem()
    if not freeform:
        groups = min(case.releases(), key=case.release_loss)
        classes = Classes.from_groups(groups, case.n)
        return Solution.of(problem, classes, method="brute force"), case.release_loss(groups)
    problem = problem.replace(recoding=Freeform())
    loss, sets = regular_optimum(case.n, [case.k] * case.n, case.set_loss)
    return Solution.of(problem, Cover.of([*map(list, sets)]), method="brute force"), loss


@settings(max_examples=60)
@given(cases(largest=6, suppression=False), st.booleans())
def test_certificates_prove_the_optimum_of_brute_force(case: Case, freeform: bool) -> None:
    """Of random tables, losses and recodings the optimum is certified, to what floats resolve."""
    assume(case.problem().compiled.monotone)
    solution, optimum = best_of(case, freeform=freeform)
    slack = max(case.slack(optimum), case.slack(solution.problem.whole))
    certificate = certify(solution)
    assert certificate.loss is not None
    assert abs(float(certificate.loss) - optimum) <= slack
    assert certificate.bound <= certificate.loss
    assert float(certificate.bound) >= optimum - 10 * slack


@settings(max_examples=40)
@given(cases(largest=6, suppression=False), st.booleans(), st.randoms(use_true_random=False))
def test_no_falsified_certificate_claims_too_much(
    case: Case, freeform: bool, chance: random.Random
) -> None:
    """Whatever numbers are changed, what is still accepted is no more than the truth."""
    assume(case.problem().compiled.monotone)
    solution, _ = best_of(case, freeform=freeform)
    certificate = certify(solution)
    refuse_changes(certificate, chance)


def refuse_changes(certificate: Certificate, chance: random.Random) -> None:
    """Assert that no change of a number makes a certificate of an optimum claim too much."""
    for _ in range(15):
        content = copy.deepcopy(certificate.content)
        asked = content.pop("problem")
        asked_in = {part: asked.pop(part) for part in ("constant", "terms", "records", "sha256")}
        kept = {part: asked.pop(part) for part in ("k", "recoding")}
        places = list(numbers_in([content, asked]))
        holder, key = chance.choice(places)
        change = chance.choice([1, -1, 10**9, -(10**9), 10**12])
        holder[key] = changed(holder[key], change)
        content["problem"] = {**asked, **asked_in, **kept}
        try:
            loss, bound = check(content)
        except REFUSALS:
            continue
        assert certificate.loss is not None
        assert loss is None or loss >= certificate.bound
        # A bound below the optimum may be claimed; one above it never is.
        assert bound <= certificate.loss


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 2.0, 5.5, 1e5]), st.integers(0, 2), st.just(7)),
        min_size=6,
        max_size=9,
    ),
    st.integers(2, 4),
    st.sampled_from(["none", "domain", "deviation"]),
    st.randoms(use_true_random=False),
)
@example(
    # Losses are sixths, and the bound lies a little below the optimum.
    points=[(0.0, 0, 7), (0.0, 0, 7), (0.0, 0, 7), (0.0, 1, 7), (0.0, 1, 7), (0.0, 2, 7)],
    k=2,
    scale="none",
    chance=random.Random(0),
)
def test_squared_errors_are_certified(
    points: list[tuple[float, ...]], k: int, scale: str, chance: random.Random
) -> None:
    """The optimum of brute force, with fractions of means; falsified ones claim nothing more."""
    columns = tuple(Column(tuple(map(float, column))) for column in zip(*points, strict=True))
    problem = Problem(microdata(columns), min(k, len(points) // 2), objective=SSE(scale))
    units = SSE(scale).units(problem.microdata)

    def cost(group: tuple[int, ...]) -> float:
        part = np.array(points, float)[list(group)]
        return float((((part - part.mean(axis=0)) / units) ** 2).sum())

    best = least_cost_of_classes(len(points), problem.k, cost, Rules(), columns)
    solution = column_generation(problem)
    certificate = certify(solution)
    assert certificate.loss is not None
    slack = 1e-9 * max(1.0, best, problem.whole)
    assert abs(float(certificate.loss) - solution.objective) <= slack
    assert float(certificate.bound) <= best + slack
    # What a solver resolves grows with all that may be lost: where that is much more than is lost,
    # the optimum is not proven, and no less than what is.
    assert solution.bound is not None
    proven = best if solution.is_optimal else solution.bound.value
    assert float(certificate.bound) >= proven - 1e-6 * proven - slack
    if float(certificate.loss) <= best + slack:
        refuse_changes(certificate, chance)


def numbers_in(part: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where numbers stand in a certificate: their list or mapping, and their place in it."""
    for key, value in list(part.items() if isinstance(part, dict) else enumerate(part)):
        if isinstance(value, dict | list):
            yield from numbers_in(value)
        elif isinstance(value, int) or key in ("loss", "bound"):
            yield part, key


def changed(number: Any, change: int) -> Any:
    """Return another number of the same kind."""
    if isinstance(number, int):
        return number + change
    return str(Fraction(number) + Fraction(change, 10**9))


@pytest.fixture(scope="module")
def with_pool() -> dict[str, Any]:
    """Return a certificate whose duals fall short of its bound, so that it has pool and tree."""
    problem = Problem(census(11, 4, 4), 3)
    solution = solve(problem, "equivalence-mip")
    relaxed = column_generation(problem, bound_only=True).bound
    assert relaxed is not None
    known = replace(relaxed, value=solution.objective)
    with pytest.MonkeyPatch.context() as without_cuts:
        without_cuts.setattr(certifying, "separate", lambda *_, **__: [])
        certificate = certifying.make_certificate(problem, known, solution, Budget())
    assert certificate.is_optimal
    assert len(certificate.content["proof"]["pool"]) > 10
    assert '"at_most"' in json.dumps(certificate.content["proof"]["next"])
    return certificate.content


#: What a tampering leaves of an entry that it takes out.
GONE = object()
#: A share of the loss that is far above what rounding may hide, in parts of the usual scale.
FAR = 10**10
#: Where a certificate is tampered with, and how.
TAMPERED: dict[str, tuple[tuple[Any, ...], Callable[[Any], Any]]] = {
    "bound raised": (("bound",), lambda bound: str(Fraction(bound) + Fraction(1, 10**7))),
    "loss lowered": (("loss",), lambda loss: str(Fraction(loss) - Fraction(1, 1000))),
    "dual raised": (("proof", "duals", 0), lambda dual: dual + FAR),
    "dual a float": (("proof", "duals", 0), float),
    "dual missing": (("proof", "duals"), lambda duals: duals[:-1]),
    "count dual negative": (("proof", "count"), lambda _: -1),
    "set missing from the pool": (("proof", "pool"), lambda pool: pool[:-1]),
    "pool missing": (("proof", "pool"), lambda _: GONE),
    "tree missing": (("proof", "next"), lambda _: GONE),
    "dual of the tree raised": (("proof", "next", "duals", 0), lambda dual: dual + FAR),
    "record dropped": (("problem", "records"), lambda records: records[:-1]),
    "record dropped from a class": (("release", 0), lambda members: members[:-1]),
    "record in two classes": (("release",), lambda sets: [[*sets[0], sets[1][0]], *sets[1:]]),
    "class too small": (("release",), lambda sets: [sets[0][:2], sets[0][2:], *sets[1:]]),
    "value changed": (("problem", "records", 0, 1), lambda value: value + 1),
    "weight lowered": (("problem", "terms", 0, "high"), lambda _: "1/100"),
    "k raised": (("problem", "k"), lambda k: k + 1),
    "k lowered": (("problem", "k"), lambda k: k - 1),
    "recoding changed": (("problem", "recoding"), lambda _: "freeform"),
    "recoding unknown": (("problem", "recoding"), lambda _: "patterns"),
    "unit coarser": (("problem", "unit"), lambda unit: unit // 2),
    "other format": (("format",), lambda _: "anonymip certificate 2"),
}


@pytest.mark.parametrize(("place", "change"), TAMPERED.values(), ids=TAMPERED)
def test_tampered_certificates_are_rejected(
    with_pool: dict[str, Any], place: tuple[Any, ...], change: Callable[[Any], Any]
) -> None:
    """Each single change that makes a certificate say or prove something else is found."""
    assert check(copy.deepcopy(with_pool))[0] is not None
    content: Any = copy.deepcopy(with_pool)
    tamper(content, place, change)
    with pytest.raises(REFUSALS):
        check(content)


def tamper(content: Any, place: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    """Change what stands at a place of a certificate, or take it out."""
    *above, last = place
    for key in above:
        content = content[key]
    content[last] = change(content[last])
    if content[last] is GONE:
        del content[last]


def sealed(asked: Any) -> str:
    """Return the seal of a table and its loss."""
    text = json.dumps([asked["constant"], asked["terms"], asked["records"]])
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_seal_does_not_hide_another_table(with_pool: dict[str, Any]) -> None:
    """Whoever changes a value and seals the table again loses the proof, not only the seal."""
    content = copy.deepcopy(with_pool)
    asked = content["problem"]
    for record in asked["records"]:
        record[1] = 50
    asked["sha256"] = sealed(asked)
    with pytest.raises(Rejected, match="does not lose what is said"):
        check(content)


def test_a_loss_that_falls_is_rejected() -> None:
    """The search and the limit on sizes rest on it: the checker does not believe it."""
    content = certify(solve(Problem(load_instance("health-records"), 3))).content
    for term, wrong in (({"low": "1/31"}, "range"), ({"losses": [1, 0]}, "set")):
        other = copy.deepcopy(content["problem"])
        next(t for t in other["terms"] if t["kind"] == wrong).update(term)
        other["sha256"] = sealed(other)
        with pytest.raises(Rejected, match="the loss can fall"):
            checker.Table(other)


def test_the_checker_needs_the_standard_library_alone(
    with_pool: dict[str, Any], tmp_path: Path
) -> None:
    """It imports no solver, no kernel, nothing of the package, and runs where none of them is."""
    source = Path(checker.__file__)
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    shutil.copy(source, tmp_path / "check.py")
    (tmp_path / "proof.json").write_text(json.dumps(with_pool), encoding="utf-8")
    command = [sys.executable, "-I", "-S", "check.py", "proof.json"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loss = f"{float(Fraction(with_pool['loss'])):.6g}"
    assert run.stdout.splitlines() == [
        "classes, k = 3, 11 records:",
        f"loss {loss}; no release below {loss} exists.",
    ]
    with_pool = copy.deepcopy(with_pool)
    tamper(with_pool, *TAMPERED["dual raised"])
    (tmp_path / "proof.json").write_text(json.dumps(with_pool), encoding="utf-8")
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.startswith("REJECTED: ")


def test_the_solution_says_that_its_bound_is_certified() -> None:
    """A certified bound takes the place of one that a solver reported."""
    certificate = certify(solve(Problem(load_instance("health-records"), 3), "equivalence-mip"))
    solution = certificate.solution
    assert solution is not None
    assert solution.is_optimal
    assert solution.bound is not None
    assert solution.bound.proof == "certified"
    assert certificate.is_optimal


@pytest.mark.parametrize("freeform", [False, True])
def test_optima_of_real_numbers_are_certified_to_the_last_digit(freeform: bool) -> None:
    """Their losses are multiples of a unit far below what floats tell apart."""
    drawn = np.random.default_rng(7).normal(size=(36, 4)).round(7)
    table = microdata([Column(column, True) for column in drawn.T.tolist()])
    problem = Problem(table, 3, Freeform() if freeform else EquivalenceClasses())
    certificate = certify(solve(problem, "column-generation"))
    assert certificate.content["problem"]["unit"] > 10**20
    assert certificate.is_optimal


def test_sides_of_a_split_that_no_sets_keep_are_refuted() -> None:
    """A tree does not end where the sets that are left leave a side of a split without a point."""
    part = exact_loss.exact_problem(Problem(census(9, 4, seed=1), 3))
    table = checker.Table({**part, "scale": part["unit"] * 2520})
    members = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 1, 8), (2, 3, 4), (5, 6, 7)]
    sets = Sets.of(table, {one: table.set_cost(one) for one in members})
    splits = [(Counter((0, 5)), 0, False)]
    vertex = solve_over(sets, splits, (), Budget())
    assert vertex is not None
    goal = max(sum(sets.costs[:3]), sum(sets.costs[3:]))
    assert proven_by(sets, splits, (), vertex, goal).value > goal


def test_a_bound_can_be_certified_alone() -> None:
    """Without a release the certificate has no loss, and what it proves holds for all."""
    problem = Problem(load_instance("health-records"), 3)
    certificate = certify(problem)
    assert certificate.loss is None
    assert certificate.solution is None
    best = solve(problem).objective
    assert best - 1e-5 <= float(certificate.bound) <= best + 1e-12
    assert check(certificate.content)[0] is None


def test_files_are_private_and_can_be_read_back(tmp_path: Path) -> None:
    """Only its owner can open a certificate; a checker beside it is replaced, nothing else is."""
    certificate = certify(solve(Problem(load_instance("health-records"), 3)))
    for _ in range(2):
        path, beside = certificate.write(tmp_path / "proof.json")
    assert path.stat().st_mode & 0o077 == 0
    assert beside.read_text(encoding="utf-8") == Path(checker.__file__).read_text(encoding="utf-8")
    again = check_certificate(path)
    assert isinstance(again, Certificate)
    assert (again.loss, again.bound) == (certificate.loss, certificate.bound)
    beside.write_text("print('mine')", encoding="utf-8")
    with pytest.raises(InputError, match=r"check\.py is there"):
        certificate.write(tmp_path / "other.json")
    assert beside.read_text(encoding="utf-8") == "print('mine')"
    with pytest.raises(InputError, match="cannot be called"):
        certificate.write(tmp_path / "sub" / "check.py")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "anonymip certificate 1"}', "\x00", "[" * 100_000 + "]" * 100_000],
)
def test_what_is_no_certificate_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    """A file of another kind proves nothing, and is no internal error."""
    (tmp_path / "proof.json").write_text(text, encoding="utf-8")
    with pytest.raises(VerificationFailed, match="it is no certificate"):
        check_certificate(tmp_path / "proof.json")


@objective
def product(record: Any) -> Any:
    """Charge two attributes together."""
    return record.spread["Age"] * record.spread["Zipcode"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"recoding": EquivalenceClasses(suppression=True)}, "without suppression"),
        ({"recoding": Freeform(degrees=(3, 3, 3, 2, 2, 2, 2))}, "plain freeform"),
        ({"recoding": PatternGuided()}, "plain freeform"),
        ({"objective": product}, "no sum of terms"),
    ],
    ids=["suppression", "degrees", "patterns", "general loss"],
)
def test_what_cannot_be_certified_is_refused(change: dict[str, Any], reason: str) -> None:
    """The reason is named before any work is done."""
    problem = Problem(load_instance("health-records"), 2)
    with pytest.raises(UnsupportedObjective, match=reason):
        certify(problem.replace(**change))


@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_bounds_by_duals_of_records_are_certified(
    recoding: Any, effort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds below column generation carry their duals, which prove what they say.

    What they prove may be rounded up to the next multiple of the unit of all losses.
    """

    def nothing(*_: Any, **__: Any) -> Any:
        raise InputError("no duals", remedy="")

    problem = Problem(census(30, 4, 1), 3, recoding)
    bound = lower_bound_of(problem, effort=effort)
    assert bound is not None
    certificate = certifying.make_certificate(problem, bound, None, Budget())
    assert (1 - 1e-7) * bound.value <= certificate.bound <= 1.0001 * bound.value
    assert "pool" not in certificate.content["proof"]
    monkeypatch.setattr(certifying, "column_generation", nothing)
    quick = lower_bound_of(problem, effort="quick")
    assert quick is not None
    assert (1 - 1e-7) * quick.value <= certify(problem).bound <= 1.0001 * quick.value


def test_tables_too_large_for_the_checker_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker in plain Python would take hours: that is said before any work."""
    monkeypatch.setattr(exact_loss, "MOST_DISTINCT", 6)
    with pytest.raises(InputError, match="7 distinct records"):
        certify(Problem(load_instance("health-records"), 3))


@pytest.mark.shared_data
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(
    ("recoding", "loss"), [(EquivalenceClasses(), "13.5"), (Freeform(), "12.5404")]
)
def test_the_sample_of_twenty_is_certified(recoding: Any, loss: str) -> None:
    """The sample of Liang & Samavi loses 13.5 in classes, and not a unit less."""
    certificate = certify(solve(Problem(load_instance("person20"), 3, recoding)))
    assert certificate.sentence() == f"loss {loss}; no release below {loss} exists."
    assert certificate.is_optimal


@pytest.mark.thorough("five together")
@pytest.mark.shared_data
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(
    ("k", "loss"), [(3, "52.3947"), (5, "85.5263")], ids=["triples", "five together"]
)
def test_optima_of_real_tables_are_certified(k: int, loss: str) -> None:
    """Fifty records of CENSUS, all eight attributes, to the last digit."""
    table = load_instance("census-1k")
    rows = np.random.default_rng(0).permutation(1000)[:50]
    solution = solve(Problem(table.take(rows), k), "column-generation")
    certificate = certify(solution)
    assert certificate.is_optimal
    assert certificate.sentence() == f"loss {loss}; no release below {loss} exists."


def test_values_that_are_nearly_equal_are_certified_as_proven() -> None:
    """What a search of all classes proves within tolerances has duals to go on from."""
    e = 1e-8
    problem = Problem(
        table_of({"a": [4 + e, 9 + e, 8, 5, 7, 7 + e], "b": [176, 0, 0, 0, 569, 0]}), 2
    )
    solution = solve(problem)
    assert solution.is_optimal
    assert float(certify(solution).bound) == pytest.approx(solution.objective, rel=1e-9)
