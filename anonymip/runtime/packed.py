"""Arrays and numbers that kernels take as one pointer.

A named tuple of arrays is handed from kernel to kernel as all that it holds, seven values an array
and more, and every mention of it in a kernel moves them all: a third of all compilation went into
that. What is :class:`Packed` is a pointer to the same values in memory, and a kernel reads of them
what it names.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from types import CodeType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np


@dataclass_transform(frozen_default=True)
class Packed:
    """Base of what kernels take as one pointer: fields by annotations, as in a named tuple.

    Fields are arrays, numbers, truth values, or packed themselves. They cannot be set anew, since
    memory holds where the arrays lie; what the arrays hold can. Kernels can neither make one nor
    return one: a named tuple of a few numbers serves for results. An array that a kernel finds here
    it may return only as a copy: nobody counts who still looks at it.

    What no kernel writes to is declared ``read_only=True``: kernels are then compiled once for
    arrays that may be written to and others, and none that writes is compiled. Raises TypeError if
    a field is missing or unknown; when a kernel is called, if a field is of another kind.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _read_only: ClassVar[bool] = False

    def __init_subclass__(cls, *, read_only: bool = False) -> None:
        cls._fields, cls._read_only = tuple(cls.__annotations__), read_only

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(_fields_of(type(self), values, named))

    @classmethod
    def of_sizes(cls, **given: Any) -> Self:
        """Return a workspace: arrays of the shapes that stand beside the fields, filled alike.

        ``Annotated[Floats, "rows, k + 1"]`` is a matrix of zeros, ``Annotated[Ints, "rows", -1]``
        an array of -1. What the shapes name is `given` by name, or a number of the module; so are
        the fields without a shape, and those that begin otherwise.
        """
        values, names = {}, vars(sys.modules[cls.__module__])
        for name, (shape, kind, begin) in _shapes(cls).items():  # type: ignore[arg-type]
            if name not in given:
                # Zeros take no memory until they are written to.
                values[name] = np.zeros(eval(shape, names, given), kind)
                if begin != 0:
                    values[name].fill(begin)
        return cls(**values, **{name: given[name] for name in cls._fields if name in given})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of {type(self).__name__} cannot be set")

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self)

    def _replace(self, **changes: Any) -> Self:
        """Return the same with other values in some fields."""
        return type(self)(**dict(zip(self._fields, self, strict=True)) | changes)

    # What follows is made when a kernel is called first: numba is loaded no sooner.

    @cached_property
    def _numba_type_(self) -> Any:
        from anonymip.runtime.numba_internals import packed_type

        return packed_type(self)

    @cached_property
    def _memory(self) -> Any:
        return self._numba_type_.memory_of(self)

    @cached_property
    def _address(self) -> int:
        return int(self._memory.ctypes.data)


@cache
def _shapes(packed: type[Packed]) -> dict[str, tuple[CodeType, Any, float]]:
    """Return for each field with a shape: that, the kind of its numbers, and what they are."""
    found = {}
    for name, hint in get_type_hints(packed, include_extras=True).items():
        if get_origin(hint) is Annotated:
            array, shape, *begin = get_args(hint)
            code = compile(f"({shape},)", f"<shape of {name}>", "eval")
            found[name] = code, get_args(get_args(array)[1])[0], begin[0] if begin else 0
    return found


def _fields_of(
    packed: type[Packed], values: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    names = packed._fields
    given = dict(zip(names, values, strict=False), **named)
    if len(values) + len(named) != len(names) or set(given) != set(names):
        raise TypeError(f"{packed.__name__} takes {', '.join(names)}")
    return given


def make_named_tuples() -> None:
    """Make named tuples of what is packed from now on: numba takes these by itself."""

    def made(cls: Any, *values: Any, **named: Any) -> Any:
        return _tuple_class(cls)(**_fields_of(cls, values, named))

    Packed.__new__ = made  # type: ignore[method-assign]


@cache
def _tuple_class(packed: Any) -> Any:
    """Return a class of named tuples with the fields, the name and the methods of another."""
    own = {name: value for name, value in vars(packed).items() if not name.startswith("_")}
    own |= {"__reduce__": lambda self: (packed, tuple(self)), "__module__": packed.__module__}
    fields: Any = namedtuple(packed.__name__, packed._fields)  # type: ignore[misc]
    return type(packed.__name__, (fields,), own)
