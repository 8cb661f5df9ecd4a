"""How many rows of a release look alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.privacy.reading.manifests.manifest import Manifest
from anonymip.privacy.reading.published import PublishedTable


@dataclass(frozen=True, eq=False)
class ClassSizes:
    """The classes of a release, and its rows of stars only.

    Parameters
    ----------
    sizes
        (classes,) rows of each class.
    first
        (classes,) its first row.
    starred
        Number of rows of stars only.
    hidden
        The same if they were suppressed, so that they are counted as no class; else 0.
    """

    sizes: NDArray[np.int64]
    first: NDArray[np.int64]
    starred: int
    hidden: int

    @classmethod
    def of(cls, published: PublishedTable, manifest: Manifest) -> ClassSizes:
        """Count the rows of a release.

        Complexity: O(m n log n).
        """
        _, first, sizes = np.unique(published.classes(), return_index=True, return_counts=True)
        stars = np.asarray(published.suppressed.all(axis=1), np.bool_)
        starred = int(stars.sum())
        if manifest.stars_are_class:
            return cls(sizes, first, starred, 0)
        visible = ~stars[first]
        return cls(sizes[visible], first[visible], starred, starred)

    @property
    def smallest(self) -> int | None:
        """The fewest rows that look alike, those of stars only included; None without rows."""
        return min([*self.sizes.tolist(), *([self.hidden] if self.hidden else [])], default=None)

    def problems(self, claims: Collection[int]) -> list[str]:
        """Return where fewer rows look alike than one of the claimed values of k."""
        problems = []
        for claimed in sorted(claims):
            small = int(np.sum(self.sizes < claimed))
            if small:
                problems.append(
                    f"{small} classes have fewer than {claimed} rows; the smallest has "
                    f"{int(self.sizes.min())}, among them published row "
                    f"{int(self.first[np.flatnonzero(self.sizes == self.sizes.min())].min()) + 1}."
                )
            # Who finds a person in no class looks among them.
            if 0 < self.hidden < claimed:
                problems.append(
                    f"{self.hidden} rows of stars only are fewer than {claimed}: who finds a "
                    "person in no class knows that one of them is hers."
                )
        return problems
