"""All sets of records that may be classes, for set partitioning and column generation."""

from anonymip.enumeration.cluster_sets import ClusterSets
from anonymip.enumeration.merging import MergedRows
from anonymip.enumeration.search import enumerate_sets

__all__ = ["ClusterSets", "MergedRows", "enumerate_sets"]
