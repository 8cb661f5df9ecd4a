"""Compiled losses of sets of records."""
