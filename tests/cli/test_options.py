"""Tests of groups of options: declared once, taken by commands one by one."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer

from anonymip.cli import answers, experiments, inventory, modelling, tasks
from anonymip.cli.app import app
from anonymip.cli.arguments import FIRST, PANELS, spread


@dataclass(frozen=True)
class Inner:
    """A group in a group."""

    width: Annotated[int, typer.Option("--width")] = 3
    #: No option.
    section: str = "beside"


@dataclass(frozen=True)
class Outer:
    """A group with a group in it."""

    inner: Inner
    height: Annotated[int, typer.Option("--height")] = 4


def test_a_command_takes_the_options_of_its_groups() -> None:
    """Options stand at the place of their group with their defaults, and come back gathered."""
    seen: dict[str, Any] = {}

    @spread
    def command(name: str, *, first: Outer, last: Annotated[int, typer.Option("--last")]) -> None:
        """Say it."""
        seen.update(name=name, first=first, last=last)

    taken = inspect.signature(command).parameters
    assert list(taken) == ["name", "width", "height", "last"]
    assert (taken["width"].default, taken["last"].default) == (3, inspect.Parameter.empty)
    assert command.__doc__ == "Say it."
    command(name="a", width=5, height=6, last=7)
    assert seen == {"name": "a", "first": Outer(Inner(5), 6), "last": 7}


@pytest.mark.parametrize(
    "command",
    [tasks.anonymize, answers.solve, experiments.compare, answers.bound, modelling.export],
    ids=lambda command: command.__name__,
)
def test_what_is_asked_is_asked_alike(command: Any) -> None:
    """Commands that make a problem take the same options for it, in the same order."""
    asked = list(inspect.signature(command).parameters)
    start, end = asked.index("l_diversity"), asked.index("objective")
    assert asked[start : end + 1] == [
        *("l_diversity", "distinct_diversity", "t_closeness", "ordered_closeness"),
        *("caps", "aparts", "suppress_at_most", "never", "together", "at_most_one"),
        *("allow_all_stars", "single_use", "costs", "most_suppressed", "objective"),
    ]
    table = [*inspect.signature(inventory.objective).parameters][2:]
    assert [name for name in asked if name in table] == table


def test_help_shows_every_option_in_a_panel() -> None:
    """What most people need comes first; all else is about table, promise, method or output."""
    command: Any = typer.main.get_command(app)
    panels: dict[str | None, list[str]] = {}
    for option in command.commands["anonymize"].params[1:-1]:
        panels.setdefault(option.rich_help_panel, []).append(option.name)
    assert list(panels) == [None, *PANELS]
    assert panels[None] == [name for name in FIRST if name != "methods"]
    assert all(len(names) > 1 for names in panels.values())
