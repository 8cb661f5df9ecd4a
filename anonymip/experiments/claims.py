"""Releases that are handed in, held against the best that the library knows.

The best ones are kept beside the library's files, as they would be handed in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anonymip.assignments import Assignment, Classes, Cover, Levels, Patterns
from anonymip.errors import InputError
from anonymip.experiments.leaderboard import FOUND_BY, Standing, problem_of
from anonymip.experiments.records import sets_of
from anonymip.files import Outputs
from anonymip.instances.library.catalogue import (
    PREFIX,
    PROTOTYPE,
    LibraryEntry,
    better,
    find_entry,
    release_file,
)
from anonymip.problem import Problem
from anonymip.recodings import PatternGuided
from anonymip.solution import Bound, Solution


@dataclass(frozen=True)
class Claim:
    """A release that was handed in, checked."""

    entry: LibraryEntry  # as it stands
    solution: Solution  # the release; its loss is recomputed here
    by: str  # who hands it in

    @property
    def improved(self) -> LibraryEntry:
        """The entry with this release, if it is better than what is known."""
        return better(self.entry, self.solution.objective, self.by)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a record for JSON."""
        loss = self.solution.objective
        return {
            **Standing(self.entry, self.solution.method, loss, 0.0).to_dict(),
            "better": self.improved is not self.entry,
        }

    def text(self) -> str:
        """Return what is found in one line."""
        loss, known = self.solution.objective, self.entry.loss
        said = f"{self.entry.name}: a release that is allowed, of loss {loss:.7g}"
        if known is None:
            return f"{said}; none was known"
        if self.improved is self.entry:
            return f"{said}; no better than the best known, {known:.7g}"
        return f"{said}; the best known was {known:.7g} ({self.entry.loss_by})"


def read_claim(file: Path) -> Claim:
    """Check the release of a file, see :func:`check`."""
    try:
        records = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} is no JSON that can be read ({type(error).__name__})",
            remedy=f"Write it by 'anonymip solve {PREFIX}NAME -k K --json FILE'",
        ) from None
    if not isinstance(records, list) or len(records) != 1:
        raise InputError(f"{file} does not hold one record", remedy="Hand in one release a file")
    return check(records[0])


def check(record: Mapping[str, Any]) -> Claim:
    """Check a release of an entry, as ``anonymip solve library:NAME --json`` writes it.

    Its loss and the bound that it claims are not read: the sets are checked by the rules of the
    entry, and the loss is computed from them.
    """
    instance = record.get("instance") if isinstance(record, Mapping) else None
    if not isinstance(instance, str) or not instance.startswith(PREFIX):
        raise InputError(
            f"the record's instance is {instance!r}, no entry of the library",
            remedy=f"Write it by 'anonymip solve {PREFIX}NAME -k K --json FILE'",
        )
    entry = find_entry(instance)
    for name, wanted in (
        ("k", entry.k),
        ("recoding", entry.recoding),
        ("objective_name", entry.objective),
    ):
        if record.get(name) != wanted:
            raise InputError(
                f"{name} is {record.get(name)!r} in the record, and the entry {entry.name} asks "
                f"for {wanted!r}",
                remedy=f"Solve {PREFIX}{entry.name} with what the entry asks for",
            )
    problem = problem_of(entry)
    bound = None
    if entry.bound is not None and entry.bound_by != PROTOTYPE:
        bound = Bound(entry.bound, str(entry.bound_by), "argument")
    solution = Solution.of(
        problem, _assignment(record, problem), method=str(record.get("method")), bound=bound
    )
    versions = record.get("versions")
    version = versions.get("anonymip") if isinstance(versions, Mapping) else None
    return Claim(entry, solution, f"{record.get('method')}{FOUND_BY}{version or 'unknown'}")


def stage_release(entry: LibraryEntry, solution: Solution, outputs: Outputs) -> None:
    """Stage the best known release of an entry, which names its finder, for :func:`read_claim`."""
    method, _, version = str(entry.loss_by).rpartition(FOUND_BY)
    record = {
        "instance": PREFIX + entry.name,
        "k": entry.k,
        "recoding": entry.recoding,
        "objective_name": entry.objective,
        "method": method,
        "versions": {"anonymip": version},
        **sets_of(solution),
    }
    file = release_file(entry.name)
    # Of a table of the library, which is public.
    outputs.write_text(json.dumps([record], separators=(",", ":")) + "\n", file, public=True)


def _assignment(record: Mapping[str, Any], problem: Problem) -> Assignment:
    """Return the sets of a record; all rows of the library's tables are records."""
    try:
        if "matches" in record:
            return Cover.of(record["matches"])
        groups, names = np.array(record["groups"], np.int32), problem.microdata.names
        if "levels" in record:
            return Levels(np.array([record["levels"][name] for name in names]), groups < 0)
        if isinstance(problem.recoding, PatternGuided):
            stars = problem.recoding.stars(problem)
            place = {tuple(np.flatnonzero(row).tolist()): at for at, row in enumerate(stars)}
            shown = [tuple(names.index(name) for name in row) for row in record["patterns"]]
            return Patterns(np.array([place[tuple(sorted(row))] for row in shown]))
        return Classes(groups)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"the record names no sets of records that can be read ({type(error).__name__})",
            remedy="It needs groups, matches, patterns or levels as 'anonymip solve --json' "
            "writes them",
        ) from None
