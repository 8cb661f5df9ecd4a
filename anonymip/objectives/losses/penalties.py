"""The normalised certainty penalties of the literature, as objectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymip.errors import InputError, UnsupportedObjective
from anonymip.objectives.language.protocol import Objective
from anonymip.objectives.language.record import Record


@dataclass(frozen=True)
class GCP(Objective):
    """Normalised certainty penalty, summed over records and attributes [1]_.

    Width of the range over the domain's for numeric attributes, (count - 1) / (domain size - 1)
    for categorical ones, 1 for a suppressed cell. Weights are ignored. Its mean over the cells is
    the global certainty penalty.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, eqs. (1)-(3).
    """

    @property
    def name(self) -> str:
        """Name in results."""
        return "gcp"

    def loss(self, record: Record) -> Any:
        """Return the record's penalty."""
        return sum(record.spread[a] for a in record.attributes)


@dataclass(frozen=True)
class SetGCP(Objective):
    """Certainty penalty that counts published values of every attribute [1]_.

    (count - 1) / (domain size - 1); ranges of whole numbers count every number in the range.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Def. 8.
    """

    @property
    def name(self) -> str:
        """Name in results."""
        return "set-gcp"

    def loss(self, record: Record) -> Any:
        """Return the record's penalty."""
        return sum(
            (record.distinct[a] - 1) / max(record.domain_size[a] - 1, 1) for a in record.attributes
        )


@dataclass(frozen=True)
class LiangGCP(Objective):
    """Certainty penalty with categorical attributes scaled by their domain size [1]_.

    Width over domain width for numeric attributes; (count - 1) / (domain size) for categorical
    ones. Splitting a categorical attribute into binaries instead (Section 2.5) gives count /
    (domain size) once there are two values, so the two are no equivalent losses; see
    :class:`WeightedLoss`.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Defs. 8, 9, eq. (40).
    """

    @property
    def name(self) -> str:
        """Name in results."""
        return "liang-gcp"

    def loss(self, record: Record) -> Any:
        """Return the record's penalty."""
        return sum(
            record.width[a]
            if record.kind[a] == "numeric"
            else (record.distinct[a] - 1) / record.domain_size[a]
            for a in record.attributes
        )


@dataclass(frozen=True)
class WeightedLoss(Objective):
    """Weighted information loss, the weights of the attributes scaled to sum 1 [1]_.

    Parameters
    ----------
    categorical
        ``"whole"``: (count - 1) / (domain size - 1); ``"binary"``: the attribute is split into
        one binary column a value, each weighted by 1 / (domain size), Section 2.5: 0 for one
        published value, else count / (domain size).

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, eqs. (34), (35), Section 2.5.

    Raises
    ------
    InputError
        If `categorical` is neither, or all weights are 0.
    """

    categorical: str = "whole"

    def __post_init__(self) -> None:
        if self.categorical not in ("whole", "binary"):
            raise InputError(
                f"WeightedLoss: unknown treatment of categorical attributes {self.categorical!r}",
                remedy="Use whole or binary",
            )

    @property
    def name(self) -> str:
        """Name in results."""
        return "weighted-loss" if self.categorical == "whole" else "weighted-loss-binary"

    def loss(self, record: Record) -> Any:
        """Return the record's weighted loss."""
        total = _total_weight(record)
        return sum(record.weight[a] / total * self._penalty(record, a) for a in record.attributes)

    def _penalty(self, record: Record, attribute: str) -> Any:
        if record.kind[attribute] == "numeric" or self.categorical == "whole":
            return record.spread[attribute]
        count = record.distinct[attribute]
        return np.where(count > 1, count, 0.0) / record.domain_size[attribute]


def _total_weight(record: Record) -> float:
    total = float(sum(record.weight.values()))
    if total == 0:
        raise UnsupportedObjective(
            "all attribute weights are 0", remedy="Give at least one attribute a weight"
        )
    return total


@dataclass(frozen=True)
class HierarchyLoss(Objective):
    """Level of the published node over the height of its hierarchy, times the weight [1]_.

    An attribute without a hierarchy has one level: 0 if published exactly, else 1. Weights are 1
    unless declared, and taken as they are.

    References
    ----------
    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 2; weights at the end of Section 4.
    """

    @property
    def name(self) -> str:
        """Name in results."""
        return "hierarchy-loss"

    def loss(self, record: Record) -> Any:
        """Return the record's levels, each over its height and times its weight."""
        _total_weight(record)
        return sum(
            record.weight[a]
            * (
                record.level[a] / record.height[a]
                if record.kind[a] == "hierarchical"
                else np.where(record.spread[a] > 0, 1.0, 0.0)
            )
            for a in record.attributes
        )


@dataclass(frozen=True)
class LeafLoss(Objective):
    """Values below the published node, (count - 1) / (domain size - 1), summed over attributes.

    Attributes without a hierarchy are charged their normalised certainty penalty, so that the
    loss is one with :class:`GCP`, whose penalty of a node it is; named for itself where leaves
    and levels (:class:`HierarchyLoss`) are compared.
    """

    @property
    def name(self) -> str:
        """Name in results."""
        return "leaf-loss"

    def loss(self, record: Record) -> Any:
        """Return the record's penalty."""
        return sum(record.spread[a] for a in record.attributes)
