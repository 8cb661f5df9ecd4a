"""One link of a chain after the other, for every problem and with every sub-solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InputError, InvalidAssignment, LicenceLimit, NoSolution, SolverError
from anonymip.exact.classes.best_classes import small_rules
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.exact.classes.set_search import new_small_work
from anonymip.exact.classes.small import MAX_NODES, solve_small
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.model_run import has_failed
from anonymip.exact.split_carry.carrying import (
    STUCK,
    advance_links,
    carry_rule,
    divide_window,
    fill_losses,
    move_on,
    new_outcome,
    window_size,
)
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.state import (
    CARRIED,
    LOSS,
    OPEN,
    READ,
    SECONDS,
    Chain,
    Link,
    add_link,
    reason_of,
)
from anonymip.heuristics.classes.ordered_cut import cut_in_batches
from anonymip.heuristics.growing.groups import cut_in_order
from anonymip.heuristics.growing.repair import repaired
from anonymip.heuristics.local_search.local_search import improve
from anonymip.objectives.kernels.class_loss import kernel_rows, new_state
from anonymip.problem import Problem, has_rules
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution

#: Less than this is no time for a solver, in seconds.
_LEAST = 1e-3


class ChainClock:
    """What each link may spend: the time divided by the links that are expected.

    `links`: links that are expected to come. `budget`: of the links that are still to come.
    `pass_time`: whether a link may use what the links before it left; what one overdrew, the next
    ones lack. `link_time`: seconds that a link has at most; 0 for no such limit.
    """

    def __init__(self, links: int, budget: Budget, pass_time: bool, link_time: float = 0.0) -> None:
        self._budget, self._pass = budget, pass_time
        self._most = link_time or None
        left = budget.remaining()
        self._share = None if left is None else left / max(1, links)
        self.unused = 0.0

    def allowance(self) -> float | None:
        """Return the seconds of the next link; None without any limit, 0 if there is no time."""
        if self._share is None:
            return self._most
        seconds = self._share
        if self._pass:
            seconds += self.unused
        seconds = min(seconds, self._budget.remaining() or 0.0, self._most or inf)
        return seconds if seconds >= _LEAST else 0.0

    def spend(self, links: int, seconds: float) -> None:
        """Account for links that were solved."""
        if self._share is not None:
            self.unused += links * self._share - seconds

    def budget_of_link(self) -> Budget | None:
        """Return the budget of the next link, silent; None if there is no time for a solver."""
        seconds = self.allowance()
        if seconds == 0.0:
            return None
        budget = self._budget.renewed(seconds)
        budget.progress = None
        return budget


#: A window without a release takes in up to so many chunks of new rows before it is given up.
_CHUNKS = 4
#: Rows of a window that column generation takes over where the search ends without a proof: of 32
#: it proves nine in ten, a second each (`benchmarks.chains`).
_PRICED = 32


@dataclass(frozen=True, eq=False)
class Answer:
    """Classes of the rows of a window."""

    labels: Ints  # (size,) -1 for rows without a class
    #: Loss, and what no classes of these rows go below; None if unknown.
    objective: float
    bound: float | None = None
    proven: bool = False  # whether the classes are the best of these rows
    start_accepted: bool | None = None  # whether a solver took the start; None if none was asked
    reason: str = ""  # what kept it from a proof, or the solver from its work, as `Link` gives it
    priced: Bound | None = None  # that of column generation, where this is the bound


class ClassLinks:
    """Solves the links of a chain, which goes on in place, one by one."""

    def __init__(self, problem: Problem, chain: Chain, options: ChainOptions, seed: int) -> None:
        self._problem, self.chain, self.options, self._seed = problem, chain, options, seed
        #: That of column generation on the last link, where this is the link's bound.
        self.priced: Bound | None = None
        self._rule = carry_rule(problem, chain.records, options)

    @property
    def expected(self) -> int:
        """Number of links that are expected in all."""
        return self.options.links_of(self.chain.n, self._problem.k)

    def advance(self, clock: ChainClock, amount: int) -> None:
        """Solve the next link. Raises InputError if the sub-solver cannot take the sub-problem."""
        self.solve_next(clock, None)

    def solve_next(self, clock: ChainClock, found: Answer | None) -> None:
        """Solve the next link; `found` is what another engine found and could not prove."""
        watch, chain, rule = Stopwatch(), self.chain, self._rule
        carried = int(chain.cursor[CARRIED])
        budget = clock.budget_of_link()
        for chunks in range(1, _CHUNKS + 1):
            size = int(window_size(rule, chain, chunks))
            new = chain.cursor[READ] + np.arange(size - carried)
            places = np.concatenate([chain.carried[:carried], new])
            last = int(places[-1]) == chain.n - 1
            answer = self._solve(places, budget, found if chunks == 1 else None)
            if answer is not None or last:
                break
        if answer is None:
            answer = self._given_up(places)
        # In the order of first appearance.
        labels = Classes(answer.labels).labels.astype(np.int64)  # type: ignore[arg-type]
        records = chain.records[places]
        outcome = new_outcome(rule, size)
        if (rule.least or rule.cheapest) and not last:
            outcome.losses[:] = self._losses(records, labels)
        divide_window(rule, places, size, labels, last, outcome)
        kept = outcome.fixed != OPEN
        loss = loss_of_labels(self._problem, records[kept], outcome.fixed[kept])
        if self._problem.compiled.aggregate == "sum":
            chain.sums[LOSS] += loss
        else:
            chain.sums[LOSS] = max(chain.sums[LOSS], loss)
        move_on(chain, size, places, outcome)
        self.priced = answer.priced
        seconds = watch.seconds
        found_it = answer.objective, answer.bound, answer.proven, answer.start_accepted
        add_link(chain, Link(size, carried, *found_it, seconds, answer.reason))
        clock.spend(1, seconds)

    def _solve(self, places: Ints, budget: Budget | None, found: Answer | None) -> Answer | None:
        """Return the best classes of a window; None if none were found."""
        part = self._part(places)
        if part is None:
            return None
        if self.options.subsolver == EXACT:
            return self._solved_exactly(part, budget, found)
        return self._solved_by_model(part, budget)

    def _solved_exactly(
        self, part: Problem, budget: Budget | None, found: Answer | None
    ) -> Answer | None:
        """Return what the search finds, or the start where that is better or time is over."""
        answer = found
        if budget is not None and found is None:
            try:
                result = solve_small(part, budget=budget, seed=self._seed)
            except NoSolution:
                return None
            labels, reason = np.asarray(result.labels, np.int64), reason_of(result.reason)
            answer = Answer(labels, result.objective, result.bound, result.proven, reason=reason)
        elif budget is not None and found is not None:
            improved = Classes(improve(part, found.labels, effort="quick", budget=budget))  # type: ignore[arg-type]
            answer = _better(part, found, improved)
            if part.n <= _PRICED:
                answer = _priced(part, answer, budget, self._seed)
        if answer is not None and answer.proven:
            return replace(answer, reason="")
        start = self._start(part, budget)
        return answer if start is None else _better(part, answer, start)

    def _solved_by_model(self, part: Problem, budget: Budget | None) -> Answer | None:
        """Return what a solver finds from the start; the start if there is no time."""
        options = self.options
        start = self._start(part, budget)
        if budget is None:
            return None if start is None else _better(part, None, start)
        try:
            solution = equivalence_mip(
                part,
                formulation=options.subsolver,
                warm_start="none",
                start=start,
                solver=options.solver,
                gap=options.gap,
                threads=options.threads,
                solver_options=options.solver_options,
                budget=budget,
                seed=self._seed,
            )
        except LicenceLimit:
            found = self._solved_exactly(part, budget, None)
            return None if found is None else replace(found, reason="licence")
        except (NoSolution, SolverError):
            return None
        assignment = solution.assignment
        assert isinstance(assignment, Classes)
        by_remark = {"warm start accepted": True, "warm start not used": False}
        accepted = [by_remark[remark] for remark in solution.trace if remark in by_remark]
        reason = "" if solution.is_optimal else reason_of(solution.status.stopped.value)
        return Answer(
            assignment.labels.astype(np.int64),
            solution.objective,
            None if solution.bound is None else solution.bound.value,
            solution.is_optimal,
            accepted[-1] if accepted else None,
            "failed" if has_failed(solution) else reason,
        )

    def _part(self, places: Ints) -> Problem | None:
        """Return the problem of the rows of a window; None if they lack the diversity."""
        problem, records = self._problem, self.chain.records[places]
        if problem.diversity is not None and not problem.may_suppress:
            codes = problem.microdata.counted_codes[records]
            if problem.diversity.lacking(codes) is not None:
                return None
        return problem.replace(microdata=problem.microdata.take(records, as_part=True))

    def _start(self, part: Problem, budget: Budget | None) -> Classes | None:
        """Return the classes carried over with sets of k of the others; None if that breaks rules.

        As in Section 3.1 and Appendix C of the paper. Rows carried over that are no class by
        themselves count as others.
        """
        labels = np.full(part.n, SUPPRESSED, np.int64)
        carried = int(self.chain.cursor[CARRIED])
        started = self.chain.started[:carried]
        classes = 0
        for label in np.unique(started[started >= 0]):
            rows = np.flatnonzero(started == label)
            if len(rows) >= part.k:
                labels[rows] = classes
                classes += 1
        cut_in_order(labels, np.arange(part.n), part.k, classes)
        if has_rules(part):
            try:
                part.recoding.check(part, Classes(labels))  # type: ignore[arg-type]
            except InvalidAssignment:
                try:
                    labels = repaired(part, labels, "the start of a link", budget or Budget())
                except NoSolution:
                    return None
        return Classes(labels)  # type: ignore[arg-type]

    def _given_up(self, places: Ints) -> Answer:
        """Return classes that keep the rules for as many rows as the best cut can place."""
        part = self._part(places)
        labels = np.full(len(places), SUPPRESSED, np.int64)
        if part is not None:
            labels, _ = cut_in_batches(part, np.arange(part.n), Budget())
        loss = loss_of_labels(self._problem, self.chain.records[places], labels)
        return Answer(labels, loss, reason="rules")

    def _losses(self, records: Ints, labels: Ints) -> Floats:
        """Return (size,) what the carry rule asks for: losses of classes, some without a row."""
        compiled, losses = self._problem.compiled, np.zeros(len(records))
        if compiled.has_tables:
            # As in the compiled loop to the last bit: rounding breaks no ties in another way.
            rows = kernel_rows(self._problem.microdata, compiled.tables, records)
            state, places = new_state(rows.tables, 1), np.arange(len(records))
            fill_losses(rows, state, self._rule, places, len(places), labels, losses)
            return losses
        for label in range(int(labels.max()) + 1):
            own = np.flatnonzero(labels == label)
            members = records[own]
            if self._rule.least:
                rest = members[np.flatnonzero(~np.eye(len(members), dtype=bool)) % len(members)]
                found = compiled.class_losses(rest.reshape(len(members), -1))
            else:
                found = compiled.class_losses(members[None, :])
                if compiled.aggregate == "sum":
                    found = found / len(members)
            losses[own] = found
        return losses


def loss_of_labels(problem: Problem, records: Ints, labels: Ints) -> float:
    """Return the loss of classes; of rows without one only where they may be suppressed."""
    compiled = problem.compiled
    suppression = problem.may_suppress
    single = compiled.suppression_price if suppression else 0.0
    parts = [single] * int(np.count_nonzero(labels == SUPPRESSED))
    if compiled.aggregate == "sum":
        parts = [sum(parts)]
    for label in range(int(labels.max(initial=-1)) + 1):
        rows = records[labels == label]
        if len(rows):
            parts.append(float(compiled.class_losses(rows[None, :])[0]))
    return float(sum(parts)) if compiled.aggregate == "sum" else max(parts, default=0.0)


def _better(part: Problem, answer: Answer | None, release: Classes) -> Answer:
    """Return the answer with the classes of a release where they lose less."""
    loss, labels = Solution.of(part, release, method="start").objective, release.labels
    if answer is None:
        return Answer(labels.astype(np.int64), loss, reason="time")
    if answer.objective <= loss:
        return answer
    return replace(answer, labels=labels.astype(np.int64), objective=loss, proven=False)


def _priced(part: Problem, answer: Answer, budget: Budget, seed: int) -> Answer:
    """Return what column generation makes of an answer; the answer where it does not apply."""
    start = Classes(answer.labels)  # type: ignore[arg-type]
    try:
        solution = column_generation(part, start=start, effort="quick", budget=budget, seed=seed)
    except (InputError, NoSolution, SolverError):
        return answer
    better = _better(part, answer, solution.assignment)  # type: ignore[arg-type]
    better, bound = replace(better, proven=solution.is_optimal), solution.bound
    # Where time ends early its bound may be below that of the search, or missing.
    if bound is None or (answer.bound is not None and bound.value <= answer.bound):
        return better
    # Its duals are those of the records in the order of the chain.
    return replace(better, bound=bound.value, priced=replace(bound, duals=None))


#: Rows of a window that the compiled loop takes.
_MOST = 64


class CompiledLinks(ClassLinks):
    """Solves many links in one call of a kernel, and one by one those that are too hard for it."""

    def __init__(self, problem: Problem, chain: Chain, options: ChainOptions, seed: int) -> None:
        super().__init__(problem, chain, options, seed)
        self._rules = small_rules(problem, chain.records)
        most = min(chain.n, _MOST)
        self._places = np.zeros(most, np.int64)
        self._work = new_small_work(self._rules, most)
        self._outcome = new_outcome(self._rule, most)
        self._state = new_state(problem.compiled.tables, 1)

    def advance(self, clock: ChainClock, amount: int) -> None:
        """Solve the next links, up to `amount` of them or one that takes long."""
        watch, chain = Stopwatch(), self.chain
        before = chain.solved
        self._work.result[:] = np.nan
        code = advance_links(
            self._rules,
            self._work,
            self._state,
            self._rule,
            chain,
            self._outcome,
            self._places,
            MAX_NODES,
            amount,
        )
        solved, seconds = chain.solved - before, watch.seconds
        if solved:
            chain.table[before : before + solved, SECONDS] = seconds / solved
        clock.spend(solved, seconds)
        if code == STUCK:
            self.solve_next(clock, self._incumbent())

    def _incumbent(self) -> Answer | None:
        """Return what the loop found for the window at which it is stuck."""
        size = int(window_size(self._rule, self.chain, 1))
        if size > len(self._places) or not np.isfinite(self._work.result[0]):
            return None
        labels: Ints = self._work.labels[:size].copy()
        loss, bound = self._work.result.tolist()
        return Answer(labels, loss, bound, reason="cap")
