"""How commands share options: each is declared once, as a field of a group."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, get_origin, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the options of its groups one by one.

    Parameters
    ----------
    command
        What runs. A parameter whose type is a dataclass stands for the options that this
        declares, at its place: the fields with a type ``Annotated``, and those of dataclasses
        among its fields. Other fields keep their defaults.

    Notes
    -----
    Typer reads options from the signature of a function, and knows no groups of them.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()

    def run(**values: Any) -> None:
        command(**{one.name: _value(one.name, one.annotation, values) for one in parameters})

    taken = [option for one in parameters for option in _options(one)]
    run.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _options(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield a parameter, or the options of the group that it stands for."""
    if not _is_group(parameter.annotation):
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return
    for name, kind in _fields(parameter.annotation).items():
        default = getattr(parameter.annotation, name, inspect.Parameter.empty)
        yield from _options(parameter.replace(name=name, annotation=kind, default=default))


def _value(name: str, kind: Any, values: Mapping[str, Any]) -> Any:
    """Return what is given for a parameter, gathered if it is a group."""
    if not _is_group(kind):
        return values[name]
    fields = _fields(kind).items()
    return kind(**{field: _value(field, inner, values) for field, inner in fields})


def _fields(group: Any) -> dict[str, Any]:
    """Return the types of the options of a group, and of the groups in it, by field."""
    hints = get_type_hints(group, include_extras=True)
    return {
        name: hint
        for name, hint in hints.items()
        if get_origin(hint) is Annotated or _is_group(hint)
    }


def _is_group(kind: Any) -> bool:
    return is_dataclass(kind)
