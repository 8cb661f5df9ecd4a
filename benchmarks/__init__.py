"""Benchmarks: what was promised in figures, measured; see benchmarks/README.md."""
