"""Fast assignments and warm starts: one file an algorithm."""
