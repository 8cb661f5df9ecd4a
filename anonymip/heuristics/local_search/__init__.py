"""Local search over equivalence classes: moves, borrowing, trials."""
