"""What is lost: the objective protocol and the losses of the literature."""

from anonymip.objectives.bottleneck import Bottleneck
from anonymip.objectives.class_cells import cells_of_sets
from anonymip.objectives.compiled import CompiledObjective, cells_of
from anonymip.objectives.loading import OBJECTIVES, load_objective
from anonymip.objectives.members import Members
from anonymip.objectives.penalties import (
    GCP,
    HierarchyLoss,
    LeafLoss,
    LiangGCP,
    SetGCP,
    WeightedLoss,
)
from anonymip.objectives.protocol import (
    FunctionObjective,
    FunctionOfMembers,
    MembersObjective,
    Objective,
    class_objective,
    objective,
)
from anonymip.objectives.record import CellBatch, Record
from anonymip.objectives.squared_error import SSE
from anonymip.objectives.star_costs import pattern_costs
from anonymip.objectives.suppressions import Suppressions
from anonymip.objectives.tables import LossTables

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
