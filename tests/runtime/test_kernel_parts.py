"""Kernels that kernels call: linked into their callers, and never run by themselves."""

import numpy as np
import pytest
from numba.core import compiler

from anonymip.runtime.kernels import kernel
from anonymip.runtime.numba_internals import Flags


@kernel
def _ordered(values):
    return np.sort(values)


@kernel
def _middle(values):
    if len(values) == 0:
        raise ValueError("nothing is in the middle")
    return _ordered(values)[len(values) // 2]


@kernel
def _spread(values):
    return _ordered(values)[-1] - _ordered(values)[0]


@kernel
def _both(values):
    return _middle(values) + _spread(values)


@kernel
def _combined(values):
    """Hold a comprehension, a closure, and an expression of whole arrays."""

    def doubled(value):
        return 2.0 * value

    squares = np.array([value * value for value in values])
    difference = squares - 3.0 * values
    return doubled(difference.sum()) + len("ab" + "c")


def test_steps_that_few_kernels_need_are_done_where_they_are():
    """Comprehensions, closures, expressions of arrays and strings are compiled as numba does."""
    values = np.array([4.0, 1.0, 9.0])
    assert _combined(values) == 2.0 * (values**2 - 3.0 * values).sum() + 3


def test_parts_of_parts_are_linked():
    """A kernel called on two ways and from Python as well is the same everywhere."""
    values = np.array([4.0, 1.0, 9.0])
    assert (_both(values), _middle(values), _ordered(values).tolist()) == (12.0, 4.0, [1, 4, 9])


def test_errors_of_parts_reach_python():
    """What a kernel raises in a kernel leaves the one that Python called, each time."""
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing is in the middle"):
            _both(np.zeros(0))
    assert _both(np.array([2.0])) == 2.0


def test_options_are_looked_up_as_numba_does() -> None:
    """They are equal to numba's, hash alike, and name symbols alike, whatever is set."""
    theirs = compiler.Flags()  # type: ignore[no-untyped-call]
    for name, value in (("no_compile", True), ("nrt", True), ("release_gil", False)):
        setattr(theirs, name, value)
        ours = Flags(theirs)
        assert ours == theirs
        assert theirs == ours
        assert hash(ours) == hash(theirs)
        assert ours.copy().get_mangle_string() == theirs.get_mangle_string()
    assert Flags() != theirs
