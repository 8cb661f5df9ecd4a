"""Approximation algorithms with guarantees (Aggarwal et al. 2005)."""
