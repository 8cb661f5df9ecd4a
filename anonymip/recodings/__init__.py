"""What is allowed, and what an assignment publishes: one file a recoding."""

from anonymip.recodings.diversity import Diversity
from anonymip.recodings.equivalence import EquivalenceClasses
from anonymip.recodings.limits import Apart, Cap, Limit
from anonymip.recodings.recoding import Recoding, SizeLimit

__all__ = ["Apart", "Cap", "Diversity", "EquivalenceClasses", "Limit", "Recoding", "SizeLimit"]
