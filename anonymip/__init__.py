"""AnonyMIP: k-anonymization as optimization.

Every release says how far from optimal it is, and the proof can be checked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from anonymip._version import __version__

if TYPE_CHECKING:
    from anonymip.assignments import Classes, Cover, Description, Levels, Patterns
    from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound
    from anonymip.errors import (
        AnonymipError,
        InputError,
        InputWarning,
        InvalidAssignment,
        NoSolution,
        ReleaseWarning,
        SolverError,
        SolverUnavailable,
        UnsupportedObjective,
        VerificationFailed,
    )
    from anonymip.exact.certifying import Certificate, certify, check_certificate
    from anonymip.exact.classes.equivalence_mip import adopt
    from anonymip.experiments import Comparison, compare
    from anonymip.instances import (
        INSTANCES,
        Attribute,
        Hierarchy,
        Microdata,
        Schema,
        TableFormat,
        census,
        load_instance,
        read_hierarchy,
        read_schema,
        read_table,
    )
    from anonymip.methods import METHODS, MethodOption, register_method
    from anonymip.models import build, read, set_start
    from anonymip.objectives import (
        GCP,
        SSE,
        Bottleneck,
        HierarchyLoss,
        LeafLoss,
        LiangGCP,
        MembersObjective,
        Objective,
        SetGCP,
        Suppressions,
        WeightedLoss,
        class_objective,
        load_objective,
        objective,
    )
    from anonymip.privacy import Verification, verify
    from anonymip.problem import Problem
    from anonymip.publishing import Release, anonymize, dominates, publish, versions
    from anonymip.recodings import (
        KK,
        Apart,
        Cap,
        Diversity,
        EquivalenceClasses,
        Freeform,
        FullDomain,
        KConcealment,
        KOne,
        Mask,
        OneK,
        PatternGuided,
        PatternLevels,
    )
    from anonymip.runtime.budget import Budget, Progress
    from anonymip.solution import Bound, Solution
    from anonymip.solvers import SolverOptions, solve_model, solver_names
    from anonymip.solving import lower_bound, solve
    from anonymip.status import Status, Stopped

# Where each name lives; it is imported on first use, so that "import anonymip" stays light.
_HOMES = {
    "anonymip.assignments": ("Classes", "Cover", "Description", "Levels", "Patterns"),
    "anonymip.bounds.nearest_neighbour": ("nearest_neighbour_bound",),
    "anonymip.runtime.budget": ("Budget", "Progress"),
    "anonymip.errors": (
        "AnonymipError",
        "InputError",
        "InputWarning",
        "InvalidAssignment",
        "NoSolution",
        "ReleaseWarning",
        "SolverError",
        "SolverUnavailable",
        "UnsupportedObjective",
        "VerificationFailed",
    ),
    "anonymip.exact.certifying": ("Certificate", "certify", "check_certificate"),
    "anonymip.exact.classes.equivalence_mip": ("adopt",),
    "anonymip.experiments": ("Comparison", "compare"),
    "anonymip.instances": (
        "INSTANCES",
        "Attribute",
        "Hierarchy",
        "Microdata",
        "Schema",
        "TableFormat",
        "census",
        "load_instance",
        "read_hierarchy",
        "read_schema",
        "read_table",
    ),
    "anonymip.methods": ("METHODS", "MethodOption", "register_method"),
    "anonymip.models": ("build", "read", "set_start"),
    "anonymip.objectives": (
        "GCP",
        "SSE",
        "Bottleneck",
        "HierarchyLoss",
        "LeafLoss",
        "LiangGCP",
        "MembersObjective",
        "Objective",
        "SetGCP",
        "Suppressions",
        "WeightedLoss",
        "class_objective",
        "load_objective",
        "objective",
    ),
    "anonymip.privacy": ("Verification", "verify"),
    "anonymip.problem": ("Problem",),
    "anonymip.publishing": ("Release", "anonymize", "dominates", "publish", "versions"),
    "anonymip.recodings": (
        *("Apart", "Cap", "Diversity", "EquivalenceClasses", "Freeform", "FullDomain"),
        *("KK", "KConcealment", "KOne", "Mask", "OneK", "PatternGuided"),
        "PatternLevels",
    ),
    "anonymip.solution": ("Bound", "Solution"),
    "anonymip.solvers": ("SolverOptions", "solve_model", "solver_names"),
    "anonymip.solving": ("lower_bound", "solve"),
    "anonymip.status": ("Status", "Stopped"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "GCP",
    "INSTANCES",
    "KK",
    "METHODS",
    "SSE",
    "AnonymipError",
    "Apart",
    "Attribute",
    "Bottleneck",
    "Bound",
    "Budget",
    "Cap",
    "Certificate",
    "Classes",
    "Comparison",
    "Cover",
    "Description",
    "Diversity",
    "EquivalenceClasses",
    "Freeform",
    "FullDomain",
    "Hierarchy",
    "HierarchyLoss",
    "InputError",
    "InputWarning",
    "InvalidAssignment",
    "KConcealment",
    "KOne",
    "LeafLoss",
    "Levels",
    "LiangGCP",
    "Mask",
    "MembersObjective",
    "MethodOption",
    "Microdata",
    "NoSolution",
    "Objective",
    "OneK",
    "PatternGuided",
    "PatternLevels",
    "Patterns",
    "Problem",
    "Progress",
    "Release",
    "ReleaseWarning",
    "Schema",
    "SetGCP",
    "Solution",
    "SolverError",
    "SolverOptions",
    "SolverUnavailable",
    "Status",
    "Stopped",
    "Suppressions",
    "TableFormat",
    "UnsupportedObjective",
    "Verification",
    "VerificationFailed",
    "WeightedLoss",
    "__version__",
    "adopt",
    "anonymize",
    "build",
    "census",
    "certify",
    "check_certificate",
    "class_objective",
    "compare",
    "dominates",
    "load_instance",
    "load_objective",
    "lower_bound",
    "nearest_neighbour_bound",
    "objective",
    "publish",
    "read",
    "read_hierarchy",
    "read_schema",
    "read_table",
    "register_method",
    "set_start",
    "solve",
    "solve_model",
    "solver_names",
    "verify",
    "versions",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
