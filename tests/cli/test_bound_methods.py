"""Bounds of a method that is asked for, on the command line."""

from __future__ import annotations

from typing import Any


def test_the_bound_of_a_method(shell: Any) -> None:
    """It is asked for by name; a name that is none, or has no bound of its own, is refused."""
    arguments = ("bound", "census:60,4,1", "-k", 3)
    by_program = shell(*arguments, "--method", "column-generation", "--json", "-")
    (record,) = by_program.records()
    assert record["method"] == "column generation, linear program"
    assert record["bound"] > 0
    assert shell(*arguments, "--method", "nothing").code == 2
    refused = shell(*arguments, "--method", "mondrian")
    assert refused.code == 2
    assert "method mondrian has no bound apart from its solution" in refused.err
