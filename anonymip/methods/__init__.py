"""The registry of methods: specs as data, functions loaded on use."""

from anonymip.methods.registry import (
    METHODS,
    MethodOption,
    MethodSpec,
    find_method,
    register_method,
)

__all__ = ["METHODS", "MethodOption", "MethodSpec", "find_method", "register_method"]
