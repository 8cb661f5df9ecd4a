"""Options of a chain of sub-problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from numbers import Integral, Real
from typing import Any

from anonymip.errors import InputError
from anonymip.models import formulations_of

#: The sub-solver that needs no solver.
EXACT = "exact"
_CARRIES = ("classes", "least")
_PREFERENCES = ("oldest", "loss")
#: More than any table has; products with k still fit into 64 bits.
_MOST = 2**31 - 1


@dataclass(frozen=True)
class ChainOptions:
    """How the order is cut into windows, what is carried over, and what solves them.

    Raises InputError if a value is none of these.
    """

    #: Sets of k new records in each window, at least 2. More lowers the loss and takes longer.
    S: int = 3
    #: Records at the end of a window that are its boundary, l in the paper; 0 takes k. More lowers
    #: the loss further, at little cost.
    boundary: int = 0
    #: ``"classes"``: classes that touch the boundary are carried over as in Algorithm 1;
    #: ``"least"``: of a boundary class of k + r records, r < k, only the r are carried over without
    #: which it loses most (Section 6); one of exactly k is fixed.
    carry: str = "classes"
    #: 0, or the size of all windows, P in Section 6: new records fill up those carried over, and
    #: `accept` classes are fixed, wherever they lie.
    fixed: int = 0
    accept: int = 0  # classes that a window of one size fixes, A in Section 6; 0 takes fixed // 2k
    #: Which these are: the ``"oldest"``, by their first record; or as in the paper those of least
    #: ``"loss"`` of a record.
    prefer: str = "oldest"
    #: ``"exact"``: a search of its own, compiled where the loss is monotone and has tables and
    #: there are no limits. ``"bigm"``, ``"hull"``, ``"indicator"``, ``"strengthened"``,
    #: ``"set-partition"`` or ``"auto"``: that formulation on a solver. It starts from the classes
    #: carried over and the initial sets of k of the new records (Section 3.1).
    subsolver: str = EXACT
    #: As of :class:`~anonymip.exact.model_run.SolverChoices`.
    solver: str = "highs"
    gap: float = 0.0
    threads: int = 1
    solver_options: Mapping[str, object] = field(default_factory=dict)
    pass_time: bool = True  # whether windows may use what the ones before left of their time
    #: 0, or the seconds that a window has at most, with and without a time limit of the whole: Fig.
    #: 6 of the paper gives each 1000.
    link_time: float = 0.0
    #: The order is cut into so many segments, each with a chain of its own, and the classes where
    #: they meet are solved again together.
    chains: int = 1

    def __post_init__(self) -> None:
        for name, least, what in (
            ("S", 2, "at least 2: with one set of k there is nothing to choose"),
            ("boundary", 0, "records at the end of a window, or 0 for k"),
            ("fixed", 0, "records of a window, or 0 for S sets of k and those carried over"),
            ("accept", 0, "classes of a window, or 0 for half of it"),
            ("chains", 1, "at least 1"),
        ):
            value: Any = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not whole or not least <= value <= _MOST:
                raise self._refused(name, f"Give {what}")
            object.__setattr__(self, name, int(value))
        seconds: Any = self.link_time
        number = isinstance(seconds, Real) and not isinstance(seconds, bool)
        if not number or not 0.0 <= float(seconds) < inf:
            raise self._refused("link_time", "Give the seconds that a link has at most, or 0")
        object.__setattr__(self, "link_time", float(seconds))
        for name, known in (
            ("carry", _CARRIES),
            ("prefer", _PREFERENCES),
            ("subsolver", (EXACT, "auto", *formulations_of("classes"))),
        ):
            value = getattr(self, name)
            if name == "subsolver" and value not in known:
                known = (EXACT, "auto", *formulations_of("classes", installed=True))
            if value not in known:
                raise self._refused(name, f"Use {', '.join(known)}")
        for name, why in (
            ("accept", "fixed classes are only counted in windows of one size"),
            ("prefer", "classes are only preferred in windows of one size"),
        ):
            if not self.fixed and getattr(self, name) not in (0, "oldest"):
                raise InputError(
                    f"option {name} of split-carry without the option fixed: {why}",
                    remedy=f"Give fixed as well, or leave {name} out",
                )
        for name, default, why in (
            ("boundary", 0, "windows of one size have no boundary"),
            (
                "carry",
                "classes",
                "in windows of one size it is counted what is fixed, not what is carried over",
            ),
        ):
            if self.fixed and getattr(self, name) != default:
                raise InputError(
                    f"options fixed and {name} of split-carry together: {why}",
                    remedy="Leave one of them out",
                )

    def _refused(self, name: str, remedy: str) -> InputError:
        value = getattr(self, name)
        return InputError(f"option {name} of split-carry is {value!r}", remedy=remedy)

    def refuse_unfit(self, k: int) -> None:
        """Refuse windows in which there is nothing to choose.

        Raises InputError if a window of one size has no room for two classes.
        """
        if self.fixed and self.fixed < 2 * k:
            raise InputError(
                f"option fixed of split-carry is {self.fixed}, k is {k}",
                remedy=f"Give at least 2 k = {2 * k} records, or 0",
            )

    def accepted_of(self, k: int) -> int:
        """Return the number of classes that a window fixes; 0 where the boundary decides."""
        if not self.fixed:
            return 0
        return self.accept or max(1, self.fixed // (2 * k))

    def links_of(self, n: int, k: int) -> int:
        """Return the expected number of links over n records.

        ceil(n / (k S)) where the tail of n mod k records belongs to the last set of k. Windows of
        one size may need more: the classes that they fix may be smaller than expected, but
        none has fewer than k records.
        """
        if not self.fixed:
            return max(1, -(-(n // k) // self.S))
        return 1 + max(0, -(-(n - self.fixed) // (self.accepted_of(k) * k)))

    def described(self) -> dict[str, object]:
        """Return the options for a solution: those that have a say."""
        described: dict[str, object] = {"S": self.S, "boundary": self.boundary, "carry": self.carry}
        if self.fixed:
            described = {"fixed": self.fixed, "accept": self.accept, "prefer": self.prefer}
        described |= {"subsolver": self.subsolver, "pass_time": self.pass_time}
        if self.link_time:
            described |= {"link_time": self.link_time}
        if self.chains > 1:
            described |= {"chains": self.chains}
        if self.subsolver != EXACT:
            described |= {"gap": self.gap}
            if self.solver_options:
                described |= {"solver_options": dict(self.solver_options)}
        return described
