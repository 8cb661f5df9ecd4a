"""From a Pyomo model to the rows and columns that a solver takes, and back."""
