"""All reproductions by name; their modules are loaded when one is asked for."""

from __future__ import annotations

from importlib import import_module

from anonymip.errors import unknown_name
from anonymip.experiments.reproductions.specification import Reproduction

#: The modules of the papers; each has its reproductions in ``REPRODUCTIONS``.
PAPERS = (
    "doka",
    "doka_scale",
    "liang",
    "liang_tables",
    "liang_benchmarks",
    "liang_scale",
    "wong",
    "bredereck",
    "aggarwal",
)


def reproductions() -> dict[str, Reproduction]:
    """Return all reproductions by name, paper by paper."""
    return {
        one.name: one
        for paper in PAPERS
        for one in import_module(f"anonymip.experiments.reproductions.papers.{paper}").REPRODUCTIONS
    }


def find_reproduction(name: str) -> Reproduction:
    """Return a reproduction by name; ``PAPER:FIGURE`` is ``PAPER-FIGURE``.

    Raises
    ------
    InputError
        If there is none.
    """
    known = reproductions()
    found = known.get(name.replace(":", "-"))
    if found is None:
        raise unknown_name("reproduction", name, known)
    return found
