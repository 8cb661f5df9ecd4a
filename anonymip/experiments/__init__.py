"""Comparisons of methods and experiments, their pictures and reports."""

from anonymip.experiments.comparison import Comparison, ComparisonRow, compare
from anonymip.experiments.measures import Measures, measures_of, usefulness_of
from anonymip.experiments.records import bound_record, solution_record
from anonymip.experiments.running.results import Results, read_results
from anonymip.experiments.running.runner import run_experiment
from anonymip.experiments.running.sources import Samples, TableSource
from anonymip.experiments.running.specification import Experiment, MethodChoice

__all__ = [
    "Comparison",
    "ComparisonRow",
    "Experiment",
    "Measures",
    "MethodChoice",
    "Results",
    "Samples",
    "TableSource",
    "bound_record",
    "compare",
    "measures_of",
    "read_results",
    "run_experiment",
    "solution_record",
    "usefulness_of",
]
