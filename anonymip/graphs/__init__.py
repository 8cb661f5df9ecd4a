"""Generalization graphs: matches that can be true, matchings, regular graphs."""

from anonymip.graphs.matchings import components as components
from anonymip.graphs.matchings import degree_of as degree_of
from anonymip.graphs.matchings import draw_matching as draw_matching
from anonymip.graphs.matchings import effective_matches as effective_matches
from anonymip.graphs.matchings import effective_sizes as effective_sizes
from anonymip.graphs.matchings import perfect_matching as perfect_matching
from anonymip.graphs.matchings import random_matchings as random_matchings
from anonymip.graphs.regular import Deficiency as Deficiency
from anonymip.graphs.regular import regular_subgraph as regular_subgraph
