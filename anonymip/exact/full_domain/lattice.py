"""The lattice of levels: what each place of it loses, and what is known of the others by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.exact.full_domain.cells import LevelCells, is_additive
from anonymip.instances.microdata import RowTypes
from anonymip.problem import Problem
from anonymip.recodings.full_domain import FullDomain, outliers
from anonymip.recodings.rows.output_rows import rows_alike

#: Places whose bounds are held at once.
MAX_PLACES = 5_000_000

Place = tuple[int, ...]


class Judgement(NamedTuple):
    """What is found out about one place.

    Parameters
    ----------
    loss
        Of the release; infinite if it is not allowed.
    surplus
        What the places below lose at least beyond their own generalization; infinite if none of
        them is allowed.
    """

    loss: float
    surplus: float


@dataclass(eq=False)
class LevelLattice:
    """Lower bounds of all combinations of levels, sharpened by each place that is judged.

    Parameters
    ----------
    problem
        With full-domain generalization as its recoding.

    Attributes
    ----------
    bounds
        What each place loses at least, one axis an attribute; infinite where no release is allowed.

    Raises
    ------
    InputError
        If there are more places than are held at once.

    Notes
    -----
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

    problem: Problem
    bounds: NDArray[np.float64] = field(init=False)
    _cells: LevelCells = field(init=False)
    _types: RowTypes = field(init=False)
    _codes: NDArray[np.int32] = field(init=False)
    _columns: NDArray[np.int32] = field(init=False)
    _terms: list[NDArray[np.float64]] | None = field(init=False, default=None)
    _constant: float = field(init=False, default=0.0)
    _least: NDArray[np.float64] = field(init=False)
    _sums: NDArray[np.float64] = field(init=False)
    _rises: bool = field(init=False, default=False)
    _limit: int = field(init=False)
    _price: float = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        if not isinstance(problem.recoding, FullDomain):
            raise InputError(
                f"the problem asks for {problem.recoding.name}, not for levels of the whole table",
                remedy="Use FullDomain() as the recoding",
            )
        self._limit = problem.recoding.limit(problem.n)
        self._price = problem.compiled.suppression_price if self._limit else 0.0
        self._cells = LevelCells.of(problem.microdata)
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
        if is_additive(problem.compiled):
            self._add_terms()
        self.bounds = self._least.copy()

    def _add_terms(self) -> None:
        """Fill in what every place loses by its generalization alone."""
        n, m = self.problem.n, len(self.shape)
        self._constant, self._terms = self._cells.loss_terms(self.problem.compiled)
        self._rises = all((np.diff(terms, axis=0) >= 0).all() for terms in self._terms)
        sums, dearest = np.full(self.shape, n * self._constant), np.full(self.shape, self._constant)
        for a, terms in enumerate(self._terms):
            along = [1] * m
            along[a] = -1
            held = np.bincount(self.problem.microdata.codes[:, a], minlength=terms.shape[1])
            sums += (terms @ held).reshape(along)
            dearest += terms.max(axis=1).reshape(along)
        saved = np.maximum(0.0, dearest - self._price) if self._limit else 0.0
        self._sums, self._least = sums, sums - self._limit * saved

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each attribute."""
        return self._cells.shape

    @property
    def top(self) -> Place:
        """The place of all highest levels."""
        return tuple(size - 1 for size in self.shape)

    def levels(self, place: Place) -> NDArray[np.int64]:
        """Return (m,) the levels of the attributes at a place."""
        return np.array([self._cells.levels[a][at] for a, at in enumerate(place)])

    def lowest(self) -> Place:
        """Return the first place of least bound."""
        at = np.unravel_index(int(self.bounds.argmin()), self.shape)
        return tuple(int(coordinate) for coordinate in at)

    def judge(self, place: Place) -> float:
        """Return the loss at a place, infinite if not allowed, and sharpen the bounds by it.

        Complexity: O(t m) for t distinct rows, and one pass over the places below.
        """
        found = self._judgement(place)
        below = self._below(place)
        if found.surplus == np.inf:
            self.bounds[below] = np.inf
        else:
            np.maximum(
                self.bounds[below], self._least[below] + found.surplus, out=self.bounds[below]
            )
        self.bounds[place] = found.loss
        return found.loss

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
                if at[a] + 1 < size and self._cells.nested[a]
            ]
            if not shares:
                return found
            at[min(shares)[1]] += 1
            found.append(tuple(at))

    def _below(self, place: Place) -> tuple[slice, ...]:
        """Return the places whose classes are parts of those of a place."""
        return tuple(
            slice(0 if nested else at, at + 1)
            for at, nested in zip(place, self._cells.nested, strict=True)
        )

    def _judgement(self, place: Place) -> Judgement:
        problem, counts = self.problem, self._types.counts
        shown = self._cells.at(place, self._columns)
        labels, number = rows_alike(shown, np.zeros(shown.shape[1], np.bool_))
        sizes = np.bincount(labels, weights=counts, minlength=number)
        small = (sizes < problem.k)[labels]
        left_out = small
        if problem.diversity is not None:
            left_out = outliers(problem, labels[self._types.inverse])[self._types.first]
        telling = small if self._limit else left_out
        if counts[telling].sum() > self._limit:
            return Judgement(np.inf, np.inf)
        allowed = counts[left_out].sum() <= self._limit
        if self._terms is None:
            loss = self._general_loss(place, left_out) if allowed else np.inf
            return Judgement(loss, -np.inf)
        dearness = self._dearness(place, left_out)
        surplus = dearness if telling is left_out else self._dearness(place, telling)
        loss = self._sums[place] + dearness if allowed else np.inf
        return Judgement(float(loss), surplus if self._rises else 0.0)

    def _dearness(self, place: Place, types: NDArray[np.bool_]) -> float:
        """Return what suppressing the given types costs more than publishing them."""
        assert self._terms is not None
        if not types.any():
            return 0.0
        held = self._types.counts[types]
        losses = np.full(len(held), self._constant)
        for a, level in enumerate(place):
            losses += self._terms[a][level][self._columns[a][types]]
        return float(((self._price - losses) * held).sum())

    def _general_loss(self, place: Place, left_out: NDArray[np.bool_]) -> float:
        """Return the loss by the objective's own function, record types one by one."""
        compiled, kept = self.problem.compiled, ~left_out
        losses = np.full(len(kept), self._price)
        if kept.any():
            losses[kept] = compiled.record_losses(
                self._cells.published(self._codes[kept], np.array([place], np.int64))
            )
        if compiled.aggregate == "sum":
            return float((losses * self._types.counts).sum())
        return compiled.aggregated(losses)
