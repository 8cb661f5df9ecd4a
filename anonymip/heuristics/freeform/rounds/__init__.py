"""Rounds of freeform covers (Doka et al. 2015): weights, blocks, choices, pairs."""
