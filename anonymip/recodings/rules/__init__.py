"""Rules beside k: diversity, closeness, limits."""
