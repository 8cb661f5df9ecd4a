"""What records lose at the levels of a full-domain generalization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata
from anonymip.objectives import (
    GCP,
    HierarchyLoss,
    LeafLoss,
    LiangGCP,
    SetGCP,
    Suppressions,
    WeightedLoss,
)
from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.objectives.language.record import CellBatch
from anonymip.recodings.rows.level_maps import STAR, level_maps

# Losses whose terms look at one attribute each, stars included. What is traced of other losses
# says nothing about records with some stars.
_ADDITIVE = (GCP, HierarchyLoss, LeafLoss, LiangGCP, SetGCP, WeightedLoss)


@dataclass(frozen=True, eq=False)
class LevelCells:
    """The levels of all attributes that differ on the observed values.

    Parameters
    ----------
    microdata
        The table.
    levels
        For each attribute the levels that publish something else than the one below, ascending.
    cells
        For each attribute (levels, L) int32, the cell of each observed value at those levels.
    nested
        For each attribute whether values with one cell have one at all higher levels.
    """

    microdata: Microdata
    levels: tuple[NDArray[np.int64], ...]
    cells: tuple[NDArray[np.int32], ...]
    nested: tuple[bool, ...]

    @classmethod
    def of(cls, microdata: Microdata) -> LevelCells:
        """Return the levels of a table."""
        levels, cells, maps = [], [], level_maps(microdata)
        for each in maps:
            new = np.ones(len(each.cells), np.bool_)
            new[1:] = (each.cells[1:] != each.cells[:-1]).any(axis=1)
            levels.append(np.flatnonzero(new))
            cells.append(np.ascontiguousarray(each.cells[new]))
        return cls(microdata, tuple(levels), tuple(cells), tuple(each.nested for each in maps))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each attribute: the shape of the lattice."""
        return tuple(len(levels) for levels in self.levels)

    def at(self, place: tuple[int, ...], columns: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return (B, m) int32 cells of rows, given as (m, B) values, at a place of the lattice."""
        found = np.empty_like(columns)
        for a, level in enumerate(place):
            found[a] = self.cells[a][level][columns[a]]
        return np.ascontiguousarray(found.T)

    def published(self, codes: NDArray[np.int32], places: NDArray[np.int64]) -> CellBatch:
        """Return the cells of rows, as an objective sees them.

        Parameters
        ----------
        codes
            (B, m) values of each row.
        places
            (B, m) or (1, m) place of each row in the lattice.
        """
        microdata = self.microdata
        places = np.broadcast_to(places, codes.shape)
        lower = np.full(codes.shape, np.nan)
        counts = np.zeros(codes.shape, np.int64)
        nodes = np.full(codes.shape, -1, np.int32)
        stars = np.zeros(codes.shape, np.bool_)
        for a, attribute in enumerate(microdata.attributes):
            cell = self.cells[a][places[:, a], codes[:, a]]
            stars[:, a] = cell == STAR
            if attribute.hierarchy is not None:
                nodes[:, a] = cell
            elif attribute.is_numeric:
                exact = microdata.levels[a].astype(np.float64)[codes[:, a]]
                lower[:, a] = np.where(stars[:, a], np.nan, exact)
            counts[:, a] = self._members(a)[places[:, a], codes[:, a]]
        return CellBatch(lower, lower.copy(), counts, stars, nodes)

    def _members(self, attribute: int) -> NDArray[np.int64]:
        """Return (levels, L) number of observed values with each value's cell; 0 for a star."""
        members = np.zeros(self.cells[attribute].shape, np.int64)
        for row, cells in zip(members, self.cells[attribute], strict=True):
            _, number, sizes = np.unique(cells, return_inverse=True, return_counts=True)
            row[:] = np.where(cells == STAR, 0, sizes[number.ravel()])
        return members

    def loss_terms(self, compiled: CompiledObjective) -> tuple[float, list[NDArray[np.float64]]]:
        """Return the loss of a record as a constant and (levels, L) terms of each attribute.

        The objective's own function is asked for one attribute at a time, the others exact.
        """
        lowest = np.zeros((1, self.microdata.m), np.int32)
        start = compiled.record_losses(self.published(lowest, lowest.astype(np.int64)))[0]
        terms = []
        for a, cells in enumerate(self.cells):
            levels, values = cells.shape
            codes = np.zeros((cells.size, self.microdata.m), np.int32)
            places = np.zeros(codes.shape, np.int64)
            codes[:, a] = np.tile(np.arange(values), levels)
            places[:, a] = np.repeat(np.arange(levels), values)
            losses = compiled.record_losses(self.published(codes, places))
            terms.append((losses - start).reshape(levels, values))
        return float(start), terms


def is_additive(compiled: CompiledObjective) -> bool:
    """Return whether the loss of records at any levels is a sum of terms of one attribute each."""
    if compiled.aggregate != "sum" or not compiled.has_tables:
        return False
    if all(attribute.hierarchy is not None for attribute in compiled.microdata.attributes):
        return True
    given = compiled.objective
    if type(given) is Suppressions:
        return not given.patterns
    return type(given) in _ADDITIVE
