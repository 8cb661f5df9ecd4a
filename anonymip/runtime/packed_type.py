"""What numba is to know of what is packed: its type, and how a kernel reads a field.

The values of type `Any` are :class:`~anonymip.runtime.packed.Packed`, which asks here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, imputils, types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof
from numba.extending import NativeValue, models, register_model, unbox

# numba's decorators and helpers have no annotations.
_word: Any = ir.IntType(64)
_pointer: Any = cgutils.voidptr_t
_unbox: Any = unbox
_infer_getattr: Any = infer_getattr
_lower_getattr: Any = imputils.lower_getattr_generic
_typeof: Any = typeof
_native_value: Any = NativeValue
_pack_array: Any = cgutils.pack_array


class PackedType(types.Type):
    """The type of what is packed: its class, and the types of its fields.

    Parameters
    ----------
    packed
        The class.
    kinds
        Types of its fields.

    Raises
    ------
    TypeError
        If a field is neither array, number, truth value nor packed itself.
    """

    def __init__(self, packed: type[Any], kinds: tuple[Any, ...]) -> None:
        self.packed, self.kinds = packed, kinds
        #: Type of each field, and its place in memory in words of 64 bits.
        self.places: dict[str, tuple[Any, int]] = {}
        place = 0
        for name, kind in zip(packed._fields, kinds, strict=True):
            if not isinstance(kind, _FIELDS):
                raise TypeError(f"{packed.__qualname__}.{name} is {kind}, which cannot be packed")
            self.places[name] = (kind, place)
            place += 3 + 2 * kind.ndim if isinstance(kind, types.Array) else 1
        held = ", ".join(map(str, kinds))
        super().__init__(name=f"{packed.__module__}.{packed.__qualname__}({held})")

    def memory_of(self, value: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the memory that the kernels read; arrays stay where they are."""
        return np.array(
            [
                word
                for kind, field in zip(self.kinds, value, strict=True)
                for word in _words(kind, field)
            ],
            np.int64,
        )


_FIELDS = (types.Array, types.Integer, types.Float, types.Boolean, PackedType)


def packed_type(value: Any) -> PackedType:
    """Return the type of what is packed."""
    return PackedType(type(value), tuple(map(_typeof, value)))


def _words(kind: Any, field: Any) -> list[int]:
    if isinstance(kind, types.Array):
        return [field.size, field.itemsize, field.ctypes.data, *field.shape, *field.strides]
    if isinstance(kind, PackedType):
        return [field._address]
    if isinstance(kind, types.Float):
        return [int(np.float64(field).view(np.int64))]
    return [int(field)]


register_model(PackedType)(models.OpaqueModel)


@_unbox(PackedType)  # type: ignore[untyped-decorator]
def _address_of(kind: Any, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "_address")
    word = c.pyapi.long_as_ulonglong(address)
    c.pyapi.decref(address)
    return _native_value(c.builder.inttoptr(word, _pointer), is_error=c.pyapi.c_api_error())


@_infer_getattr
class _Fields(AttributeTemplate):
    key = PackedType

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return kind.places[name][0] if name in kind.places else None


@_lower_getattr(PackedType)  # type: ignore[untyped-decorator]
def _read_field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    field, place = kind.places[name]
    words = builder.bitcast(value, _word.as_pointer())

    def word(at: int) -> Any:
        loaded = builder.load(builder.gep(words, [ir.Constant(_word, place + at)]))
        # The words never change: what is read once need not be read again after a store.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(field, types.Array):
        n = field.ndim
        array = context.make_array(field)(context, builder)
        # Whoever called holds the array: there is nothing for kernels to count.
        array.meminfo = array.parent = ir.Constant(_pointer, None)
        array.nitems, array.itemsize = word(0), word(1)
        array.data = builder.inttoptr(word(2), array.data.type)
        array.shape = _pack_array(builder, [word(3 + d) for d in range(n)])
        array.strides = _pack_array(builder, [word(3 + n + d) for d in range(n)])
        return array._getvalue()
    if isinstance(field, PackedType):
        return builder.inttoptr(word(0), _pointer)
    if isinstance(field, types.Float):
        return builder.bitcast(word(0), context.get_value_type(types.float64))
    as_stored = context.get_value_type(field)
    return word(0) if as_stored == _word else builder.trunc(word(0), as_stored)
