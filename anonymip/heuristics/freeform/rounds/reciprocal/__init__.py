"""Rounds of reciprocal covers: records take in each other."""
