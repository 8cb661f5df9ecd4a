"""The names that a shell completes: of methods, recodings, objectives, solvers and instances.

Completion has to answer before a finger is lifted, so nothing is imported for it: the built-in
names stand here once more, which a test holds against the registries; those that installed packages
register are read from their entry points, and no package is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

METHODS = (
    *("auto", "column-generation", "equivalence-mip", "split-carry", "local-search", "initial"),
    *("ordered-cut", "greedy-search", "k-member", "mdav", "mondrian", "hilbert", "hp", "anatomy"),
    *("forest", "edge-cover", "two-factor", "hilbert-diversity", "freeform-mip", "greedy"),
    *("sort-greedy", "hungarian", "min-cost-flow", "ring", "nh", "k-concealment", "reassign"),
    *("pattern-ilp", "pattern-levels", "pattern-fpt", "pattern-pairs", "pattern-greedy"),
    *("pattern-search", "full-domain"),
)
RECODINGS = (
    *("classes", "freeform", "one-k", "k-one", "k-k", "k-concealment", "pattern"),
    *("pattern-levels", "full-domain"),
)
OBJECTIVES = (
    *("gcp", "set-gcp", "liang-gcp", "weighted-loss", "weighted-loss-binary", "hierarchy-loss"),
    *("leaf-loss", "suppressions", "bottleneck-gcp", "sse"),
)
SOLVERS = ("highs", "cbc", "scip", "gurobi", "cplex")
EFFORTS = ("quick", "normal", "thorough")
INSTANCES = (
    *("health-records", "person20", "wong-5", "aggarwal-4", "aggarwal-quality", "clinic-12"),
    *("adult", "adult-hierarchies", "adult-raw", "nursery", "cmc", "fars", "census-1k"),
    *("census-1k-mixed", "census-1k-categories", "census-10k", "census-10k-numeric"),
    *("census-100k", "tarragona", "casc"),
)

Complete = Callable[[str], list[str]]


def _of(names: tuple[str, ...], group: str | None = None) -> Complete:
    """Return what completes one of some names, and of those of a group of entry points."""

    def complete(incomplete: str) -> list[str]:
        outside = () if group is None else entry_points(group=group).names
        return [name for name in (*names, *sorted(outside)) if name.startswith(incomplete)]

    return complete


method = _of(METHODS, "anonymip.methods")
recoding = _of(RECODINGS, "anonymip.recodings")
objective = _of(OBJECTIVES, "anonymip.objectives")
solver = _of(SOLVERS, "anonymip.solvers")
effort = _of(EFFORTS)
# Where none fits, the shell completes the names of files.
instance = _of(INSTANCES)


def methods(incomplete: str) -> list[str]:
    """Return what completes the last of several methods with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in method(last)]
