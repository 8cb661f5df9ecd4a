"""Lower bounds for pattern-guided suppression: rows, Lagrangian duals."""
