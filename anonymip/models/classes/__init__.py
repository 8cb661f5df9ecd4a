"""Formulations for equivalence classes, one file each."""
