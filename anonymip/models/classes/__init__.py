"""Formulations for equivalence classes, one file each."""

import anonymip.models.pyomo_loading  # noqa: F401 - before any of them imports Pyomo
