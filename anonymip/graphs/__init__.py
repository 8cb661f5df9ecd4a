"""Generalization graphs: matches that can be true, matchings, regular graphs."""

from anonymip.graphs.counting import assignment_counts, sampled_shares
from anonymip.graphs.effective import components, effective_matches, effective_sizes
from anonymip.graphs.matchings import degree_of, draw_matching, random_matchings
from anonymip.graphs.perfect import perfect_matching
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
