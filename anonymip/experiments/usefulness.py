"""The usefulness of classes: how close the original records of a class are to each other."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import SUPPRESSED
from anonymip.errors import InputError
from anonymip.solution import Solution


def usefulness_of(solution: Solution) -> float:
    """Return the mean diversity of the original records of a class; the less, the more useful [1]_.

    The diversity of a class adds up, over the quasi-identifiers, the part of the column's values
    that its original records have: their range over that of the column for numbers, their number
    over that of the column for other values. So the result lies between 0 and the number of
    quasi-identifiers, and every class counts alike, however large it is.

    Parameters
    ----------
    solution
        With classes: records that look alike. Records that are suppressed as a whole look alike
        too, and are one class.

    Notes
    -----
    A column's values are those of the table, not of a declared domain, as in the paper [2]_. Where
    all numbers of a column are equal, its part is 0. Complexity: O(m n log n).

    References
    ----------
    .. [1] G. Loukides, J. Shao: Capturing Data Usefulness and Privacy Protection in
       k-Anonymisation, SAC 2007.
    .. [2] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Definitions 3 to 5.

    Raises
    ------
    InputError
        If the records are in sets that overlap.
    """
    classes, microdata = solution.published_classes, solution.problem.microdata
    if classes is None:
        raise InputError(
            "the usefulness is that of classes, and the sets of a cover overlap",
            remedy="Give a solution by classes or patterns",
        )
    labels = classes.labels.astype(np.int64)
    labels[labels == SUPPRESSED] = classes.count
    count = int(labels.max()) + 1
    total = 0.0
    for a, attribute in enumerate(microdata.attributes):
        codes = microdata.codes[:, a].astype(np.int64)
        if attribute.is_numeric:
            numbers = microdata.levels[a].astype(np.float64)[codes]
            low, high = np.full(count, np.inf), np.full(count, -np.inf)
            np.minimum.at(low, labels, numbers)
            np.maximum.at(high, labels, numbers)
            width = float(numbers.max() - numbers.min())
            total += float((high - low).sum()) / width if width > 0 else 0.0
        else:
            pairs = np.unique(labels * (int(codes.max()) + 1) + codes)
            total += len(pairs) / len(np.unique(codes))
    return total / count
