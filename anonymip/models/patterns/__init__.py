"""Formulations for pattern-guided suppression."""
