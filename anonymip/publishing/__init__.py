"""From a solution to a verified release: the generalized table and its manifest."""
