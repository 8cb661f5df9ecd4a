"""AnonyMIP: k-anonymization as optimization.

Every release says how far from optimal it is, and the proof can be checked.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

from anonymip._version import __version__ as __version__

# The public names and where they live. Each stands here and nowhere else: type checkers read these
# lines, and so does the package, which imports a name on its first use: the import stays light.
if TYPE_CHECKING:
    from anonymip.anonymization import anonymize as anonymize
    from anonymip.assignments import Classes as Classes
    from anonymip.assignments import Cover as Cover
    from anonymip.assignments import Description as Description
    from anonymip.assignments import Levels as Levels
    from anonymip.assignments import Patterns as Patterns
    from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound as nearest_neighbour_bound
    from anonymip.errors import AnonymipError as AnonymipError
    from anonymip.errors import InputError as InputError
    from anonymip.errors import InputWarning as InputWarning
    from anonymip.errors import InvalidAssignment as InvalidAssignment
    from anonymip.errors import NoSolution as NoSolution
    from anonymip.errors import ReleaseWarning as ReleaseWarning
    from anonymip.errors import SolverError as SolverError
    from anonymip.errors import SolverUnavailable as SolverUnavailable
    from anonymip.errors import UnsupportedObjective as UnsupportedObjective
    from anonymip.errors import VerificationFailed as VerificationFailed
    from anonymip.estimator import Anonymizer as Anonymizer
    from anonymip.exact.certifying import Certificate as Certificate
    from anonymip.exact.certifying import certify as certify
    from anonymip.exact.certifying import check_certificate as check_certificate
    from anonymip.exact.classes.equivalence_mip import adopt as adopt
    from anonymip.experiments import Comparison as Comparison
    from anonymip.experiments import compare as compare
    from anonymip.instances import INSTANCES as INSTANCES
    from anonymip.instances import Attribute as Attribute
    from anonymip.instances import CodeRule as CodeRule
    from anonymip.instances import Hierarchy as Hierarchy
    from anonymip.instances import Microdata as Microdata
    from anonymip.instances import Schema as Schema
    from anonymip.instances import TableFormat as TableFormat
    from anonymip.instances import census as census
    from anonymip.instances import inspect as inspect
    from anonymip.instances import load_instance as load_instance
    from anonymip.instances import read_hierarchy as read_hierarchy
    from anonymip.instances import read_schema as read_schema
    from anonymip.instances import read_table as read_table
    from anonymip.methods import METHODS as METHODS
    from anonymip.methods import MethodOption as MethodOption
    from anonymip.methods import register_method as register_method
    from anonymip.models import build as build
    from anonymip.models import read as read
    from anonymip.models import set_start as set_start
    from anonymip.objectives import MembersObjective as MembersObjective
    from anonymip.objectives import Objective as Objective
    from anonymip.objectives import class_objective as class_objective
    from anonymip.objectives import load_objective as load_objective
    from anonymip.objectives import objective as objective
    from anonymip.objectives.losses.penalties import GCP as GCP
    from anonymip.objectives.losses.penalties import Bottleneck as Bottleneck
    from anonymip.objectives.losses.penalties import HierarchyLoss as HierarchyLoss
    from anonymip.objectives.losses.penalties import LeafLoss as LeafLoss
    from anonymip.objectives.losses.penalties import LiangGCP as LiangGCP
    from anonymip.objectives.losses.penalties import SetGCP as SetGCP
    from anonymip.objectives.losses.penalties import Suppressions as Suppressions
    from anonymip.objectives.losses.penalties import WeightedLoss as WeightedLoss
    from anonymip.objectives.losses.squared_error import SSE as SSE
    from anonymip.privacy import DisclosureRisk as DisclosureRisk
    from anonymip.privacy import TableRisk as TableRisk
    from anonymip.privacy import Verification as Verification
    from anonymip.privacy import risk as risk
    from anonymip.privacy import verify as verify
    from anonymip.problem import Problem as Problem
    from anonymip.publishing.dominance import dominates as dominates
    from anonymip.publishing.manifest import versions as versions
    from anonymip.publishing.release import Release as Release
    from anonymip.publishing.release import publish as publish
    from anonymip.recodings import KK as KK
    from anonymip.recodings import Apart as Apart
    from anonymip.recodings import Cap as Cap
    from anonymip.recodings import Diversity as Diversity
    from anonymip.recodings import EquivalenceClasses as EquivalenceClasses
    from anonymip.recodings import Freeform as Freeform
    from anonymip.recodings import FullDomain as FullDomain
    from anonymip.recodings import KConcealment as KConcealment
    from anonymip.recodings import KOne as KOne
    from anonymip.recodings import Mask as Mask
    from anonymip.recodings import OneK as OneK
    from anonymip.recodings import PatternGuided as PatternGuided
    from anonymip.recodings import PatternLevels as PatternLevels
    from anonymip.runtime.budget import Budget as Budget
    from anonymip.runtime.budget import Progress as Progress
    from anonymip.scale.engines import Engine as Engine
    from anonymip.scale.running import ReleaseInParts as ReleaseInParts
    from anonymip.scale.running import anonymize_by_parts as anonymize_by_parts
    from anonymip.solution import Bound as Bound
    from anonymip.solution import Solution as Solution
    from anonymip.solvers import SolverOptions as SolverOptions
    from anonymip.solvers import solve_model as solve_model
    from anonymip.solvers import solver_names as solver_names
    from anonymip.solving import lower_bound as lower_bound
    from anonymip.solving import solve as solve
    from anonymip.status import Status as Status
    from anonymip.status import Stopped as Stopped
else:
    _HOMES = {
        name: module
        for module, name in re.findall(
            r"^ *from (\S+) import (\w+) as \2$", __loader__.get_source(__name__), re.MULTILINE
        )
    }
    __all__ = list(_HOMES)

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted(__all__)
