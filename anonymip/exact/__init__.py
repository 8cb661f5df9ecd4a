"""Solvers and searches that prove optima."""
