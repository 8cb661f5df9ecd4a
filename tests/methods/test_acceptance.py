"""What is said of an objective is what happens when it is used."""

from __future__ import annotations

import re

import numpy as np
import pytest

from anonymip import (
    GCP,
    SSE,
    Attribute,
    Bottleneck,
    InputError,
    Microdata,
    Problem,
    UnsupportedObjective,
    build,
    class_objective,
    load_instance,
    lower_bound,
    objective,
    solve,
)
from anonymip.methods import METHODS
from anonymip.methods.acceptance import examine
from anonymip.objectives import FunctionObjective
from anonymip.recodings.registry import find_recoding


def both(record):
    """Multiply the penalties of two attributes."""
    return record.spread["Age"] * record.spread["Zipcode"]


def beside(record):
    """Do the same by a function that no proof knows."""
    return np.hypot(both(record), 0.0)


@objective
def falling(record):
    """Reward wide ranges of ages."""
    return 1 - record.width["Age"]


@class_objective()
def members_only(members):
    """Return the span of ages."""
    ages = members.value["Age"]
    return ages.max(axis=1) - ages.min(axis=1)


CASES = {
    "affine": (GCP(), "affine", "proven", "proven"),
    "falling": (falling, "affine", "refuted", "unknown"),
    "worst": (Bottleneck(), "affine", "proven", "refuted"),
    "product": (FunctionObjective(both), "general", "proven", "proven"),
    "assumed": (FunctionObjective(beside, monotone=True), "general", "assumed", "assumed"),
    "unknown": (FunctionObjective(beside), "general", "unknown", "unknown"),
    "members": (members_only, "members", "unknown", "unknown"),
}


@pytest.mark.thorough("assumed")
@pytest.mark.crossed
@pytest.mark.parametrize("case", CASES)
def test_report_on_the_health_records(case: str) -> None:
    """Tier and verdicts are right, and those who accept it solve it while others refuse it."""
    given, tier, monotone, superadditive = CASES[case]
    data = load_instance("health-records")
    report = examine(given, data)
    assert (report.tier, report.monotone, report.superadditive) == (tier, monotone, superadditive)
    assert report.attributes == {"Age": "numeric", "Sex": "categorical", "Zipcode": "numeric"}
    assert list(report.methods) == list(METHODS)
    for name, refusal in report.methods.items():
        recoding = find_recoding(METHODS[name].recoding)
        k = 3 if METHODS[name].solves_for(3) else 2
        if refusal is None:
            problem = Problem(data, k, recoding, given)
            assert solve(problem, name, bound=False).problem is problem
        else:
            # Some recodings refuse losses of members by themselves.
            said = f"^method {name} needs (a|numeric)|is a loss of classes"
            with pytest.raises(UnsupportedObjective, match=said):
                solve(Problem(data, k, recoding, given), name)
    problem = Problem(data, 3, objective=given)
    for name, refusal in report.formulations.items():
        if refusal is None:
            assert build(problem, name).formulation == name
        else:
            with pytest.raises(UnsupportedObjective, match=re.escape(refusal)):
                build(problem, name)
    assert (lower_bound(problem) is None) == (report.bound is None)


def test_squared_errors_are_superadditive_by_proof() -> None:
    """A loss of members can carry its own proof."""
    data = Microdata(load_instance("health-records").original[["Age"]], (Attribute("Age"),))
    report = examine(SSE(), data)
    assert report.superadditive == "proven"
    assert report.superadditive_reason == SSE().proof


def test_falling_names_the_attribute() -> None:
    """The reason says where the loss falls."""
    report = examine(falling, load_instance("health-records"))
    assert "'Age'" in report.monotone_reason
    assert "'Age'" in str(report.formulations["bigm"])
    assert report.formulations["set-partition"] is None
    assert report.bound is None
    assert report.suppression_price == 0


def test_one_record_is_too_few() -> None:
    """Nothing can be said where nobody can hide."""
    frame = load_instance("health-records").original[["Age"]].head(1)
    with pytest.raises(InputError, match="at least two"):
        examine(GCP(), Microdata(frame, (Attribute("Age"),)))
