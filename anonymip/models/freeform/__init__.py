"""Formulations for freeform covers."""
