"""The lattice of levels, and what its nodes cost."""
