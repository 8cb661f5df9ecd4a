"""Heuristics for equivalence classes, one file each."""
