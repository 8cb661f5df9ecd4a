"""Classes that local search starts from, by other methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from pkgutil import resolve_name
from types import MappingProxyType

import numpy as np

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.bounds.ladder import WeighedSets
from anonymip.bounds.near_program import can_make_classes, records_of, take_out
from anonymip.errors import InputError, NoSolution, unknown_name
from anonymip.extensions import EXACT_STARTS
from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.local_search.squared_errors import are_squared
from anonymip.problem import Problem, has_rules
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import run_in_force
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution

#: The name that stands for several methods.
BEST = "best"
#: The start of large tables that gets there with a thorough effort alone.
DIVING = "diving"
#: Methods that can make the start.
STARTS = MappingProxyType(
    {
        "greedy-search": "anonymip.heuristics.classes.greedy_search:greedy_search",
        "k-member": "anonymip.heuristics.classes.k_member:k_member",
        "mdav": "anonymip.heuristics.classes.mdav:mdav",
        "forest": "anonymip.heuristics.approximation.forest:forest",
        "edge-cover": "anonymip.heuristics.approximation.edge_cover:edge_cover",
        "hilbert": "anonymip.heuristics.classes.hilbert:hilbert",
        "hp": "anonymip.heuristics.classes.hp:hp",
        "mondrian": "anonymip.heuristics.classes.mondrian:mondrian",
        "ordered-cut": "anonymip.heuristics.classes.ordered_cut:ordered_cut",
        "initial": "anonymip.heuristics.classes.initial:initial",
        DIVING: "anonymip.heuristics.classes.diving:diving",
    }
)
#: Not among the best: the one loses more than all others, the other takes longer.
_LEFT_OUT = frozenset({"initial", DIVING})
#: Records up to which several starts are made, and of losses without tables: beyond, moves and
#: trials gain more a second.
_SEVERAL, _EVALUATED = 2_000, 300
#: Which one is made of more records, and of still more: on Adult, k = 5, it ends 2 % below the
#: other, but its time grows with the square of the records.
_ONE, _LARGE = ("k-member", 50_000), "greedy-search"
#: Under rules these are starts too, up to the first number of records; up to the second one all
#: starts are moved before the best one is chosen.
_CUT, MOST_REPAIRED, MOST_MOVED = ("ordered-cut", "mondrian"), 100_000, 20_000
#: Records up to which squared errors begin with distances, in time that grows with their square.
_BY_DISTANCE = 30_000
#: The least share of a set of a bound that is worth a class.
_WEIGHED = 0.1
#: Records up to which a thorough effort dives too.
_DIVING = 50_000
#: A start gets at most this part of the time that is left.
_SHARE = 0.5


def make_start(
    problem: Problem, name: str, order: str, budget: Budget, seed: int, share: float = _SHARE
) -> Solution:
    """Return the classes of one method of :data:`STARTS` or of the exact ones.

    `order`: that it is made with, if the method takes one; empty for the default. `share`: of the
    time that is left, for it.
    Raises InputError if there is no such start, or it takes no such problem; NoSolution if it finds
    none.
    """
    if name not in {**STARTS, **EXACT_STARTS}:
        raise unknown_name("from_method", name, (*STARTS, *EXACT_STARTS, BEST))
    method: Callable[..., Solution] = (
        resolve_name(STARTS[name]) if name in STARTS else EXACT_STARTS[name]()
    )
    settings = {"order": order} if order and "order" in signature(method).parameters else {}
    return method(problem, budget=budget.share(share), seed=seed, **settings)


def make_starts(problem: Problem, budget: Budget, seed: int) -> Iterator[Solution]:
    """Yield the classes of each method that takes the problem; of large tables those of one.

    Each is made when it is asked for, as long as there is time.

    Raises NoSolution if none finds any.
    """
    repeating, names, found = repeats(problem), starts_of(problem), False
    for name in names:
        if found and budget.stop_reason() is not None:
            return
        # Where rows repeat, neighbours on a short path are nearly always alike.
        order = "snake+2opt" if repeating and name == "ordered-cut" else ""
        try:
            # What several leave undone, others have done.
            share = _SHARE if len(names) == 1 or problem.n > _SEVERAL else 1.0
            first = make_start(problem, name, order, budget, seed, share)
        except (InputError, NoSolution):
            # Some are for one k or for numbers, and some keep no rules.
            continue
        found = True
        yield first
    if not found:
        yield make_start(problem, "greedy-search", "", budget, seed)


def kept_of(problem: Problem, weighed: WeighedSets) -> Ints:
    """Return (n,) classes of the sets that the program of a bound takes most of, as they fit.

    Who is in none has the label of a suppressed record. `problem`: for which
    :func:`~anonymip.bounds.near_program.can_make_classes` holds. Complexity: O(c log c) for c sets.
    """
    counts, some = weighed.counts, weighed.shares >= _WEIGHED
    free = np.where(counts >= problem.k, counts - problem.k, counts)
    best = weighed.members[some][np.argsort(-weighed.shares[some], kind="stable")]
    sets = [one for one in best if take_out(one, free)]
    labels = np.full(problem.n, SUPPRESSED, np.int64)
    for label, group in enumerate(records_of(weighed.types, counts, problem.k, sets)):
        labels[group] = label
    return labels


def with_the_rest(problem: Problem, labels: Ints, budget: Budget, seed: int) -> Solution:
    """Return a release of some classes (n,) where the rows left have classes of k-member."""
    watch, left = Stopwatch(), np.flatnonzero(labels == SUPPRESSED)
    if len(left) >= problem.k:
        part = problem.replace(microdata=problem.microdata.take(left, as_part=True))
        grown = make_start(part, _ONE[0], "", budget, seed).assignment
        assert isinstance(grown, Classes)
        kept, labels = labels.max() + 1, labels.copy()
        labels[left] = np.where(grown.labels == SUPPRESSED, SUPPRESSED, grown.labels + kept)
    return finish(problem, labels, DIVING, watch, budget=budget, seed=seed)


def starts_of(problem: Problem) -> list[str]:
    """Return the methods whose classes :func:`make_starts` makes."""
    if are_squared(problem):
        # What is iterated for as long as here forgets where it began.
        return ["mdav" if problem.n <= _BY_DISTANCE else "hilbert"]
    if problem.n > (_SEVERAL if problem.compiled.has_tables else _EVALUATED):
        if has_rules(problem):
            # Classes that grow until they keep a rule are small and wide where rows repeat: what is
            # cut and repaired lost a thirtieth. Repair takes long of still more records, and where
            # limits are kept.
            cut = problem.n <= MOST_REPAIRED and (not problem.limits or repeats(problem))
            return [*_CUT, _LARGE] if cut else [_LARGE]
        one = _ONE[0] if problem.n <= _ONE[1] else _LARGE
        return ["ordered-cut" if repeats(problem) else one]
    return [name for name in STARTS if name not in _LEFT_OUT]


def may_dive(problem: Problem) -> bool:
    """Return whether diving is worth its work beside the start of a large table.

    Where rows repeat, most of them lose little anyway. Where the bound of the run has solved
    no program, that takes too long for five minutes, and annealing has its time: 20,640 houses with
    k = 10 came to 6348 with a program of its own, and to 6309 without in a third of the time; Adult
    with k = 10 to 7044 and 7218, in 462 and 205 s, and 30,000 card holders took 466 s.
    """
    if not _SEVERAL < problem.n <= _DIVING or not can_make_classes(problem) or repeats(problem):
        return False
    run = run_in_force()
    if run is None or run.solving is None:
        return True
    return run.solved_program(problem) is not None


def repeats(problem: Problem) -> bool:
    """Return whether the table has at most half as many distinct rows as records."""
    return 2 * len(problem.microdata.row_types().first) <= problem.n
