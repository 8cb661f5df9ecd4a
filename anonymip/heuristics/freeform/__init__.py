"""Heuristics for freeform covers, one file each, and what they share."""
