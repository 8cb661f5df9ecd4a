"""The specification of an experiment: tables, values of k, methods, and rules of releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from anonymip.effort import check_effort
from anonymip.errors import InputError, within
from anonymip.experiments.running.sources import Samples, TableSource
from anonymip.instances import Microdata
from anonymip.instances.schema import check_keys, keys_of, read_toml
from anonymip.methods import find_method
from anonymip.objectives import MembersObjective, Objective, load_objective
from anonymip.problem import Problem
from anonymip.recodings import Apart, Cap, Diversity, Limit
from anonymip.recodings.registry import make_recoding
from anonymip.solvers import SolverOptions, refuse_unknown_solver


@dataclass(frozen=True)
class MethodChoice:
    """A method of an experiment, with its options.

    Raises InputError if there is no such method, or it has no such option or recoding.
    """

    method: str  # its name
    options: Mapping[str, object] = field(default_factory=dict)  # its own options
    #: Whose problem it solves; None for the method's own, and for ``auto`` classes.
    recoding: str | None = None
    #: In results, where one method stands with several options; None for its name.
    label: str | None = None
    #: In place of the experiment's.
    effort: str | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        spec = find_method(self.method)
        spec.parse_options(self.options)
        check_effort(self.effort)
        _refuse_limit(self.time_limit)
        any_recoding = spec.role == "selection"
        if self.recoding is not None and not any_recoding and not spec.solves(self.recoding):
            raise InputError(
                f"method {self.method} does not solve the recoding {self.recoding!r}",
                remedy=f"It solves {', '.join((spec.recoding, *spec.also))}",
            )

    @property
    def title(self) -> str:
        """Its name in results."""
        return self.method if self.label is None else self.label

    @property
    def solved_recoding(self) -> str:
        """Name of the recoding whose problem it solves."""
        if self.recoding is not None:
            return self.recoding
        spec = find_method(self.method)
        return "classes" if spec.role == "selection" else spec.recoding


@dataclass(frozen=True)
class Experiment:
    """Methods on tables, for several k; everything that its losses depend on.

    Raises InputError if something is missing, contradicts another or cannot be used.
    """

    name: str  # in results
    tables: tuple[TableSource, ...]  # what the methods run on
    k: tuple[int, ...]  # values of k
    methods: tuple[MethodChoice, ...]  # what runs; their recodings may differ
    #: Options by recoding: parameters of its class, such as ``suppression``; of ``pattern`` and
    #: ``pattern-levels`` also the keys of the section ``[mask]`` of a schema.
    recodings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    objective: str = "gcp"  # what is lost: a name, or ``FILE.py:NAME``
    #: Rules of all releases, as :class:`Problem` takes them.
    diversity: Diversity | None = None
    limits: tuple[Limit, ...] = ()
    #: As :func:`anonymip.solve` takes them; effort and time limit hold for each run.
    effort: str | None = None
    time_limit: float | None = None
    gap: float = 0.0
    solver: str = "highs"
    threads: int = 1
    #: Every run is done for so many seeds, from `seed` on.
    seed: int = 0
    repetitions: int = 1
    #: Whether to compute a lower bound for each problem, as a run of its own before its methods.
    bound: bool = True
    #: Where relative paths start from. No part of what an experiment is.
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        for name, what in (("tables", "table"), ("k", "value of k"), ("methods", "method")):
            given = tuple(getattr(self, name))
            object.__setattr__(self, name, given)
            if not given:
                raise InputError(
                    f"the experiment has no {what}", remedy=f"Give at least one {what}"
                )
            if any(one in given[:place] for place, one in enumerate(given)):
                raise InputError(f"a {what} is given twice", remedy="Give it once")
        for k in self.k:
            if isinstance(k, bool) or not isinstance(k, int) or k < 2:
                raise InputError(f"k is {k!r}", remedy="Give whole numbers of at least 2")
        for name, least in (("seed", 0), ("repetitions", 1)):
            if getattr(self, name) < least:
                raise InputError(
                    f"{name} is {getattr(self, name)}", remedy=f"Give at least {least}"
                )
        self._check_methods()
        check_effort(self.effort)
        _refuse_limit(self.time_limit)
        SolverOptions(relative_gap=self.gap, threads=self.threads, seed=self.seed)
        refuse_unknown_solver(self.solver)

    def _check_methods(self) -> None:
        rows = [(one.title, one.solved_recoding) for one in self.methods]
        for place, (title, recoding) in enumerate(rows):
            if (title, recoding) in rows[:place]:
                raise InputError(
                    f"two methods of the recoding {recoding} are called {title!r}",
                    remedy="Give each a label of its own",
                )
        solved = {recoding for _, recoding in rows}
        for recoding in self.recodings:
            if recoding not in solved:
                raise InputError(
                    f"options are given for the recoding {recoding!r}, which no method solves",
                    remedy=f"Solved are {', '.join(sorted(solved))}",
                )
        for recoding in solved:
            make_recoding(recoding, self.recodings.get(recoding, {}), {})

    @classmethod
    def from_toml(cls, path: str | Path) -> Experiment:
        """Return the experiment of a file; relative paths in it start from its folder.

        Raises InputError if the file cannot be read, or holds what no experiment has.
        """
        file = Path(path)
        return cls.from_dict(read_toml(file, "experiment"), file.parent, file)

    @classmethod
    def from_dict(
        cls, document: Mapping[str, Any], folder: Path = Path(), file: Path | str = "experiment"
    ) -> Experiment:
        """Return the experiment that :meth:`to_dict` or a TOML file gives.

        `document`: its keys. `folder`: where relative paths start from. Raises InputError if it
        holds what no experiment has.
        """
        check_document(file, document)
        given = dict(document)
        limits = given.pop("limits", {})
        with within(str(file)):
            given["tables"] = tuple(_table(one) for one in given["tables"])
            given["methods"] = tuple(MethodChoice(**one) for one in given["methods"])
            k = given["k"]
            given["k"] = tuple(k) if isinstance(k, list) else (k,)
            if "diversity" in given:
                given["diversity"] = Diversity(**given["diversity"])
            given["limits"] = (
                *(Cap(name, most) for name, most in limits.get("cap", {}).items()),
                *(Apart(*one) for one in limits.get("apart", [])),
            )
            return cls(**given, folder=folder)

    def to_dict(self) -> dict[str, Any]:
        """Return it with the keys of its file, without those that have their default."""
        document = _set_fields(self, "limits", "folder")
        if self.limits:
            caps = {limit.attribute: limit.most for limit in self.limits if isinstance(limit, Cap)}
            apart = [
                [limit.attribute, limit.one, limit.other]
                for limit in self.limits
                if isinstance(limit, Apart)
            ]
            document["limits"] = {"cap": caps, "apart": apart}
        return document

    def find_objective(self) -> Objective | MembersObjective:
        """Return the objective; a file is looked for in `folder`. Raises InputError without one."""
        file = self.objective_file
        if file is None:
            return load_objective(self.objective)
        return load_objective(f"{file}:{self.objective.rpartition(':')[2]}")

    @property
    def objective_file(self) -> Path | None:
        """The file of the objective; None if that is named."""
        path, colon, _ = self.objective.rpartition(":")
        return self.folder / path if colon and path.endswith(".py") else None

    def problem(
        self, data: Microdata, k: int, recoding: str, mask: Mapping[str, Any] | None = None
    ) -> Problem:
        """Return a problem of the experiment.

        `k, recoding`: one of its values of k, and the name of one of its recodings. `mask`: the
        section ``[mask]`` of the table's schema, which the options of the recoding replace key by
        key. Raises InputError if they do not fit the table.
        """
        made, priced = make_recoding(recoding, self.recodings.get(recoding, {}), mask or {})
        objective = self.find_objective()
        if priced is not None and objective.name in ("gcp", "suppressions"):
            objective = priced
        return Problem(data, k, made, objective, self.diversity, self.limits)


def _table(given: Mapping[str, Any]) -> TableSource:
    """Return a table from its keys; a single text is a list of one."""
    values = dict(given)
    lists = ("quasi_identifiers", "sensitive", "keep", "drop", "attributes", "missing_values")
    for name in lists:
        if name in values and not isinstance(values[name], int):
            listed = values[name]
            values[name] = (listed,) if isinstance(listed, str) else tuple(listed)
    if "samples" in values:
        values["samples"] = Samples(**values["samples"])
    return TableSource(**values)


def _set_fields(given: Any, *but: str) -> dict[str, Any]:
    """Return the fields that are not what they are by default, as TOML and JSON write them."""
    found: dict[str, Any] = {}
    for one in fields(given):
        value = getattr(given, one.name)
        default = one.default_factory() if callable(one.default_factory) else one.default
        if one.name not in but and value != default:
            found[one.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return _set_fields(value) if hasattr(value, "__dataclass_fields__") else value


def _refuse_limit(seconds: float | None) -> None:
    if seconds is not None and not seconds > 0:
        raise InputError(
            f"time_limit is {seconds!r} seconds", remedy="Give a positive number of seconds"
        )


_EXPERIMENT_KEYS = keys_of(
    a_text="name objective effort solver",
    a_number="time_limit gap",
    a_whole_number="threads seed repetitions",
    true_or_false="bound",
    a_table="recodings diversity limits",
    a_list_of_tables="tables methods",
    a_whole_number_or_a_list="k",
)
_TABLE_KEYS = keys_of(
    a_text="instance schema missing unit name separator encoding decimal",
    a_whole_number_or_a_text="sheet",
    a_list="quasi_identifiers sensitive keep drop missing_values",
    a_whole_number="rows",
    a_whole_number_or_a_list="attributes",
    a_table="samples",
)
_SAMPLES_KEYS = keys_of(a_whole_number="count size seed")
_METHOD_KEYS = keys_of(
    a_text="method recoding label effort", a_number="time_limit", a_table="options"
)
_DIVERSITY_KEYS = keys_of(a_number="l t", a_whole_number="distinct", true_or_false="ordered")
_LIMITS_KEYS = keys_of(a_table="cap", a_list="apart")


def check_document(file: Path | str, document: Mapping[str, Any]) -> None:
    """Refuse a specification with keys that are unknown or missing, or of a wrong type."""
    _check(file, "", document, _EXPERIMENT_KEYS, "name", "tables", "k", "methods")
    for place, table in _tables(file, "tables", document["tables"]):
        _check(file, place, table, _TABLE_KEYS, "instance")
        samples = table.get("samples", {"count": 0, "size": 0})
        _check(file, f"{place}samples.", samples, _SAMPLES_KEYS, "count", "size")
    for place, method in _tables(file, "methods", document["methods"]):
        _check(file, place, method, _METHOD_KEYS, "method")
    _tables(file, "recodings", list(document.get("recodings", {}).values()))
    check_keys(file, "diversity.", document.get("diversity", {}), _DIVERSITY_KEYS)
    limits = document.get("limits", {})
    check_keys(file, "limits.", limits, _LIMITS_KEYS)
    for one in limits.get("apart", []):
        if not isinstance(one, list) or len(one) != 3:
            raise InputError(
                f"{file}: limits.apart is not a list of attributes with two values each",
                remedy='Write apart = [["job", "clerk", "farmer"]]',
            )


def _tables(file: Path | str, key: str, given: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return what leads to each table of a list, counted from 1, and the table."""
    for number, one in enumerate(given, start=1):
        if not isinstance(one, dict):
            raise InputError(f"{file}: {key}[{number}] is not a table", remedy="Give a table")
    return [(f"{key}[{number}].", one) for number, one in enumerate(given, start=1)]


def _check(
    file: Path | str, where: str, given: Mapping[str, Any], keys: Mapping[str, str], *needed: str
) -> None:
    check_keys(file, where, given, keys)
    for key in needed:
        if key not in given:
            raise InputError(f"{file}: {where}{key} is missing", remedy=f"Add {key}")
