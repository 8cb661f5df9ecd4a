"""Comparisons of methods, their pictures and reports."""

from anonymip.experiments.comparison import Comparison, ComparisonRow, compare
from anonymip.experiments.records import bound_record, solution_record
from anonymip.experiments.usefulness import usefulness_of

__all__ = [
    "Comparison",
    "ComparisonRow",
    "bound_record",
    "compare",
    "solution_record",
    "usefulness_of",
]
