"""Long computations: budgets, kernels, processes."""
