"""Settings of column generation: what an effort allows, and the numbers that steer its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from anonymip.solvers import SolverOptions

#: Of so few records the master finds the rest by itself, before kernels of heuristics are compiled.
FEW = 40


@dataclass(frozen=True)
class Work:
    """What an effort allows."""

    rounds: int = 0  # of cuts
    columns: int = 0  # of a pool at most
    nodes: int = 0  # of a solver's search for whole numbers of the master's columns
    perturbed: int = 0  # steps of the iterated local search of the best release, for each record
    neighbourhoods: int = 0  # of a release that are chosen again
    #: Nodes of the search of a pool, times the row types and the square of k: what a node takes
    #: grows with them.
    branches: int = 0
    #: Iterations of the simplex method at these nodes, 0.3 ms each with all else that a node takes:
    #: 1,000 a node or 300, by the table. None for no limit, as where time has one.
    iterations: int | None = None
    searched: int | None = None  # partial sets that the pricing looks at in all; None for no limit


WORK: Mapping[str, Work] = MappingProxyType(
    {
        "quick": Work(5, 20_000, 1, 20_000, 0, 8_000, None, 1_000_000),
        "normal": Work(30, 300_000, 1, 200_000, 100, 900_000, 80_000, 10_000_000),
        "thorough": Work(60, 3_000_000, 20, 10_000_000, 1_000, 50_000_000, 300_000, 200_000_000),
    }
)


@dataclass(frozen=True)
class Settings:
    """How a proof is looked for: solver, relative gap to stop at, work of the effort.

    The seed of the options is of cuts and of what is drawn too; `bound_only` ends with the
    relaxation. `memory` is what a pool of columns may hold, in bytes.
    """

    solver: str
    options: SolverOptions
    gap: float
    work: Work
    bound_only: bool
    memory: float = 1e9


@dataclass(frozen=True)
class PricingNumbers:
    """The pricing of columns and its rounds."""

    #: Columns that are listed at most.
    most_listed: int = 500_000
    #: Columns taken of each root and size in a round: with one the rounds are a third more.
    a_size: int = 3
    #: Share of the best feasible duals in those that columns are priced by.
    smoothing: float = 0.6
    #: under squared errors once they prove this share of the value,
    near: float = 0.85
    #: and in exact rounds as long as they bring more columns than this share of the row types.
    few: float = 0.02
    #: Reduced costs this near to 0 are none, in units.
    negative: float = 1e-9
    #: Partial sets of each root and size that the heuristic pricing looks at.
    heuristic_nodes: int = 300
    #: The relaxation is solved when its value and its bound differ by this share.
    solved: float = 1e-8
    #: New columns, as a share of the row types, from which on pricing is heuristic again.
    many: float = 0.25


@dataclass(frozen=True)
class CuttingNumbers:
    """Rounds of cuts, and when they end."""

    #: A round that raises the bound by less than this share of the gap is idle.
    stalled: float = 0.004
    #: So many idle rounds in a row end them.
    patience: int = 3
    #: Share of the time left that they may take.
    time: float = 0.5
    #: Columns up to which all of the gap are enumerated at once, before more cuts.
    few: int = 20_000
    #: Partial sets looked at to find out whether they are so few.
    looked_at: int = 2_000_000
    #: So few are searched sooner than a better release is found.
    at_once: int = 2_000
    #: Part of the steps of a search for a better release that is made before cuts, and again while
    #: it gains: 200 records with k = 3 took seven seconds, of which cuts and proof took one.
    tried: float = 0.1


@dataclass(frozen=True)
class TargetNumbers:
    """Targets between bound and loss, and the pools of columns below them."""

    #: Targets, as shares of the gap.
    shares: tuple[float, ...] = (0.25, 0.45, 0.7, 1.0)
    #: One that closes less than this share of what is left of the gap is passed over.
    worth: float = 0.2
    #: Where memory does not hold all columns of a target, one of this share of it is tried first.
    smaller: float = 0.4
    #: Pools of more columns wait for a long search for a better release.
    soon_columns: int = 25_000
    #: Searches of more nodes ask for one.
    soon_nodes: int = 400
    #: Bytes that a pool holds of a column: incidence by columns and types, copies.
    column_bytes: int = 250
    #: The same of each of its members.
    member_bytes: int = 60
    #: Columns that the relaxation of a pool begins with, for each row type.
    first: int = 4


@dataclass(frozen=True)
class ImprovingNumbers:
    """Better releases."""

    #: Share of the time left that each step may take.
    time: float = 0.2
    #: A column counts from this share on.
    used: float = 1e-6
    #: Columns that whole numbers are looked for, for each row type.
    whole: int = 3
    #: So many at least.
    whole_least: int = 500
    #: So many at most.
    whole_most: int = 3_000
    #: Columns used at least so much are kept together, one dive after the other.
    kept: tuple[float, ...] = (0.5, 0.8)
    #: Rounds of pricing after each step of a dive.
    dive_rounds: int = 15
    #: Steps of the iterated local search at most, whatever the effort.
    perturbed: int = 1_000_000_000
    #: Neighbouring sets are chosen again so often at most.
    times: int = 3
    #: The effort says in how many neighbourhoods for so many row types,
    types: int = 500
    #: and classes of so many; of larger ones there are fewer.
    k: int = 3


@dataclass(frozen=True)
class NeighbourhoodNumbers:
    """Neighbourhoods of a release."""

    #: Records of one, about; of covers with k above 3 it grows with the square of k, up to so many:
    #: 500 records with k = 5 come to 213.11 with 60 and to 211.93 with 150 (the bound is 211.33).
    records: int = 60
    most_records: int = 150
    #: Sets of it at least.
    sets: int = 4
    #: Columns of the pool at most.
    pool: int = 30_000
    #: Their reduced costs lie below the gap, divided by this as often as there are more,
    less: float = 1.7
    #: so often at most.
    times: int = 10
    #: Nodes of the branching in one at most.
    nodes: int = 4
    #: One that gains less than this share of its cost stays as it is.
    gain: float = 1e-6


# Chosen by the benchmark of the exact engine.
PRICING, CUTTING, TARGETS = PricingNumbers(), CuttingNumbers(), TargetNumbers()
IMPROVING, NEAR = ImprovingNumbers(), NeighbourhoodNumbers()
