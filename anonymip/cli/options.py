"""Groups of options: dataclasses that declare them, and commands that take them one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import Field, field, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

#: The options that most people need, which help shows first, under the title that Typer gives them.
FIRST = (
    *("k", "output", "quasi_identifier", "sensitive", "keep", "drop", "recoding"),
    *("method", "methods", "time_limit", "report"),
)
#: The panels of the others, in their order. What names none is about the output.
PANELS = TABLE, PROMISE, METHOD, PARTS, OUTPUT = "Table", "Promise", "Method", "Parts", "Output"


def an_option(default: Any, text: str, *names: str, **more: Any) -> Any:
    """Return what declares an option: the field of a group, or the default of a parameter.

    `default`: its value where it is not given; ``...`` if it must be. `text`: its help. `names`:
    how it is given; none for the name of the field or parameter. `more`: what else Typer may know.
    """
    return field(default=default, metadata={"names": names, "option": {"help": text, **more}})


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the options of its groups one by one.

    Options are parameters whose default is made by :func:`an_option`, or whose type is
    ``Annotated``. A parameter whose type is a dataclass stands for those that this declares alike
    by its fields, and by those of dataclasses among them. Other fields keep their defaults.

    Typer reads options from the signature of a function, and knows no groups of them. Its help
    shows them in the order of the signature: here those of :data:`FIRST`, then panel by panel.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = [_plain(one) for one in signature.parameters.values()]

    def run(**values: Any) -> None:
        command(**{one.name: _value(one.name, one.annotation, values) for one in parameters})

    taken = sorted((each for one in parameters for each in _options(one, OUTPUT)), key=_rank)
    run.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter as Typer wants it: what :func:`an_option` declares stands in its type."""
    made = parameter.default
    if not isinstance(made, Field):
        return parameter
    default = inspect.Parameter.empty if made.default is ... else made.default
    return parameter.replace(
        annotation=_typed(parameter.name, parameter.annotation, made), default=default
    )


def _typed(name: str, kind: Any, made: Field[Any]) -> Any:
    """Return the type of an option, with all that Typer is to know of it."""
    names = made.metadata["names"] or (f"--{name.replace('_', '-')}",)
    return Annotated[kind, typer.Option(*names, **made.metadata["option"])]


def _options(parameter: inspect.Parameter, panel: str) -> Iterator[inspect.Parameter]:
    """Yield a parameter, or the options of the group that it stands for, in their panel."""
    kind = parameter.annotation
    if not is_dataclass(kind):
        if parameter.name not in FIRST and get_origin(kind) is Annotated:
            plain, option = get_args(kind)
            if isinstance(option, OptionInfo) and option.rich_help_panel is None:
                option = copy(option)
                option.rich_help_panel = panel
                kind = Annotated[plain, option]
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind)
        return
    panel = getattr(kind, "panel", panel)
    for name, inner in _fields(kind).items():
        default = getattr(kind, name, inspect.Parameter.empty)
        yield from _options(parameter.replace(name=name, annotation=inner, default=default), panel)


def _rank(parameter: inspect.Parameter) -> int:
    """Return where a parameter stands in help: arguments, the first options, panels."""
    option = get_args(parameter.annotation)[-1:]
    if not option or not isinstance(option[0], OptionInfo):
        return -1
    if parameter.name in FIRST:
        return FIRST.index(parameter.name)
    return len(FIRST) + PANELS.index(str(option[0].rich_help_panel))


def _value(name: str, kind: Any, values: Mapping[str, Any]) -> Any:
    """Return what is given for a parameter, gathered if it is a group."""
    if not is_dataclass(kind):
        return values[name]
    group: Any = kind
    return group(**{one: _value(one, inner, values) for one, inner in _fields(kind).items()})


def _fields(group: Any) -> dict[str, Any]:
    """Return the types of the options of a group, and of the groups in it, by field."""
    types = get_type_hints(group, include_extras=True)
    for one in fields(group):
        if "option" in one.metadata:
            types[one.name] = _typed(one.name, types[one.name], one)
    return {
        name: kind
        for name, kind in types.items()
        if get_origin(kind) is Annotated or is_dataclass(kind)
    }
