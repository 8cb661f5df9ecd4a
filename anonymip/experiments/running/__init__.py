"""Experiments: a specification, its runs in worker processes, and the table of what they found."""
