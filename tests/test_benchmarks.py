"""The benchmarks, as far as they can be checked without running them."""

from __future__ import annotations

import pytest

from anonymip.methods import METHODS
from anonymip.recodings.registry import find_recoding
from benchmarks import answers


@pytest.mark.parametrize("method", METHODS)
def test_answers_have_a_problem_for_every_method(method: str) -> None:
    """Every method's recoding is among those that answers are collected for, by its own name."""
    recoding = METHODS[method].recoding
    asked = answers._BY_RECODING.get(recoding)
    assert asked, f"benchmarks/answers.py has no {recoding}"
    assert {type(one) for one in asked} == {type(find_recoding(recoding))}


def test_answers_know_the_methods_that_have_options() -> None:
    """Options that answers are collected for belong to methods that take them."""
    for method, choices in answers._OPTIONS.items():
        known = {option.name for option in METHODS[method].options}
        assert all(set(options) <= known for options in choices)
