"""Exact solutions of sub-problems of up to about 30 records."""

from anonymip.exact.classes.small.result import SmallResult
from anonymip.exact.classes.small.solving import solve_small

__all__ = ["SmallResult", "solve_small"]
