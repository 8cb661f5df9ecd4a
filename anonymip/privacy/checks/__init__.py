"""Promises and claims of a release, checked."""
