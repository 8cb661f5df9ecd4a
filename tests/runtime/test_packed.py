"""What kernels take as one pointer."""

import pickle
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numba.core.errors import TypingError
from numpy.typing import NDArray

from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class Inner(Packed):
    """Arrays of one and two dimensions."""

    values: NDArray[np.float64]
    table: NDArray[np.int64]


class Outer(Packed):
    """All kinds of fields."""

    inner: Inner
    codes: NDArray[np.int32]
    factor: float
    shift: int
    counted: bool


class Read(Packed, read_only=True):
    """An array that no kernel writes to."""

    values: NDArray[np.float64]


_WIDE = 3


class Sized(Packed):
    """A workspace whose fields say their shapes."""

    matrix: Annotated[Floats, "rows, k + 1"]
    marks: Annotated[Flags, "_WIDE"]
    labels: Annotated[Ints, "rows", -1]
    codes: Codes
    k: int


@kernel
def _first(read: Read) -> float:
    return read.values[0]


@kernel
def _write_first(read: Read) -> None:
    read.values[0] = 1.0


@kernel
def _inner_sum(inner: Inner) -> float:
    total = 0.0
    for value in inner.values:
        total += value
    for i in range(inner.table.shape[0]):
        for j in range(inner.table.shape[1]):
            total += (i + 1) * (j + 2) * inner.table[i, j]
    return total


@kernel
def _outer_sum(outer: Outer) -> float:
    total = outer.factor * _inner_sum(outer.inner) + outer.shift
    if outer.counted:
        total += len(outer.codes)
    for code in outer.codes:
        total += code
    return total


@kernel
def _write(outer: Outer) -> None:
    for i in range(len(outer.inner.values)):
        # What is written through one name is read through another.
        outer.inner.values[i] += outer.codes[0]
        outer.codes[0] += 1


SMALL = st.integers(-1000, 1000)


@given(
    st.lists(SMALL, max_size=5),
    arrays.arrays(np.int64, st.tuples(st.integers(0, 4), st.integers(0, 4)), elements=SMALL),
    st.lists(SMALL, max_size=4),
    st.integers(-8, 8),
    SMALL,
    st.booleans(),
)
def test_kernels_read_every_field(values, table, codes, factor, shift, counted):
    """A kernel and the kernels that it calls see what Python put in."""
    outer = Outer(
        Inner(np.array(values, float), table), np.array(codes, np.int32), factor / 2, shift, counted
    )
    rows, columns = table.shape
    weights = np.outer(np.arange(1, rows + 1), np.arange(2, columns + 2))
    expected = factor / 2 * (sum(values) + (weights * table).sum()) + shift
    assert _outer_sum(outer) == expected + (len(codes) if counted else 0) + sum(codes)


def test_strides_are_kept():
    """A view of every second column is read as the view that it is."""
    table = np.arange(24).reshape(4, 6)
    for view in (table[:, ::2], table.T, table[::-1]):
        inner = Inner(np.zeros(0), view)
        rows, columns = view.shape
        weights = np.outer(np.arange(1, rows + 1), np.arange(2, columns + 2))
        assert _inner_sum(inner) == (weights * view).sum()


def test_arrays_are_shared():
    """Kernels write into the arrays themselves, and read again what they wrote."""
    values, codes = np.zeros(3), np.array([5], np.int32)
    outer = Outer(Inner(values, np.zeros((0, 0), np.int64)), codes, 1.0, 0, False)
    _write(outer)
    assert values.tolist() == [5.0, 6.0, 7.0]
    assert codes.tolist() == [8]


def test_arrays_live_as_long_as_what_holds_them():
    """What is packed keeps its arrays and what is packed in it, whoever else forgets them."""
    outers = [
        Outer(
            Inner(np.full(1000, i, float), np.zeros((0, 0), np.int64)),
            np.zeros(0, np.int32),
            1.0,
            0,
            False,
        )
        for i in range(50)
    ]
    assert [_outer_sum(outer) for outer in outers] == [1000.0 * i for i in range(50)]


def test_fields_are_given_once_and_for_all():
    """Missing, unknown and changed fields are errors."""
    table = np.zeros((1, 1), np.int64)
    for wrong in (lambda: Inner(table), lambda: Inner(table, values=table, more=1)):
        with pytest.raises(TypeError, match="Inner takes values, table"):
            wrong()
    inner = Inner(np.zeros(1), table)
    with pytest.raises(AttributeError, match="values of Inner cannot be set"):
        inner.values = np.ones(1)


def test_what_cannot_be_packed_is_named():
    """A kernel refuses a field that is neither array nor number."""
    wrong = Inner(np.zeros(1), "text")
    with pytest.raises(TypeError, match=r"Inner\.table is unicode_type, which cannot be packed"):
        _inner_sum(wrong)


def test_what_is_only_read_has_one_signature_and_is_never_written():
    """Whether its arrays may be written to by others, the kernel is one; none that writes is."""
    open_one, closed = np.array([2.0]), np.array([3.0])
    closed.setflags(write=False)
    assert (_first(Read(open_one)), _first(Read(closed))) == (2.0, 3.0)
    assert len(_first.signatures) == 1
    with pytest.raises(TypingError, match="Cannot modify readonly array"):
        _write_first(Read(open_one))


def test_copies_and_pickles():
    """A changed copy leaves the first as it was; a pickle reads the same in another place."""
    inner = Inner(np.ones(2), np.zeros((0, 0), np.int64))
    changed = inner._replace(values=np.full(2, 3.0))
    assert (_inner_sum(inner), _inner_sum(changed)) == (2.0, 6.0)
    assert _inner_sum(pickle.loads(pickle.dumps(changed))) == 6.0
    assert [field.shape for field in inner] == [(2,), (0, 0)]


def test_workspaces_have_the_shapes_beside_their_fields():
    """Arrays are made of the sizes and numbers that are named, and filled with what is said."""
    made = Sized.of_sizes(rows=2, k=1, codes=np.ones(1, np.int32))
    assert made.matrix.shape == (2, 2)
    assert made.matrix.dtype == np.float64
    assert not made.matrix.any()
    assert made.marks.tolist() == [False] * 3
    assert made.labels.tolist() == [-1, -1]
    assert made.codes.tolist() == [1]
    assert made.k == 1
    own = np.arange(2)
    assert Sized.of_sizes(rows=2, k=1, codes=made.codes, labels=own).labels is own
    with pytest.raises(TypeError, match="Sized takes matrix, marks, labels, codes, k"):
        Sized.of_sizes(rows=2, k=1)
    with pytest.raises(NameError, match="rows"):
        Sized.of_sizes(k=1, codes=made.codes)
