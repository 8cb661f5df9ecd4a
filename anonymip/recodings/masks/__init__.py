"""Masks: which attributes may be suppressed together."""
