"""Losses: the objective protocol and the losses of the literature."""

from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.objectives.language.protocol import (
    FunctionObjective,
    FunctionOfMembers,
    MembersObjective,
    Objective,
    class_objective,
    objective,
)
from anonymip.objectives.language.record import CellBatch, Members, Record, cells_of, cells_of_sets
from anonymip.objectives.language.tables import LossTables
from anonymip.objectives.losses.loading import OBJECTIVES, load_objective
from anonymip.objectives.losses.penalties import (
    GCP,
    Bottleneck,
    HierarchyLoss,
    LeafLoss,
    LiangGCP,
    SetGCP,
    Suppressions,
    WeightedLoss,
)
from anonymip.objectives.losses.squared_error import SSE
from anonymip.objectives.star_costs import pattern_costs

__all__ = [
    "GCP",
    "OBJECTIVES",
    "SSE",
    "Bottleneck",
    "CellBatch",
    "CompiledObjective",
    "FunctionObjective",
    "FunctionOfMembers",
    "HierarchyLoss",
    "LeafLoss",
    "LiangGCP",
    "LossTables",
    "Members",
    "MembersObjective",
    "Objective",
    "Record",
    "SetGCP",
    "Suppressions",
    "WeightedLoss",
    "cells_of",
    "cells_of_sets",
    "class_objective",
    "load_objective",
    "objective",
    "pattern_costs",
]
