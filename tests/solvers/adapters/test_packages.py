"""Tests of what is known of solvers that are packages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from anonymip.errors import SolverError
from anonymip.runtime.budget import Budget
from anonymip.solvers.adapters import cplex, gurobi, highs, packages, scip
from anonymip.solvers.adapters.packages import Probe, Search, installed_version
from anonymip.solvers.interface import Availability
from anonymip.status import Stopped


def limited(budget: Budget) -> str | None:
    """Stand for a licence for small models."""
    return "limited"


def full(budget: Budget) -> str | None:
    """Stand for a full licence."""
    return None


def expired(budget: Budget) -> str | None:
    """Stand for no licence."""
    return "expired in May"


def broken(budget: Budget) -> str | None:
    """Stand for a library that does not load."""
    raise OSError("no such library")


def silent(budget: Budget) -> str | None:
    """Stand for a licence server that does not answer."""
    while True:
        budget.remaining()


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Ask anew in each test."""
    packages._asked.cache_clear()
    yield
    packages._asked.cache_clear()


def package_availability(
    package: str,
    optional: str,
    probe: Probe | None = None,
    limits: tuple[int, int] = (0, 0),
    remedy: str = "",
) -> Availability:
    """Ask an adapter of such a package."""
    adapter: Any = scip.ScipSolver()
    adapter.package, adapter.optional, adapter.probe = package, optional, probe
    adapter.size_limit, adapter.licence_remedy = limits, remedy
    found: Availability = adapter.availability()
    return found


def test_absent_package() -> None:
    """What is not installed has no version, no licence, and the way to get it."""
    found = package_availability("no_such_package", "nobody", limited, (5, 6))
    assert (found.installed, found.version, found.licence) == (False, None, None)
    assert "pip install no_such_package" in str(found.reason)
    assert "anonymip[nobody]" in str(found.reason)


def test_version_is_read_without_importing() -> None:
    """The version comes from the package's metadata."""
    assert installed_version("pytest") == pytest.__version__
    assert installed_version("no_such_package") is None


def test_licences() -> None:
    """Each answer of the licence is told, with the limits where there are some."""
    free = package_availability("pytest", "x")
    assert (free.licensed, free.licence, free.reason) == (True, "full", None)
    bought = package_availability("pytest", "x", full, (5, 6), "Buy it")
    assert (bought.licensed, bought.licence, bought.max_rows) == (True, "full", None)
    small = package_availability("pytest", "x", limited, (5, 6), "Buy it")
    assert (small.licensed, small.licence) == (False, "size-limited")
    assert (small.max_variables, small.max_rows) == (5, 6)
    assert small.reason == "The licence allows 5 variables and 6 rows. Buy it"
    assert small.allows(5, 6)
    assert not small.allows(6, 6)
    assert not small.allows(5, 7)
    none = package_availability("pytest", "x", expired, (5, 6), "Buy it")
    assert (none.licensed, none.licence, none.reason) == (False, "none", "expired in May. Buy it")


@pytest.mark.thorough
def test_probe_that_fails_or_hangs_is_no_licence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that does not load and a server that does not answer end in a reason."""
    failed = package_availability("pytest", "x", broken)
    assert failed.licence == "none"
    assert "no such library" in str(failed.reason)
    monkeypatch.setattr(packages, "_PATIENCE", 0.1)
    assert package_availability("pytest", "x", silent).licence == "none"


def test_licence_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is kept for the process."""
    asked: list[object] = []

    def answer(probe: object, limit: float, budget: Budget) -> str:
        asked.append(probe)
        return "limited"

    monkeypatch.setattr(packages, "run_isolated", answer)
    for _ in range(3):
        package_availability("pytest", "x", limited, (5, 6))
    assert asked == [limited]


@pytest.mark.parametrize(
    "adapter", [highs, scip, gurobi, cplex], ids=["highs", "scip", "gurobi", "cplex"]
)
def test_statuses(adapter: Any) -> None:
    """The map is used, an interrupt takes the budget's reason, and the rest raises."""
    form: Any = None

    def stopped(status: str, reason: Stopped | None) -> Stopped:
        search = Search("the solver", form, Budget(), reason=reason)
        return search.stopped(status, adapter.STATUS, adapter._UNBOUNDED)

    for status, meaning in adapter.STATUS.items():
        assert stopped(status, None) is meaning
        expected = Stopped.TIME if meaning is Stopped.INTERRUPT else meaning
        assert stopped(status, Stopped.TIME) is expected
    for status in adapter._UNBOUNDED:
        with pytest.raises(SolverError, match="unbounded"):
            stopped(status, None)
    with pytest.raises(SolverError, match="'a whim'"):
        stopped("a whim", None)


def test_every_status_of_scip_is_known() -> None:
    """Each status of the installed version is in the map or means unbounded."""
    names = pytest.importorskip("pyscipopt.scip").PY_SCIP_STATUS
    known = {name.lower() for name in vars(names) if not name.startswith("_")}
    assert known <= set(scip.STATUS) | {"unbounded", "inforunbd"}


def test_every_status_of_gurobi_is_known() -> None:
    """Each status is in the map, means unbounded, or belongs to other kinds of models."""
    status = pytest.importorskip("gurobipy").GRB.Status
    other = {"LOADED", "INPROGRESS", "LOCALLY_OPTIMAL", "LOCALLY_INFEASIBLE"}
    known = {name for name in dir(status) if not name.startswith("_")}
    assert known - other == set(gurobi.STATUS) | set(gurobi._UNBOUNDED)


def test_every_name_for_cplex_exists() -> None:
    """The map names statuses as CPLEX does."""
    package = pytest.importorskip("cplex")
    with package.Cplex() as solver:
        names = set(dir(solver.solution.status))
    assert set(cplex.STATUS) | set(cplex._UNBOUNDED) <= names
