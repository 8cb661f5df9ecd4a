"""Pictures for notebooks and papers: boxes, covers as graphs, bounds, solves over time."""

from anonymip.experiments.pictures.bounds_and_optimum import bound_bars
from anonymip.experiments.pictures.generalized_boxes import boxes
from anonymip.experiments.pictures.graph_views import cover_graph
from anonymip.experiments.pictures.loss_and_time import loss_against_time
from anonymip.experiments.pictures.picture import Picture
from anonymip.experiments.pictures.solve_history import (
    SolveHistory,
    solve_with_history,
    solves_over_time,
)

__all__ = [
    "Picture",
    "SolveHistory",
    "bound_bars",
    "boxes",
    "cover_graph",
    "loss_against_time",
    "solve_with_history",
    "solves_over_time",
]
