"""Guarantees of a release: verification by code of its own, and attacks.

This room imports nothing of the package but its exceptions. The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anonymip.privacy.attacks.corruption import (
        Corruption,
        Identities,
        consistency_graph,
        identities_left,
        measure_corruption,
    )
    from anonymip.privacy.attacks.joined import JoinedCandidates, joined_candidates
    from anonymip.privacy.attacks.probabilities import MatchProbabilities, match_probabilities
    from anonymip.privacy.graph.consistency import MatchGraph
    from anonymip.privacy.reading.published import PublishedTable, read_release
    from anonymip.privacy.reading.release_manifest import is_table_of
    from anonymip.privacy.verification import Verification, verify

__all__ = [
    "Corruption",
    "Identities",
    "JoinedCandidates",
    "MatchGraph",
    "MatchProbabilities",
    "PublishedTable",
    "Verification",
    "consistency_graph",
    "identities_left",
    "is_table_of",
    "joined_candidates",
    "match_probabilities",
    "measure_corruption",
    "read_release",
    "verify",
]

_HOMES = {
    "Corruption": "anonymip.privacy.attacks.corruption",
    "Identities": "anonymip.privacy.attacks.corruption",
    "JoinedCandidates": "anonymip.privacy.attacks.joined",
    "MatchGraph": "anonymip.privacy.graph.consistency",
    "MatchProbabilities": "anonymip.privacy.attacks.probabilities",
    "PublishedTable": "anonymip.privacy.reading.published",
    "Verification": "anonymip.privacy.verification",
    "consistency_graph": "anonymip.privacy.attacks.corruption",
    "identities_left": "anonymip.privacy.attacks.corruption",
    "is_table_of": "anonymip.privacy.reading.release_manifest",
    "joined_candidates": "anonymip.privacy.attacks.joined",
    "match_probabilities": "anonymip.privacy.attacks.probabilities",
    "measure_corruption": "anonymip.privacy.attacks.corruption",
    "read_release": "anonymip.privacy.reading.published",
    "verify": "anonymip.privacy.verification",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
