"""The best levels of a full-domain generalization, by a search of the lattice of levels."""

from __future__ import annotations

import numpy as np

from anonymip.errors import InputError, NoSolution, argument
from anonymip.objectives.language.record import CellBatch, cells_of
from anonymip.objectives.star_costs import is_additive
from anonymip.problem import Problem
from anonymip.recodings.full_domain import FullDomain, outliers
from anonymip.recodings.output_rows import pack_rows, rows_alike
from anonymip.recodings.rows import STAR, describe_levels, level_maps
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped

#: Places whose bounds are held at once.
MAX_PLACES = 5_000_000

Place = tuple[int, ...]


class LevelLattice:
    """Lower bounds of all combinations of levels, sharpened by each place that is judged.

    `problem`: with full-domain generalization as its recoding. Raises InputError if there are more
    places than are held at once.

    Let c_i(x) be the loss of record i at place x, C(x) their sum, p the loss of a suppressed record
    and S(x) the records in classes of fewer than k. The loss at x is C(x) + sum over i in S(x) of
    (p - c_i(x)). Classes below a place are parts of its classes, so S(x) contains S(y) for every x
    below y, and if more records of y are suppressed than may be, so are those of x. If no c_i falls
    when levels rise, then

        loss(x) - C(x) >= sum over i in S(y) of (p - c_i(y)) - L max(0, max c_i(x) - p)

    with L the most records that may be suppressed: only a record that is dearer than p brings the
    sum down. C is a sum of terms of one attribute each, so it is known for all places at once.

    A diversity is kept by the union of classes that keep it. If no record may be suppressed, a
    place that breaks it excludes those below; else a part of a class that breaks it may keep it,
    and only classes of fewer than k records tell something about the places below.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        if not isinstance(problem.recoding, FullDomain):
            raise InputError(
                f"the problem asks for {problem.recoding.name}, not for levels of the whole table",
                remedy=f"Use {argument('recoding', 'full-domain')}",
            )
        self._limit = problem.recoding.limit(problem.n)
        self._price = problem.compiled.suppression_price if self._limit else 0.0
        maps = level_maps(problem.microdata)
        self._nested = [each.nested for each in maps]
        # Of each attribute the levels that publish something else than the one below, ascending,
        # and (levels, L) int32 the cell of each observed value at those.
        self._levels: list[Ints] = []
        self._cells: list[Codes] = []
        for each in maps:
            new = np.ones(len(each.cells), np.bool_)
            new[1:] = (each.cells[1:] != each.cells[:-1]).any(axis=1)
            self._levels.append(np.flatnonzero(new))
            self._cells.append(np.ascontiguousarray(each.cells[new]))
        size = float(np.prod(np.array(self.shape, np.float64)))
        if size > MAX_PLACES:
            raise InputError(
                f"the attributes have {size:,.0f} combinations of levels, more than {MAX_PLACES:,}",
                remedy="Use hierarchies with fewer levels, or fewer quasi-identifiers",
            )
        self._types = problem.microdata.row_types()
        self._codes = np.ascontiguousarray(problem.microdata.codes[self._types.first])
        # A column of its own is gathered faster than one of a table of rows.
        self._columns = np.ascontiguousarray(self._codes.T)
        self._least = np.full(self.shape, -np.inf)
        self._terms: list[Floats] | None = None
        self._constant, self._rises = 0.0, False
        if is_additive(problem.compiled):
            self._add_terms()
        #: What each place loses at least, one axis an attribute; infinite where no release is
        #: allowed.
        self.bounds = self._least.copy()
        #: The places that were judged, the best of them, and its loss.
        self.judged: set[Place] = set()
        self.best: Place | None = None
        self.loss = np.inf

    def _add_terms(self) -> None:
        """Fill in what every place loses by its generalization alone.

        The objective's own function is asked for one attribute at a time, the others exact.
        """
        n, m, compiled = self.problem.n, len(self.shape), self.problem.compiled
        lowest = np.zeros((1, m), np.int32)
        start = compiled.record_losses(self._published(lowest, lowest.astype(np.int64)))[0]
        self._constant, self._terms = float(start), []
        sums, dearest = np.full(self.shape, n * self._constant), np.full(self.shape, self._constant)
        for a, cells in enumerate(self._cells):
            levels, values = cells.shape
            codes = np.zeros((cells.size, m), np.int32)
            places = np.zeros(codes.shape, np.int64)
            codes[:, a] = np.tile(np.arange(values), levels)
            places[:, a] = np.repeat(np.arange(levels), values)
            losses = compiled.record_losses(self._published(codes, places))
            terms = (losses - start).reshape(levels, values)
            self._terms.append(terms)
            along = [1] * m
            along[a] = -1
            held = np.bincount(self.problem.microdata.codes[:, a], minlength=values)
            sums += (terms @ held).reshape(along)
            dearest += terms.max(axis=1).reshape(along)
        self._rises = all((np.diff(terms, axis=0) >= 0).all() for terms in self._terms)
        saved = np.maximum(0.0, dearest - self._price) if self._limit else 0.0
        self._sums, self._least = sums, sums - self._limit * saved

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each attribute."""
        return tuple(len(levels) for levels in self._levels)

    @property
    def top(self) -> Place:
        """The place of all highest levels."""
        return tuple(size - 1 for size in self.shape)

    def levels(self, place: Place) -> Ints:
        """Return (m,) the levels of the attributes at a place."""
        return np.array([self._levels[a][at] for a, at in enumerate(place)])

    def judge(self, place: Place) -> float:
        """Return the loss at a place, infinite if not allowed, and sharpen the bounds by it.

        Complexity: O(t m) for t distinct rows, and one pass over the places below.
        """
        loss, surplus = self._judgement(place)
        # The places whose classes are parts of those of this place.
        nested = zip(place, self._nested, strict=True)
        below = tuple(slice(0 if part else at, at + 1) for at, part in nested)
        if surplus == np.inf:
            self.bounds[below] = np.inf
        else:
            np.maximum(self.bounds[below], self._least[below] + surplus, out=self.bounds[below])
        self.bounds[place] = loss
        self.judged.add(place)
        if loss < self.loss:
            self.best, self.loss = place, loss
        return loss

    def settle(self, place: Place) -> None:
        """Exclude a place by one above it, the highest of a chain that can, or judge it."""
        chain = self.chain(place)
        low, high = 0, len(chain) - 1
        while low <= high:
            middle = (low + high) // 2
            if chain[middle] not in self.judged:
                self.judge(chain[middle])
            if self.bounds[place] >= self.loss:
                low = middle + 1
            else:
                high = middle - 1

    def chain(self, place: Place) -> list[Place]:
        """Return places from one upwards, each one level of one attribute above the last.

        The attribute with the least share of its levels used up is raised, so that what breaks a
        rule high up excludes many places. Attributes that are not nested stay.
        """
        found, at = [place], list(place)
        while True:
            shares = [
                (at[a] / size, a)
                for a, size in enumerate(self.shape)
                if at[a] + 1 < size and self._nested[a]
            ]
            if not shares:
                return found
            at[min(shares)[1]] += 1
            found.append(tuple(at))

    def _judgement(self, place: Place) -> tuple[float, float]:
        """Return the loss at a place, and what those below lose beside their own generalization.

        At least so much; both are infinite where no release is allowed.
        """
        problem, counts = self.problem, self._types.counts
        levels = zip(self._cells, place, self._columns, strict=True)
        shown = np.stack([cells[at][column] for cells, at, column in levels], axis=1)
        labels, number = rows_alike(pack_rows(shown, np.zeros((1, shown.shape[1]), np.bool_)))
        sizes = np.bincount(labels, weights=counts, minlength=number)
        small = (sizes < problem.k)[labels]
        left_out = small
        if problem.diversity is not None:
            left_out = outliers(problem, labels[self._types.inverse])[self._types.first]
        telling = small if self._limit else left_out
        if counts[telling].sum() > self._limit:
            return np.inf, np.inf
        allowed = counts[left_out].sum() <= self._limit
        if self._terms is None:
            loss = self._general_loss(place, left_out) if allowed else np.inf
            return loss, -np.inf
        dearness = self._dearness(place, left_out)
        surplus = dearness if telling is left_out else self._dearness(place, telling)
        loss = self._sums[place] + dearness if allowed else np.inf
        return float(loss), surplus if self._rises else 0.0

    def _dearness(self, place: Place, types: Flags) -> float:
        """Return what suppressing the given types costs more than publishing them."""
        assert self._terms is not None
        if not types.any():
            return 0.0
        held = self._types.counts[types]
        losses = np.full(len(held), self._constant)
        for a, level in enumerate(place):
            losses += self._terms[a][level][self._columns[a][types]]
        return float(((self._price - losses) * held).sum())

    def _published(self, codes: Codes, places: Ints) -> CellBatch:
        """Return the cells of rows, as an objective sees them.

        `codes`: (B, m) values of each row. `places`: (B, m) or (1, m) place of each row.
        """
        places = np.broadcast_to(places, codes.shape)
        levels = zip(self._cells, places.T, codes.T, strict=True)
        stars = np.stack([cells[at, code] == STAR for cells, at, code in levels], axis=1)
        microdata = self.problem.microdata
        return cells_of(describe_levels(microdata, self._cells, places, stars, codes))

    def _general_loss(self, place: Place, left_out: Flags) -> float:
        """Return the loss by the objective's own function, record types one by one."""
        compiled, kept = self.problem.compiled, ~left_out
        losses = np.full(len(kept), self._price)
        if kept.any():
            losses[kept] = compiled.record_losses(
                self._published(self._codes[kept], np.array([place], np.int64))
            )
        if compiled.aggregate == "sum":
            return float((losses * self._types.counts).sum())
        return compiled.aggregated(losses)


def full_domain(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Find the levels of least loss among all that the problem allows.

    `problem`: with full-domain generalization as its recoding. `budget`: when it ends, the best
    levels found are returned, with the bound of those not looked at. Raises InputError if the
    problem asks for another recoding, or has too many combinations of levels; NoSolution if no
    levels are allowed, or none were found within the budget.

    The place with the least lower bound is either excluded or judged, until no bound is below the
    loss of the best release. To exclude it, a chain of places above it is halved for the highest
    one that does so, as in [1]_: a place where too many records are left alone excludes all below
    it. Bounds sharpen what tagging of k-anonymous places knows, so that releases with suppressed
    records are told apart as well; the proof is that of
    :class:`~anonymip.exact.full_domain.full_domain.LevelLattice`. Losses that are no sum over
    attributes have no bounds: every place that is not excluded by a rule is judged.

    Complexity: O(P (t m + P)) for P places and t distinct rows at worst; of the places a few per
    cent are judged, as a rule.

    References
    ----------
    .. [1] F. Kohlmayer, F. Prasser, C. Eckert, A. Kemper, K. A. Kuhn: Flash: Efficient, Stable and
       Optimal K-Anonymity, PASSAT 2012.
    """
    watch, budget = Stopwatch(), budget or Budget()
    lattice, stopped = LevelLattice(problem), Stopped.OPTIMAL
    lattice.judge(lattice.top)
    while True:
        at = np.unravel_index(int(lattice.bounds.argmin()), lattice.shape)
        place = tuple(int(coordinate) for coordinate in at)
        least = float(lattice.bounds[place])
        if least >= lattice.loss:
            break
        reason = budget.stop_reason()
        if reason is not None:
            stopped = reason
            break
        lattice.settle(place)
        budget.report(
            "searching the lattice of levels",
            done=len(lattice.judged),
            incumbent=lattice.loss if lattice.best is not None else None,
            bound=least if np.isfinite(least) else None,
        )
    recoding = problem.recoding
    assert isinstance(recoding, FullDomain)
    if lattice.best is None and stopped is Stopped.OPTIMAL:
        raise NoSolution(
            f"no levels leave at most {recoding.limit(problem.n)} records to be suppressed",
            remedy="Allow more suppressed records, or ask for less diversity",
        )
    if lattice.best is None:
        raise NoSolution(
            f"no levels were found before the search stopped ({stopped.value})",
            remedy="Give it more time",
        )
    size, least = int(np.prod(lattice.shape)), min(least, lattice.loss)
    seconds = watch.seconds
    bound = Bound(least, "full-domain", "argument", seconds) if np.isfinite(least) else None
    return Solution.of(
        problem,
        recoding.assignment(problem, lattice.levels(lattice.best)),
        method="full-domain",
        bound=bound,
        stopped=stopped,
        seconds=seconds,
        trace=(f"{len(lattice.judged):,} of {size:,} combinations of levels were judged",),
    )
