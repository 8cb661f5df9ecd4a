"""What is lost: the objective protocol and the losses of the literature."""

from anonymip.objectives.loading import OBJECTIVES, load_objective
from anonymip.objectives.penalties import GCP, LiangGCP, SetGCP, WeightedLoss
from anonymip.objectives.protocol import (
    CompiledObjective,
    FunctionObjective,
    Objective,
    cells_of,
    objective,
)
from anonymip.objectives.record import CellBatch, Record
from anonymip.objectives.tables import LossTables

__all__ = [
    "GCP",
    "OBJECTIVES",
    "CellBatch",
    "CompiledObjective",
    "FunctionObjective",
    "LiangGCP",
    "LossTables",
    "Objective",
    "Record",
    "SetGCP",
    "WeightedLoss",
    "cells_of",
    "load_objective",
    "objective",
]
