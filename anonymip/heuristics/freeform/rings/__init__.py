"""Ring generalization: orders and sets of rings (Wong et al. 2010)."""
