"""Column generation: releases proven optimal, or bounded, by columns priced under duals."""
