"""The registry of methods: specs as data, functions loaded on use."""

from anonymip.methods.registry import (
    METHODS,
    find_method,
    is_built_in,
    refuse_unfit,
    register_method,
)
from anonymip.methods.spec import MethodOption, MethodSpec

__all__ = [
    "METHODS",
    "MethodOption",
    "MethodSpec",
    "find_method",
    "is_built_in",
    "refuse_unfit",
    "register_method",
]
