"""Losses of published records: certainty penalties, levels, stars, and the largest of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from anonymip.errors import InputError, UnsupportedObjective, is_number
from anonymip.instances.columns import unknown_column
from anonymip.objectives.language.compiled import CompiledObjective
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

    additive = True
    blind_to_domains = True
    name = "gcp"

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

    additive = True
    name = "set-gcp"

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

    additive = True
    name = "liang-gcp"

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

    additive = True

    def __post_init__(self) -> None:
        if self.categorical not in ("whole", "binary"):
            raise InputError(
                f"WeightedLoss: unknown treatment of categorical attributes {self.categorical!r}",
                remedy="Use whole or binary",
            )

    @property
    def blind_to_domains(self) -> bool:
        """Whether a star costs what it does whatever the domain is: not split into binaries."""
        return self.categorical == "whole"

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

    additive = True
    blind_to_domains = True
    name = "hierarchy-loss"

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

    additive = True
    blind_to_domains = True
    name = "leaf-loss"

    def loss(self, record: Record) -> Any:
        """Return the record's penalty."""
        return sum(record.spread[a] for a in record.attributes)


@dataclass(frozen=True)
class Bottleneck(Objective):
    """The largest loss of a record instead of the sum over all records.

    Parameters
    ----------
    inner
        Loss of a published record.

    Raises
    ------
    UnsupportedObjective
        If `inner` is a loss of classes, or a bottleneck itself.
    """

    inner: Objective = field(default_factory=GCP)

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Objective) or isinstance(self.inner, Bottleneck):
            raise UnsupportedObjective(
                "Bottleneck needs a loss of published records",
                remedy="Give an objective that is a function of the published record",
            )

    @property
    def name(self) -> str:
        """Name in results."""
        return f"bottleneck-{self.inner.name}"

    def loss(self, record: Record) -> Any:
        """Return the record's loss under the inner objective."""
        return self.inner.loss(record)

    def compile(self, problem: Any) -> CompiledObjective:
        """Trace the inner loss; the release's loss is its maximum over the records.

        Raises UnsupportedObjective as the inner objective.
        """
        return replace(self.inner.compile(problem), objective=self, aggregate="max")


_DEAREST = 1e100  # sums of costs stay numbers up to here


@dataclass(frozen=True)
class Suppressions(Objective):
    """Cells that are not published exactly, each at the cost of its column [1]_.

    Parameters
    ----------
    costs
        Cost of a star by column, 1 where nothing is said.
    patterns
        Cost of a whole pattern by the columns that it suppresses, in place of the sum of theirs.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013.

    Raises
    ------
    InputError
        If a cost is no number of at least 0, or a pattern names a column twice or has two costs.

    Examples
    --------
    >>> import anonymip
    >>> anonymip.Suppressions({"age": 2.0}, {("age", "zip"): 2.5}).name
    'suppressions'
    """

    costs: Mapping[str, float] = field(default_factory=dict)
    patterns: Mapping[tuple[str, ...], float] = field(default_factory=dict)

    by_pattern = True
    blind_to_domains = True

    @property
    def additive(self) -> bool:
        """Whether no pattern has a cost of its own."""
        return not self.patterns

    def __post_init__(self) -> None:
        for name, cost in (*self.costs.items(), *self.patterns.items()):
            if not is_number(cost, 0, _DEAREST):
                raise InputError(
                    f"the cost of {name!r} is {cost!r}",
                    remedy="Give a number of at least 0 and at most 1e100",
                )
        object.__setattr__(self, "costs", dict(self.costs))
        # Whoever names the columns of a pattern has no order in mind.
        patterns = {tuple(sorted(names)): float(cost) for names, cost in self.patterns.items()}
        if len(patterns) < len(self.patterns):
            raise InputError("a pattern has two costs", remedy="Give each pattern one cost")
        for names in patterns:
            if len(set(names)) < len(names):
                raise InputError(
                    f"the pattern {', '.join(names)} with a cost names a column twice",
                    remedy="Name each column once",
                )
        object.__setattr__(self, "patterns", patterns)

    name = "suppressions"

    def loss(self, record: Record) -> Any:
        """Return what the record's lossy cells cost."""
        for name in (*self.costs, *(one for pattern in self.patterns for one in pattern)):
            if name not in record.attributes:
                raise unknown_column(name, "column with a cost", list(record.attributes))
        lossy = {a: np.where(record.spread[a] > 0, 1.0, 0.0) for a in record.attributes}
        total = sum(float(self.costs.get(a, 1.0)) * lossy[a] for a in record.attributes)
        # Nothing is subtracted: a costly column must not blur a cheap pattern.
        priced: Any = 0.0
        other: Any = 1.0
        for pattern, cost in self.patterns.items():
            exactly: Any = 1.0
            for a in record.attributes:
                exactly = exactly * (lossy[a] if a in pattern else 1.0 - lossy[a])
            priced = priced + cost * exactly
            other = other * (1.0 - exactly)
        return priced + other * total if self.patterns else total
