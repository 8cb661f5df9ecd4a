"""Certificates: from a solution with duals to a file that proves its bound again.

Where the duals alone do not reach the goal, branch and bound goes over the sets that they leave,
every node with duals of its own. What is searched is a proof, not a release: each leaf has duals
that reach the goal, in whole numbers, or no sets left. If the search is cut off, the least value of
an open node is proven.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from anonymip._version import __version__
from anonymip.assignments import Classes, Cover
from anonymip.bounds.combinatorial import squared_error_terms
from anonymip.bounds.ladder import ladder_bound
from anonymip.certificates.check import Duals, Rejected, Table, check, search
from anonymip.certificates.dual_proof import DualProof, finer_scale, lowered, whole_duals
from anonymip.certificates.exact_loss import exact_problem, rules_of, without_rules
from anonymip.enumeration.pricing import CutDuals
from anonymip.enumeration.squared_errors import are_priced, pricing_of
from anonymip.errors import AnonymipError, InputError, NoSolution
from anonymip.exact.certifying.certificate import Certificate
from anonymip.exact.certifying.relaxing import (
    Relaxed,
    Sets,
    Split,
    Vertex,
    covered,
    proven_by,
    refined,
    solve_over,
)
from anonymip.exact.column_generation.column_generation import column_generation
from anonymip.exact.set_partitioning.rank_one_cuts import separate
from anonymip.objectives.losses.squared_error import SSE
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget, Progress
from anonymip.solution import Bound, Solution
from anonymip.status import Status, Stopped
from anonymip.tolerances import LOSS_ABSOLUTE, closes_gap, same_loss


@dataclass(frozen=True)
class CertifyingNumbers:
    """The numbers that steer the search for a proof that can be checked."""

    rise: float = 0.1  # share of what is left that cuts must prove; otherwise the node is split
    starts: int = 20  # of the local search for cuts of each shape
    tried: int = 8  # splits whose two sides are tried before one is chosen
    #: More digits of the duals may prove what is left where it is so small a part of the goal.
    digits: int = 10**7
    nodes: int = 5_000  # that end a proof by a tree
    whole: float = 1e-6  # shares this near to whole numbers are whole
    few: int = 40  # distinct records up to which the checker's own search beats loading a kernel
    large: int = 3_000  # records from which on the duals of a bound are not bettered first
    sure: int = 500  # records up to which column generation has good ones soon
    share: float = 0.6  # of the time in which they are bettered
    most_sets: int = 20_000  # of a pool: each node of the tree looks through those left of it
    #: Shares of what the duals fall short by that are tried in turn.
    shares: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25, 0.1)


NUMBERS = CertifyingNumbers()


def prove_by_tree(sets: Sets, goal: int, budget: Budget) -> tuple[dict[str, Any], int] | None:
    """Return a tree over some sets, and what all its leaves prove; None without time for a root.

    `sets`: that a release which loses at most the goal can have. `goal`: to be exceeded. `budget`:
    ends the search, and so do `NUMBERS.nodes`.
    """
    scale = sets.table.scale
    vertex = solve_over(sets, (), (), budget)
    if vertex is None:
        return None
    root = proven_by(sets, (), (), vertex, goal)
    waiting: list[tuple[int, int, Relaxed, tuple[Split, ...]]] = []
    nodes = 0

    def wait(relaxed: Relaxed, splits: tuple[Split, ...]) -> None:
        nonlocal nodes
        nodes += 1
        if relaxed.value <= goal and relaxed.left.members:
            heapq.heappush(waiting, (relaxed.value, nodes, relaxed, splits))

    wait(root, ())
    while waiting:
        value, _, relaxed, splits = heapq.heappop(waiting)
        budget.report("proving by a tree", done=nodes, bound=value / scale)
        if nodes > NUMBERS.nodes:
            return root.node, value
        if (goal - value) * NUMBERS.digits < abs(goal):
            exact = refined(relaxed, splits, goal, budget)
            if exact is not None and 2 * (goal - exact.value) < goal - value:
                relaxed.node["next"] = exact.node
                wait(exact, splits)
                continue
        tighter = _with_cuts(relaxed, splits, goal, budget, seed=nodes)
        if tighter is not None:
            relaxed.node["next"] = tighter.node
            wait(tighter, splits)
            continue
        children = _split(relaxed, splits, goal, budget)
        if children is None:
            return root.node, value
        (subset, most), sides = children
        relaxed.node["split"] = {"rows": sorted(subset.elements()), "most": most}
        for at_most, side in zip((True, False), sides, strict=True):
            relaxed.node["at_most" if at_most else "more"] = side.node
            wait(side, (*splits, (subset, most, at_most)))
    return root.node, goal + 1


def _with_cuts(
    relaxed: Relaxed, splits: Sequence[Split], goal: int, budget: Budget, *, seed: int
) -> Relaxed | None:
    """Return the relaxation with cuts that it breaks; None if they do not help enough."""
    sets, shares = relaxed.left, relaxed.shares
    new = separate(
        *(sets.held, shares, covered(sets.table)),
        known=relaxed.cuts,
        seed=seed,
        starts=NUMBERS.starts,
    )
    cuts = [*relaxed.cuts, *new]
    vertex = solve_over(sets, splits, cuts, budget) if new else None
    if vertex is None:
        return None
    tighter = proven_by(sets, splits, cuts, vertex, goal)
    risen = tighter.value - relaxed.value
    return tighter if risen > NUMBERS.rise * (goal + 1 - relaxed.value) else None


def _split(
    relaxed: Relaxed, splits: Sequence[Split], goal: int, budget: Budget
) -> tuple[tuple[Counter[int], int], list[Relaxed]] | None:
    """Return the best of some splits with its two sides; None if there is none, or no time."""
    sets, cuts = relaxed.left, relaxed.cuts
    enough = (goal + 1) / sets.table.scale
    best: tuple[Counter[int], int] | None = None
    best_sides: list[tuple[Sequence[Split], Vertex]] = []
    best_score = (-np.inf, -np.inf)
    for subset, most in _candidates(relaxed):
        sides: list[tuple[Sequence[Split], Vertex]] = []
        for at_most in (True, False):
            own = (*splits, (subset, most, at_most))
            vertex = solve_over(sets, own, cuts, budget)
            if vertex is None:
                return None
            sides.append((own, vertex))
        low, high = sorted(min(vertex.value, enough) for _, vertex in sides)
        if (low, high) > best_score:
            best, best_sides, best_score = (subset, most), sides, (low, high)
        if low >= enough:
            break
    if best is None:
        return None
    return best, [proven_by(sets, own, cuts, vertex, goal) for own, vertex in best_sides]


def _candidates(relaxed: Relaxed) -> list[tuple[Counter[int], int]]:
    """Return sets of rows that occur a broken number of times together, and the whole part."""
    members, shares = relaxed.left.members, relaxed.shares
    taken: list[int] = np.flatnonzero(shares > NUMBERS.whole).tolist()
    together: dict[tuple[int, int], float] = {}
    for at in taken:
        held = members[at]
        for pair in {(a, b) for place, a in enumerate(held) for b in held[place + 1 :]}:
            together[pair] = together.get(pair, 0.0) + float(shares[at])
    broken = {pair: share for pair, share in together.items() if not _is_whole(share)}
    if broken:
        nearest = sorted(broken, key=lambda pair: (abs(broken[pair] % 1.0 - 0.5), pair))
        return [(Counter(pair), int(broken[pair])) for pair in nearest[: NUMBERS.tried]]
    # Where all pairs are whole, the sets above a largest one that is taken in part are not.
    parts = [at for at in taken if not _is_whole(float(shares[at]))]
    if not parts:
        return []
    subset = Counter(members[max(parts, key=lambda at: len(members[at]))])
    share = sum(float(shares[at]) for at in taken if subset <= Counter(members[at]))
    return [(subset, int(share))]


def _is_whole(share: float) -> bool:
    return abs(share - round(share)) <= NUMBERS.whole


_NOTICE = "This file holds values of the records: keep it as private as the table."
_COLUMN_GENERATION = "column-generation"


class Pools:
    """Finds the sets of a problem whose reduced costs are at most a limit.

    `problem, table`: the same, for the package and in whole numbers.
    """

    def __init__(self, problem: Problem, table: Table) -> None:
        self.table = table
        self._pricing = None
        if len(table.rows) > NUMBERS.few:
            weight = "size" if table.classes else "one"
            self._pricing = pricing_of(
                problem, smallest=problem.k, largest=table.largest, weight=weight
            )

    def up_to(
        self, node: dict[str, Any], limit: int, most: int, budget: Budget
    ) -> dict[tuple[int, ...], int] | None:
        """Return the sets with their costs; None if there are too many, or time ended."""
        duals = Duals(self.table, node)
        if self._pricing is None:
            found = search(self.table, duals, limit)
            return found if len(found) <= most else None
        # Floats find all that lies below a little more; whole numbers decide.
        scale, first = self.table.scale, self._pricing.types.first
        rows = [self.table.types[record] for record in first.tolist()]
        number = {row: at for at, row in enumerate(rows)}
        of = np.array([duals.of[row] / scale for row in rows])
        slack = 1e-9 * float(np.abs(of).max())
        priced = self._pricing.all_below(
            of,
            (limit - duals.count) / scale + slack,
            CutDuals.of(
                ([number[row] for row in held], divisor, dual / scale)
                for held, divisor, dual in node["cuts"]
            ),
            max_columns=most,
            budget=budget,
        )
        if not priced.complete:
            return None
        found = {}
        for column in range(len(priced)):
            key = tuple(sorted(rows[at] for at in priced.of(column).tolist()))
            cost = self.table.set_cost(key)
            if duals.reduced(key, cost) <= limit:
                found[key] = cost
        return found


def certify(
    asked: Solution | Problem,
    *,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    budget: Budget | None = None,
) -> Certificate:
    """Return a certificate: a proof of a bound that ``check.py`` proves again by itself.

    Parameters
    ----------
    asked
        A solution, whose loss and bound are certified, or a problem, for a bound alone. Where the
        bound carries no dual values that reach it, or nearly, those of column generation are used.
        Of a diversity, limits and reciprocal covers the bound without them is certified, which
        holds under them as well.
    time_limit
        Seconds, about; what is proven by then is certified.
    progress
        Receives what the computation reports.
    budget
        Takes the place of `time_limit` and `progress`.

    Raises
    ------
    UnsupportedObjective
        If there are no certificates for such problems: the message says why.
    InputError
        If there are too many records for a checker in plain Python.

    Examples
    --------
    >>> import anonymip
    >>> problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    >>> certificate = anonymip.certify(anonymip.solve(problem))
    >>> print(certificate.sentence())
    loss 0.95509; no release below 0.95509 exists.
    """
    solution = asked if isinstance(asked, Solution) else None
    problem = asked.problem if isinstance(asked, Solution) else asked
    plain = without_rules(problem)
    _ = exact_problem(plain)  # refuses what cannot be certified
    budget = Budget.of(time_limit, progress) if budget is None else budget
    with budget.catching_interrupts():
        # Duals of a release under rules need not hold without them.
        free = solution if plain is problem else None
        if plain is not problem:
            with suppress(InputError, NoSolution):
                free = column_generation(plain, budget=budget.share(NUMBERS.share))
        known = _bound_of(plain, free, budget)
    return make_certificate(problem, known, solution, budget, free)


def _bound_of(problem: Problem, solution: Solution | None, budget: Budget) -> Bound:
    """Return the bound of a solution if it has duals that are hard to better, or a better one."""
    own = None if solution is None else solution.bound
    final = solution is not None and (solution.is_optimal or solution.method == _COLUMN_GENERATION)
    if own is not None and own.duals is not None and (final or problem.n > NUMBERS.large):
        return own
    start = None if solution is None else solution.assignment
    try:
        found = column_generation(problem, start=start, budget=budget.share(NUMBERS.share)).bound
    except InputError:
        found = None
    bounds = [bound for bound in (own, found) if bound is not None and bound.duals is not None]
    if are_priced(problem):
        return max(bounds or [_nearest(problem, budget)], key=lambda bound: bound.value)
    if not bounds or (problem.n > NUMBERS.sure and bounds == [found]):
        quick = ladder_bound(problem, effort="quick", budget=budget)
        assert quick is not None
        bounds.append(quick)
    return max(bounds, key=lambda bound: bound.value)


def _nearest(problem: Problem, budget: Budget) -> Bound:
    """Return the bound by nearest squared errors, with these as duals."""
    terms, _ = squared_error_terms(problem, budget)
    largest = min(2 * problem.k - 1, problem.n)
    duals = DualProof(terms, problem.k, largest, weight="size", coverage=1)
    return Bound(float(terms.sum()), "nearest squared errors", "argument", 0.0, duals)


def make_certificate(
    problem: Problem,
    known: Bound,
    solution: Solution | None,
    budget: Budget,
    free: Solution | None = None,
) -> Certificate:
    """Return a certificate of the best bound that duals and a tree over what they leave prove.

    `problem`: what is asked. What releases are to keep beside k has no part in the proof. `known`:
    a bound with duals under which no admissible set has a negative reduced cost, but for rounding:
    what the tree tries to reach. Of the problem without such rules. `solution`: a release whose
    loss is to be proven; None for a bound alone. `budget`: ends the tree; what is proven by then is
    certified. `free`: a release without the rules, whose loss is the least that may be proven.
    Raises UnsupportedObjective if there are no certificates for such problems; AnonymipError if the
    checker rejects it, which is an error of the program.
    """
    started = time.perf_counter()
    rules, problem = rules_of(problem), without_rules(problem)
    part = exact_problem(problem)
    for known_release in (solution, free):
        # By squared errors a class loses a part of the unit for each of its records.
        if known_release is not None and isinstance(known_release.problem.objective, SSE):
            for size in {len(members) for members in _release(known_release)}:
                part["unit"] *= size if size >= 2 * problem.k else 1
    part["scale"] = finer_scale(part["unit"], abs(problem.whole) / problem.n, problem.n)
    table = Table(part)
    release = None if solution is None else _release(solution)
    loss = None if release is None else Fraction(table.release_loss(release), table.scale)
    if loss is not None and solution is not None:
        value, scale = solution.objective, abs(solution.problem.unavoidable)
        if not same_loss(float(loss), value, scale) and abs(float(loss) - value) > LOSS_ABSOLUTE:
            known_as = f"{float(loss)!r} in exact numbers, and {value!r} in floats"
            raise _faulty(f"the release loses {known_as}")
    assert known.duals is not None
    with budget.catching_interrupts():
        pools = Pools(problem, table)
        root = _root(table, known.duals, pools, budget)
        bound = _proven(table, Duals(table, root).value, loss)
        least = loss if free is None else Fraction(table.release_loss(_release(free)), table.scale)
        aim = _aim(table, known, least)
        if bound < aim:
            bound = _with_tree(table, root, bound, aim, pools, budget)
    content = {
        "format": "anonymip certificate 1",
        "notice": _NOTICE,
        "made_by": f"anonymip {__version__}",
        "objective": problem.objective.name,
        **({"rules": rules} if rules else {}),
        "problem": part,
        "release": release,
        "loss": None if loss is None else str(loss),
        "bound": str(bound),
        "proof": root,
    }
    # What nobody can check is no certificate: this is on no limit, and Ctrl-C ends all.
    budget.report("checking the certificate")
    try:
        check(content)
    except (Rejected, RecursionError) as reason:
        raise _faulty(f"the checker rejects the certificate: {reason}") from None
    seconds = time.perf_counter() - started
    found = None if solution is None else _with_certified(solution, bound, known.duals, seconds)
    return Certificate(content, loss, bound, found, seconds)


def _with_certified(
    solution: Solution, bound: Fraction, proof: DualProof, seconds: float
) -> Solution:
    """Return the solution with the bound that is certified, unless it knows a better one."""
    value = float(bound)
    if value > bound:
        value = math.nextafter(value, -math.inf)
    certified = Bound(value, "certificate", "certified", seconds, proof)
    stopped = Stopped.GAP if solution.is_optimal else solution.status.stopped
    status = Status(stopped, solution=True, bound=False)
    best = replace(solution, bound=None, status=status).with_bound(certified)
    known = solution.bound
    better = known is None or best.is_optimal or known.value <= certified.value
    return best if better else solution


def _release(solution: Solution) -> list[list[int]]:
    assignment = solution.assignment
    if isinstance(assignment, Classes):
        return [group.tolist() for group in assignment.groups()]
    assert isinstance(assignment, Cover)
    return [assignment.of_record(record).tolist() for record in range(assignment.n)]


def _faulty(message: str) -> AnonymipError:
    return AnonymipError(message, remedy="This is an error of the program; please report it")


def _root(table: Table, proof: DualProof, pools: Pools, budget: Budget) -> dict[str, Any]:
    """Return the duals in whole numbers, lowered until no admissible set costs less."""
    sums = [0.0] * len(table.rows)
    for row, dual in zip(table.types, proof.duals.tolist(), strict=True):
        sums[row] += dual / table.counts[row]
    cuts = [
        (sorted({table.types[i] for i in cut.records.tolist()}), cut.divisor, cut.dual)
        for cut in proof.cuts
    ]
    node = whole_duals(table, sums, proof.count_dual, cuts)
    undercut = pools.up_to(node, -1, NUMBERS.most_sets, budget)
    if undercut is None:
        raise AnonymipError(
            "too many sets cost less than the duals of their records",
            remedy="Make the certificate from duals that column generation has found",
        )
    return lowered(table, node, undercut)


def _proven(table: Table, value: int, loss: Fraction | None) -> Fraction:
    """Return the bound that duals of a value prove: losses are multiples of the unit."""
    bound = Fraction(-(-value // (table.scale // table.unit)), table.unit)
    return bound if loss is None else min(bound, loss)


def _aim(table: Table, known: Bound, loss: Fraction | None) -> Fraction:
    """Return what is to be proven: the loss if it is known to be optimal, else the known bound.

    That is raised to a multiple of the unit, as losses are: with few of them the next one below may
    be far off.
    """
    if loss is not None and closes_gap(float(loss), known.value):
        return loss
    aim = Fraction(math.ceil(Fraction(known.value) * table.unit), table.unit)
    return aim if loss is None else min(aim, loss)


def _with_tree(
    table: Table, root: dict[str, Any], bound: Fraction, aim: Fraction, pools: Pools, budget: Budget
) -> Fraction:
    """Add pool and tree to the root for the highest target with a small pool; return the bound."""
    value, step = Duals(table, root).value, table.scale // table.unit
    for share in NUMBERS.shares:
        target = _proven(table, value + round(Fraction(share) * (aim * table.scale - value)), aim)
        goal = int(target * table.unit) * step - step
        if goal <= value:
            return bound
        pool = pools.up_to(root, goal - value, NUMBERS.most_sets, budget)
        if pool is None:
            continue
        found = prove_by_tree(Sets.of(table, pool), goal, budget)
        if found is None:
            return bound
        tree, least = found
        reached = _proven(table, least, target)
        if reached <= bound:
            return bound
        # What the tree has not proven needs no more of the pool than the bound does.
        needed, duals = int(reached * table.unit) * step - step - value, Duals(table, root)
        kept = [m for m, cost in pool.items() if duals.reduced(m, cost) <= needed]
        root["pool"] = [list(members) for members in sorted(kept)]
        root["next"] = tree
        return reached
    return bound
