"""Several methods on one table, measured against the optimum or the best bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import pandas as pd

from anonymip.effort import check_effort
from anonymip.errors import InputError, Interrupted, NoSolution, UnsupportedObjective, gap_text
from anonymip.experiments.records import markdown_table, solution_record
from anonymip.experiments.running.performing import FAILED, NOTHING, REFUSED, attempt, tidy_row
from anonymip.experiments.running.results import frame_of, records_of
from anonymip.methods import METHODS, MethodSpec, find_method, refuse_unfit
from anonymip.methods.best_bound import best_bound_in_time, runs_of_bound
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.compilation import RunInForce, in_force
from anonymip.runtime.kernels import Left, announcing_compilation
from anonymip.runtime.needed_kernels import kernels_left
from anonymip.solution import Bound, Solution, says_nothing
from anonymip.solvers import prepare_solver
from anonymip.solving import solve


@dataclass(frozen=True)
class ComparisonRow:
    """One method on one problem."""

    solution: Solution  # with the best bound that any method of the comparison proved
    #: Loss that it is measured against: the proven optimum, or else the best bound, if known.
    reference: float | None
    against: str  # ``"optimum"``, ``"bound"`` or ``"nothing"``

    @property
    def gap(self) -> float | None:
        """(loss - reference) / |loss|; 0 if they are equal, None if that is undefined."""
        loss = self.solution.objective
        if self.reference is None:
            return None
        if loss == self.reference:
            return 0.0
        return None if loss == 0 else (loss - self.reference) / abs(loss)


@dataclass(frozen=True)
class Comparison:
    """The rows of a comparison, k by k, in the order of the methods asked for.

    Parameters
    ----------
    instance
        Name of the table.
    rows
        One per k and method.
    complete
        Whether all methods were run; not if the user stopped the comparison.
    failures
        k, method and reason of each run that found no solution, or that its method refused.
    """

    instance: str
    rows: tuple[ComparisonRow, ...]
    complete: bool = True
    failures: tuple[tuple[int, str, str], ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a table: loss, gap and what it is to, seconds, class sizes.

        Behind these columns stand those of an experiment's table. Runs without a solution have
        their reason for a status, and nothing else but what was asked.
        """
        rows = []
        for run in self._all_runs():
            if isinstance(run, ComparisonRow):
                tidy = tidy_row(run.solution, self.instance)
                tidy |= {"objective": tidy["loss"], "gap": run.gap, "to": run.against}
                rows.append({name: tidy[name] for name in _FRONT} | tidy)
            else:
                rows.append({"k": run[0], "method": run[1], "status": run[2]})
        return pd.DataFrame(rows)

    def to_runs(self) -> pd.DataFrame:
        """Return the rows as an experiment's table has them, those without a solution as well."""
        return frame_of(self._rows(lambda found: tidy_row(found, self.instance)))

    def to_records(self) -> list[dict[str, Any]]:
        """Return the rows as records for JSON; runs without a solution have their reason."""
        solved = [row.solution for row in self._all_runs() if isinstance(row, ComparisonRow)]
        rows = [tidy_row(found, self.instance) for found in solved]
        tidy = iter(records_of(pd.DataFrame(rows, dtype=object)))
        return self._rows(lambda found: next(tidy) | solution_record(found, self.instance))

    def _rows(self, row_of: Callable[[Solution], dict[str, Any]]) -> list[dict[str, Any]]:
        rows = []
        for run in self._all_runs():
            if isinstance(run, ComparisonRow):
                rows.append(row_of(run.solution))
                continue
            problem, (k, method, reason) = self.rows[0].solution.problem, run
            asked = {"instance": self.instance, "n": problem.n, "m": problem.m}
            asked |= {"recoding": problem.recoding.name, "objective_name": problem.objective.name}
            asked |= {"k": k, "method": method, "label": method, "objective": None, "loss": None}
            rows.append({**asked, "status": NOTHING, "reason": reason})
        return rows

    def to_markdown(self) -> str:
        """Return the rows as a table in Markdown."""
        return markdown_table(COLUMNS, self.texts())

    def texts(self) -> list[list[str]]:
        """Return the rows as texts for people, in the order of :data:`COLUMNS`."""
        return [
            _texts(row)
            if isinstance(row, ComparisonRow)
            else [str(row[0]), row[1], "none", "unknown", "unknown", "nothing", "", "none", row[2]]
            for row in self._all_runs()
        ]

    def bound_texts(self) -> list[str]:
        """Return for each k what its bound stands on, or that none is known."""
        texts: dict[int, str] = {}
        for row in self.rows:
            bound, k = row.solution.bound, row.solution.problem.k
            if bound is None or row.against == "nothing":
                texts.setdefault(k, f"k = {k}: no lower bound is known")
            else:
                texts.setdefault(k, f"k = {k}: bound by {bound.method} (proof: {bound.proof})")
        return list(texts.values())

    def _all_runs(self) -> list[ComparisonRow | tuple[int, str, str]]:
        """Return rows and failures k by k, failures behind the rows of their k."""
        ks = [row.solution.problem.k for row in self.rows] + [k for k, _, _ in self.failures]
        runs: list[ComparisonRow | tuple[int, str, str]] = []
        for k in dict.fromkeys(ks):
            runs += [row for row in self.rows if row.solution.problem.k == k]
            runs += [failure for failure in self.failures if failure[0] == k]
        return runs


#: The columns of a comparison's table that stand before those of an experiment's.
_FRONT = (
    *("k", "method", "objective", "gcp", "bound", "gap", "to", "seconds"),
    *("classes", "smallest", "largest", "suppressed", "status"),
)
#: Columns of a comparison for people.
COLUMNS = ("k", "method", "loss", "bound", "gap", "to", "seconds", "class sizes", "status")


def compare(
    problem: Problem,
    ks: int | Iterable[int] | None = None,
    methods: str | Iterable[str] = (),
    *,
    instance: str = "table",
    exact: bool = False,
    options: Mapping[str, Mapping[str, object]] | None = None,
    progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Comparison:
    """Run methods on one table for several k; Ctrl-C ends it with the rows so far.

    Parameters
    ----------
    problem
        Table, recoding, objective, diversity and limits.
    ks
        Values of k, or one; None means the problem's own.
    methods
        Names of methods, or one; none means all heuristics of the recoding that accept the
        objective.
    instance
        Name of the table in the result.
    exact
        Whether to run the exact method of the recoding as well.
    options
        Options by method name.
    progress, **settings
        See :func:`anonymip.solve`; an effort or a time limit holds for each run.

    Raises
    ------
    InputError
        If a method is unknown or of another recoding, if all refuse the problem, or options name a
        method that is not run.
    UnsupportedObjective
        If no method accepts the objective.
    NoSolution
        If no method found a solution for any k.

    Examples
    --------
    >>> import anonymip
    >>> problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    >>> table = anonymip.compare(problem, [3], ["mondrian"], exact=True)
    >>> [row.against for row in table.rows]
    ['optimum', 'optimum']
    """
    ks = _values_of_k(problem, ks)
    names = compared_methods(problem, ks, [methods] if isinstance(methods, str) else methods, exact)
    given = dict(options or {})
    refuse_options_beside(given, names)
    problems = [problem.replace(k=k) for k in ks]
    for name in names:
        spec = find_method(name)
        spec.parse_options(given.get(name, {}))
        if not spec.solves(problem.recoding.name):
            refuse_unfit(spec, problem)
    if exact:
        prepare_solver(settings.get("solver", "highs"))
    # What one method refuses ends its own rows, unless all refuse.
    refusals: list[Exception] = []
    rows: list[ComparisonRow] = []
    failures: list[tuple[int, str, str]] = []
    effort, limit = settings.get("effort"), settings.pop("time_limit", None)
    Budget.of(limit)  # a wrong limit is no refusal of one method
    whole = Budget.of(None, progress)
    runs = _budgets(whole, limit, len(problems) * (len(names) + 1))

    def left() -> Left | None:
        sought = check_effort(effort, limited=limit is not None)
        bounds = (run for asked in problems for run in runs_of_bound(asked, sought))
        return kernels_left({*names, *bounds})

    with whole.catching_interrupts(), announcing_compilation(left, whole.report):
        for asked in problems:
            found: list[Solution] = []
            for name in names:
                if whole.is_interrupted:
                    break
                own: Any = {"options": given.get(name), "bound": False, "budget": next(runs)}
                try:
                    outcome = attempt(partial(solve, asked, name, **own, **settings))
                except Interrupted:
                    break
                if isinstance(outcome, Solution):
                    found.append(outcome)
                elif outcome.status == FAILED:
                    raise outcome.error
                else:
                    failures.append((asked.k, name, outcome.reason))
                    if outcome.status == REFUSED:
                        refusals.append(outcome.error)
            if found:
                run = next(runs)
                with in_force(RunInForce(run)):
                    bound = best_bound_in_time(asked, found, effort=effort, budget=run)
                rows += _measured(found, bound)
    if failures and not rows:
        if len(refusals) == len(failures):
            raise refusals[0]
        raise NoSolution(
            "no method found a solution: "
            + "; ".join(f"k = {k}, {name}: {reason}" for k, name, reason in failures),
            remedy="Loosen a limit, allow suppression, or give it more time",
        )
    complete = len(rows) + len(failures) == len(ks) * len(names)
    return Comparison(instance, tuple(rows), complete, tuple(failures))


def refuse_options_beside(options: Iterable[str], names: Sequence[str]) -> None:
    """Refuse options of methods that are not compared."""
    for name in options:
        if name not in names:
            raise InputError(
                f"options name method {name!r}, which is not compared",
                remedy=f"Compared are {', '.join(names)}",
            )


def _values_of_k(problem: Problem, given: Any) -> list[int]:
    if given is None:
        return [problem.k]
    if isinstance(given, str) or not isinstance(given, Integral | Iterable):
        raise InputError(f"ks is {given!r}", remedy="Give a whole number, or a list of them")
    ks = [int(given)] if isinstance(given, Integral) else list(given)
    if not ks:
        raise InputError("ks holds no value of k", remedy="Give at least one")
    return ks


def _budgets(whole: Budget, limit: float | None, count: int) -> Iterator[Budget]:
    """Yield the budgets of runs one after the other; they report what is left of all together."""
    for later in reversed(range(count)):
        run = whole.renewed(limit)
        if limit is not None and whole.progress is not None:
            run.progress = partial(_report, whole.progress, later * float(limit))
        yield run


def _report(listener: Callable[[Progress], None], beyond: float, message: Progress) -> None:
    left = message.remaining
    listener(message if left is None else replace(message, remaining=left + beyond))


def compared_methods(
    problem: Problem, ks: Sequence[int], methods: Iterable[str], exact: bool
) -> list[str]:
    """Return the names of the methods that a comparison runs, as :func:`compare` takes them.

    Raises UnsupportedObjective if none is named and none accepts the objective.
    """
    own, problem = problem.recoding.name, problem.replace(k=next(iter(ks), problem.k))

    def fits(spec: MethodSpec) -> bool:
        return all(map(spec.solves_for, ks)) and spec.obstacle(problem) is None

    # What solves a recoding beside its own takes long there: it is run where it is named.
    names = list(dict.fromkeys(methods)) or [
        spec.name
        for spec in METHODS.values()
        if spec.role == "heuristic" and spec.recoding == own and spec.solves(own) and fits(spec)
    ]
    if exact:
        provers = [one for one in METHODS.values() if one.role == "exact" and one.solves(own)]
        # If none fits, all are asked, and refuse with their reasons.
        asked = list(filter(fits, provers)) or provers
        # The first is the recoding's own; others are for special cases, or slower.
        names += [spec.name for spec in asked[:1] if spec.name not in names]
    if not names:
        raise UnsupportedObjective(
            f"no heuristic of recoding {own} accepts objective {problem.objective.name!r}",
            remedy="Name methods that do; 'anonymip methods' says what each needs",
        )
    return names


def _measured(found: Sequence[Solution], bound: Bound | None) -> list[ComparisonRow]:
    """Measure all solutions of one problem against the best that is proven about it."""
    bounds = [one for one in (*(solution.bound for solution in found), bound) if one is not None]
    if not bounds:
        return [ComparisonRow(solution, None, "nothing") for solution in found]
    best = max(bounds, key=lambda known: known.value)
    shared = [solution.with_bound(best) for solution in found]
    reference, against = min((s.objective for s in shared if s.is_optimal), default=None), "optimum"
    if reference is None and says_nothing(shared[0].problem, best):
        against = "nothing"
    elif reference is None:
        reference, against = best.value, "bound"
    return [ComparisonRow(solution, reference, against) for solution in shared]


def _texts(row: ComparisonRow) -> list[str]:
    solution, sizes = row.solution, row.solution.sizes
    bound = None if row.reference is None else solution.bound
    return [
        str(solution.problem.k),
        solution.method,
        f"{solution.objective / solution.scale:.5g}",
        "unknown" if bound is None else f"{bound.value / solution.scale:.5g}",
        "unknown" if row.gap is None else gap_text(row.gap, closed=solution.is_optimal),
        row.against,
        f"{solution.seconds:.2f}",
        f"{sizes.min()}-{sizes.max()}" if len(sizes) else "none",
        str(solution.status),
    ]
