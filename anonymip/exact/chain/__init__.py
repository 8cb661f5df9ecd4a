"""Chains of sub-problems along an order: windows, what goes on, checkpoints, seams."""
