"""Every status of the optional solvers has its meaning, and an unknown one is an error."""

from __future__ import annotations

from typing import Any

import pytest

from anonymip.errors import SolverError
from anonymip.runtime.budget import Budget
from anonymip.solvers.adapters import cplex, gurobi, highs, scip
from anonymip.solvers.adapters.watching import Search
from anonymip.status import Stopped


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
