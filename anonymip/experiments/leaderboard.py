"""The leaderboard: distances of all methods to the optimum on the library of instances.

Releases that are handed in are held against the best that the library knows; those are kept beside
its files, as they would be handed in.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anonymip._version import __version__
from anonymip.assignments import Assignment, Classes, Cover, Levels, Patterns
from anonymip.errors import InputError, NoSolution, UnsupportedObjective
from anonymip.experiments.comparison import Comparison, compare
from anonymip.experiments.records import markdown_table, sets_of
from anonymip.files import Outputs
from anonymip.instances import load_instance
from anonymip.instances.library.catalogue import (
    PREFIX,
    PROTOTYPE,
    LibraryEntry,
    better,
    closer,
    find_entry,
    library,
    release_file,
)
from anonymip.methods import find_method
from anonymip.objectives import load_objective
from anonymip.problem import Problem
from anonymip.recodings import PatternGuided
from anonymip.recodings.registry import find_recoding
from anonymip.runtime.budget import Progress
from anonymip.solution import Bound, Solution, bound_text
from anonymip.tolerances import OPTIMALITY_RELATIVE

#: Columns of the entries, and of the methods, for people.
ENTRY_COLUMNS = ("instance", "n", "k", "recoding", "objective", "best loss", "bound", "gap", "by")
METHOD_COLUMNS = (
    *("recoding", "method", "instances", "optimal"),
    *("mean", "median", "worst", "seconds"),
)

FOUND_BY = ", AnonyMIP "  # what stands between the method and the version in who found a figure

_OF_METHODS = (
    "How far the releases of a method are above the proven optimum, over the instances on which "
    "that is known and the method found a release; how many are optimal; seconds in all."
)
_OF_ENTRIES = (
    "What is known of each instance. A figure that is marked * is of an earlier program and not "
    "yet found by this one."
)


def problem_of(entry: LibraryEntry) -> Problem:
    """Return the problem of an entry."""
    return Problem(
        load_instance(PREFIX + entry.name),
        entry.k,
        find_recoding(entry.recoding),
        load_objective(entry.objective),
    )


@dataclass(frozen=True)
class Standing:
    """One method on one entry."""

    entry: LibraryEntry  # with the best that is known, this run included
    method: str
    loss: float | None  # of its release; None if it found none
    seconds: float

    @property
    def distance(self) -> float | None:
        """(loss - optimum) / optimum; None without a release or a proven optimum above 0."""
        optimum = self.entry.loss
        if self.loss is None or optimum is None or not self.entry.is_proven:
            return None
        if optimum == 0:
            return 0.0 if self.loss == 0 else None
        return max(0.0, (self.loss - optimum) / optimum)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a record for JSON."""
        entry = self.entry
        return {
            "instance": PREFIX + entry.name,
            "k": entry.k,
            "recoding": entry.recoding,
            "objective_name": entry.objective,
            "method": self.method,
            "objective": self.loss,
            "optimum": entry.loss if entry.is_proven else None,
            "best": entry.loss,
            "best_by": entry.loss_by,
            "bound": entry.bound,
            "bound_by": entry.bound_by,
            "distance": self.distance,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Leaderboard:
    """Entries with the best that is known, and the methods that were run on them."""

    entries: tuple[LibraryEntry, ...]
    standings: tuple[Standing, ...]
    complete: bool = True  # whether nothing stopped the run
    #: The releases that are better than those known before, by the name of their entry.
    found: Mapping[str, Solution] = field(default_factory=dict)

    def with_others(self) -> Leaderboard:
        """Return the leaderboard with all entries of the library, those that were not run too."""
        run = {entry.name: entry for entry in self.entries}
        return replace(self, entries=tuple(run.get(name, one) for name, one in library().items()))

    def entry_texts(self) -> list[list[str]]:
        """Return the entries as texts, in the order of `ENTRY_COLUMNS`."""
        return [entry_texts(entry) for entry in self.entries]

    def method_texts(self) -> list[list[str]]:
        """Return the methods as texts, the nearest to the optimum first in each recoding."""
        measured: dict[tuple[str, str], list[Standing]] = {}
        for one in self.standings:
            if one.distance is not None:
                measured.setdefault((one.entry.recoding, one.method), []).append(one)
        recodings = list(dict.fromkeys(recoding for recoding, _ in measured))

        def distances(runs: list[Standing]) -> list[float]:
            return [run.distance or 0.0 for run in runs]

        ranked = sorted(
            measured.items(),
            key=lambda item: (recodings.index(item[0][0]), statistics.fmean(distances(item[1]))),
        )
        figures = (statistics.fmean, statistics.median, max)
        return [
            [
                recoding,
                method,
                str(len(runs)),
                str(sum(one <= OPTIMALITY_RELATIVE for one in distances(runs))),
                *(f"{100 * figure(distances(runs)):.2f} %" for figure in figures),
                f"{sum(run.seconds for run in runs):.2f}",
            ]
            for (recoding, method), runs in ranked
        ]

    def to_markdown(self, source: str | None = None) -> str:
        """Return both tables in Markdown; `source` says what measured them, else this version."""
        source = source or f"AnonyMIP {__version__}: `anonymip leaderboard`."
        parts = ["# Leaderboard\n", f"{source}\n"]
        if self.standings:
            parts += [f"{_OF_METHODS}\n", markdown_table(METHOD_COLUMNS, self.method_texts())]
        parts += [f"{_OF_ENTRIES}\n", markdown_table(ENTRY_COLUMNS, self.entry_texts())]
        return "\n".join(parts)


def entry_texts(entry: LibraryEntry) -> list[str]:
    """Return an entry as texts, in the order of `ENTRY_COLUMNS`."""

    def figure(value: float | None, by: str | None, text: Callable[[float], str]) -> str:
        if value is None:
            return "unknown"
        return text(value) + ("*" if by == PROTOTYPE else "")

    gap = "unknown" if entry.gap is None else f"{100 * entry.gap:.2f} %"
    by = dict.fromkeys(name for name in (entry.loss_by, entry.bound_by) if name)
    return [
        entry.name,
        str(entry.records),
        str(entry.k),
        entry.recoding,
        entry.objective,
        figure(entry.loss, entry.loss_by, lambda loss: f"{loss:.7g}"),
        figure(entry.bound, entry.bound_by, lambda bound: bound_text(bound, 7)),
        "proven" if entry.is_proven else gap,
        "; ".join(by),
    ]


def chosen_entries(names: Sequence[str]) -> list[LibraryEntry]:
    """Return the entries that are named, or those whose optimum is proven if none is."""
    if names:
        return [find_entry(name) for name in dict.fromkeys(names)]
    return [entry for entry in library().values() if entry.is_proven]


def measure(
    entries: Sequence[LibraryEntry],
    methods: Sequence[str] = (),
    *,
    exact: bool = False,
    progress: Callable[[Progress], None] | None = None,
    told: Callable[[str], None] = lambda _: None,
    **settings: Any,
) -> Leaderboard:
    """Run methods on entries of the library; Ctrl-C ends it with what is done so far.

    `methods`: names; none means all heuristics of each entry's recoding. `exact`: whether to run
    the exact method of the recoding too. `told`: called with the name of each entry before its
    methods are run, and with what stopped them. `progress, **settings`: see :func:`anonymip.solve`;
    an effort or a time limit holds for each run.
    """
    specs = [find_method(name) for name in methods]
    asked = {
        entry.name: [
            spec.name for spec in specs if spec.solves(entry.recoding) and spec.solves_for(entry.k)
        ]
        for entry in entries
    }
    for name in methods:
        if not any(name in fitting for fitting in asked.values()):
            raise InputError(
                f"the method {name} solves none of these instances",
                remedy="Name instances of its recoding",
            )
    known = list(entries)
    standings: list[Standing] = []
    found: dict[str, Solution] = {}
    complete = True
    for place, entry in enumerate(entries):
        fitting = asked[entry.name]
        if not complete or (methods and not fitting):
            continue
        told(entry.name)
        try:
            run = compare(
                problem_of(entry),
                [entry.k],
                fitting,
                instance=PREFIX + entry.name,
                exact=exact,
                progress=progress,
                **settings,
            )
        except (NoSolution, UnsupportedObjective) as nothing:
            if methods and isinstance(nothing, UnsupportedObjective):
                raise
            told(f"{entry.name}: {nothing.message}")
            continue
        complete = run.complete
        known[place] = best = _improved(entry, run, found)
        standings += [
            Standing(best, row.solution.method, row.solution.objective, row.solution.seconds)
            for row in run.rows
        ]
        standings += [Standing(best, name, None, 0.0) for _, name, _ in run.failures]
    return Leaderboard(tuple(known), tuple(standings), complete, found)


def _improved(entry: LibraryEntry, run: Comparison, found: dict[str, Solution]) -> LibraryEntry:
    """Return the entry with the best of a comparison; a release that is better goes to `found`."""
    best = entry
    for row in run.rows:
        solution = row.solution
        before, best = best, better(best, solution.objective, found_by(solution.method))
        if best is not before:
            found[entry.name] = solution
        if solution.bound is not None:
            best = closer(best, solution.bound.value, found_by(solution.bound.method))
    return best


def found_by(method: str) -> str:
    """Return how a figure names the method that found it."""
    return f"{method}{FOUND_BY}{__version__}"


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
