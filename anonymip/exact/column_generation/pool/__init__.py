"""The cheapest selection from a pool of columns that are all known."""
