"""The arguments that say what is asked of a table, and how it is to be solved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from anonymip.cli import completion
from anonymip.cli.console import say_run
from anonymip.cli.options import METHOD, PROMISE, an_option
from anonymip.cli.rules import Rules, StarRules
from anonymip.cli.tables import TableOptions, called, library_entry
from anonymip.errors import InputError
from anonymip.runtime.budget import Budget, MachineClock
from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.objectives import MembersObjective, Objective
    from anonymip.problem import Problem
    from anonymip.recodings import Recoding
    from anonymip.solution import Solution


#: Options whose texts name columns, methods and forms: no values of a table, no secrets.
_TOLD = frozenset(
    (
        *("quasi_identifier", "sensitive", "keep", "drop", "recoding", "method", "missing"),
        *("separator", "encoding", "decimal", "caps", "never", "together", "at_most_one", "costs"),
        *("most_suppressed", "objective", "effort", "solver", "option", "layout", "unit"),
        *("pseudonym", "weights", "sheet"),
        *("engine", "memory_per_worker"),
    )
)


def told(context: typer.Context) -> str:
    """Return the command in hand for readers that see neither the table nor where it lies.

    Of files and addresses it holds the last part, and ``…`` for what may be a value of the table.
    """
    words = ["anonymip", str(context.info_name)]
    for parameter in context.command.params:
        name, given = str(parameter.name), context.params.get(str(parameter.name))
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        option = parameter.opts[0]
        for one in given if isinstance(given, list | tuple) else [given]:
            if name == "instance":
                words.append(quote(called(str(one))))
                continue
            words.append(option)
            if isinstance(one, Path):
                words.append(quote(one.name))
            elif not isinstance(one, bool):
                is_told = name in _TOLD or isinstance(one, int | float)
                words.append(quote(str(one)) if is_told else "…")
    return " ".join(words)


Instance = Annotated[
    str,
    typer.Argument(
        metavar="INSTANCE",
        help="A named instance, a CSV, Parquet or Excel file, or the address of a database.",
        autocompletion=completion.instance,
    ),
]
K = Annotated[
    int | None,
    typer.Option("-k", help="Records that must look alike; default: of library:NAME the entry's."),
]
MethodName = Annotated[
    str, typer.Option("--method", help="See 'anonymip methods'.", autocompletion=completion.method)
]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", help="METHOD.NAME=VALUE, an option of one method.", rich_help_panel=METHOD
    ),
]
JsonTarget = Annotated[
    str | None, typer.Option("--json", help="Write the results as JSON; - for standard output.")
]


def _page(path: Path | None) -> Path | None:
    """Refuse a report whose ending promises something else than a page."""
    if path is not None and path.suffix.lower() not in ("", ".html", ".htm"):
        raise InputError(
            f"the report {path} would be an HTML page", remedy="Give a name that ends in .html"
        )
    return path


Report = Annotated[
    Path | None, typer.Option(help="Write a report as an HTML page.", callback=_page)
]
RunsReport = Annotated[
    Path | None,
    typer.Option("--report", help="Write all about the runs as an HTML page.", callback=_page),
]
ShowValues = Annotated[
    bool, typer.Option("--show-values", help="Show offending values of the table in messages.")
]


_clock: ContextVar[MachineClock | None] = ContextVar("command_clock", default=None)


@contextmanager
def timed_by(clock: MachineClock) -> Iterator[None]:
    """Have the time limits of commands within the block count from the start of a clock."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


def command_clock() -> MachineClock:
    """Return the clock of the command that runs; a new one where a command is called otherwise."""
    return _clock.get() or MachineClock()


@dataclass(frozen=True)
class RecodingOptions:
    """The options that say which releases are allowed."""

    panel: ClassVar[str] = PROMISE

    recoding: str | None = an_option(
        None,
        "Which releases are allowed; default: the method's, else classes.",
        autocompletion=completion.recoding,
    )
    suppression: bool = an_option(False, "Allow suppressing whole records.")

    def choose(
        self, *methods: str, stars: StarRules | None = None, default: str | None = None
    ) -> Recoding:
        """Return the recoding that is named; else that of rules or methods, else the default.

        `*methods`: that are to solve it. `default`: of an entry of the library, which stands before
        that of methods that solve several; None for classes.
        """
        stars = StarRules() if stars is None else stars
        name = stars.recoding_name(self.recoding, methods)
        if name is None:
            brought = self.brought(methods, default)
            if len(brought) > 1:
                raise InputError(
                    f"the methods solve different recodings: {', '.join(brought)}",
                    remedy="Name methods of one recoding",
                )
            name = next(iter(brought), "classes")
        return stars.recoding(name, self.suppression)

    def brought(self, methods: Sequence[str], default: str | None) -> list[str]:
        """Return the recoding that is named, or else those that methods or a default bring."""
        from anonymip.methods import find_method

        if self.recoding is not None:
            return [self.recoding]
        specs = [spec for spec in map(find_method, methods) if spec.role != "selection"]
        if default is not None and all(spec.solves(default) for spec in specs):
            return [default]
        return list(dict.fromkeys(spec.recoding for spec in specs))


@dataclass(frozen=True)
class ProblemOptions:
    """The options that say what a release must keep to, and what it loses."""

    panel: ClassVar[str] = PROMISE

    rules: Rules
    stars: StarRules
    objective: str | None = an_option(
        None,
        f"What is lost: {', '.join(completion.built_in('objectives'))}, or FILE.py:NAME (runs the "
        "file), or one of an installed package; default: gcp, of library:NAME the entry's.",
        autocompletion=completion.objective,
    )

    def objective_of(self, instance: str) -> str:
        """Return the name of the objective: what is given, else that of an entry, else gcp."""
        if self.objective is not None:
            return self.objective
        entry = library_entry(instance)
        return "gcp" if entry is None else entry.objective


@dataclass(frozen=True)
class SolverOptions:
    """The options that say how long and with what to solve, as :func:`anonymip.solve` has them."""

    panel: ClassVar[str] = METHOD

    effort: str | None = an_option(
        None,
        "How much work, whatever the clock: quick, normal or thorough; default: normal, and with "
        "a time limit thorough.",
        autocompletion=completion.effort,
    )
    time_limit: float | None = an_option(
        None, "Seconds for reading, solving and writing; the best found so far is kept."
    )
    gap: float = an_option(0.0, "Relative gap to stop at.")
    solver: str = an_option("highs", "See 'anonymip solvers'.", autocompletion=completion.solver)
    threads: int = an_option(1, "Threads of the solver.")
    seed: int = an_option(0, "Of random choices and of the solver.")

    def budget(self, clock: MachineClock) -> Budget:
        """Return what all that the command does may take, from its start."""
        return Budget.of(self.time_limit, since=clock.began)


_LAST_PART = 999_999  # no computation has more parts


@dataclass(frozen=True)
class Keeping:
    """The checkpoint of a command."""

    path: Path | None  # its file; None for none
    named: bool  # whether the user named it; else it lies beside the output in case of a kill
    resume: bool  # whether to go on from it
    before: int | None  # when it was last written before the command; None if it was not there

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that may be written: the checkpoint, and the longest name of a part of it."""
        if self.path is None:
            return ()
        from anonymip.exact.split_carry.checkpoint import part_path

        return self.path, part_path(self.path, _LAST_PART)

    @property
    def settings(self) -> dict[str, Any]:
        """What :func:`anonymip.solve` is given."""
        return {"checkpoint": self.path, "resume": self.resume}

    def finish(self, solution: Solution) -> str | None:
        """Remove the file once all is written; keep it if somebody may want to go on from it.

        Of a run that the user interrupted the file stays, of one whose time ended only if the user
        named it: the same command can then be given again. Returns: what to report to the user.
        """
        from anonymip.methods import find_method

        used = "checkpoint" in find_method(solution.method).takes
        written = _written(self.path)
        # A method that auto picked may keep none; what lies there is then not ours to remove.
        if self.path is None or written is None or not (used or written != self.before):
            return None
        stopped = solution.status.stopped
        if stopped is Stopped.INTERRUPT or (stopped is Stopped.TIME and self.named):
            named = f" --checkpoint {self.path}" if self.named else ""
            return f"stopped early: the same command with{named} --resume goes on"
        # Imported late: listing the methods loads none of them.
        from anonymip.exact.split_carry.checkpoint import remove_parts

        self.path.unlink()
        remove_parts(self.path)
        return None


def _written(path: Path | None) -> int | None:
    return path.stat().st_mtime_ns if path is not None and os.path.exists(path) else None


@dataclass(frozen=True)
class ChosenMethod:
    """The method that runs, its own options, and where it keeps what it has done."""

    panel: ClassVar[str] = METHOD
    method: MethodName = "auto"
    option: MethodOptions = None
    checkpoint: Path | None = an_option(
        None, "File that a long run of split-carry can go on from; as private as the table."
    )
    resume: bool = an_option(False, "Go on from the checkpoint of a run that ended early.")

    def options(self) -> dict[str, Any]:
        """Return the options of the method; see :func:`options_of`."""
        return options_of(self.method, parse_options(self.option))

    def keeping(self, output: Path | None) -> Keeping:
        """Return the checkpoint of a command, beside its output if the method keeps any."""
        given = self.checkpoint
        if given is not None or output is None:
            return Keeping(given, given is not None, self.resume, _written(given))
        from anonymip.methods import find_method

        keeps = self.resume or "checkpoint" in find_method(self.method).takes
        beside = output.parent / f"{output.name}.checkpoint"
        return Keeping(beside if keeps else None, False, self.resume, _written(beside))


def k_of(instance: str, k: int | None) -> int:
    """Return the k that is given, else that of an entry of the library."""
    if k is not None:
        return k
    entry = library_entry(instance)
    if entry is None:
        raise InputError("k is not given", remedy="Add -k, such as -k 5")
    return entry.k


@dataclass(frozen=True)
class Question:
    """The options that say what is asked of a table: its columns, and what a release must be."""

    table: TableOptions
    allowed: RecodingOptions
    asked: ProblemOptions

    def sources(self, instance: str) -> list[Path]:
        """Return the files that the arguments may be read from."""
        return self.table.sources(instance, self.asked.objective)

    def problem(self, instance: str, k: int | None, *methods: str) -> Problem:
        """Return the problem that the arguments mean; an entry of the library says the rest."""
        from anonymip.problem import Problem

        asked = self.beside_table(instance, k, *methods)
        problem = Problem(self.table.load(instance), **asked)
        self.table.say_schema(instance)
        return problem

    def beside_table(self, instance: str, k: int | None, *methods: str) -> dict[str, Any]:
        """Return what a problem takes beside its table, by name."""
        rules, section = self.asked.rules, self.table.mask_section(instance)
        stars = replace(self.asked.stars, section=section)
        entry = library_entry(instance)
        default = None if entry is None else entry.recoding
        recoding = self.allowed.choose(*methods, stars=stars, default=default)
        loss = stars.objective(find_objective(self.asked.objective_of(instance)), recoding.name)
        return {
            "k": k_of(instance, k),
            "recoding": recoding,
            "objective": loss,
            "diversity": rules.diversity(),
            "limits": rules.limits(),
        }


def find_objective(name: str) -> Objective | MembersObjective:
    """Return the objective of a name or file, and say so if a file is run for it."""
    from anonymip.objectives import GCP, load_objective

    file = Path(name.rpartition(":")[0])
    if file.suffix == ".py" and os.path.isfile(file):
        say_run(file)
    return GCP() if name == "gcp" else load_objective(name)


def parse_options(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """Return options by method from texts ``METHOD.NAME=VALUE``."""
    options: dict[str, dict[str, Any]] = {}
    for text in given or []:
        target, equals, value = text.partition("=")
        method, dot, name = target.partition(".")
        if not (equals and dot and method and name):
            raise InputError(
                f"option {text!r} is not METHOD.NAME=VALUE",
                remedy="For example --option greedy-search.order=cardinality",
            )
        options.setdefault(method, {})[name] = value
    return options


def options_of(method: str, options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the options of the one method that runs."""
    for name in options:
        if name != method:
            raise InputError(
                f"options name method {name!r}, but {method} runs",
                remedy=f"Choose --method {name}, or leave the option out",
            )
    return options.get(method, {})


def parse_ks(text: str) -> list[int]:
    """Return the values of k in ``5``, ``2-6`` or ``2,3,10-12``."""
    ks: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise InputError(f"k is {text!r}", remedy="Give numbers, such as 5 or 2-6 or 2,5,10")
        ks.extend(range(int(low), int(high or low) + 1))
    if not ks:
        raise InputError(f"k is {text!r}, an empty range", remedy="Give the smaller number first")
    return ks
