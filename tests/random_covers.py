"""Random generalization graphs, and those of the papers' examples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip import Cover


def ring(n: int, k: int) -> Cover:
    """Return consecutive records on a closed order (Wong et al., Section 5.1)."""
    return Cover.of((np.arange(n)[:, None] + np.arange(k)) % n)


def _of_matrix(matrix: NDArray[np.bool_]) -> Cover:
    return Cover.of([np.flatnonzero(row) for row in matrix])


def regular_cover(n: int, k: int, rng: np.random.Generator) -> Cover:
    """Return a regular cover that holds own records: shifts, with edges switched at random."""
    matrix = np.zeros((n, n), np.bool_)
    matrix[np.arange(n)[:, None], (np.arange(n)[:, None] + np.arange(k)) % n] = True
    for _ in range(20 * n):
        (a, b), (x, y) = rng.integers(n, size=(2, 2))
        # The loops stay.
        if {a, b} & {x, y} or not (matrix[a, x] and matrix[b, y]):
            continue
        if not (matrix[a, y] or matrix[b, x]):
            matrix[a, x] = matrix[b, y] = False
            matrix[a, y] = matrix[b, x] = True
    order = rng.permutation(n)
    return _of_matrix(matrix[order][:, order])


def any_cover(n: int, share: float, rng: np.random.Generator) -> Cover:
    """Return a cover of random sets that hold their own records."""
    return _of_matrix((rng.random((n, n)) < share) | np.eye(n, dtype=np.bool_))


def any_graph(n: int, share: float, rng: np.random.Generator) -> Cover:
    """Return random sets; records need not lie in their own."""
    return _of_matrix(rng.random((n, n)) < share)


#: Wong et al., Table 4: values 1 to 5 published as 1-5, 2-3, 3-4, 3-4, 1-5.
TABLE_4 = Cover.of([range(5), [1, 2], [2, 3], [2, 3], range(5)])

#: Wong et al., Fig. 4, rebuilt from the text: record t lies in the sets of those it points to.
_FIGURE_4 = {1: "23", 2: "34", 3: "245", 4: "235", 5: "46", 6: "78", 7: "168", 8: "167"}
FIGURE_4 = Cover.of(
    [
        [t - 1 for t, targets in _FIGURE_4.items() if t == record or str(record) in targets]
        for record in range(1, 9)
    ]
)

#: Doka et al., Fig. 3, rebuilt from the text: 2-concealment, four assignments.
FIGURE_3 = Cover.of([[0, 1], [0, 1, 2, 4], [1, 2], [1, 3], [3, 4]])
