"""Settings of column generation: what an effort allows, and the numbers that steer its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """How a proof is looked for."""

    solver: str = "highs"
    options: SolverOptions = field(default_factory=SolverOptions)  # its seed is of all draws
    gap: float = 0.0  # relative, to stop at
    work: Work = WORK["normal"]  # of the effort
    bound_only: bool = False  # whether to end with the relaxation
    memory: float = 1e9  # what a pool of columns may hold, in bytes


@dataclass(frozen=True)
class PricingNumbers:
    """The pricing of columns and its rounds."""

    most_listed: int = 500_000  # columns that are listed
    a_size: int = 3  # columns of each root and size in a round: one makes the rounds a third more
    smoothing: float = 0.6  # share of the best feasible duals in those that columns are priced by,
    near: float = 0.85  # under squared errors once they prove this share of the value,
    few: float = 0.02  # in exact rounds as long as they bring more columns, as a share of row types
    negative: float = 1e-9  # reduced costs this near to 0 are none, in units
    heuristic_nodes: int = 300  # partial sets of each root and size of the heuristic pricing
    solved: float = 1e-8  # the relaxation is when value and bound differ by this share
    many: float = 0.25  # new columns, as a share of row types, that make pricing heuristic again


@dataclass(frozen=True)
class CuttingNumbers:
    """Rounds of cuts, and when they end."""

    stalled: float = 0.004  # a round that closes less than this share of the gap is idle
    patience: int = 3  # idle rounds in a row that end them
    time: float = 0.5  # share of the time left
    few: int = 20_000  # columns up to which all of the gap are enumerated at once, before more cuts
    looked_at: int = 2_000_000  # partial sets that tell whether they are so few
    at_once: int = 2_000  # columns that are searched sooner than a better release is found
    #: Part of the steps of a search for a better release that is made before cuts, and again while
    #: it gains: 200 records with k = 3 took seven seconds, of which cuts and proof took one.
    tried: float = 0.1


@dataclass(frozen=True)
class TargetNumbers:
    """Targets between bound and loss, and the pools of columns below them."""

    shares: tuple[float, ...] = (0.25, 0.45, 0.7, 1.0)  # of the gap
    worth: float = 0.2  # one that closes less than this share of what is left is passed over
    smaller: float = 0.4  # share of one whose columns memory does not hold that is tried first
    soon_columns: int = 25_000  # larger pools wait for a long search for a better release,
    soon_nodes: int = 400  # and so do searches of more nodes
    column_bytes: int = 250  # that a pool holds of a column: incidence by columns and types, copies
    member_bytes: int = 60  # the same of each of its members
    first: int = 4  # columns for each row type that the relaxation of a pool begins with


@dataclass(frozen=True)
class ImprovingNumbers:
    """Better releases."""

    time: float = 0.2  # share of the time left that each step may take
    used: float = 1e-6  # a column counts from this share on
    whole: int = 3  # columns that whole numbers are looked for, for each row type,
    whole_least: int = 500  # so many at least
    whole_most: int = 3_000  # and at most
    kept: tuple[float, ...] = (0.5, 0.8)  # columns used so much are kept together, dive after dive
    dive_rounds: int = 15  # of pricing after each step of a dive
    perturbed: int = 1_000_000_000  # steps of the iterated local search, whatever the effort
    times: int = 3  # that neighbouring sets are chosen again
    #: The effort says in how many neighbourhoods for so many row types, and classes of k records;
    #: of larger ones there are fewer.
    types: int = 500
    k: int = 3


@dataclass(frozen=True)
class NeighbourhoodNumbers:
    """Neighbourhoods of a release."""

    #: Records of one, about; of covers with k above 3 it grows with the square of k, up to so many:
    #: 500 records with k = 5 come to 213.11 with 60 and to 211.93 with 150 (the bound is 211.33).
    records: int = 60
    most_records: int = 150
    sets: int = 4  # of it at least
    pool: int = 30_000  # columns, whose reduced costs lie below the gap,
    less: float = 1.7  # divided by this as often as there are more,
    times: int = 10  # so often at most
    nodes: int = 4  # of the branching in one
    gain: float = 1e-6  # one that gains less than this share of its cost stays as it is


# Chosen by the benchmark of the exact engine.
PRICING, CUTTING, TARGETS = PricingNumbers(), CuttingNumbers(), TargetNumbers()
IMPROVING, NEAR = ImprovingNumbers(), NeighbourhoodNumbers()
