"""Hierarchies of values: trees, bands, nested groups, declarations."""
