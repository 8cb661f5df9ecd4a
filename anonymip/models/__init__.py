"""Declarative Pyomo formulations: built here, solved elsewhere."""

from anonymip.models.formulations import FORMULATIONS as FORMULATIONS
from anonymip.models.formulations import Formulation as Formulation
from anonymip.models.formulations import build as build
from anonymip.models.formulations import choices_of as choices_of
from anonymip.models.formulations import formulations_of as formulations_of
from anonymip.models.formulations import model_size as model_size
from anonymip.models.formulations import read as read
from anonymip.models.formulations import relax as relax
from anonymip.models.formulations import set_start as set_start
