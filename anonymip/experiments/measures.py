"""Measures of the literature for a release, whatever its objective was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Cover
from anonymip.errors import InputError
from anonymip.objectives import GCP, cells_of
from anonymip.objectives.language.record import Record
from anonymip.runtime.arrays import Ints
from anonymip.solution import Solution


@dataclass(frozen=True)
class Measures:
    """What the literature measures of a release; None where it is not defined."""

    #: Sum of the normalised penalties of all cells, and their mean.
    ncp: float
    gcp: float
    #: Number of the classes of rows that look alike, and their records, those of suppressed records
    #: left out; of a cover no number, and the records of its sets.
    classes: int | None
    smallest: int | None
    average: float | None
    largest: int | None
    #: Records that show nothing but stars, and stars.
    suppressed: int
    suppressed_cells: int
    discernibility: float | None  # see :func:`discernibility`
    #: See :func:`classification_metric`, for the one sensitive column; None if there is none or
    #: there are several.
    classification: float | None
    usefulness: float | None  # see :func:`usefulness_of`
    #: Mean penalty of a cell by attribute, 0 to 1; their mean is `gcp`.
    attribute_losses: dict[str, float]


def measures_of(solution: Solution) -> Measures:
    """Return all measures of a solution."""
    sizes, overlapping = solution.sizes, isinstance(solution.assignment, Cover)
    has_label = len(solution.problem.microdata.sensitive) == 1
    return Measures(
        ncp=solution.ncp,
        gcp=solution.gcp,
        classes=None if solution.published_classes is None else solution.published_classes.count,
        smallest=int(sizes.min()) if len(sizes) else None,
        average=float(sizes.mean()) if len(sizes) else None,
        largest=int(sizes.max()) if len(sizes) else None,
        suppressed=solution.suppressed,
        suppressed_cells=int(solution.description.suppressed.sum()),
        discernibility=None if overlapping else discernibility(solution),
        classification=None if overlapping or not has_label else classification_metric(solution),
        usefulness=None if overlapping else usefulness_of(solution),
        attribute_losses=attribute_losses(solution),
    )


def attribute_losses(
    solution: Solution, records: NDArray[np.integer] | None = None
) -> dict[str, float]:
    """Return the mean penalty of a cell by attribute, as GCP counts it: 0 to 1.

    `records`: those that count; None for all, of which a suppressed one is a row of stars.
    """
    domains = GCP().compile(solution.problem).domains
    record = Record(domains, cells_of(solution.description))
    chosen = np.arange(solution.problem.n) if records is None else records
    return {
        name: float(np.mean(record.spread[name][chosen])) if len(chosen) else 1.0
        for name in domains.names
    }


def discernibility(solution: Solution) -> float:
    """Return the discernibility metric [1]_: over all records, how many each looks like.

    A class of s records adds s squared; a record that is suppressed looks like all n. Raises
    InputError if the records are in sets that overlap.

    .. [1] R. Bayardo, R. Agrawal: Data Privacy Through Optimal k-Anonymization, ICDE 2005,
       doi:10.1109/ICDE.2005.42.
    """
    labels = _labels(solution, "the discernibility metric")
    kept = labels[labels != SUPPRESSED]
    sizes = np.bincount(kept) if len(kept) else np.zeros(0, np.int64)
    hidden = len(labels) - len(kept)
    return float((sizes.astype(np.float64) ** 2).sum() + hidden * len(labels))


def classification_metric(solution: Solution) -> float:
    """Return the classification metric [1]_: the share of records that their class mislabels.

    A record is penalised if it is suppressed, or if its label is not the commonest of its class.
    `solution`: with classes; the first sensitive column holds the labels. Raises InputError if the
    records are in sets that overlap, or no column is sensitive.

    .. [1] V. Iyengar: Transforming Data to Satisfy Privacy Constraints, KDD 2002,
       doi:10.1145/775047.775089.
    """
    labels = _labels(solution, "the classification metric")
    microdata = solution.problem.microdata
    if not microdata.sensitive:
        raise InputError(
            "the classification metric needs a sensitive column with the labels",
            remedy="Sensitive are: none",
        )
    kept = labels != SUPPRESSED
    told = microdata.sensitive_codes[kept, 0].astype(np.int64)
    groups = labels[kept]
    if not len(groups):
        return 1.0
    values = int(told.max()) + 1
    pairs, counts = np.unique(groups * values + told, return_counts=True)
    commonest = np.zeros(int(groups.max()) + 1, np.int64)
    np.maximum.at(commonest, pairs // values, counts)
    return 1 - int(commonest.sum()) / len(labels)


def _labels(solution: Solution, what: str) -> Ints:
    if solution.published_classes is None:
        raise InputError(
            f"{what} is of classes, and the sets of a cover overlap",
            remedy="Give a solution by classes or patterns",
        )
    return solution.published_classes.labels.astype(np.int64)


def usefulness_of(solution: Solution) -> float:
    """Return the mean diversity of the original records of a class; the less, the more useful [1]_.

    The diversity of a class adds up, over the quasi-identifiers, the part of the column's values
    that its original records have: their range over that of the column for numbers, their number
    over that of the column for other values. So the result lies between 0 and the number of
    quasi-identifiers, and every class counts alike, however large it is. `solution`: with classes:
    records that look alike. Records that are suppressed as a whole look alike too, and are one
    class. Raises InputError if the records are in sets that overlap.

    A column's values are those of the table, not of a declared domain, as in the paper [2]_. Where
    all numbers of a column are equal, its part is 0. Complexity: O(m n log n).

    .. [1] G. Loukides, J. Shao: Capturing Data Usefulness and Privacy Protection in
       k-Anonymisation, SAC 2007.
    .. [2] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Definitions 3 to 5.
    """
    labels, microdata = _labels(solution, "the usefulness"), solution.problem.microdata
    labels[labels == SUPPRESSED] = labels.max() + 1
    count = int(labels.max()) + 1
    total = 0.0
    for a, attribute in enumerate(microdata.attributes):
        codes = microdata.codes[:, a].astype(np.int64)
        if attribute.is_numeric:
            numbers = microdata.levels[a].astype(np.float64)[codes]
            low, high = np.full(count, np.inf), np.full(count, -np.inf)
            np.minimum.at(low, labels, numbers)
            np.maximum.at(high, labels, numbers)
            present = numbers[numbers < microdata.beyond[a]]
            width = float(np.ptp(present)) if len(present) else 0.0
            # Numbers and missing values together are as wide as all numbers.
            spans = np.minimum(high - low, width)
            total += float(spans.sum()) / width if width > 0 else 0.0
        else:
            pairs = np.unique(labels * (int(codes.max()) + 1) + codes)
            total += len(pairs) / len(np.unique(codes))
    return total / count
