"""Solutions: a checked assignment, its recomputed loss, and a bound.

One file, since a bound counts only beside the solution whose gap it closes: what proves a loss
optimal stands below the class.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from anonymip.assignments import SUPPRESSED, Assignment, Classes, Cover, Description
from anonymip.certificates import DualProof
from anonymip.errors import AnonymipError, UnsupportedObjective, gap_text
from anonymip.objectives import GCP
from anonymip.objectives.language.tables import effects_of_cells, least_step
from anonymip.objectives.loss_checks import refuse_changing_loss
from anonymip.problem import Problem
from anonymip.recodings.output_rows import priced_patterns
from anonymip.recodings.rows import equal_rows, published_numbers
from anonymip.runtime.arrays import Ints
from anonymip.runtime.compilation import kept_at_hand
from anonymip.runtime.frozen import Frozen
from anonymip.status import Status, Stopped
from anonymip.tolerances import (
    OPTIMALITY_RELATIVE,
    SEARCH_ROUNDING,
    closes_gap,
    contradicts,
    equals_bound,
)

#: Share of the records above which suppression is what a reader is told first.
MANY_SUPPRESSED = 0.05


@dataclass(frozen=True)
class Bound:
    """A lower bound on the loss of any release that the problem allows.

    Parameters
    ----------
    value
        In units of the objective.
    method
        What computed it.
    proof
        ``"certified"`` (can be re-checked from a certificate), ``"solver"`` (reported by a solver)
        or ``"argument"`` (a theorem and plain arithmetic).
    seconds
        Spent on it.
    duals
        What a certificate proves it by; None where there are none. Not compared.

    Raises
    ------
    AnonymipError
        If the value is infinite or undefined: what is unknown is no bound.
    """

    value: float
    method: str
    proof: str
    seconds: float = 0.0
    duals: DualProof | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not np.isfinite(self.value):
            raise AnonymipError(
                f"the bound of {self.method} is {self.value}",
                remedy="Use None for an unknown bound",
            )

    def rounded(self) -> Bound:
        """Return it with 4 digits, as a release publishes it: all of them tell of the original."""
        return replace(self, value=float(bound_text(self.value)))


@dataclass(frozen=True, eq=False)
class Solution(Frozen):
    """An assignment with its loss and what is proven about it; made by :meth:`of`.

    Parameters
    ----------
    problem
        What was asked.
    assignment
        Checked by the problem's recoding.
    objective
        Loss, recomputed from the assignment.
    bound
        Best proven lower bound, or None.
    status
        Why the method stopped and what it holds.
    method, options
        What found it.
    seconds
        Time spent, without compilation.
    seed
        Of the method's random choices, None if it makes none.
    trace
        Remarks of the method, in order.
    solver
        Name and version of the solver, None if none was used.

    Raises
    ------
    AnonymipError
        If the status says optimal and the gap is not closed: nobody can make such a solution.
    """

    problem: Problem
    assignment: Assignment
    objective: float
    bound: Bound | None
    status: Status
    method: str
    options: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0.0
    seed: int | None = None
    trace: tuple[str, ...] = ()
    solver: str | None = None

    def __post_init__(self) -> None:
        gap = self.gap
        if self.is_optimal and not (gap is not None and 0 <= gap <= OPTIMALITY_RELATIVE):
            known = "no bound that closes its gap" if gap is None else f"a gap of {gap:.3g}"
            raise AnonymipError(
                f"a solution of {self.method} calls itself optimal with {known}",
                remedy="Make solutions with Solution.of, which says what is proven",
            )

    @classmethod
    def of(
        cls,
        problem: Problem,
        assignment: Assignment,
        *,
        method: str,
        bound: Bound | None = None,
        stopped: Stopped = Stopped.HEURISTIC,
        options: Mapping[str, object] | None = None,
        seconds: float = 0.0,
        seed: int | None = None,
        trace: tuple[str, ...] = (),
        solver: str | None = None,
    ) -> Solution:
        """Check an assignment, recompute its loss and return the solution.

        The status says optimal exactly if the bound closes the gap, whatever `stopped` says. Raises
        InvalidAssignment if the assignment breaks a rule of the recoding. Raises AnonymipError if
        the bound exceeds the loss, which disproves the bound.
        """
        problem.recoding.check(problem, assignment)
        description = problem.recoding.describe(problem, assignment)
        losses = problem.compiled.losses_of(description, assignment)
        refuse_changing_loss(problem.compiled, description, assignment, losses)
        bare = cls(
            problem,
            assignment,
            problem.compiled.aggregated(losses),
            None,
            _unproven(stopped, has_bound=False),
            method,
            MappingProxyType(dict(options or {})),
            seconds,
            seed,
            trace,
            solver,
        )
        return kept_at_hand(problem, bare if bound is None else bare.with_bound(bound))

    def with_bound(self, bound: Bound) -> Solution:
        """Return the solution with the better of its bound and `bound`.

        Raises AnonymipError if the bound exceeds the loss, which disproves the bound.
        """
        excess = bound.value - self.objective
        if excess > 0:
            if contradicts(self.objective, bound.value, _slack(self.problem)):
                declared = self.problem.compiled.assumed
                raise AnonymipError(
                    f"bound {bound.value!r} of {bound.method} exceeds the loss {self.objective!r} "
                    f"of {self.method}",
                    remedy=f"What the author of the objective declares is false "
                    f"({', '.join(declared)}): take the declaration back"
                    if declared
                    else "This is an error of the program; please report it",
                )
            # What is too high by so much may be so again: the bound is as good as it is off.
            honest = replace(bound, value=self.objective - excess)
            closed = self._is_closed_by(honest)
            bound = replace(bound, value=self.objective) if closed else honest
        elif -excess <= _slack(self.problem) and self._is_exact():
            bound = replace(bound, value=self.objective)
        best = bound
        if self.bound is not None and self.bound.value >= bound.value:
            best = self.bound
        if self._is_closed_by(best):
            return replace(
                self, bound=best, status=Status(Stopped.OPTIMAL, solution=True, bound=True)
            )
        # What rounding may hide is no part of the bound.
        sure = self.objective - hidden_by_rounding(self.problem, self.objective)
        sure = min(sure, float(np.nextafter(self.objective, -np.inf)))
        best = best if best.value <= sure else replace(best, value=sure)
        return replace(self, bound=best, status=_unproven(self.status.stopped, has_bound=True))

    def _is_exact(self) -> bool:
        """Return whether it loses what the exact table does, than which nothing loses less."""
        problem = self.problem
        return (
            problem.compiled.monotone
            and self.objective == problem.unavoidable
            and loses_nothing(problem, self.description)
        )

    def _is_closed_by(self, bound: Bound) -> bool:
        # Where one costly column cannot be spared, as in patterns, a solver's tolerance would hide
        # what the others lose.
        exact = bound.proof in ("argument", "certified")
        strict = exact or self.problem.recoding.name == "pattern"
        return proves_optimal(
            self.problem,
            self.objective,
            bound.value,
            strict=strict,
            description=lambda: self.description,
        )

    @cached_property
    def description(self) -> Description:
        """What is published for each record."""
        return self.problem.recoding.describe(self.problem, self.assignment)

    @cached_property
    def classes(self) -> Classes | None:
        """The classes of the assignment; None of a cover, whose sets overlap."""
        if isinstance(self.assignment, Cover | Classes):
            return self.assignment if isinstance(self.assignment, Classes) else None
        alike: Classes = self.problem.recoding.classes(  # type: ignore[attr-defined]
            self.problem, self.assignment
        )
        return alike

    @cached_property
    def published_classes(self) -> Classes | None:
        """The records whose published rows look alike; None of a cover.

        Classes of the assignment that publish the same cells are one class to every reader.
        """
        classes = self.classes
        if classes is None or not isinstance(self.assignment, Classes) or not classes.count:
            return classes
        labels, firsts = np.unique(classes.labels, return_index=True)
        firsts = firsts[labels != SUPPRESSED]
        attributes = self.problem.microdata.attributes
        cells = published_numbers(attributes, self.description, firsts)
        alike = equal_rows(cells)
        if alike.count == classes.count:
            return classes
        # The label -1 of suppressed records picks what stands last.
        return Classes(np.append(alike.labels, SUPPRESSED)[classes.labels])

    @property
    def sizes(self) -> Ints:
        """(classes,) records of each published class; of a cover those of each set, if it has any.

        The set of a suppressed record has none.
        """
        if isinstance(self.assignment, Cover):
            return self.assignment.sizes[self.assignment.sizes > 0]
        alike = self.published_classes
        return np.empty(0, np.int64) if alike is None else alike.sizes

    @cached_property
    def suppressed(self) -> int:
        """Number of records that show nothing but stars."""
        return int(self.description.suppressed.all(axis=1).sum())

    @property
    def many_suppressed(self) -> str | None:
        """How many records are suppressed as a whole, in words; None up to one in twenty."""
        count, n = self.assignment.suppressed, self.problem.n
        if count <= MANY_SUPPRESSED * n:
            return None
        are = "is" if count == 1 else "are"
        return f"{count:,} of {n:,} records ({100 * count / n:.1f} %) {are} suppressed"

    @property
    def gap(self) -> float | None:
        """(objective - bound) / |objective|; 0 if they are equal, None without a bound."""
        return relative_gap(self.objective, self.bound)

    @property
    def told_gap(self) -> float | None:
        """The gap of the bound that is published, which can be computed again from a release."""
        return relative_gap(self.objective, None if self.bound is None else self.bound.rounded())

    @property
    def is_optimal(self) -> bool:
        """Whether optimality is proven."""
        return self.status.stopped is Stopped.OPTIMAL

    @cached_property
    def ncp(self) -> float:
        """Unweighted sum of the normalised penalties of all cells, whatever the objective."""
        if self.problem.is_ncp:
            return self.objective
        return GCP().compile(self.problem).total(self.description)

    @property
    def gcp(self) -> float:
        """Mean normalised penalty of a cell, 0 to 1."""
        return self.ncp / (self.problem.n * self.problem.m)

    @property
    def scale(self) -> float:
        """What the objective is divided by in texts for people: cells for GCP, else 1."""
        return float(self.problem.n * self.problem.m) if self.problem.is_gcp else 1.0

    def sentence(self) -> str:
        """Return loss, bound and gap in one sentence, and of which releases they are."""
        loss = f"loss {self.objective / self.scale:.4g}"
        declared = " and ".join(self.problem.compiled.assumed)
        none = f"no {self.problem.release_name} can be below"
        if self.is_optimal:
            if declared:
                return f"{loss}; optimal, if {declared} as its author declares: {none} it"
            return f"{loss}; proven optimal: {none} it"
        if self.bound is None:
            return f"{loss}; no lower bound is known"
        below = bound_text(self.bound.value / self.scale)
        if says_nothing(self.problem, self.bound):
            return f"{loss}; no lower bound above {below} is known"
        text = f"{loss}; {none} {below}"
        if declared:
            text += f", if {declared} as its author declares"
        return text if self.told_gap is None else f"{text}; gap {gap_text(self.told_gap)}"

    def summary(self) -> str:
        """Return a few lines for people."""
        losses = f"ncp = {self.ncp:.6g}, gcp = {self.gcp:.4g}"
        if not self.problem.is_ncp:
            name = self.problem.objective.name
            losses = f"objective {name} = {self.objective:.6g}, gcp = {self.gcp:.4g}"
        lines = [] if self.many_suppressed is None else [f"ATTENTION: {self.many_suppressed}"]
        lines += [
            self.sentence(),
            f"k = {self.problem.k}, n = {self.problem.n}, m = {self.problem.m}, " + losses,
            f"method {self.method} ({self.status}), {self.seconds:.2f} s"
            + (f", {self.solver}" if self.solver else ""),
        ]
        lines += self._sets_line()
        if self.bound is not None:
            lines.append(f"bound by {self.bound.method} (proof: {self.bound.proof})")
        return "\n".join([*lines, *self.trace])

    @property
    def log(self) -> str:
        """What was asked, what the method did, in its order, and how it ended, in lines of text.

        What the solver printed stands in a file, where :func:`anonymip.solve` is given one.
        """
        problem, microdata = self.problem, self.problem.microdata
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        recoding, objective = problem.recoding.name, problem.objective.name
        lines = [
            f"asked: {problem.n} records, {', '.join(microdata.names)}",
            f"k = {problem.k}, recoding {recoding}, objective {objective}",
            f"method: {self.method}" + (f" ({options})" if options else ""),
            *([] if self.seed is None else [f"seed: {self.seed}"]),
            *([] if self.solver is None else [f"solver: {self.solver}"]),
            *self.trace,
            f"ended: {self.status} after {self.seconds:.2f} s",
            self.sentence(),
        ]
        if self.bound is not None:
            bound = self.bound
            lines.append(f"bound: {bound.method} (proof: {bound.proof}), {bound.seconds:.2f} s")
        return "\n".join(lines)

    def _sets_line(self) -> list[str]:
        sizes, left_out = self.sizes, self.assignment.suppressed
        if not len(sizes):
            return []
        low, high = sizes.min(), sizes.max()
        held = f"{low}" if low == high else f"{low} to {high}"
        may = self.problem.may_suppress
        if isinstance(self.assignment, Cover):
            out = f", {left_out} suppressed" if may else ""
            return [f"every published record covers {held} records{out}"]
        out = f", {self.suppressed} suppressed" if self.suppressed or may else ""
        if self.suppressed and not left_out:
            out = f", {self.suppressed} rows of stars only"
        classes = "1 class" if len(sizes) == 1 else f"{len(sizes)} classes"
        return [f"{classes} of {held} records{out}"]

    def to_frame(self) -> pd.DataFrame:
        """Return what is published, one row per original record, for analysis.

        Columns: ``class`` of the assignment (-1 suppressed), or ``matches`` of a cover, a tuple of
        the records that the published one covers; per numeric attribute ``<name>_lower`` and
        ``<name>_upper``, both infinite for a missing value, from minus infinity on for numbers and
        missing values together; per attribute published as a set a tuple of its values; per
        hierarchical attribute the label of its node, None if suppressed.
        """
        microdata, cells, assignment = self.problem.microdata, self.description, self.assignment
        columns: dict[str, Any] = {}
        if isinstance(assignment, Cover):
            columns["matches"] = pd.Series(
                [tuple(assignment.of_record(i).tolist()) for i in range(assignment.n)], dtype=object
            )
        elif self.classes is not None:
            columns["class"] = self.classes.labels
        for a, attribute in enumerate(microdata.attributes):
            if attribute.publish == "range":
                lower, upper = cells.lower[:, a], cells.upper[:, a]
                misses = upper == microdata.beyond[a]
                ends = np.where(lower < upper, -np.inf, np.inf)
                columns[f"{attribute.name}_lower"] = np.where(misses, ends, lower)
                columns[f"{attribute.name}_upper"] = np.where(misses, np.inf, upper)
            elif attribute.hierarchy is not None:
                labels = (*attribute.hierarchy.tree.labels, None)
                nodes = np.where(cells.suppressed[:, a], -1, cells.nodes[:, a])
                columns[attribute.name] = pd.Series([labels[node] for node in nodes], dtype=object)
            else:
                level = microdata.levels[a]
                columns[attribute.name] = pd.Series(
                    [tuple(level[cells.members.of(i, a)].tolist()) for i in range(microdata.n)],
                    dtype=object,
                )
        return pd.DataFrame(columns)

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{html.escape(line)}</div>" for line in self.summary().splitlines())
        return f"<div><strong>anonymip solution</strong>{lines}</div>"

    def __repr__(self) -> str:
        return f"<Solution by {self.method}: {self.sentence()}>"


def retold(
    found: Solution,
    problem: Problem,
    assignment: Assignment | None = None,
    remark: str = "",
    **changes: Any,
) -> Solution:
    """Return an assignment as a solution of a problem, of whose finding another solution tells.

    It is checked and measured anew: what is proven of the other problem is not proven of this one.
    `assignment`: None for that of `found`. `remark`: put before the trace. `changes`: what does not
    stay, as :meth:`Solution.of` takes it.
    """
    names = ("method", "options", "seconds", "seed", "solver")
    told: dict[str, Any] = {name: getattr(found, name) for name in names}
    told["stopped"] = Stopped.HEURISTIC if found.is_optimal else found.status.stopped
    told["trace"] = (remark, *found.trace) if remark else found.trace
    shown = found.assignment if assignment is None else assignment
    return Solution.of(problem, shown, **told | changes)


def _unproven(stopped: Stopped, *, has_bound: bool) -> Status:
    """Return the status of a solution that is not proven optimal, whatever its method says."""
    if stopped is Stopped.OPTIMAL:
        stopped = Stopped.GAP
    return Status(stopped, solution=True, bound=has_bound)


def _slack(problem: Problem) -> float:
    """Return what rounding and a solver may lift a bound by, beside their share of the loss."""
    compiled = problem.compiled
    size = abs(problem.unavoidable)
    if compiled.has_tables:
        size += problem.n * float(effects_of_cells(compiled.tables, problem.microdata).sum())
    return SEARCH_ROUNDING * size


def proves_optimal(
    problem: Problem,
    objective: float,
    bound: float,
    *,
    strict: bool,
    description: Callable[[], Description] | None = None,
) -> bool:
    """Return whether a bound proves that no release loses less than one that is known.

    The gap must be closed relative to the loss, and also relative to what a release can change of
    it: a large constant must not make different losses look alike. Nor may it be as much as one
    more value in a cell costs, since values may lie nearer to each other than that. What rounding
    may hide is counted as if it were there; so where all differences drown in it nothing is proven,
    unless the release loses no more than the exact table. `objective, bound`: of the release, and
    of all. `strict`: whether the bound comes from plain arithmetic, which has no tolerances but
    rounding. `description`: of the release; asked for where its loss is as good as that of the
    exact table.
    """
    if not closes_gap(objective, bound):
        return False
    if strict and not equals_bound(objective, bound):
        return False
    unseen = objective - bound + hidden_by_rounding(problem, objective)
    if unseen <= OPTIMALITY_RELATIVE * changeable(problem, objective) and _tells_apart(
        problem, objective, bound
    ):
        return True
    return (
        description is not None
        and problem.compiled.monotone
        and equals_bound(objective, bound)
        and loses_nothing(problem, description())
    )


def _tells_apart(problem: Problem, objective: float, bound: float) -> bool:
    """Return whether nothing between a bound and a loss is as much as a cell can change it by.

    Values that lie nearer to each other than a proof reaches make releases that lose less, and
    within all tolerances. Suppression by patterns looks at no such distances, but a large price of
    some records must not hide stars of others.
    """
    unseen = objective - bound
    if unseen <= hidden_by_rounding(problem, objective):
        return True
    compiled = problem.compiled
    if problem.recoding.name == "pattern":
        try:
            _, costs, price = priced_patterns(problem)
        except UnsupportedObjective:
            # Stars have no cost of their own, as where the largest loss counts.
            return True
        losses = np.append(costs, price)
        above = losses[np.isfinite(losses)] - losses.min()
        visible = above[above > 4.0 * np.finfo(float).eps * np.abs(costs).max()]
        return bool(unseen < visible.min(initial=np.inf))
    return not compiled.has_tables or unseen < least_step(compiled.tables, problem.microdata)


def changeable(problem: Problem, objective: float) -> float:
    """Return how much of a loss is not there when every record is published exactly."""
    avoidable = abs(objective - problem.unavoidable)
    if problem.compiled.monotone or problem.compiled.superadditive:
        return avoidable
    # Such a loss may fall from the exact table on: all it can change by is the measure.
    ends = (problem.whole, problem.exact)
    return max(avoidable, *(abs(loss - problem.unavoidable) for loss in ends))


def hidden_by_rounding(problem: Problem, objective: float) -> float:
    """Return what rounding may hide in the comparison of a loss with a bound."""
    largest = max(abs(objective), abs(problem.unavoidable))
    return SEARCH_ROUNDING * largest + problem.rounding


def loses_nothing(problem: Problem, description: Description) -> bool:
    """Return whether all cells that the loss looks at are exact."""
    with np.errstate(invalid="ignore"):
        wide = (description.upper > description.lower) | (description.members.count > 1)
    wide |= description.suppressed
    for a, tree in enumerate(problem.compiled.domains.trees):
        if tree is not None:
            wide[:, a] |= tree.leaves_below[description.nodes[:, a]] > 1
    if problem.compiled.has_tables:
        wide = wide[:, effects_of_cells(problem.compiled.tables, problem.microdata) > 0]
    return not bool(wide.any()) and not _pays_for_suppression(problem, description)


def _pays_for_suppression(problem: Problem, description: Description) -> bool:
    """Return whether a record is suppressed as a whole for more than it loses published exactly.

    That may cost though no cell has an effect, as where all records are alike.
    """
    suppressed = np.flatnonzero(description.suppressed.all(axis=1))
    if not suppressed.size:
        return False
    try:
        exact = problem.compiled.class_losses(suppressed[:, None])
    except UnsupportedObjective:
        return True
    return bool((problem.compiled.suppression_price > exact).any())


def under_assumptions(problem: Problem, source: str, *remarks: str) -> str:
    """Return the source of a bound with remarks, and with what the objective's author declares."""
    assumed = problem.compiled.assumed
    said = [*remarks, *([f"assuming that {' and '.join(assumed)}"] if assumed else [])]
    return f"{source} ({', '.join(said)})" if said else source


def relative_gap(objective: float, bound: Bound | None) -> float | None:
    """Return (objective - bound) / |objective|; 0 if they are equal, None if undefined."""
    if bound is None:
        return None
    if objective == bound.value:
        return 0.0
    return None if objective == 0 else (objective - bound.value) / abs(objective)


def says_nothing(problem: Problem, bound: Bound) -> bool:
    """Return whether a bound is no more than what publishing every record exactly loses."""
    return problem.compiled.monotone and bound.value <= problem.unavoidable


def bound_text(value: float, digits: int = 4) -> str:
    """Print a lower bound with so many digits, never rounded up."""
    if value == 0:
        return "0"
    # Powers of ten end there: of the smallest numbers fewer digits are printed.
    shift = min(308, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{np.floor(value * 10.0**shift) / 10.0**shift:.{digits}g}"


def gap_in_words(solution: Solution) -> str:
    """Return for people without the field's words how much less any other release could lose."""
    problem = solution.problem
    declared = " and ".join(problem.compiled.assumed)
    kind, loss = "other release of this kind", "this loss"
    if not problem.is_ncp:
        priced = " with suppressed records at their price" if problem.is_gcp else ""
        loss = f"the loss that was asked for ({problem.objective.name}{priced})"
    if solution.is_optimal:
        text = f"No {kind} loses less" + ("" if problem.is_ncp else f" of {loss}")
    elif solution.told_gap is None or says_nothing(problem, solution.bound):  # type: ignore[arg-type]
        return f"How much less any {kind} could lose is not known."
    else:
        most = gap_text(min(solution.told_gap, 1.0))
        saved = "Less than 0.1 %" if most.startswith("below") else f"At most {most}"
        text = f"{saved} of {loss} could be saved by any {kind}"
    return f"{text}, if {declared} as its author declares." if declared else f"{text}."
