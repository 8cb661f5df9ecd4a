"""Tests of all that the library knows: each best release is judged again, each bound compared.

Entries that stand on files run where the files lie, those of many records and the fresh bounds in
the thorough run.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from anonymip import (
    INSTANCES,
    AnonymipError,
    Classes,
    Cover,
    InputError,
    InvalidAssignment,
    Problem,
    Solution,
    __version__,
    check_certificate,
    lower_bound,
    solve,
)
from anonymip.certificates.check import Table
from anonymip.certificates.exact_loss import exact_problem, uncertifiable
from anonymip.experiments.leaderboard import check, problem_of, read_claim
from anonymip.experiments.records import solution_record
from anonymip.instances.library import catalogue
from anonymip.instances.library.catalogue import (
    PROTOTYPE,
    LibraryEntry,
    certificate_file,
    find_entry,
    library,
    release_file,
)

#: Records at most of an entry whose release is judged in every run, and whose loss is computed in
#: fractions too.
FEW, IN_FRACTIONS = 500, 2_000
#: Losses are floats that were written down: what is less than this share apart is the same.
SAME = 1e-9


def entries(thorough_above: int) -> list[Any]:
    """Return the entries with what each of them needs, as the parameters of a test."""
    found = []
    for name, entry in library().items():
        needs = []
        if entry.table in INSTANCES and INSTANCES[entry.table].files:
            needs.append(pytest.mark.shared_data)
        if entry.records > thorough_above:
            needs.append(pytest.mark.thorough)
        found.append(pytest.param(name, id=name, marks=needs))
    return found


def faults_of(entry: LibraryEntry) -> list[str]:
    """Return what is wrong with the release that is kept of an entry, and with its figures."""
    if entry.loss is None:
        return ["no release is known"]
    if not release_file(entry.name).is_file():
        return [f"the release of loss {entry.loss!r} is not kept"]
    try:
        claim = read_claim(release_file(entry.name))
    except AnonymipError as error:
        return [error.message]
    faults, loss = [], claim.solution.objective
    if claim.entry.name != entry.name or claim.by != entry.loss_by:
        faults.append(f"the release is of {claim.entry.name} by {claim.by}, not {entry.loss_by}")
    if abs(loss - entry.loss) > SAME * max(1.0, abs(entry.loss)):
        faults.append(f"the release loses {loss!r}, not {entry.loss!r}")
    exact = exact_loss(claim.solution)
    if exact is not None and abs(exact - Fraction(loss)) > SAME * max(1, abs(exact)):
        faults.append(f"in fractions the release loses {float(exact)!r}, not {loss!r}")
    slack = 1e-3 if entry.bound_by == PROTOTYPE else SAME * max(1.0, abs(loss))
    if entry.bound is not None and entry.bound > loss + slack:
        faults.append(f"the bound {entry.bound!r} exceeds the loss {loss!r}")
    return faults


def exact_loss(solution: Solution) -> Fraction | None:
    """Return what a release loses in whole numbers, by the code of the checker of certificates.

    None where certificates are for other problems, or the table has many records.
    """
    problem, assignment = solution.problem, solution.assignment
    if problem.n > IN_FRACTIONS or uncertifiable(problem) is not None:
        return None
    table = table_of(problem)
    if isinstance(assignment, Cover):
        sets = [assignment.of_record(record).tolist() for record in range(problem.n)]
    else:
        assert isinstance(assignment, Classes)
        sets = [group.tolist() for group in assignment.groups()]
    return Fraction(table.release_loss(sets), table.unit)


def table_of(problem: Problem) -> Table:
    """Return a problem as the checker of certificates sees it."""
    part = exact_problem(problem)
    return Table({**part, "scale": part["unit"]})


@pytest.mark.parametrize("name", entries(FEW))
def test_the_best_known_release_is_allowed_and_loses_what_is_said(name: str) -> None:
    """Its sets keep the rules, its loss comes out again, and the bound is not above it."""
    assert faults_of(find_entry(name)) == []


@pytest.mark.parametrize("name", entries(0))
def test_a_fresh_bound_is_not_above_the_best_known_loss(name: str) -> None:
    """What a quick bound proves today does not contradict any release of the library."""
    entry = find_entry(name)
    assert entry.loss is not None
    problem = problem_of(entry)
    bound = lower_bound(problem, effort="quick")
    if bound is not None:
        assert bound.value <= entry.loss + SAME * max(1.0, abs(entry.loss)), bound.method
    assert bound is not None or entry.recoding not in ("classes", "freeform", "pattern")


@pytest.mark.parametrize("name", [name for name in library() if certificate_file(name).is_file()])
def test_certificates_prove_the_bounds_of_their_entries(name: str) -> None:
    """The checker accepts them, they are of the entry's table and rules, and reach its bound."""
    entry = find_entry(name)
    certificate = check_certificate(certificate_file(name))
    problem = exact_problem(problem_of(entry))
    assert {key: certificate.content["problem"][key] for key in problem} == problem
    assert entry.bound is not None
    assert certificate.bound >= Fraction(entry.bound) * (1 - Fraction(1, 10**9))
    assert certificate.loss is not None
    assert abs(certificate.loss - Fraction(str(entry.loss))) < Fraction(1, 10**9)


def test_releases_are_of_entries() -> None:
    """No file lies about that is of none."""
    for file in (release_file, certificate_file):
        kept = {path.stem for path in file("x").parent.glob("*.json")}
        assert kept
        assert kept <= set(library())


def test_what_is_wrong_is_said(knowing: Callable[..., LibraryEntry]) -> None:
    """Another loss, another finder, a bound that is too high, no release."""
    entry = knowing("person20-k3", loss=13.4, bound=None, bound_by=None)
    (fault,) = faults_of(entry)
    assert "loses 13.49" in fault
    assert "not 13.4" in fault
    (fault,) = faults_of(knowing("person20-k4", loss_by="luck"))
    assert fault.endswith(", not luck")
    (fault,) = faults_of(knowing("person20-k5", bound=24.69698, bound_by="luck"))
    assert "exceeds the loss" in fault
    assert faults_of(knowing("person20-k2", loss=None, loss_by=None)) == ["no release is known"]


def test_a_release_that_is_not_kept_is_a_fault(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figure alone proves nothing."""
    entry = find_entry("person20-k3")
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    (fault,) = faults_of(entry)
    assert fault.endswith("is not kept")


#: Who finds releases of each recoding of the small tables.
FINDERS = {
    "person20-k3": "mondrian",
    "person20-freeform-k3": "nh",
    "health-records-one-k-k3": "auto",
    "health-records-k-concealment-k3": "k-concealment",
    "clinic-12-pattern-k3": "pattern-greedy",
    "clinic-12-full-domain-k3": "full-domain",
}


def record_of(name: str, method: str, **more: Any) -> tuple[Solution, dict[str, Any]]:
    """Return a release of an entry, and the record that is handed in."""
    solution = solve(problem_of(find_entry(name)), method, **more)
    return solution, solution_record(solution, f"library:{name}")


@pytest.mark.parametrize("name", FINDERS)
def test_releases_are_handed_in_as_solve_writes_them(name: str) -> None:
    """Of every recoding: the same loss, computed again from the sets alone."""
    solution, record = record_of(name, FINDERS[name])
    claim = check({**record, "objective": 0.0, "bound": 99.0})
    assert claim.solution.objective == solution.objective
    assert claim.improved is claim.entry
    assert "no better than the best known" in claim.text()


def test_a_better_release_is_told(knowing: Callable[..., LibraryEntry]) -> None:
    """With the loss that was the best before, and the method that found it."""
    solution, record = record_of("person20-k3", "local-search")
    knowing("person20-k3", loss=15.0, loss_by="luck")
    claim = check(record)
    assert claim.improved.loss == solution.objective
    assert claim.improved.loss_by == f"local-search, AnonyMIP {__version__}"
    assert claim.text().endswith("of loss 13.5; the best known was 15 (luck)")
    assert claim.to_dict()["better"] is True


def test_a_release_below_a_proven_bound_is_an_error(knowing: Callable[..., LibraryEntry]) -> None:
    """One of the two is wrong, and it is not for this command to say which."""
    _, record = record_of("person20-k3", "local-search")
    knowing("person20-k3", loss=15.0, bound=14.0)
    with pytest.raises(AnonymipError, match=r"bound"):
        check(record)


def test_what_is_no_release_of_an_entry_is_refused() -> None:
    """Another table, k or loss, sets that cannot be read, and classes below k."""
    _, record = record_of("person20-k3", "mondrian")
    for change, words in (
        ({"instance": "person20"}, "no entry of the library"),
        ({"k": 2}, "k is 2 in the record"),
        ({"objective_name": "weighted-loss"}, "objective_name is 'weighted-loss'"),
        ({"groups": "none"}, "no sets of records that can be read"),
        ({"groups": None}, "no sets of records that can be read"),
    ):
        with pytest.raises(InputError, match=words):
            check({**record, **change})
    with pytest.raises(InvalidAssignment, match="fewer than k = 3"):
        check({**record, "groups": [0, 0, *([1] * 18)]})
    with pytest.raises(InvalidAssignment):
        check({**record, "groups": [0] * 19})
