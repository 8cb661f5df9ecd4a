"""Commands that list what there is: methods, solvers, instances, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonymip.cli.console import out, print_table, say
from anonymip.errors import InputError

if TYPE_CHECKING:
    from anonymip.solvers import Availability


def methods() -> None:
    """List the methods: recoding, role, what they need, source, options."""
    from anonymip.methods import METHODS

    print_table(
        out,
        ("method", "recoding", "role", "needs", "source", "options"),
        [
            (
                spec.name,
                spec.recoding,
                spec.role,
                ", ".join(spec.needs) or "-",
                spec.source,
                ", ".join(f"{option.name}={option.default}" for option in spec.options) or "-",
            )
            for spec in METHODS.values()
        ],
    )


def solvers() -> None:
    """List the solvers: installed or not, what their licences allow, their versions."""
    from anonymip.solvers import availability, solver_names

    rows = []
    for name in solver_names():
        found = availability(name)
        rows.append(
            (
                name,
                "yes" if found.installed else "no",
                _licence(found),
                found.version or "-",
                found.reason or "",
            )
        )
    print_table(out, ("solver", "installed", "licence", "version", "remark"), rows)


def _licence(found: Availability) -> str:
    if found.max_variables is None:
        return found.licence or "-"
    return f"{found.licence} ({found.max_variables} variables, {found.max_rows} rows)"


def instances() -> None:
    """List the named instances and whether their data are here."""
    from anonymip.instances import INSTANCES

    rows = []
    for instance in INSTANCES.values():
        rows.append(
            (instance.name, _presence(instance.name), instance.description, instance.source)
        )
    rows.append(
        (
            "census:n,m,seed",
            "yes",
            "generated census records, up to 35 attributes",
            "ranges and variances of Liang & Samavi 2020, Tables 3, 9, 10",
        )
    )
    print_table(out, ("instance", "here", "description", "source"), rows)


def _presence(name: str) -> str:
    from anonymip.instances import INSTANCES

    instance = INSTANCES[name]
    if not instance.files:
        return "yes"
    try:
        instance.paths()
    except InputError:
        return "no (ANONYMIP_DATA)"
    return "yes"


def versions() -> None:
    """Print the versions of Python, the package and what its results depend on."""
    from anonymip.publishing import versions as current_versions
    from anonymip.solvers import availability, solver_names

    for name, version in current_versions().items():
        say(out, f"{name} {version}")
    for name in solver_names():
        found = availability(name)
        say(out, f"solver {name} {found.version or 'not installed'}")
