"""Freeform heuristics on tables in parts, in several processes."""
