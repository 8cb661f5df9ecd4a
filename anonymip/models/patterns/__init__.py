"""Formulations for pattern-guided suppression."""

import anonymip.models.pyomo_loading  # noqa: F401 - before any of them imports Pyomo
