"""Exact methods for equivalence classes: models and the search for small tables."""
