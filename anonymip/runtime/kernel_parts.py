"""Kernels that only kernels call: kept as code to link, and optimised in what Python calls.

numba optimises and makes machine code of every function when it has linked in all that the function
calls: what lies five calls deep is done five times over. Here a kernel that kernels call stays a
*part*: its own instructions and those of the parts that it calls. A kernel that Python calls links
its parts, and only then is the whole optimised, once, and made machine code of. That took more than
half of what compilation took.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
from numba._dynfunc import make_function
from numba.core import (
    codegen,
    compiler,
    environment,
    ir,
    typed_passes,
    types,
    untyped_passes,
)
from numba.core.compiler_machinery import register_pass

from anonymip.runtime.compilation import stop_compilation_in_time

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
        return _has(state, ("make_function", "build_list")) and super().run_pass(state)


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


def _has(state: Any, operations: tuple[str, ...]) -> bool:
    return next(_assigned(state, operations), None) is not None


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

    def __init__(
        self,
        typing: Any,
        target: Any,
        library: Any,
        args: Any,
        returned: Any,
        flags: Any,
        variables: Any,
    ) -> None:
        super().__init__(typing, target, library, args, returned, Flags(flags), variables)

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
