"""Attacks on a release, and their probabilities."""
