"""What the levels of generalization of one attribute publish for each observed value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata

#: The cell of a star.
STAR = -1


@dataclass(frozen=True, eq=False)
class LevelMap:
    """The cells of an attribute at each of its levels.

    Parameters
    ----------
    cells
        (levels, L) int32, what each of L observed values is published as at each level: a node of
        the hierarchy; without one the value itself at level 0, a star (-1) at level 1.
    nested
        Whether values with one cell at a level have one at every level above it too. Paths of
        equal length whose groups each keep to one level are nested; padding may break it.
    """

    cells: NDArray[np.int32]
    nested: bool

    @classmethod
    def of(cls, microdata: Microdata, attribute: int) -> LevelMap:
        """Return the levels of an attribute.

        With a hierarchy level l of a value is the l-th label of its path, as the path is given:
        padded labels stand where they stand, and a path that is too short ends in the root.

        Parameters
        ----------
        microdata
            The table.
        attribute
            Its position.

        Notes
        -----
        Complexity: O(values of the hierarchy times its height).
        """
        values = len(microdata.levels[attribute])
        hierarchy = microdata.attributes[attribute].hierarchy
        if hierarchy is None:
            exact = np.arange(values, dtype=np.int32)
            return cls(np.stack([exact, np.full(values, STAR, np.int32)]), nested=True)
        place, levels = hierarchy.tree.place, hierarchy.height + 1
        paths = {path[0]: path for path in hierarchy.paths}
        cells = np.empty((levels, values), np.int32)
        for code, value in enumerate(microdata.levels[attribute]):
            path = paths[str(value)]
            nodes = [place[label] for label in path]
            cells[:, code] = nodes + [nodes[-1]] * (levels - len(nodes))
        return cls(cells, all(map(_refines, cells, cells[1:])))

    @property
    def height(self) -> int:
        """The highest level."""
        return len(self.cells) - 1


def level_maps(microdata: Microdata) -> tuple[LevelMap, ...]:
    """Return the levels of all attributes."""
    return tuple(LevelMap.of(microdata, a) for a in range(microdata.m))


def _refines(fine: NDArray[np.int32], coarse: NDArray[np.int32]) -> bool:
    """Return whether equal cells of the one are equal in the other."""
    distinct = len(np.unique(fine))
    return len(np.unique(np.stack([fine, coarse]), axis=1).T) == distinct
