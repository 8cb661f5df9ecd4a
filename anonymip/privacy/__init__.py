"""Guarantees of a release: verification by code of its own, and attacks.

This room imports nothing of the package but its exceptions.
"""

from anonymip.privacy.attacks.joined import JoinedCandidates as JoinedCandidates
from anonymip.privacy.attacks.joined import joined_candidates as joined_candidates
from anonymip.privacy.attacks.matches import Corruption as Corruption
from anonymip.privacy.attacks.matches import MatchProbabilities as MatchProbabilities
from anonymip.privacy.attacks.matches import consistency_graph as consistency_graph
from anonymip.privacy.attacks.matches import match_probabilities as match_probabilities
from anonymip.privacy.attacks.matches import measure_corruption as measure_corruption
from anonymip.privacy.disclosure import DisclosureRisk as DisclosureRisk
from anonymip.privacy.disclosure import TableRisk as TableRisk
from anonymip.privacy.graph.consistency import MatchGraph as MatchGraph
from anonymip.privacy.measuring import risk as risk
from anonymip.privacy.reading.published import PublishedTable as PublishedTable
from anonymip.privacy.reading.published import read_release as read_release
from anonymip.privacy.reading.release_manifest import is_table_of as is_table_of
from anonymip.privacy.verification import Verification as Verification
from anonymip.privacy.verification import verify as verify
