"""The chain of segments for equivalence classes."""
