"""Exact methods for freeform covers."""
