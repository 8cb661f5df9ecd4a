"""Losses: the objective protocol and the losses of the literature."""

from anonymip.objectives.language.compiled import CompiledObjective as CompiledObjective
from anonymip.objectives.language.protocol import FunctionObjective as FunctionObjective
from anonymip.objectives.language.protocol import FunctionOfMembers as FunctionOfMembers
from anonymip.objectives.language.protocol import MembersObjective as MembersObjective
from anonymip.objectives.language.protocol import Objective as Objective
from anonymip.objectives.language.protocol import class_objective as class_objective
from anonymip.objectives.language.protocol import objective as objective
from anonymip.objectives.language.record import CellBatch as CellBatch
from anonymip.objectives.language.record import Members as Members
from anonymip.objectives.language.record import Record as Record
from anonymip.objectives.language.record import cells_of as cells_of
from anonymip.objectives.language.record import cells_of_sets as cells_of_sets
from anonymip.objectives.language.tables import LossTables as LossTables
from anonymip.objectives.losses.loading import OBJECTIVES as OBJECTIVES
from anonymip.objectives.losses.loading import load_objective as load_objective
from anonymip.objectives.losses.penalties import GCP as GCP
from anonymip.objectives.losses.penalties import Bottleneck as Bottleneck
from anonymip.objectives.losses.penalties import HierarchyLoss as HierarchyLoss
from anonymip.objectives.losses.penalties import LeafLoss as LeafLoss
from anonymip.objectives.losses.penalties import LiangGCP as LiangGCP
from anonymip.objectives.losses.penalties import SetGCP as SetGCP
from anonymip.objectives.losses.penalties import Suppressions as Suppressions
from anonymip.objectives.losses.penalties import WeightedLoss as WeightedLoss
from anonymip.objectives.losses.squared_error import SSE as SSE
from anonymip.objectives.star_costs import pattern_costs as pattern_costs
