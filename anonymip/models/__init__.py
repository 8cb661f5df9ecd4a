"""Declarative Pyomo formulations: built here, solved elsewhere."""

from anonymip.models.formulations import FORMULATIONS, build, model_size, read, set_start

__all__ = ["FORMULATIONS", "build", "model_size", "read", "set_start"]
