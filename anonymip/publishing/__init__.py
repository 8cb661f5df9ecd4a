"""From a solution to a verified release: the generalized table and its manifest."""

from anonymip.publishing.anonymization import anonymize
from anonymip.publishing.cautions import homogeneous_classes
from anonymip.publishing.checking import hierarchy_paths, loss_of_table
from anonymip.publishing.dominance import dominates
from anonymip.publishing.manifest import (
    as_verified,
    cut_off,
    describe_mask,
    manifest_path,
    versions,
)
from anonymip.publishing.release import Release, publish, refuse_unpublishable, what_is_gone
from anonymip.publishing.suppressed import refuse_many_suppressed

__all__ = [
    "Release",
    "anonymize",
    "as_verified",
    "cut_off",
    "describe_mask",
    "dominates",
    "hierarchy_paths",
    "homogeneous_classes",
    "loss_of_table",
    "manifest_path",
    "publish",
    "refuse_many_suppressed",
    "refuse_unpublishable",
    "versions",
    "what_is_gone",
]
