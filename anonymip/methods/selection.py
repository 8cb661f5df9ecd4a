"""The method that picks a method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from anonymip.assignments import Classes, Cover
from anonymip.bounds.combinatorial import is_cut
from anonymip.effort import EFFORTS, check_effort
from anonymip.enumeration.merging import row_types
from anonymip.enumeration.squared_errors import are_priced
from anonymip.errors import InputError, InvalidAssignment, NoSolution, SolverError, argument
from anonymip.exact.freeform.freeform_mip import needs_every_size, pair_obstacle, too_many_sets
from anonymip.heuristics.freeform.left_out import leaves_out
from anonymip.heuristics.freeform.rings import classes_for_rings, rings_in_classes
from anonymip.heuristics.local_search.starts import repeats
from anonymip.methods.registry import find_method
from anonymip.models import model_size
from anonymip.problem import Problem, has_rules, is_plain
from anonymip.recodings import EquivalenceClasses, Freeform
from anonymip.recodings.output_rows import recoding_of
from anonymip.runtime.arrays import Codes
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution, retold


@dataclass(frozen=True)
class Reach:
    """Sizes up to which `auto` picks the methods that lose least, or prove."""

    #: Records beyond which there are more than `few_classes` classes, but for duplicates.
    few_records: int = 200
    #: Possible classes or sets over which an integer program is proven within seconds.
    few_classes: int = 100_000
    #: Row types times the square of k up to which column generation ends: of 100 records with k =
    #: 5, or 300 with k = 3, it took half a minute.
    by_columns: int = 2_700
    #: The same of squared errors: 834 records with k = 3 took it a minute and a half.
    by_pairs: int = 4_500
    #: Records up to which the models of the weaker notions are proven within seconds, and those of
    #: classes without the start of an improved release.
    few_concealed: int = 12
    #: Records times k up to which covers that no columns suit are proven by flows within seconds:
    #: 20 records with k = 3 took 2.6 s.
    few_flows: int = 60
    #: Most work of the nearest sets for the weaker notions (:func:`_concealing`): 6e9 took them 20
    #: to 50 s. Beyond, a freeform cover is made. For k-concealment matches are made effective one
    #: by one up to an eighth of it.
    concealed: float = 1e10
    #: Row types times patterns up to which the program of patterns is proven within seconds or
    #: minutes.
    few_pairs: int = 100_000
    #: Pairs of a row type and an output row that k records or more can share, up to which the
    #: program ends: of tables without any structure, 800 took 6 s with k = 4, and 3,300 took 5 s
    #: with k = 2.
    proven_pairs: int = 1_000
    #: Nodes that the program of patterns gets beyond that, times such pairs, and fewest nodes that
    #: are worth its root: 300 census records with k = 10 are proven by 3,200 pairs, tables without
    #: any structure come within 3 %, in some 15 s.
    tried: int = 20_000
    least_tried: int = 6
    #: Pairs of records are an assignment problem, which is solved up to so many records.
    paired_records: int = 1_000
    #: Records whose classes are improved; the same of losses without tables, where whole classes
    #: are evaluated.
    improved: int = 1_000_000
    improved_in_batches: int = 1_000
    #: Records that the freeform heuristics look at together; more are cut into parts of so many.
    part: int = 1_000
    #: Most work of freeform heuristics, as pairs of records of a part, times k: with reassignment,
    #: and of one round of assignments alone; beyond rings.
    reassigned: float = 2.5e8
    assigned: float = 1.2e9
    evaluated: float = 4e5  # the same of losses without tables: 50,000 took 1.3 s
    #: Reciprocal sets have no parts: records up to which their matches are exchanged.
    whole: int = 10_000

    def tried_nodes(self, shared: int) -> int:
        """Return the nodes that a program of so many pairs is searched for; 0 for no program."""
        nodes = self.tried // shared if shared else 0
        return nodes if nodes >= self.least_tried else 0


#: The reach of each effort.
REACH = {
    "quick": Reach(
        by_columns=600,
        by_pairs=1_200,
        concealed=2e9,
        proven_pairs=250,
        tried=0,
        reassigned=5e7,
        assigned=2.4e8,
        evaluated=5e4,
    ),
    "normal": Reach(),
    "thorough": Reach(
        by_columns=10_000,
        by_pairs=12_000,
        concealed=5e10,
        part=1_500,
        reassigned=3e9,
        assigned=1.2e10,
        evaluated=4e6,
    ),
}
#: Methods that take the place of one whose solver failed and left nothing.
_WITHOUT_SOLVER: Mapping[str, tuple[str, ...]] = {
    "classes": ("greedy-search", "ordered-cut", "mondrian"),
    "freeform": ("nh", "ring"),
    "pattern": ("pattern-search", "pattern-greedy"),
}
#: For k of 2 and 3 there are duals of triples: so many times as many pairs. Parts that share output
#: rows by other rules are no parts: so many times fewer.
_TRIPLED, _WHOLE_PROGRAM = 4, 4
#: Shares of the time that goes to what lower efforts pick, and to a freeform cover where a weaker
#: notion is asked for.
_SHARE_OF_CHEAPER, _SHARE_OF_COVER = 0.25, 0.5
#: Every freeform cover is one of these, and gives k effective matches as well.
_ONE_SIDED = frozenset({"one-k", "k-one", "k-k"})


class _Choice(NamedTuple):
    """A method to try and its own options."""

    name: str
    options: Mapping[str, object] = {}


#: Methods to try, one after the other, and why.
_Ranked = tuple[tuple[_Choice, ...], str]

#: Sets of a weaker notion's own.
_OWN = _Choice("nearest-sets")


def auto(
    problem: Problem,
    *,
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    **settings: Any,
) -> Solution:
    """Pick a method by recoding, size, objective and effort, run it, and say what was picked.

    `effort`: how much work it may take: a method that would take more is not picked. `budget, seed,
    settings`: handed on to the method picked, as the effort is. Raises InputError if classes are to
    be close (t of a diversity), which no method makes.
    """
    budget = budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    settings |= {"effort": effort, "seed": seed}
    reach = REACH[effort]
    name = problem.recoding.name
    if name == "classes" and problem.diversity is not None and problem.diversity.t is not None:
        raise InputError(
            f"no method makes classes that keep the {problem.diversity}",
            remedy=f"Use {argument('recoding', 'pattern')}, or where columns have hierarchies "
            f"{argument('recoding', 'full-domain')}",
        )
    is_small, compiled = problem.n <= reach.few_concealed, problem.compiled
    # Heuristics of the weaker notions read tables of the loss, the model asks that it be monotone.
    blind = not compiled.has_tables or (is_small and not compiled.monotone)
    serves = name in _ONE_SIDED and (blind or not is_small)
    if name == "k-concealment":
        # Rings are made to be published diverse, sets of one notion's own seldom can be.
        serves = (
            blind or problem.diversity is not None or 8 * _concealing(problem) > reach.concealed
        )
    if serves:
        return _auto_freeform(problem, budget, settings)
    if name == "k-concealment" and problem.n > reach.few_concealed:
        # Its own sets and a cover that promises more: which loses less differs from table to table.
        covers = _auto_freeform(problem, budget.share(_SHARE_OF_COVER), settings)
        return _best_of([covers, _first_of(_pick(problem, effort), problem, budget, settings)])
    picked = _pick(problem, effort)
    choices = picked[0]
    heuristic = find_method(choices[0].name).role != "exact"
    if heuristic and isinstance(problem.recoding, Freeform) and problem.recoding.suppression:
        last, refused = choices[-1], "leaving records out gave the others no sets"
        try:
            return leaves_out(auto, has_efforts=True)(problem, budget=budget, **settings)
        except NoSolution:
            if not problem.limits or (problem.recoding.reciprocal and last.name != "freeform-mip"):
                raise
        if not problem.recoding.reciprocal:
            # Under limits exchanges may find no cover where classes are found, which hold rings.
            try:
                return _rings_in_classes(problem, budget, settings)
            except NoSolution:
                if last.name != "freeform-mip":
                    raise
        # The model says itself who is left out.
        return _run(last, refused, problem, budget, settings)
    if choices[0].name == "nh":
        found = list[Solution]()
        try:
            found.append(_first_of(picked, problem, budget, settings))
        except NoSolution:
            if not (rings := _diverse_rings(problem, budget, settings)):
                raise
            return _best_of(rings)
        return _best_of([*_diverse_rings(problem, budget, settings), *found])
    # Whether the best classes are told within the effort, and hold covers as good.
    told = problem.n <= reach.improved_in_batches and is_plain(problem) and compiled.monotone
    if problem.recoding == Freeform() and choices[0].name == "ring" and told:
        covers = _rings_in_classes(problem, budget.share(_SHARE_OF_COVER), settings)
        best = _best_of([covers, _first_of(picked, problem, budget, settings)])
        if not best.is_optimal and problem.n * problem.k <= reach.few_flows:
            why = f"{problem.n:,} records: provable"
            with suppress(NoSolution, InputError, SolverError):
                exact = _run(_Choice("freeform-mip"), why, problem, budget, settings)
                best = _best_of([best, exact])
        return best
    cheaper = _cheaper_picks(problem, effort, choices[0])
    by_rings = heuristic and problem.recoding == Freeform() and told
    if not cheaper and not by_rings:
        return _first_of(picked, problem, budget, settings)
    found = []
    if by_rings:
        with suppress(NoSolution, InputError):
            part = budget.share(_SHARE_OF_CHEAPER)
            found.append(_rings_in_classes(problem, part, settings))
    for at, (lower, picks) in enumerate(cheaper):
        share = budget.share(_SHARE_OF_CHEAPER / (len(cheaper) - at))
        with suppress(NoSolution, InputError):
            found.append(_first_of(picks, problem, share, {**settings, "effort": lower}))
    try:
        found.append(_first_of(picked, problem, budget, settings))
    except NoSolution:
        if not found:
            raise
    return _best_of(found)


def _best_of(found: list[Solution]) -> Solution:
    """Return the best of some releases, the last of equal ones, with the highest bound of all."""
    best = min(reversed(found), key=_loss)
    for bound in (other.bound for other in found if other is not best):
        best = best if bound is None else best.with_bound(bound)
    if best is not found[-1]:
        other = f"{found[-1].method} found {found[-1].objective:.6g}: kept is the better release"
        best = replace(best, trace=(*best.trace, other))
    return best


def _cheaper_picks(problem: Problem, effort: str, last: _Choice) -> list[tuple[str, _Ranked]]:
    """Return what lower efforts pick, with them, where the pick does not begin with that itself."""
    # Local search does what lower efforts do, and exact methods of classes begin with it.
    if problem.recoding.name != "freeform":
        return []
    picks: list[tuple[str, _Ranked]] = []
    for lower in EFFORTS[: EFFORTS.index(effort)]:
        picked = _pick(problem, lower)
        names = [picks[-1][1][0][0]] if picks else []
        if find_method(picked[0][0].name).role == "exact" or picked[0][0] in (last, *names):
            continue
        picks.append((lower, picked))
    return picks


def _first_of(
    picked: _Ranked, problem: Problem, budget: Budget, settings: dict[str, Any]
) -> Solution:
    """Return what the first method finds that finds anything."""
    choices, reason = picked
    for choice in choices:
        try:
            return _run(choice, reason, problem, budget, settings)
        except NoSolution:
            if choice is choices[-1]:
                raise
            reason = f"{choice.name} found nothing that obeys the rules"
        except SolverError as failure:
            reason = f"{choice.name} failed: {failure.message}"
    for name in _WITHOUT_SOLVER.get(problem.recoding.name, ()):
        try:
            return _run(_Choice(name), reason, problem, budget, settings)
        except (NoSolution, InputError):
            continue
    raise NoSolution(
        f"no release was found: {reason}",
        remedy=f"Name another solver ({argument('solver', ...)}), or loosen a rule",
    )


def _auto_freeform(problem: Problem, budget: Budget, settings: dict[str, Any]) -> Solution:
    """Return a freeform cover, which has what the weaker notions ask for as well."""
    fits = _concealing(problem) <= REACH[settings["effort"]].concealed
    fits = fits and problem.diversity is None and problem.compiled.has_tables
    if not fits or settings["effort"] != "thorough":
        return _cover_or_own(problem, fits, budget, settings, settings["effort"])
    # Mostly sets of their own lose less than the best cover, which takes long to prove.
    found = _cover_or_own(problem, fits, budget, settings, "normal")
    exact = problem.compiled.monotone and found.ncp == 0
    if exact or found.method == _OWN.name:
        return found
    with suppress(NoSolution):  # as where time has ended
        found = min(found, _cover_or_own(problem, False, budget, settings, "thorough"), key=_loss)
    return found


def _cover_or_own(
    problem: Problem, fits: bool, budget: Budget, settings: dict[str, Any], effort: str
) -> Solution:
    """Return a freeform cover, or sets of the notion's own where those fit and lose less."""
    asked, of_cover = problem.replace(recoding=Freeform()), {**settings, "effort": effort}
    try:
        found = auto(asked, budget=budget, **of_cover)
    except NoSolution:
        if problem.diversity is not None or not problem.limits:
            raise
        # Limits may leave sets of a weaker notion where they leave no freeform cover.
        if problem.compiled.has_tables and problem.compiled.monotone:
            return _run(_OWN, "no freeform cover obeys the limits", problem, budget, settings)
        found = auto(problem.replace(objective="gcp"), budget=budget, **settings)
        return retold(
            found, problem, remark="sets of least gcp: no freeform cover obeys the limits"
        )
    remark = f"a freeform cover is a {problem.recoding.name} cover too"
    solution = retold(found, problem, remark=remark)
    if problem.diversity is not None:
        with suppress(NoSolution, InputError, InvalidAssignment):
            asked = problem.replace(recoding=EquivalenceClasses())
            classes = auto(asked, budget=budget, **settings)
            assert isinstance(classes.assignment, Classes)
            cover = Cover.of_classes(classes.assignment)
            alike = retold(classes, problem, cover, "each record may be any of its class")
            solution = min(solution, alike, key=_loss)
    if problem.compiled.monotone and solution.ncp == 0:
        return solution  # nothing loses less than exact cells
    if fits:
        with suppress(NoSolution):  # freeform covers keep what such sets break
            sets = _run(_OWN, "sets of their own", problem, budget, settings)
            solution = min(solution, sets, key=_loss)
    return solution


def _loss(found: Solution) -> float:
    return found.objective


def _concealing(problem: Problem) -> float:
    """Return the work of the heuristics for the weaker notions.

    Each pair of records is looked at column by column, and for as long as two columns take
    besides; k times, or for k-concealment about five times.
    """
    times = 5 if problem.recoding.name == "k-concealment" else problem.k
    return float(problem.n) ** 2 * (problem.m + 2) * times


def _rings_in_classes(problem: Problem, budget: Budget, settings: dict[str, Any]) -> Solution:
    """Return a cover by rings within the best classes, which loses no more than these."""
    asked = problem.recoding
    assert isinstance(asked, Freeform)
    classes = EquivalenceClasses(asked.suppression, asked.most_suppressed, asked.suppression_price)
    found = auto(problem.replace(recoding=classes), budget=budget, **settings)
    assert isinstance(found.assignment, Classes)
    sets: list[Codes] = [np.empty(0, np.int32)] * problem.n
    for group in found.assignment.groups():
        for place, record in enumerate(group):
            sets[record] = np.roll(group, -place)[: problem.k].astype(np.int32)
    remark = "each class holds a ring of sets of k, which loses no more"
    return retold(found, problem, Cover.of(sets), remark)


def _diverse_rings(problem: Problem, budget: Budget, settings: dict[str, Any]) -> list[Solution]:
    """Return covers by rings in diverse classes, those that lower efforts find as well."""
    found, efforts = [], EFFORTS[: EFFORTS.index(settings["effort"]) + 1]
    runs = [(*asked, effort) for asked in classes_for_rings(problem) for effort in efforts]
    for at, (size, diversity, effort) in enumerate(runs):
        share = budget.share(1 / (len(runs) - at))
        with suppress(NoSolution, InputError, InvalidAssignment):
            # Refused where a value is too frequent for what is asked of such classes.
            classes = problem.replace(k=size, recoding=EquivalenceClasses(), diversity=diversity)
            best = auto(classes, budget=share, **{**settings, "effort": effort})
            assert isinstance(best.assignment, Classes)
            cover = rings_in_classes(problem, best.assignment, size, share)
            found.append(retold(best, problem, cover, "a diverse ring in each class of these"))
    return found


def _run(
    choice: _Choice, reason: str, problem: Problem, budget: Budget, settings: dict[str, Any]
) -> Solution:
    spec, seed = find_method(choice.name), settings["seed"]
    taken = {key: value for key, value in settings.items() if key in spec.takes}
    run, remarks = spec.load(), []
    few = problem.n <= REACH[settings["effort"]].few_concealed
    if choice.name == "equivalence-mip" and not few:
        # The model cannot end on many tables: what is improved is mostly better than it gets to.
        share = budget.share(_SHARE_OF_CHEAPER)
        with suppress(NoSolution, InputError):
            improve = find_method("local-search").load()
            first = improve(problem, budget=share, seed=seed, effort=settings["effort"])
            taken["start"] = first.assignment
            remarks.append(f"start: {first.objective:.6g} by {first.method}")
    solution: Solution = run(problem, budget=budget, seed=seed, **taken, **choice.options)
    solution = replace(solution, trace=(*remarks, *solution.trace))
    return replace(solution, trace=(f"auto picked {choice.name}: {reason}", *solution.trace))


def picked_method(problem: Problem, effort: str) -> str:
    """Return the name of the method that `auto` tries first."""
    return _pick(problem, effort)[0][0].name


def _pick(problem: Problem, effort: str) -> _Ranked:
    """Return the methods to try, one after the other, and why."""
    name, few = problem.recoding.name, REACH[effort].few_concealed
    if name in _PICKS:
        return _PICKS[name](problem, effort)
    if name == "full-domain":
        return (_Choice(name),), f"the method for {name}"
    if name == "k-concealment" and problem.n > few:
        return (_Choice("k-concealment"),), f"more than {few} records"
    return (_Choice("freeform-mip"),), f"the method for {name}"


def _pick_classes(problem: Problem, effort: str) -> _Ranked:
    reach = REACH[effort]
    if is_cut(problem) and not has_rules(problem):
        return (_Choice("ordered-cut"),), "squared errors of one column: provable"
    classes = model_size(problem, "set-partition") if problem.n <= reach.few_records else None
    listed = classes is not None and classes <= reach.few_classes
    # Of a limit of suppression columns know the price alone, the model the limit itself.
    by_columns = _columns_suit(problem, effort) and problem.compiled.superadditive
    if by_columns and not (problem.is_capped and listed):
        choices = (_Choice("column-generation"), _Choice("local-search"))
        return choices, f"{problem.n:,} records, k = {problem.k}: provable"
    if listed:
        return (_Choice("equivalence-mip"),), f"{classes:,} possible classes: provable"
    reason = f"more than {reach.few_classes:,} possible classes"
    # Under limits a heuristic may find nothing where another does.
    others = tuple(map(_Choice, ("ordered-cut", "mondrian") if problem.limits else ()))
    by_kernels = problem.compiled.has_tables or are_priced(problem)
    most = reach.improved if by_kernels else reach.improved_in_batches
    # Where rows repeat there are few row types to look at.
    if problem.n <= most or (by_kernels and repeats(problem)):
        return (_Choice("local-search"), *others), reason
    return (_Choice("greedy-search"), *others), reason


def _columns_suit(problem: Problem, effort: str) -> bool:
    """Return whether column generation proves an optimum, or nearly, with an effort."""
    compiled = problem.compiled
    if are_priced(problem):
        types = len(row_types(problem).first)
        return types * problem.k**2 <= REACH[effort].by_pairs
    if not compiled.has_tables or not compiled.monotone or compiled.aggregate != "sum":
        return False
    types = len(problem.microdata.row_types().first)
    ruled = problem.diversity is not None or bool(problem.limits)
    return not ruled and types * problem.k**2 <= REACH[effort].by_columns


def _pick_patterns(problem: Problem, effort: str) -> _Ranked:
    exact = _Choice("pattern-ilp", {"warm_start": "search"})
    shared, reason = _count_pairs(problem, effort)
    if shared is None:
        return (exact,), reason
    tried = REACH[effort].tried_nodes(shared)
    if tried:
        options = {**exact.options, "formulation": "pattern-strong", "nodes": tried}
        return (_Choice("pattern-ilp", options), exact), reason
    # A proof for each price that a limit may be kept by would have no end.
    others = () if problem.is_capped else (exact,)
    return (_Choice("pattern-search"), *others), reason


def _pick_levels(problem: Problem, effort: str) -> _Ranked:
    # Imported late, as below: other choices need no models of patterns, which import Pyomo.
    from anonymip.exact.patterns.pattern_levels import spread_levels

    exact = _Choice("pattern-levels")
    shared, reason = _count_pairs(spread_levels(problem), effort)
    if shared is None:
        return (exact,), reason
    return (_Choice("pattern-levels", {"formulation": "search"}), exact), reason


def _count_pairs(problem: Problem, effort: str) -> tuple[int | None, str]:
    """Return pairs that may be shared, 0 if not counted, and why; None if an effort proves it."""
    recoding, reach = recoding_of(problem), REACH[effort]
    pairs = len(problem.microdata.row_types().first) * len(recoding.stars(problem))
    counted = f"{pairs:,} pairs of a row and a pattern"
    if pairs <= reach.few_pairs and effort == "thorough":
        return None, f"{counted}: provable"
    if pairs > reach.few_pairs:
        return 0, counted
    from anonymip.models.patterns.pattern_columns import pattern_columns

    most = float(reach.proven_pairs)
    if recoding.single_use or problem.diversity is not None or problem.is_capped:
        most /= _WHOLE_PROGRAM
    elif problem.k <= 3:
        most *= _TRIPLED
    shared = len(pattern_columns(problem).rows)
    if shared <= most:
        return None, f"{counted}: provable"
    return (
        shared,
        f"{counted}, {shared:,} of them shared by k: a proof needs more than {effort} effort",
    )


def _pick_freeform(problem: Problem, effort: str) -> _Ranked:
    reach = REACH[effort]
    n, exact = problem.n, (_Choice("freeform-mip"),)
    degrees = getattr(problem.recoding, "degrees", None) or ()
    if len(set(degrees)) > 1:
        if is_plain(problem) and problem.compiled.aggregate == "sum" and n > reach.few_concealed:
            return (_Choice("sort-greedy"), *exact), "degrees of their own"
        return exact, "degrees of their own"
    if n <= reach.paired_records and pair_obstacle(problem) is None:
        return exact, "pairs of records are an assignment problem: provable"
    if problem.recoding == Freeform() and _columns_suit(problem, effort):
        return (_Choice("column-generation"), *exact), f"{n:,} records, k = {problem.k}: provable"
    if needs_every_size(problem) and too_many_sets(problem) is None:
        return exact, "few records, and sets of every size: provable"
    sets = _possible_sets(problem, effort)
    if sets is not None and sets <= reach.few_classes:
        return exact, f"{sets:,} possible sets: provable"
    if problem.diversity is not None:
        return (_Choice("nh"), _Choice("ring"), *exact), "rings keep a diversity"
    if not problem.compiled.has_tables or problem.compiled.aggregate != "sum":
        ring = (_Choice("ring"), *exact)
        if problem.compiled.aggregate == "sum" and n * n * problem.k <= reach.evaluated:
            return (_Choice("reassign", {"from_method": "hungarian"}), *ring), f"{n:,} records"
        return ring, "rings take any objective"
    if n > reach.part and problem.recoding != Freeform():
        fits = n <= reach.whole and n * n * problem.k <= reach.reassigned
        return (_Choice("reassign" if fits else "ring"),), f"{n:,} records"
    # Parts shrink where k or the table is large, as long as each can hold two sets.
    room = int(reach.assigned / (n * problem.k))
    part = min(n, max(2 * problem.k, min(reach.part, room)))
    work, cut = n * part * problem.k, {} if part == n else {"part": part}
    reason = f"{n:,} records" + (", in parts" if cut else "")
    # Under limits exchanges may find no cover where there is one.
    others = exact if problem.limits and n <= reach.few_records else ()
    if work <= reach.reassigned:
        return (_Choice("reassign", {"from_method": "hungarian", **cut}), *others), reason
    if work <= reach.assigned:
        return (_Choice("hungarian", cut), *others), reason
    return (_Choice("ring"),), f"{n:,} records"


def _possible_sets(problem: Problem, effort: str) -> int | None:
    """Return how many sets a cover may be chosen from; None if it is not modelled that way."""
    if problem.n > REACH[effort].few_records:
        return None
    try:
        return model_size(problem, "set-cover")
    except InputError:
        return None


_PICKS: Mapping[str, Callable[[Problem, str], _Ranked]] = {
    "classes": _pick_classes,
    "freeform": _pick_freeform,
    "pattern": _pick_patterns,
    "pattern-levels": _pick_levels,
}
