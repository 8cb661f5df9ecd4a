"""Exchanges of matches that improve a freeform cover."""
