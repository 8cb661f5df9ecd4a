"""Lower bounds for pattern-guided suppression: rows, groups, Lagrangian duals."""
