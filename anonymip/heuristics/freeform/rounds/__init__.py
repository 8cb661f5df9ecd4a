"""Greedy and SortGreedy in rounds (Doka et al. 2015): weights, blocks, turns."""
