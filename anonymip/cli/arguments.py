"""The arguments that say what is asked of a table, and how it is to be solved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anonymip.cli import completion
from anonymip.cli.console import say_run
from anonymip.cli.rules import Rules
from anonymip.cli.stars import StarRules
from anonymip.cli.tables import TableOptions, library_entry
from anonymip.errors import InputError
from anonymip.runtime.budget import Budget, MachineClock, Progress

if TYPE_CHECKING:
    from anonymip.objectives import MembersObjective, Objective
    from anonymip.problem import Problem
    from anonymip.recodings import Recoding

Instance = Annotated[
    str,
    typer.Argument(
        metavar="INSTANCE",
        help="A named instance, or a CSV or Parquet file.",
        autocompletion=completion.instance,
    ),
]
K = Annotated[
    int | None,
    typer.Option("-k", help="Records that must look alike; default: of library:NAME the entry's."),
]
MethodName = Annotated[
    str,
    typer.Option("--method", help="See 'anonymip methods'.", autocompletion=completion.method),
]
MethodOptions = Annotated[
    list[str] | None, typer.Option("--option", help="METHOD.NAME=VALUE, an option of one method.")
]
JsonTarget = Annotated[
    str | None, typer.Option("--json", help="Write the results as JSON; - for standard output.")
]
RunsReport = Annotated[
    Path | None, typer.Option("--report", help="Write all about the runs as an HTML page.")
]
ShowValues = Annotated[
    bool, typer.Option("--show-values", help="Show offending values of the table in messages.")
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="File that a long run of split-carry can go on from; as private as the table.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint of a run that ended early.")
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

    recoding: Annotated[
        str | None,
        typer.Option(
            "--recoding",
            help="Which releases are allowed; default: the method's, else classes.",
            autocompletion=completion.recoding,
        ),
    ] = None
    suppression: Annotated[
        bool, typer.Option("--suppression", help="Allow suppressing whole records.")
    ] = False

    def choose(
        self, *methods: str, stars: StarRules | None = None, default: str | None = None
    ) -> Recoding:
        """Return the recoding that is named; else that of rules or methods, else the default.

        Parameters
        ----------
        *methods
            That are to solve it.
        stars
            Rules of stars.
        default
            Of an entry of the library, which stands before that of methods that solve several;
            None for classes.

        Raises
        ------
        InputError
            If there is none of that name, the methods solve several, or rules of stars do not
            fit.
        """
        from anonymip.methods import find_method

        stars = StarRules() if stars is None else stars
        name = stars.recoding_name(self.recoding, methods)
        if name is None:
            specs = [find_method(method) for method in methods]
            specs = [spec for spec in specs if spec.role != "selection"]
            brought = dict.fromkeys(spec.recoding for spec in specs)
            if default is not None and all(spec.solves(default) for spec in specs):
                brought = {default: None}
            if len(brought) > 1:
                raise InputError(
                    f"the methods solve different recodings: {', '.join(brought)}",
                    remedy="Name methods of one recoding",
                )
            name = next(iter(brought), "classes")
        return stars.recoding(name, self.suppression)


@dataclass(frozen=True)
class ProblemOptions:
    """The options that say what a release must keep to, and what it loses."""

    rules: Rules
    stars: StarRules
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            autocompletion=completion.objective,
            help="What is lost: gcp, set-gcp, liang-gcp, weighted-loss, weighted-loss-binary, or "
            "FILE.py:NAME (runs the file), or one of an installed package; default: gcp, of "
            "library:NAME the entry's.",
        ),
    ] = None

    def objective_of(self, instance: str) -> str:
        """Return the name of the objective: what is given, else that of an entry, else gcp."""
        if self.objective is not None:
            return self.objective
        entry = library_entry(instance)
        return "gcp" if entry is None else entry.objective


@dataclass(frozen=True)
class SolverOptions:
    """The options that say how long and with what to solve, as :func:`anonymip.solve` has them."""

    effort: Annotated[
        str | None,
        typer.Option(
            "--effort",
            autocompletion=completion.effort,
            help="How much work, whatever the clock: quick, normal or thorough; default: normal, "
            "and with a time limit thorough.",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            help="Seconds for reading, solving and writing; the best found so far is kept.",
        ),
    ] = None
    gap: Annotated[float, typer.Option("--gap", help="Relative gap to stop at.")] = 0.0
    solver: Annotated[
        str,
        typer.Option("--solver", help="See 'anonymip solvers'.", autocompletion=completion.solver),
    ] = "highs"
    threads: Annotated[int, typer.Option("--threads", help="Threads of the solver.")] = 1
    seed: Annotated[int, typer.Option("--seed", help="Of random choices and of the solver.")] = 0

    def budget(
        self, clock: MachineClock, progress: Callable[[Progress], None] | None = None
    ) -> Budget:
        """Return what all that the command does may take, from its start.

        Raises
        ------
        InputError
            If the time limit is not positive.
        """
        return Budget.of(self.time_limit, progress, since=clock.began)


def k_of(instance: str, k: int | None) -> int:
    """Return the k that is given, else that of an entry of the library.

    Raises
    ------
    InputError
        If there is neither.
    """
    if k is not None:
        return k
    entry = library_entry(instance)
    if entry is None:
        raise InputError("k is not given", remedy="Add -k, such as -k 5")
    return entry.k


def make_problem(
    instance: str,
    k: int | None,
    table: TableOptions,
    allowed: RecodingOptions,
    asked: ProblemOptions,
    *methods: str,
) -> Problem:
    """Return the problem that the arguments mean.

    An entry of the library brings its k, recoding and objective; what is given stands before it.

    Raises
    ------
    InputError
        If they contradict each other or the table.
    """
    from anonymip.problem import Problem

    stars = asked.stars.beside(table.mask_section(instance))
    entry = library_entry(instance)
    default = None if entry is None else entry.recoding
    recoding = allowed.choose(*methods, stars=stars, default=default)
    rules = asked.rules
    return Problem(
        table.load(instance),
        k_of(instance, k),
        recoding,
        stars.objective(find_objective(asked.objective_of(instance)), recoding.name),
        rules.diversity(),
        rules.limits(),
    )


def limited_by_result(
    instance: str,
    table: TableOptions,
    allowed: RecodingOptions,
    asked: ProblemOptions,
    method: str,
) -> tuple[RecodingOptions, ProblemOptions]:
    """Return the options of a problem whose release is held to a limit of suppression.

    The search of full domains takes the limit itself. Elsewhere it allows suppression, and what is
    found is held to it.
    """
    stars = asked.stars
    if stars.most_suppressed is None:
        return allowed, asked
    without = replace(stars, most_suppressed=None)
    entry = library_entry(instance)
    default = None if entry is None else entry.recoding
    section = without.beside(table.mask_section(instance))
    if allowed.choose(method, stars=section, default=default).name == "full-domain":
        return allowed, asked
    suppression = allowed.suppression or bool(stars.most())
    return replace(allowed, suppression=suppression), replace(asked, stars=without)


def find_objective(name: str) -> Objective | MembersObjective:
    """Return the objective of a name or file, and say so if a file is run for it."""
    from anonymip.objectives import GCP, load_objective

    file = Path(name.rpartition(":")[0])
    if file.suffix == ".py" and os.path.isfile(file):
        say_run(file)
    return GCP() if name == "gcp" else load_objective(name)


def suppressed_as(recoding: Recoding, published: bool) -> str:
    """Return what becomes of suppressed records, as :func:`anonymip.publish` takes it.

    Raises
    ------
    InputError
        If they are to be published, and the recoding suppresses none.
    """
    if published and not getattr(recoding, "suppression", False):
        raise InputError(
            "--publish-suppressed is given, and no records may be suppressed",
            remedy="Add --suppression, or leave it out",
        )
    return "starred" if published else "left-out"


def parse_options(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """Return options by method from texts ``METHOD.NAME=VALUE``.

    Raises
    ------
    InputError
        If a text has another form.
    """
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
    """Return the options of the one method that runs.

    Raises
    ------
    InputError
        If options name another method.
    """
    for name in options:
        if name != method:
            raise InputError(
                f"options name method {name!r}, but {method} runs",
                remedy=f"Choose --method {name}, or leave the option out",
            )
    return options.get(method, {})


def parse_ks(text: str) -> list[int]:
    """Return the values of k in ``5``, ``2-6`` or ``2,3,10-12``.

    Raises
    ------
    InputError
        If the text has another form.
    """
    ks: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise InputError(f"k is {text!r}", remedy="Give numbers, such as 5 or 2-6 or 2,5,10")
        ks.extend(range(int(low), int(high or low) + 1))
    if not ks:
        raise InputError(f"k is {text!r}, an empty range", remedy="Give the smaller number first")
    return ks
