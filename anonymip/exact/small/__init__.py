"""Exact solutions of sub-problems of up to about 30 records."""

from anonymip.exact.small.result import SmallResult
from anonymip.exact.small.solving import solve_small

__all__ = ["SmallResult", "solve_small"]
