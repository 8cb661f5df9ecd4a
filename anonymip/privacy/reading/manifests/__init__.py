"""Readers of manifests and what they say."""
