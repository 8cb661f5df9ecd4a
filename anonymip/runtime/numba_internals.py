"""All that touches the private side of numba: parts of kernels, packed arguments, entries on disk.

numba optimises and makes machine code of every function when it has linked in all that the function
calls: what lies five calls deep is done five times over. Here a kernel that kernels call stays a
*part*: its own instructions and those of the parts that it calls. A kernel that Python calls links
its parts, and only then is the whole optimised, once, and made machine code of. That took more than
half of what compilation took. Both are kept on disk by :mod:`anonymip.runtime.kernel_cache`.

:mod:`anonymip.runtime.kernels` imports this module for the versions of numba that it was tested
with, and does without it elsewhere.
"""

from __future__ import annotations

import pickle
import sys
import sysconfig
import types as python_types
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir as llvm_ir
from numba._dynfunc import make_function
from numba.core import (
    caching,
    cgutils,
    codegen,
    compiler,
    environment,
    imputils,
    ir,
    serialize,
    typed_passes,
    types,
    untyped_passes,
)
from numba.core.compiler_machinery import register_pass
from numba.core.registry import cpu_target
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof
from numba.extending import NativeValue, models, register_model, unbox

from anonymip.runtime.budget import compilation_clock
from anonymip.runtime.compilation import stop_compilation_in_time
from anonymip.runtime.kernel_cache import (
    claim,
    class_parts,
    content_of,
    digest_of,
    folder,
    hash_of,
    opened_folder,
    put,
    remove_forgotten,
)

# numba has no annotations for these.
_library: Any = codegen.JITCodeLibrary
_lowering: Any = typed_passes.NativeLowering
_lowering_pass: Any = register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
_find_environment: Any = environment.lookup_environment
_closures: Any = untyped_passes.InlineClosureLikes
_rewrites: Any = typed_passes.NopythonRewrites
_pipeline: Any = compiler.DefaultPassBuilder.define_nopython_pipeline
_compiler: Any = compiler.CompilerBase
_numba_flags: Any = compiler.Flags
_DEFAULTS = {name: option.default for name, option in _numba_flags.options.items()}
_HASH = hash(tuple(sorted(_DEFAULTS)))


class PartLibrary(_library):  # type: ignore[misc]
    """The code of a part."""

    def finalize(self) -> None:
        """Link the parts that this one calls; nothing is optimised, nothing made to run."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._close()

    def serialize_using_object_code(self) -> Any:
        """Return what is kept on disk: code to link, since there is no other."""
        return self.serialize_using_bitcode()

    @classmethod
    def read(cls, generator: Any, kept: Any) -> PartLibrary:
        """Return the library that `serialize_using_object_code` has kept."""
        name, _, bitcode = kept
        library = cls(generator, name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._close()
        return library

    def _close(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


def part_entry(library: PartLibrary, description: Any, environment: Any) -> Any:
    """Return what numba knows a part by; it cannot be called."""
    module, name = description.lookup_module(), description.qualname
    return make_function(module, name, "", 0, environment, (library,))


@_lowering_pass
class _PartLowering(_lowering):  # type: ignore[misc]
    """From typed code to a part."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library, state.flags.no_compile = library, True
        super().run_pass(state)
        library.finalize()
        lowered = state["cr"]
        entry = part_entry(library, lowered.fndesc, lowered.env)
        state.targetctx.insert_user_function(entry, lowered.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class _EntryLibrary(_library):  # type: ignore[misc]
    """The code of an entry: where that is long, a run is asked in between whether to go on."""

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        stop_compilation_in_time()


@_lowering_pass
class _EntryLowering(_lowering):  # type: ignore[misc]
    """From typed code to machine code, that of its parts included."""

    _name = "entry_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _EntryLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        super().run_pass(state)
        # numba tells the code of each function where its environment lies when that function is
        # made to run, which parts never are.
        for variable in state.library._final_module.global_variables:
            found = _find_environment(variable.name)
            if found is not None:
                state.library.codegen.set_env(variable.name, found)
        return True


@_lowering_pass
class _InlineClosures(_closures):  # type: ignore[misc]
    """numba's step for closures and comprehensions, where there are any."""

    _name = "inline_closures"

    def run_pass(self, state: Any) -> bool:
        found = next(_assigned(state, ("make_function", "build_list")), None)
        return found is not None and super().run_pass(state)


@_lowering_pass
class _ArrayExpressions(_rewrites):  # type: ignore[misc]
    """numba's step for expressions of whole arrays and of strings, where there are any."""

    _name = "array_expressions"

    def run_pass(self, state: Any) -> bool:
        arrays = any(
            isinstance(state.typemap[assigned.target.name], types.Array)
            for assigned in _assigned(state, ("binop", "unary", "inplace_binop", "call"))
        )
        strings = any(isinstance(kind, types.UnicodeType) for kind in state.typemap.values())
        return (arrays or strings) and super().run_pass(state)


def _assigned(state: Any, operations: tuple[str, ...]) -> Iterator[Any]:
    """Yield the assignments of a kernel whose value is made by one of some operations."""
    for block in state.func_ir.blocks.values():
        for assigned in block.find_insts(ir.Assign):
            if isinstance(assigned.value, ir.Expr) and assigned.value.op in operations:
                yield assigned


#: Steps of numba's that go through a kernel several times, in vain for nearly all of ours.
_WHERE_NEEDED = {_closures: _InlineClosures, _rewrites: _ArrayExpressions}


class Flags(_numba_flags):  # type: ignore[misc]
    """The options of one compilation, for numba to look up by.

    numba asks for them whenever it infers the type of a call, and reads all of them by name each
    time: that took a twentieth of all compilation. The name of the class is part of symbols.
    """

    def __hash__(self) -> int:
        # numba's hash, which is that of the names.
        return _HASH

    def values(self) -> dict[str, Any]:
        """Return the options by name, as numba's own do."""
        return {**_DEFAULTS, **self._values}


class _KernelCompiler(_compiler):  # type: ignore[misc]
    """numba's compiler with another last step, and without what a kernel has no use for."""

    lowering: Any

    def __init__(self, *arguments: Any) -> None:
        *others, flags, variables = arguments
        super().__init__(*others, Flags(flags), variables)

    def define_pipelines(self) -> list[Any]:
        manager = _pipeline(self.state)
        instead = {**_WHERE_NEEDED, _lowering: self.lowering}
        manager.passes = [(instead.get(step, step), text) for step, text in manager.passes]
        manager.finalize()
        return [manager]


class PartCompiler(_KernelCompiler):
    """Compiles a kernel for kernels that call it."""

    lowering = _PartLowering


class EntryCompiler(_KernelCompiler):
    """Compiles a kernel for Python."""

    lowering = _EntryLowering


# numba's decorators and helpers have no annotations.
_word: Any = llvm_ir.IntType(64)
_pointer: Any = cgutils.voidptr_t
_unbox: Any = unbox
_infer_getattr: Any = infer_getattr
_lower_getattr: Any = imputils.lower_getattr_generic
_typeof: Any = typeof
_native_value: Any = NativeValue
_pack_array: Any = cgutils.pack_array


class PackedType(types.Type):
    """The type of what is packed: its class, and the types of its fields.

    `packed`: the class. `kinds`: types of its fields. Raises TypeError if a field is neither array,
    number, truth value nor packed itself.
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


#: Types by class and fields: numba takes long to find out the type of an array.
_packed_types: dict[Any, PackedType] = {}


def packed_type(value: Any) -> PackedType:
    """Return the type of what is packed."""
    seen = (type(value), *map(_seen_of, value))
    found = _packed_types.get(seen)
    if found is None:
        kinds: Any = map(_typeof, value)
        if value._read_only:
            arrays: Any = types.Array
            kinds = (one.copy(readonly=True) if isinstance(one, arrays) else one for one in kinds)
        found = _packed_types[seen] = PackedType(type(value), tuple(kinds))
    return found


def _seen_of(field: Any) -> Any:
    """Return what the type of a field depends on."""
    if not isinstance(field, np.ndarray):
        return _typeof(field)
    flags = field.flags
    return field.dtype, field.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable


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
        loaded = builder.load(builder.gep(words, [llvm_ir.Constant(_word, place + at)]))
        # The words never change: what is read once need not be read again after a store.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(field, types.Array):
        n = field.ndim
        array = context.make_array(field)(context, builder)
        # Whoever called holds the array: there is nothing for kernels to count.
        array.meminfo = array.parent = llvm_ir.Constant(_pointer, None)
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


_FORMAT = "6"  # raised when entries of before must not be read any more
#: The interpreter as far as compiled code depends on it: its byte code and its structures.
_PYTHON = f"{sys.version_info[:2]} {sysconfig.get_config_var('SOABI')}"
#: The kernels that Python has called in this process, once for each signature, in that order.
asked: list[str] = []


class KernelCache(caching.NullCache):
    """The entries of one kernel, one file for each signature.

    `called_from`: who calls what is compiled: one kernel is compiled otherwise for Python and for
    kernels.

    A place that cannot be read or written is no error: the kernel is compiled instead. Files are
    written aside and renamed, so that processes do not disturb each other.
    """

    def __init__(self, function: python_types.FunctionType, called_from: str) -> None:
        self._function = function
        self._called_from = called_from

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature, or None."""
        if self._called_from == "python":  # what parts are linked into
            asked.append(f"{self._function.__module__}:{self._function.__qualname__}")
        name = self._name(sig, target_context.codegen())
        if name is None:
            return None
        compilation_clock.begin()
        try:
            found = self._loaded(name, target_context)
            if found is None and claim(name):
                found = self._loaded(name, target_context)
                if found is not None:
                    claim(name, ended=True)
            return found
        finally:
            compilation_clock.end()

    def _loaded(self, name: str, target_context: Any) -> Any:
        with opened_folder() as place:
            content = None if place is None else content_of(place, name)
        if content is None:
            return None
        # numba needs it refreshed before anything is rebuilt in it.
        target_context.refresh()
        try:
            kept = pickle.loads(content)
            if self._called_from == "kernels":
                return _rebuilt_part(target_context, *kept)
            return compiler.CompileResult._rebuild(target_context, *kept)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001
            # Of another version of the package, whose types had other names, or no entry at all.
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, where that is possible."""
        name = self._name(sig, data.codegen)
        if name is None:
            return
        try:
            if data.lifted or data.library.has_dynamic_globals:
                return
            content: bytes = serialize.dumps(data._reduce())  # type: ignore[no-untyped-call]
            with opened_folder(make=True) as place:
                if place is None or not put(place, name, content):
                    return
        finally:
            claim(name, ended=True)
        remove_forgotten(folder())

    def _name(self, sig: Any, codegen: Any) -> str | None:
        return None if folder() is None else f"{self.code_name(codegen)}{hash_of(_type_parts(sig))}"

    def code_name(self, codegen: Any = None) -> str:
        """Return how the names of all entries of this code begin, whatever their signature."""
        codegen = codegen or cpu_target.target_context.codegen()
        parts = (
            *(digest_of(self._function), self._called_from),
            *map(str, codegen.magic_tuple()),
            *(_FORMAT, _PYTHON, numba.__version__, llvmlite.__version__, np.__version__),
            *(str(numba.config.OPT), str(numba.config.BOUNDSCHECK)),  # type: ignore[attr-defined]
        )
        return f"{self._function.__name__}-{hash_of(parts)}-"


def _rebuilt_part(context: Any, code: Any, description: Any, environment: Any, *rest: Any) -> Any:
    """Return a part as it was compiled; what it was made of is what numba keeps of any kernel."""
    signature, objectmode, lifted, annotation, reload_init, environments = rest
    for function in reload_init:
        function()
    library = PartLibrary.read(context.codegen(), code)
    result: Any = compiler.compile_result
    return result(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=part_entry(library, description, environment),
        fndesc=description,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        reload_init=reload_init,
        referenced_envs=environments,
    )


def _type_parts(kind: Any) -> Iterator[str]:
    """Yield what tells one signature from another: a named tuple's text lacks its fields' names."""
    named: Any = types.BaseNamedTuple
    several: Any = types.BaseTuple
    if isinstance(kind, tuple | list):
        for part in kind:
            yield from _type_parts(part)
    elif isinstance(kind, types.Dispatcher):
        yield digest_of(kind.dispatcher.py_func)
    else:
        yield str(kind)
        if isinstance(kind, named):
            yield from class_parts(kind.instance_class)
        if isinstance(kind, PackedType):
            yield from class_parts(kind.packed)
            yield from _type_parts(list(kind.kinds))
        if isinstance(kind, several):
            yield from _type_parts(list(kind.types))


def compiled_in_parts(function: Callable[..., Any]) -> Any:
    """Return a kernel that is compiled in one way for Python and in another for kernels.

    What other kernels call is compiled without the code that takes a call of Python's apart, and
    not to run by itself. Neither has an entry for C.
    """
    from_python = _dispatcher(function, called_from="python")
    from_kernels = _dispatcher(function, called_from="kernels")
    _never_for_one_value(from_kernels)
    from_python.get_call_template = from_kernels.get_call_template
    from_python.get_overload = from_kernels.get_overload
    return from_python


def _dispatcher(function: Callable[..., Any], called_from: str) -> Any:
    # numba's annotations leave these options out.
    entries: dict[str, Any] = {
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": called_from != "python",
        "pipeline_class": PartCompiler if called_from == "kernels" else EntryCompiler,
    }
    compiled: Any = numba.njit(nogil=True, **entries)(function)
    compiled._cache = KernelCache(compiled.py_func, called_from)
    compiled.called_from = called_from
    return compiled


def _never_for_one_value(compiled: Any) -> None:
    """Compile a kernel for types only, never for one value of an argument.

    While numba infers the types of a caller, a variable that begins as 0 is for a moment of the
    type "the number 0", and every kernel that it is handed to would be compiled for that as well,
    in vain: it cost a third of all compilation.
    """
    template = compiled.get_call_template

    def for_types(args: Any, kws: Any) -> Any:
        plain: Any = types.unliteral
        return template(
            tuple(map(plain, args)), {name: plain(kind) for name, kind in dict(kws).items()}
        )

    compiled.get_call_template = for_types
