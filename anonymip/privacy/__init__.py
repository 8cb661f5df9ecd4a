"""What a release guarantees: verification by code of its own, and attacks.

This room imports nothing of the package but its exceptions. The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anonymip.privacy.attacks import consistency_graph
    from anonymip.privacy.consistency import MatchGraph
    from anonymip.privacy.corruption import (
        Corruption,
        Identities,
        identities_left,
        measure_corruption,
    )
    from anonymip.privacy.digests import is_table_of
    from anonymip.privacy.joined import JoinedCandidates, joined_candidates
    from anonymip.privacy.probabilities import MatchProbabilities, match_probabilities
    from anonymip.privacy.published import PublishedTable, read_release
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
    "Corruption": "anonymip.privacy.corruption",
    "Identities": "anonymip.privacy.corruption",
    "JoinedCandidates": "anonymip.privacy.joined",
    "MatchGraph": "anonymip.privacy.consistency",
    "MatchProbabilities": "anonymip.privacy.probabilities",
    "PublishedTable": "anonymip.privacy.published",
    "Verification": "anonymip.privacy.verification",
    "consistency_graph": "anonymip.privacy.attacks",
    "identities_left": "anonymip.privacy.corruption",
    "is_table_of": "anonymip.privacy.digests",
    "joined_candidates": "anonymip.privacy.joined",
    "match_probabilities": "anonymip.privacy.probabilities",
    "measure_corruption": "anonymip.privacy.corruption",
    "read_release": "anonymip.privacy.published",
    "verify": "anonymip.privacy.verification",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
