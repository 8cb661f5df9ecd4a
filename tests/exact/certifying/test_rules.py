"""Certificates of problems with rules beside k: what is proven without them holds with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anonymip import (
    Apart,
    Cap,
    Diversity,
    Freeform,
    Problem,
    certify,
    check_certificate,
    load_instance,
    solve,
)
from anonymip.certificates.exact_loss import rules_of, without_rules

#: What a problem asks for beside k, and a piece of what the certificate says of it.
RULES: dict[str, tuple[dict[str, Any], str]] = {
    "diversity": ({"diversity": Diversity(l=1.5)}, "diversity"),
    "cap": ({"limits": (Cap("Age", 12),)}, "Age"),
    "apart": ({"limits": (Apart("Sex", "F", "M"),)}, "Sex"),
    "reciprocal": ({"recoding": Freeform(reciprocal=True)}, "reciprocal sets"),
    "diverse covers": ({"recoding": Freeform(), "diversity": Diversity(l=1.5)}, "diversity"),
}


@pytest.mark.thorough("reciprocal", "diverse covers")
@pytest.mark.parametrize("name", RULES)
def test_the_bound_without_the_rules_is_certified(name: str, tmp_path: Path) -> None:
    """It is the plain optimum, below every release that keeps the rules; the checker agrees."""
    changes, word = RULES[name]
    problem = Problem(load_instance("health-records"), 2).replace(**changes)
    solution = solve(problem)
    plain = solve(without_rules(problem))
    assert plain.is_optimal
    certificate = certify(solution)
    assert certificate.loss is not None
    assert float(certificate.loss) == pytest.approx(solution.objective)
    assert float(certificate.bound) == pytest.approx(plain.objective)
    assert certificate.bound <= certificate.loss
    assert certificate.is_optimal == (plain.objective == pytest.approx(solution.objective))
    assert certificate.solution is not None
    # What was proven of the rules is not lost, and is not called certified.
    assert certificate.solution.is_optimal == solution.is_optimal
    (rule,) = certificate.content["rules"]
    assert word in rule
    path, _ = certificate.write(tmp_path / "proof.json")
    assert check_certificate(path).bound == certificate.bound


def test_problems_without_rules_are_left_as_they_are() -> None:
    """Nothing is copied, and nothing is said."""
    problem = Problem(load_instance("health-records"), 2)
    assert without_rules(problem) is problem
    assert rules_of(problem) == []
    assert "rules" not in certify(problem).content
