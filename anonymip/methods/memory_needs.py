"""Memory that a run needs, estimated from the table before it begins.

All heuristics hold some arrays of the table's size: where these do not fit, the run is refused
before it has cost anything. Models and pools of sets watch what they hold themselves: a model that
does not fit leaves its start, a pool its bound so far. What the estimate misses ends with the best
release so far (:mod:`anonymip.solving`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anonymip.errors import MemoryShort
from anonymip.methods.built_in import BUILT_IN
from anonymip.methods.spec import MethodSpec
from anonymip.problem import Problem
from anonymip.recodings.registry import COVERS, published_form
from anonymip.runtime.memory import in_words, memory_at_hand


@dataclass(frozen=True)
class MemoryCosts:
    """Bytes that a run holds beside the table, as ``python -m benchmarks memory`` measured them."""

    started: float = 65e6  # kernels, and libraries that are loaded on the way
    cell: float = 48.0  # of a cell of the table
    match: float = 55.0  # of a record in a set of a cover
    pair: float = 4.0  # of a pair of records, for the methods that look at all of them
    published: float = 90.0  # of a cell of the table, where it is published, read back and verified


COSTS = MemoryCosts()


#: Methods that look at all pairs of records of a part, the table where it is not cut.
_PAIRED = frozenset({"hungarian", "reassign", "min-cost-flow"})


def bytes_needed(
    problem: Problem,
    method: str = "auto",
    options: Mapping[str, object] | None = None,
    *,
    publishes: bool = False,
) -> float:
    """Return about how many bytes a run holds beside the table, its release published or not.

    Of the options ``part`` counts; ``"auto"`` cuts large tables into parts.
    """
    covers = published_form(problem.recoding) in COVERS
    needed = COSTS.started + COSTS.cell * problem.n * problem.m
    if covers:
        needed += COSTS.match * problem.n * problem.k
    if publishes:
        needed += COSTS.published * problem.n * problem.m
    if method in _PAIRED:
        part = (options or {}).get("part") or problem.n
        needed += COSTS.pair * min(problem.n, int(str(part))) ** 2
    return needed


def refuse_short_memory(
    problem: Problem,
    spec: MethodSpec,
    options: Mapping[str, object] | None = None,
    *,
    publishes: bool = False,
) -> None:
    """Refuse a run before it begins, if there is less memory than it needs.

    `publishes`: whether the release is published after it. Raises MemoryShort: saying how much is
    needed, how much there is, and what fits.
    """
    left = memory_at_hand()
    needed = bytes_needed(problem, spec.name, options, publishes=publishes)
    if left is None or needed <= left.bytes:
        return
    fitting = [
        name
        for name, other in BUILT_IN.items()
        if other.role == "heuristic"
        and other.solves(problem.recoding.name)
        and other.solves_for(problem.k)
        and bytes_needed(problem, name, publishes=publishes) <= left.bytes
        and other.obstacle(problem) is None
    ]
    records = problem.n * (left.bytes - COSTS.started) / (needed - COSTS.started)
    if fitting:
        remedy = f"{', '.join(fitting)} can do with less"
    elif records >= problem.k:
        remedy = f"About {int(records):,} records fit; else allow or provide more memory"
    else:
        remedy = "Allow or provide more memory"
    raise MemoryShort(
        f"{spec.name} needs about {in_words(needed)} of memory for {problem.n:,} records of "
        f"{problem.m} columns, and there are {left}",
        remedy=remedy,
    )
