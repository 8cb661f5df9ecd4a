"""Comparisons of methods and experiments, their pictures and reports."""

from anonymip.experiments.comparison import Comparison as Comparison
from anonymip.experiments.comparison import ComparisonRow as ComparisonRow
from anonymip.experiments.comparison import compare as compare
from anonymip.experiments.measures import Measures as Measures
from anonymip.experiments.measures import measures_of as measures_of
from anonymip.experiments.measures import usefulness_of as usefulness_of
from anonymip.experiments.records import bound_record as bound_record
from anonymip.experiments.records import solution_record as solution_record
from anonymip.experiments.running.results import Results as Results
from anonymip.experiments.running.results import read_results as read_results
from anonymip.experiments.running.runner import run_experiment as run_experiment
from anonymip.experiments.running.sources import Samples as Samples
from anonymip.experiments.running.sources import TableSource as TableSource
from anonymip.experiments.running.specification import Experiment as Experiment
from anonymip.experiments.running.specification import MethodChoice as MethodChoice
