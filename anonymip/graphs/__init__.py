"""Generalization graphs: matches that can be true, matchings, regular graphs."""

from anonymip.graphs.effective import components, effective_matches, effective_sizes
from anonymip.graphs.matchings import (
    assignment_counts,
    degree_of,
    draw_matching,
    perfect_matching,
    random_matchings,
    sampled_shares,
)
from anonymip.graphs.regular import Deficiency, regular_subgraph

__all__ = [
    "Deficiency",
    "assignment_counts",
    "components",
    "degree_of",
    "draw_matching",
    "effective_matches",
    "effective_sizes",
    "perfect_matching",
    "random_matchings",
    "regular_subgraph",
    "sampled_shares",
]
