"""What uses solvers and search to prove optima."""
