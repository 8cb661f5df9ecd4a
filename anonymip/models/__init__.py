"""Declarative Pyomo formulations: built here, solved elsewhere."""

from anonymip.models.formulations import FORMULATIONS, build, read, set_start

__all__ = ["FORMULATIONS", "build", "read", "set_start"]
