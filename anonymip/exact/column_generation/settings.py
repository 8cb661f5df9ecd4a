"""What a proof may spend, and how it is looked for."""

from __future__ import annotations

from dataclasses import dataclass

from anonymip.solvers import SolverOptions


@dataclass(frozen=True)
class Work:
    """What an effort allows.

    Parameters
    ----------
    rounds
        Of cuts.
    columns
        Of a pool at most.
    nodes
        Of a solver's search for whole numbers of the master's columns.
    deals
        Of a few classes of the best release, at random, for a table of 400 records with k = 3.
    regions
        Of a release that are chosen again.
    branches
        Nodes of the search of a pool, times the row types and the square of k: what a node takes
        grows with them.
    searched
        Partial sets that the pricing looks at in all; None for no limit.
    """

    rounds: int
    columns: int
    nodes: int
    deals: int
    regions: int
    branches: int
    searched: int | None


@dataclass(frozen=True)
class Settings:
    """How a proof is looked for.

    Parameters
    ----------
    solver, options
        Of integer programs.
    gap
        Relative gap to stop at.
    work
        Of the effort.
    seed
        Of cuts and of what is drawn.
    bound_only
        Whether to end with the relaxation.
    """

    solver: str
    options: SolverOptions
    gap: float
    work: Work
    seed: int
    bound_only: bool
