"""Exact solutions of sub-problems of up to about 30 records."""

from anonymip.exact.classes.small.result import SmallResult
from anonymip.exact.classes.small.solving import compare_exactly, solve_small

__all__ = ["SmallResult", "compare_exactly", "solve_small"]
