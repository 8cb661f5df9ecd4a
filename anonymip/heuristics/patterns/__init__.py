"""Heuristics for pattern-guided suppression."""
