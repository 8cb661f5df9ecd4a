"""Exact full-domain generalization: the search in the lattice of levels."""
