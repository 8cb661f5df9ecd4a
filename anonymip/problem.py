"""Problems: a table, k, a recoding and an objective, and the rules of classes beside k."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np

from anonymip.errors import InputError, UnsupportedObjective, argument
from anonymip.instances.microdata import Microdata
from anonymip.objectives import GCP, CompiledObjective, MembersObjective, Objective, load_objective
from anonymip.objectives.language.record import cells_of_sets
from anonymip.objectives.language.tables import size_of_exact
from anonymip.recodings import Apart, Cap, Diversity, Limit, Recoding
from anonymip.recodings.freeform import WITHOUT_DIVERSITY
from anonymip.recodings.recoding import MaySuppress, PricedSuppression
from anonymip.recodings.registry import as_recoding, published_form
from anonymip.recodings.rules.diversity import Units, of_rows
from anonymip.recodings.rules.limits import met_by_sets, refuse_unfit
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.frozen import Frozen

#: What the releases of a recoding are called.
_KINDS = {
    "classes": "equivalence-class",
    "freeform": "freeform",
    "one-k": "(1,k)",
    "k-one": "(k,1)",
    "k-k": "(k,k)",
    "k-concealment": "k-concealment",
    "pattern": "pattern",
    "full-domain": "full-domain",
}
_ROUNDINGS = 16  # roundings of the largest term that the loss of one record may suffer


@dataclass(frozen=True, eq=False, init=False)
class Problem(Frozen):
    """Make a table k-anonymous with the least loss.

    Parameters
    ----------
    microdata
        The table, n records.
    k
        Records that must be indistinguishable, 2 to n; NumPy's integers are accepted. Where the
        table names a unit, so many different units must be in every class.
    recoding
        Which releases are allowed: a recoding, or the name of one (``"freeform"``).
    objective
        What is lost; the sum over the records is minimised. An objective, or what
        :func:`anonymip.load_objective` takes: a name, or ``FILE.py:NAME``, which runs the file.
    diversity
        What every class must hold of the sensitive columns; None asks for nothing. Of a table with
        a unit it becomes :class:`~anonymip.recodings.rules.diversity.Units`, beside which it counts
        rows.
    limits
        Generalizations that are forbidden: caps on attributes, values that must stay apart.

    Raises
    ------
    InputError
        If k does not fit the table, the objective cannot be used on it, no release can have the
        diversity, the recoding does not keep it, or a limit names what the table does not have.
    """

    microdata: Microdata
    k: int
    recoding: Recoding
    objective: Objective | MembersObjective
    diversity: Diversity | None
    limits: tuple[Limit, ...]

    def __init__(
        self,
        microdata: Microdata,
        k: int,
        recoding: Recoding | str = "classes",
        objective: Objective | MembersObjective | str = "gcp",
        diversity: Diversity | None = None,
        limits: Limit | Sequence[Limit] = (),
    ) -> None:
        put = partial(object.__setattr__, self)
        put("microdata", microdata)
        put("k", k)
        put("recoding", as_recoding(recoding))
        put("objective", load_objective(objective) if isinstance(objective, str) else objective)
        put("diversity", diversity)
        put("limits", (limits,) if isinstance(limits, Cap | Apart) else tuple(limits))
        self._check()

    def _check(self) -> None:
        if not isinstance(self.microdata, Microdata):
            raise InputError(
                f"microdata is a {type(self.microdata).__name__}",
                remedy="Give Microdata(frame, attributes), or use anonymize() for a data frame",
            )
        k: object = self.k
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise InputError(f"k is {k!r}", remedy="Give a whole number of at least 2")
        object.__setattr__(self, "k", int(k))
        if self.k < 2:
            raise InputError(
                f"k is {self.k}", remedy="Give at least 2: one record alone is not hidden"
            )
        if self.k > self.microdata.n:
            n = self.microdata.n
            raise InputError(
                f"k is {self.k}, but the table has {n} record{'s' if n != 1 else ''}",
                remedy="Give a smaller k or more records",
            )
        if not isinstance(self.objective, Objective | MembersObjective):
            raise InputError(
                f"objective is a {type(self.objective).__name__}",
                remedy="Decorate the function with @anonymip.objective",
            )
        price = self.compiled.suppression_price
        if self.may_suppress and np.isnan(price):
            raise UnsupportedObjective(
                f"objective {self.objective.name!r} has no loss of a suppressed record",
                remedy="Do not allow suppression, or give the objective a suppression_price",
            )
        self._count_units()
        self._check_diversity()
        refuse_unfit_recoding = getattr(self.recoding, "refuse_unfit", None)
        if refuse_unfit_recoding is not None:
            refuse_unfit_recoding(self)
        refuse_unfit(self.microdata, self.limits)

    def _count_units(self) -> None:
        """Have k count units, if the table names them."""
        unit = self.microdata.unit
        asked = of_rows(self.diversity)
        if unit is None:
            object.__setattr__(self, "diversity", asked)
            return
        if self.recoding.name != "classes":
            raise InputError(
                f"recoding {self.recoding.name} does not count units: its k counts rows",
                remedy=f"Use {argument('recoding', 'classes')}",
            )
        if asked is not None and asked.t is not None:
            raise InputError(
                "t-closeness is kept by releases by patterns and levels, whose k counts rows",
                remedy=f"Ask for another diversity, or leave out {argument('unit', ...)}",
            )
        counted = self.microdata.counting(both=asked is not None)
        object.__setattr__(self, "microdata", counted)
        object.__setattr__(self, "diversity", Units(distinct=self.k, column=unit, beside=asked))

    def _check_diversity(self) -> None:
        diversity = self.diversity
        if diversity is None:
            return
        if not isinstance(diversity, Diversity):
            raise InputError(
                f"diversity is a {type(diversity).__name__}", remedy="Give Diversity(l=2)"
            )
        units = diversity if isinstance(diversity, Units) else None
        diversity = of_rows(diversity) or diversity
        if not self.microdata.sensitive and diversity is not units:
            raise InputError(
                "a diversity needs sensitive columns, and the table has none",
                remedy=f"Name them with {argument('sensitive', ...)}, or in the schema",
            )
        if diversity.t is not None and not getattr(self.recoding, "keeps_closeness", False):
            raise InputError(
                f"recoding {self.recoding.name} does not keep the {diversity}",
                remedy="Use the recoding pattern, or a diversity without t",
            )
        reason = WITHOUT_DIVERSITY.get(published_form(self.recoding))
        if reason is not None:
            raise InputError(
                f"recoding {self.recoding.name} does not keep the {diversity}: {reason}",
                remedy="Use freeform, whose releases keep what the weaker notions promise as well, "
                "or k-concealment",
            )
        most = self.most_suppressed
        if most and not self.is_capped:
            return
        lacking = (units or diversity).lacking(self.microdata.counted_codes, most)
        if lacking is not None:
            column, reason, by_suppression = lacking
            without = f", also without {most} records that may be suppressed" if most else ""
            name = self.microdata.counted[column]
            if units is not None and column == 0:
                raise InputError(
                    f"k is {self.k}, but in column {name!r} {reason}", remedy="Give a smaller k"
                )
            remedy = "Ask for less, or choose other sensitive columns"
            if by_suppression:
                more = "more " if most else ""
                remedy += f", or allow {more}suppression where the recoding does"
            raise InputError(
                f"no release can have the {diversity} in classes or in sets of one size: in column "
                f"{name!r} {reason}{without}",
                remedy=remedy,
            )

    @cached_property
    def compiled(self) -> CompiledObjective:
        """The objective, traced on the table."""
        compiled, price = self.objective.compile(self), self.suppression_price
        if price is None:
            return compiled
        return dataclasses.replace(compiled, suppression_price=price, own_price=True)

    @property
    def suppression_price(self) -> float | None:
        """The loss of a suppressed record that the recoding sets; None for the objective's own."""
        price: float | None = getattr(self.recoding, "suppression_price", None)
        return price

    @property
    def may_suppress(self) -> bool:
        """Whether records may be suppressed: recodings that say nothing of it do not allow it."""
        return bool(getattr(self.recoding, "suppression", False))

    @property
    def most_suppressed(self) -> int:
        """Number of records that may be suppressed."""
        recoding = self.recoding
        if isinstance(recoding, MaySuppress):
            return recoding.limit(self.n)
        return self.n if self.may_suppress else 0

    @property
    def is_capped(self) -> bool:
        """Whether records may be left out for what that saves, but not any number of them."""
        return isinstance(self.recoding, PricedSuppression) and self.limits_suppression

    @property
    def limits_suppression(self) -> bool:
        """Whether records may be suppressed, but not any number of them."""
        return self.may_suppress and self.most_suppressed < self.n

    @property
    def is_gcp(self) -> bool:
        """Whether cells lose their normalised penalties; suppressed records may have a price."""
        return isinstance(self.objective, GCP)

    @property
    def is_ncp(self) -> bool:
        """Whether the loss is the sum of the normalised penalties of all cells."""
        return self.is_gcp and self.suppression_price is None

    @cached_property
    def unavoidable(self) -> float:
        """The loss of publishing every record exactly, which a monotone loss cannot go below.

        Where records may be suppressed, those that this is less for count with its price. 0 where a
        loss of classes is undefined for single records.
        """
        return self._alone(self.compiled.suppression_price if self.most_suppressed else np.inf)

    @cached_property
    def exact(self) -> float:
        """The loss of publishing every record exactly, even where suppressing it loses less.

        0 where a loss of classes is undefined for single records.
        """
        return self._alone(np.inf)

    def _alone(self, most: float) -> float:
        """Return what records lose that are published exactly, each so much at most."""
        try:
            losses = self.compiled.class_losses(np.arange(self.n)[:, None])
        except UnsupportedObjective:
            return 0.0
        return self.compiled.aggregated(np.minimum(losses, most))

    @cached_property
    def whole(self) -> float:
        """The loss of publishing all records alike; 0 where it is undefined."""
        try:
            return float(self.compiled.class_losses(np.arange(self.n)[None, :])[0])
        except UnsupportedObjective:
            return 0.0

    @cached_property
    def rounding(self) -> float:
        """How far rounding may put a computed loss off, whatever release it is of.

        Without tables only the sizes of the losses say how far, and this is 0.
        """
        if not self.compiled.has_tables:
            return 0.0
        size = size_of_exact(self.compiled.tables, self.microdata)
        records = self.n if self.compiled.aggregate == "sum" else 1
        return records * _ROUNDINGS * float(np.finfo(float).eps) * size

    @cached_property
    def release_name(self) -> str:
        """What is compared in a proof: the releases that the problem allows, in words.

        A bound holds for one recoding and its rules; others may lose less.
        """
        recoding = self.recoding
        kind = _KINDS.get(recoding.name)
        release = f"release by {recoding.name}" if kind is None else f"{kind} release"
        diversity = of_rows(self.diversity)
        asked = [f"k = {self.k} units" if isinstance(self.diversity, Units) else f"k = {self.k}"]
        if recoding.name == "pattern":
            asked.append("this mask")
        if getattr(recoding, "degrees", None) is not None:
            asked.append("these degrees")
        if self.may_suppress:
            most = f" of {self.most_suppressed:,} records at most"
            asked.append(f"suppression{most * self.limits_suppression}")
        if self.suppression_price is not None:
            asked.append("this price of it")
        if diversity is not None:
            asked.append(str(diversity))
        if self.limits:
            asked.append("these limits")
        listed = ", ".join(asked[:-1]) + (" and " if asked[1:] else "") + asked[-1]
        return f"{release} of this table with {listed}"

    @property
    def n(self) -> int:
        """Number of records."""
        return self.microdata.n

    @property
    def m(self) -> int:
        """Number of quasi-identifiers."""
        return self.microdata.m

    @cached_property
    def without_rules(self) -> Problem:
        """The same without rules beside k, which counts rows: what no such release is below."""
        return self.replace(microdata=self.microdata.by_rows, diversity=None, limits=())

    def replace(self, **changes: Any) -> Problem:
        """Return a problem with some parts replaced, validated again."""
        return dataclasses.replace(self, **changes)


_BATCH = 20_000  # sets looked at at a time


def has_rules(problem: Problem) -> bool:
    """Return whether classes must keep more than their size."""
    return problem.diversity is not None or bool(problem.limits)


def is_plain(problem: Problem) -> bool:
    """Return whether the kernels can do the work: tables, and no rules that they do not know."""
    return problem.compiled.has_tables and not has_rules(problem)


def named_rules(problem: Problem) -> str:
    """Return the rules as a text."""
    rules = [*problem.limits, *([] if problem.diversity is None else [problem.diversity])]
    return ", ".join(f"the {rule}" for rule in rules)


def within_limits(problem: Problem, rows: Ints) -> Flags:
    """Return (B,) whether classes of the given records (B, s) keep all limits."""
    if not problem.limits:
        return np.ones(len(rows), np.bool_)
    parts = [rows[at : at + _BATCH] for at in range(0, len(rows), _BATCH)]
    microdata = problem.microdata
    met = [met_by_sets(microdata, problem.limits, p, cells_of_sets(microdata, p)) for p in parts]
    return np.concatenate([np.empty(0, np.bool_), *met])


def are_diverse(problem: Problem, rows: Ints) -> Flags:
    """Return (B,) whether classes of the given records (B, s) are diverse."""
    if problem.diversity is None:
        return np.ones(len(rows), np.bool_)
    return problem.diversity.met_by(problem.microdata.counted_codes[rows])


def losses_within_limits(problem: Problem, rows: Ints) -> Floats:
    """Return (B,) losses of classes of the given records (B, s), infinite beyond a limit.

    The class's part of the sum; with the aggregate ``"max"`` the loss of one record.
    """
    if not problem.limits:
        return problem.compiled.class_losses(rows)
    losses = np.full(len(rows), np.inf)
    met = within_limits(problem, rows)
    losses[met] = problem.compiled.class_losses(rows[met])
    return losses
