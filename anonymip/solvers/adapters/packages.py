"""Solvers that are Python packages: whether they are installed, and what a licence allows.

A licence is probed once a process, in the worker: a licence server that does not answer must
not hang the caller, and the solver's library is not loaded here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from anonymip.errors import AnonymipError
from anonymip.runtime.budget import Budget
from anonymip.runtime.worker_pool import Killed, can_isolate, run_isolated
from anonymip.solvers.interface import Availability

#: Seconds that a licence server has to answer.
_PATIENCE = 20.0

#: Solves a model above the size limit; returns None if that is allowed, "limited" if the licence
#: is for small models, and otherwise the solver's reason for refusing.
Probe = Callable[[Budget], str | None]


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, without importing it; None if absent."""
    if find_spec(package) is None:
        return None
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def package_availability(
    package: str,
    solver: str,
    probe: Probe | None = None,
    limits: tuple[int, int] = (0, 0),
    licence_remedy: str = "",
) -> Availability:
    """Return what is known of a solver that comes as a package.

    Parameters
    ----------
    package
        Its name on the package index.
    solver
        Name of the adapter, which is the name of the optional dependency too.
    probe
        Asks for the licence; None for free solvers.
    limits
        Variables and rows that the licence of the bare package allows.
    licence_remedy
        How to get a full licence.
    """
    found = installed_version(package)
    if found is None:
        return Availability(
            False,
            False,
            None,
            f"Install it with 'pip install {package}', or with the package: "
            f"pip install 'anonymip[{solver}]'",
        )
    refusal = None if probe is None else _asked(probe)
    if refusal is None:
        return Availability(True, True, found, None, "full")
    if refusal == "limited":
        reason = f"The licence allows {limits[0]} variables and {limits[1]} rows. {licence_remedy}"
        return Availability(True, False, found, reason, "size-limited", *limits)
    return Availability(True, False, found, f"{refusal}. {licence_remedy}", "none")


@cache
def _asked(probe: Probe) -> str | None:
    if not can_isolate():
        return probe(Budget())
    try:
        answer = run_isolated(probe, _PATIENCE, Budget())
    except AnonymipError as error:
        return error.message
    return "The licence check did not end" if isinstance(answer, Killed) else answer
