"""One adapter a solver."""
