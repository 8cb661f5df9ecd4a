"""Methods as data: what each solves, needs and takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import numpy as np

from anonymip.errors import InputError, UnsupportedObjective, did_you_mean
from anonymip.objectives import pattern_costs
from anonymip.objectives.star_costs import level_costs
from anonymip.problem import Problem
from anonymip.recodings.rows import level_maps
from anonymip.recodings.rules.diversity import of_rows

Method = Callable[..., Any]


@dataclass(frozen=True)
class MethodOption:
    """An option of one method.

    Parameters
    ----------
    name
        As the method's function names it.
    default
        Its default, whose type is the option's type.
    meaning
        In a few words.
    """

    name: str
    default: bool | int | float | str
    meaning: str

    def parse(self, method: str, value: object) -> object:
        """Return a value given as text or as the right type.

        Raises InputError if it cannot be read as the option's type.
        """
        kind = type(self.default)
        if kind is bool:
            known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
            parsed = known.get(str(value).lower())
            if parsed is not None:
                return parsed
        else:
            try:
                return kind(str(value))
            except (TypeError, ValueError):
                pass
        expected = {"bool": "true or false", "int": "a whole number", "float": "a number"}
        raise InputError(
            f"option {method}.{self.name} is {value!r}",
            remedy=f"Give {expected.get(kind.__name__, 'a text')}",
        )


@dataclass(frozen=True)
class MethodSpec:
    """A method."""

    name: str  # name on the command line
    recoding: str  # name of the recoding whose problems it solves
    role: str  # ``"heuristic"``, ``"exact"`` or ``"selection"``
    target: str | Method  # its function: ``module:name``, or the function itself
    source: str  # where it comes from
    #: What the objective must be: ``"monotone"``; ``"sizes"``, the same but for plain covers of so
    #: few records that sets of all sizes are listed; ``"tables"``, a sum of terms that look at one
    #: attribute each; ``"sum"``, summed over the records; ``"diversity"``, a problem that asks for
    #: one; ``"superadditive"``, a loss of classes that no cut raises, and of covers a monotone one;
    #: ``"stars"``, a loss that exact cells and stars decide, whatever the values; ``"levels"``, a
    #: loss that the levels of hierarchies decide, whatever the values; ``"published"``, one of
    #: published records; ``"numeric"``, a table of numeric attributes alone; ``"k=2"`` or
    #: ``"k=3"``, a problem with this k.
    needs: tuple[str, ...] = ()
    #: Common settings that it reads: ``"solver"``, ``"gap"``, ``"threads"``, ``"log"``,
    #: ``"solver_options"``, ``"checkpoint"``, ``"resume"`` and ``"effort"``.
    takes: tuple[str, ...] = ()
    options: tuple[MethodOption, ...] = ()  # its own options
    also: tuple[str, ...] = ()  # names of further recodings whose problems it solves
    #: Rules that it can keep and others cannot: ``"closeness"``, the t of a diversity.
    keeps: tuple[str, ...] = ()

    def solves(self, recoding: str) -> bool:
        """Return whether it solves the problems of a recoding."""
        return recoding in (self.recoding, *self.also)

    def solves_for(self, k: int) -> bool:
        """Return whether it solves problems with this k."""
        asked = [need for need in self.needs if need.startswith("k=")]
        return not asked or f"k={k}" in asked

    def load(self) -> Method:
        """Return the method's function, importing it."""
        function: Method = self.target if callable(self.target) else resolve_name(self.target)
        return function

    def parse_options(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the method's own options, checked.

        Raises InputError if an option is unknown or has the wrong type.
        """
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                has = ", ".join(known) if known else "none"
                raise InputError(
                    f"method {self.name} has no option {name!r}",
                    remedy=did_you_mean(name, known, f"Its options: {has}"),
                )
        return {name: known[name].parse(self.name, value) for name, value in given.items()}

    def obstacle(self, problem: Problem) -> str | None:
        """Return what the objective lacks that the method needs; None if it accepts it."""
        compiled = problem.compiled
        if "tables" in self.needs and not compiled.has_tables:
            return (
                f"needs a loss that is a sum of terms of one attribute each; {compiled.name!r} is "
                f"of the {compiled.tier} tier"
            )
        if "sum" in self.needs and compiled.aggregate != "sum":
            return f"needs a loss summed over the records; {compiled.name!r} is the largest"
        if "diversity" in self.needs and of_rows(problem.diversity) is None:
            return "needs a diversity"
        if "published" in self.needs and compiled.tier == "members":
            return f"needs a loss of published records; {compiled.name!r} looks at members"
        if "numeric" in self.needs:
            others = [a.name for a in problem.microdata.attributes if not a.is_numeric]
            if others:
                return f"needs numeric attributes; {others[0]!r} is not numeric"
        if "stars" in self.needs:
            try:
                pattern_costs(compiled, np.eye(2, dtype=np.bool_)[:, [0] * problem.m])
            except UnsupportedObjective as refusal:
                return f"needs a loss that stars alone decide; {refusal.message}"
        if "levels" in self.needs:
            try:
                level_costs(compiled, [levels.cells for levels in level_maps(problem.microdata)])
            except UnsupportedObjective as refusal:
                return f"needs a loss that levels alone decide; {refusal.message}"
        close = problem.diversity is not None and problem.diversity.t is not None
        if close and "closeness" not in self.keeps:
            return f"cannot keep the {problem.diversity}"
        if "superadditive" in self.needs:
            from anonymip.exact.column_generation.conditions import unmet_property

            unmet = unmet_property(problem)
            if unmet is not None:
                return f"needs {unmet}"
        if "monotone" in self.needs and not compiled.monotone:
            return f"needs a monotone objective; of {compiled.name!r}, {compiled.obstacle}"
        if "sizes" in self.needs and not compiled.monotone:
            from anonymip.exact.freeform.freeform_mip import unmet_by_sizes

            return unmet_by_sizes(problem)
        return None
