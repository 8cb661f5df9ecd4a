"""Arrays and numbers that kernels take as one pointer.

A named tuple of arrays is handed from kernel to kernel as all that it holds, seven values an array
and more, and every mention of it in a kernel moves them all: a third of all compilation went into
that. What is :class:`Packed` is a pointer to the same values in memory, and a kernel reads of them
what it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Packed:
    """Base of what kernels take as one pointer: fields by annotations, as in a named tuple.

    Fields are arrays, numbers, truth values, or packed themselves. They cannot be set anew, since
    memory holds where the arrays lie; what the arrays hold can. Kernels can neither make one nor
    return one: a named tuple of a few numbers serves for results. An array that a kernel finds here
    it may return only as a copy: nobody counts who still looks at it.

    Raises
    ------
    TypeError
        If a field is missing or unknown; when a kernel is called, if a field is of another kind.
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self._fields, values, strict=False), **named)
        if len(values) + len(named) != len(self._fields) or set(given) != set(self._fields):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._fields)}")
        self.__dict__.update(given)

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
        from anonymip.runtime.packed_type import packed_type

        return packed_type(self)

    @cached_property
    def _memory(self) -> Any:
        return self._numba_type_.memory_of(self)

    @cached_property
    def _address(self) -> int:
        return int(self._memory.ctypes.data)
