"""What runs long things: budgets, kernels, processes."""
