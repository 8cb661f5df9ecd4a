"""From a solution to a verified release: the generalized table and its manifest.

The names below load on first use.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anonymip.publishing.cautions import homogeneous_classes as homogeneous_classes
    from anonymip.publishing.cautions import nearly_unique_columns as nearly_unique_columns
    from anonymip.publishing.cautions import persons_of_several_rows as persons_of_several_rows
    from anonymip.publishing.cells import published_columns as published_columns
    from anonymip.publishing.checking import hierarchy_paths as hierarchy_paths
    from anonymip.publishing.checking import loss_of_table as loss_of_table
    from anonymip.publishing.dominance import dominates as dominates
    from anonymip.publishing.manifest import as_verified as as_verified
    from anonymip.publishing.manifest import cut_off as cut_off
    from anonymip.publishing.manifest import describe_mask as describe_mask
    from anonymip.publishing.manifest import manifest_path as manifest_path
    from anonymip.publishing.manifest import versions as versions
    from anonymip.publishing.release import Release as Release
    from anonymip.publishing.release import publish as publish
    from anonymip.publishing.release import refuse_unpublishable as refuse_unpublishable
    from anonymip.publishing.release import what_is_gone as what_is_gone
    from anonymip.publishing.suppressed import refuse_many_suppressed as refuse_many_suppressed
else:
    _HOMES = {
        name: module
        for module, name in re.findall(
            r"^ *from (\S+) import (\w+) as \2$", __loader__.get_source(__name__), re.MULTILINE
        )
    }
    __all__ = list(_HOMES)

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted(__all__)
